"""The SQLite file: every SQL statement stands here, and no card file is touched.

Every SQLite error leaves as a StoreError that names the file, says why and what to do; a lock is
told apart from damage. One Store belongs to one thread.

`opening` gives a Store (`store`), whose rows are in `rows` and whose conditions in `conditions`; `words` is the part of
it that knows words; `rebuilding` loads a whole new index and puts it in the place of another; `checking` tells
whether one is whole; `form` knows which tables there must be, `faults` what SQLite's errors mean, `probe` asks FTS5
about single texts.
"""

from mcore.store.faults import BUSY_SECONDS, REBUILD
from mcore.store.form import renew
from mcore.store.opening import list_part, looking, open_store, salvage
from mcore.store.probe import expected_sums, holds
from mcore.store.rows import NO_LIFE, TOLD, Limits, Row, is_sane_id

__all__ = [
    "BUSY_SECONDS", "NO_LIFE", "REBUILD", "TOLD", "Limits", "Row", "expected_sums", "holds", "is_sane_id", "list_part",
    "looking", "open_store", "renew", "salvage",
]  # fmt: skip
