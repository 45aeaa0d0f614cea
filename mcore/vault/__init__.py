"""The vault folder: walk it, read a card file, write a new one that can overwrite nothing. No SQL.

`walking` finds the card files (`ignored` says which names hold no memory), `reading` gives one file's bytes and
stamp, `text` makes text of them, `writing` is all that changes anything; `names` is what a rel_path means.
"""

from mcore.vault.ignored import HISTORY_FOLDER
from mcore.vault.names import file_path, is_inside, leads_inside, printable
from mcore.vault.reading import Stamp, names_in, read_bytes, stamp_of
from mcore.vault.text import decode, exact_text
from mcore.vault.walking import Scan, Skipped, is_bare, is_scannable, is_walked, scan
from mcore.vault.writing import (
    TEMP_PREFIX,
    claim,
    clear_stale_temps,
    discard,
    ensure_folder,
    erase,
    folder_lock,
    make_folder,
    publish,
    replace,
    stale_entries,
    stale_temps,
    sync_folder,
    temp_beside,
)

__all__ = [
    "HISTORY_FOLDER", "TEMP_PREFIX", "Scan", "Skipped", "Stamp", "claim", "clear_stale_temps",
    "decode", "discard", "ensure_folder", "erase", "exact_text", "file_path", "folder_lock", "is_bare", "is_inside",
    "is_scannable", "is_walked", "leads_inside", "make_folder", "names_in", "printable", "publish", "read_bytes",
    "replace", "scan", "stale_entries", "stale_temps", "stamp_of", "sync_folder", "temp_beside",
]  # fmt: skip
