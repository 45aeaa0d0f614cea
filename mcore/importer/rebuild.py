"""An index from nothing, whatever its file holds: damaged, older, newer or absent.

What can be saved of the old one (ids, reading counts) is; what cannot be opened is set aside, never removed.
"""

import os
import time
from contextlib import closing, contextmanager

from mcore.changes import look
from mcore.errors import SetupError, StoreBusy, StoreDamaged, StoreError, StoreOutdated
from mcore.importer.build import build_apart, unlink_index
from mcore.importer.report import report_of
from mcore.store import Row, open_store, renew, salvage
from mcore.store.checking import check_pages


def rebuild(files, db_path, wipe=False):
    """Builds the index from nothing, keeping ids and reading counts; the Report.

    Works on a damaged, older or newer index too: what cannot be opened is set aside. With `wipe`
    the space of the old tables is overwritten.
    """
    started = time.monotonic()
    with _one_at_a_time(db_path):
        scan = look(files.settings, thorough=True)
        try:
            store = _usable_store(db_path)
        except StoreBusy:
            raise
        except StoreError:
            return _replace(files, db_path, scan, started)
        try:
            if wipe:
                store.wipe_freed_space()
            return _rebuild_into(store, files, scan, started)
        except (StoreDamaged, AttributeError, LookupError, TypeError, ValueError):
            # It opens, and breaks when it is read or dropped, or what it holds makes no sense.
            return _replace(files, db_path, scan, started)


def _rebuild_into(store, files, scan, started):
    with closing(store):
        check_pages(store)
        counts = build_apart(store, files, scan)
        return report_of(store, files, scan.skipped, counts, started)


def _usable_store(db_path):
    """The store to rebuild into; an outdated one is emptied but for ids and reading counts."""
    try:
        return open_store(db_path)
    except StoreOutdated:
        cards, _ = salvage(db_path)
        renew(db_path)
        store = open_store(db_path)
        _restore_salvaged(store, cards, [])
        return store


def _replace(files, db_path, scan, started):
    """Builds a new index in the place of a damaged file, with what that still gives, and sets it aside.

    The damaged file keeps its name until the new one is whole: a kill on the way loses nothing.
    """
    cards, stats = salvage(db_path)
    beside = f"{db_path}.build-{os.getpid()}"
    unlink_index(beside)
    try:
        store = open_store(beside)
        _restore_salvaged(store, cards, stats)
        report = _rebuild_into(store, files, scan, started)
        _set_aside(db_path)
        os.replace(beside, db_path)
    except OSError as error:
        raise _no_room_beside(db_path, error) from None
    finally:
        unlink_index(beside)
    return report


def _restore_salvaged(store, cards, stats):
    """Puts back reading counts, and ids as empty cards that the rebuild then fills."""
    from sqlite3 import IntegrityError

    with store.writing():
        for row in stats:
            store.connection.execute("INSERT OR REPLACE INTO card_stats VALUES (?, ?, ?)", row)
        for rel_path, id, digest in cards:
            empty = Row(id, rel_path, None, "", "", "", "[]", None, None, None, None, 0, digest, 0, 0, 0, 0, 0, "", "")
            try:
                store.insert([empty])
            except IntegrityError:
                continue


@contextmanager
def _one_at_a_time(db_path):
    """Lets one rebuild of an index run at a time; others wait."""
    folder = os.path.dirname(db_path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.name != "nt" and open(db_path + ".lock", "ab", opener=lambda p, f: os.open(p, f, 0o600))
    except OSError as error:
        raise _no_room_beside(db_path, error) from None
    if not handle:
        yield
        return
    import fcntl

    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a network file system without locks: two rebuilds at once cost time, and nothing else
        yield


def _no_room_beside(path, error):
    """The SetupError for an OSError that came when files were made or moved beside an index."""
    return SetupError(
        f"cannot write beside the index {path}",
        error.strerror or str(error),
        "check the folder's permissions, or choose another place with --db or MEMORY_AGENT_HOME",
    )


def _set_aside(path):
    """Moves a damaged index to a free name beside it; the file itself keeps its name too until another takes it."""
    aside, number = f"{path}.damaged", 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{path}.damaged-{number}"
    for side in ("-wal", "-shm", "-journal", ""):
        try:
            if side or os.name == "nt":
                os.rename(path + side, aside + side)
            else:
                os.link(path, aside)
        except FileNotFoundError:
            continue
        except OSError:  # a file system without hard links
            os.rename(path + side, aside + side)
