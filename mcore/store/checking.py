"""Whether an index is whole: SQLite's own checks, the keys of its rows, the full text and what stands beside it.

Functions over an open Store.
"""

from mcore import termlists
from mcore.errors import StoreDamaged
from mcore.store import probe
from mcore.store.faults import REBUILD, guarded


def check_rows(store):
    """Raises StoreDamaged when rows of `cards` cannot be found by their keys, or lack their full text."""
    _check(store, "integrity_check(cards)")
    if store.dead_rows() < 0:
        raise StoreDamaged(f"cannot use the index {store.path}", "cards are missing from its full text", REBUILD)


def check_pages(store):
    """Raises StoreDamaged when any page of the file is damaged, those in no use among them, or when a table's
    definition names another one: dropped, it would leave the file useless."""
    for name, same, text in store.query("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'table'"):
        if name != same or not text.replace("VIRTUAL ", "").replace("'", "").startswith(f"CREATE TABLE {name}"):
            why = f"it is damaged (the definition of {name})"
            raise StoreDamaged(f"cannot use the index {store.path}", why, REBUILD)
    _check(store, "integrity_check(1)")


def _check(store, pragma):
    found = store.query(f"PRAGMA {pragma}")[0][0]
    if found != "ok":
        raise StoreDamaged(f"cannot use the index {store.path}", f"it is damaged ({found})", REBUILD)


def faults(store):
    """What is wrong inside the file, one text a fault; every page, key and posting list is read."""
    found = [text for (text,) in store.query("PRAGMA integrity_check(20)") if text != "ok"]
    if found:
        return found
    missing = store.query("SELECT count(*) FROM cards WHERE doc NOT IN (SELECT id FROM cards_fts_docsize)")[0][0]
    if missing:
        found.append(f"{missing} cards are missing from its full text")
    store.open_vocabulary()
    store.query("SELECT count(*), sum(cnt) FROM temp.words")  # raises where a posting list cannot be read
    return found


def posting_sums(store):
    """doc -> a sum over its postings, to be compared with `expected_sums` in the same process."""
    store.open_vocabulary()
    with guarded(store.path):
        return probe.posting_sums(store.connection)


def word_faults(store):
    """What the lists beside the full text say otherwise than it, one text a sort. As slow as making them."""
    with guarded(store.path):
        return termlists.differences(store.connection)
