"""Every operation, in help order. A door reads this list and adds nothing."""

from mcore.ops.cards import CAPTURE
from mcore.ops.care import BACKUP, DOCTOR, RESTORE_BACKUP, SELFTEST
from mcore.ops.connect import HOOK, SETUP
from mcore.ops.find import CONTEXT, SEARCH, SHOW
from mcore.ops.lifecycle import FORGET, HISTORY, PURGE, RESTORE, RETRACT, SUPERSEDE, UPDATE
from mcore.ops.measure import BENCH
from mcore.ops.upkeep import INDEX, PATHS, STATS

OPERATIONS = (
    SEARCH, CONTEXT, STATS, SHOW, CAPTURE, UPDATE, SUPERSEDE, FORGET, RESTORE_BACKUP, RESTORE, RETRACT, PURGE, HISTORY,
    INDEX, PATHS, BACKUP, DOCTOR, SELFTEST, BENCH, SETUP, HOOK,
)  # fmt: skip
