"""Every operation, in help order. A door reads this list and adds nothing."""

from mcore.ops.cards import CAPTURE
from mcore.ops.care import BACKUP, DOCTOR, RESTORE, SELFTEST
from mcore.ops.connect import HOOK, SETUP
from mcore.ops.find import SEARCH, SHOW
from mcore.ops.measure import BENCH
from mcore.ops.upkeep import INDEX, PATHS, STATS

OPERATIONS = (SEARCH, STATS, SHOW, CAPTURE, INDEX, PATHS, BACKUP, RESTORE, DOCTOR, SELFTEST, BENCH, SETUP, HOOK)
