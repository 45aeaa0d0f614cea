"""Opening an index: to work with it, to look only, or to save what is left of it."""

import os
import sqlite3
from contextlib import closing, contextmanager

from mcore import schema, termlists
from mcore.card import CARD_SUFFIXES
from mcore.errors import SetupError, StoreBusy, StoreError
from mcore.store.faults import BUSY_SECONDS, guarded, translated
from mcore.store.form import check_form, create, identity, refuse_others
from mcore.store.rows import is_sane_id
from mcore.store.store import Store

CACHE_KB = 16_000  # pages kept in memory; of SQLite's 2 MB a question at 100,000 cards missed a third


def list_part(path, job):
    """The termlists.Part of a job, read from an index whose full text nobody writes to meanwhile (other tables
    may be): no lock is taken, so that its writer need not wait."""
    with guarded(path), closing(sqlite3.connect(_uri(path, "immutable=1"), uri=True)) as connection:
        return termlists.part(connection, job)


@contextmanager
def looking(path, wait=BUSY_SECONDS, any_age=False):
    """A Store over the index at `path` for questions alone: no byte of it and no name beside it changes.

    None when there is no index yet (no file, an empty one). With `any_age` one that an older program made is
    given too, to be asked for its vault and its stamps. Raises what `open_store` does, and
    StoreBusy when the index was written to while it was looked at in a way that makes the answers unsure.
    """
    before = _at_rest(path)
    if before == "absent":
        yield None
        return
    # Opened for reading alone, SQLite still makes -wal and -shm where there are none, and leaves them.
    # Taken as immutable it makes nothing; that holds as long as nobody writes, which is checked below.
    how = "mode=ro" if before is None else "immutable=1"
    connection = None
    try:
        with guarded(path):
            connection = sqlite3.connect(_uri(path, how), uri=True, timeout=wait, isolation_level=None)
            connection.execute("BEGIN")
            version, ours = identity(connection)
            if not ours:
                refuse_others(connection, path, version)
            elif not any_age or version > schema.VERSION:
                check_form(connection, path, version)
            yield Store(connection, path) if ours else None
    except StoreError:
        if before is not None and _at_rest(path) != before:
            raise _written_meanwhile(path) from None
        raise
    finally:
        if connection is not None:
            connection.close()
    if before is not None and _at_rest(path) != before:
        raise _written_meanwhile(path)


def _at_rest(path):
    """A mark of an index that nobody has open for writing; None when somebody may, "absent" when there is
    no index."""
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        raise SetupError(f"cannot look at the index {path}", error.strerror or "", "check its permissions") from None
    if os.path.isdir(path):
        raise SetupError(f"cannot open the index {path}", "a folder has its name", "move it away or choose --db")
    if os.path.lexists(path + "-wal") or os.path.lexists(path + "-journal"):
        return None
    return (info.st_size, info.st_mtime_ns, info.st_ino) if info.st_size else "absent"


def _uri(path, how):
    from urllib.parse import quote

    return f"file:{quote(os.fsencode(os.path.abspath(path)))}?{how}"


def _written_meanwhile(path):
    return StoreBusy(
        f"the index {path} was written to meanwhile", "another process is at work", "try again in a moment"
    )


def open_store(path, wait=BUSY_SECONDS):
    """The index at `path`, made if it is not there.

    Raises StoreDamaged when it is not our database or tables are missing, StoreError when a newer
    program made it, StoreBusy when it stays locked for `wait` seconds, SetupError when the place
    cannot be written.
    """
    _prepare_place(path)
    with guarded(path):
        connection = _connect(path, wait)
        try:
            try:
                _set_up(connection, path)
            except sqlite3.OperationalError as error:
                # In a sandbox that may write nothing SQLite cannot make the files that WAL needs to be read.
                if "readonly" not in str(error) or _holds_wal(path):
                    raise
                connection.close()
                connection = _connect(_uri(path, "immutable=1"), wait, uri=True)
                _set_up(connection, path)
                return Store(connection, path, frozen=True)
        except BaseException:
            connection.close()
            raise
    return Store(connection, path)


def _connect(path, wait, uri=False):
    return sqlite3.connect(path, timeout=wait, isolation_level=None, cached_statements=64, uri=uri)


def _holds_wal(path):
    """Whether a part of the index stands in its log only."""
    try:
        return os.path.getsize(path + "-wal") > 0
    except OSError:
        return False


def _prepare_place(path):
    """Makes the folder (0700) and an empty file (0600) so that nobody else can read the index."""
    if path.casefold().endswith(CARD_SUFFIXES):
        raise SetupError(f"cannot use {path} as the index", "it has a card's name", "choose another file with --db")
    folder = os.path.dirname(path)
    try:
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.path.isdir(path):
            raise SetupError(f"cannot open the index {path}", "a folder has its name", "move it away or choose --db")
        if not os.path.exists(path):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise SetupError(
            f"cannot make the index {path}",
            error.strerror or str(error),
            "check the folder's permissions, or choose another place with --db or MEMORY_AGENT_HOME",
        ) from None


def _set_up(connection, path):
    """Checks whose database it is and makes the tables in a new one."""
    connection.execute("BEGIN")  # both marks of one moment: another process may be making the tables just now
    version, ours = identity(connection)
    connection.execute("COMMIT")
    if not ours:
        refuse_others(connection, path, version)
        create(connection)
    else:
        check_form(connection, path, version)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:  # needs the file for itself for a moment; whoever opens it next tries again
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            pass
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")


def salvage(path):
    """(old ids, reading counts) that can still be read from a damaged or older index.

    Old ids are (rel_path, id, content_hash); reading counts are rows of card_stats. What is damaged is left
    out; a file that may be whole and cannot be looked at just now raises SetupError, a locked one StoreBusy.
    """
    try:
        os.stat(path)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise SetupError(f"cannot read the index {path}", error.strerror or str(error), "try again") from None
    with guarded(path), closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        stats = _what_is_left(connection, path, "SELECT rel_path, read_count, last_read_at FROM card_stats")
        return _what_is_left(connection, path, "SELECT rel_path, id, content_hash FROM cards"), stats


def _what_is_left(connection, path, sql):
    """The sane rows of a statement up to the first that is damaged; a failing disk is asked twice, and a damaged
    file again without the strictest look at its pages (a page may have one bad cell among good ones)."""
    most = []
    for strict in ("ON", "ON", "OFF"):
        connection.execute(f"PRAGMA cell_size_check = {strict}")
        found = []
        try:
            for row in connection.execute(sql):
                if isinstance(row[0], str) and is_sane_id(row[1]) and isinstance(row[2], (str, bytes)):
                    found.append(row)
            return max(most, found, key=len)
        except UnicodeDecodeError:
            pass
        except sqlite3.Error as error:
            what = translated(error, path)
            if isinstance(what, StoreBusy):
                raise what from None
        most = max(most, found, key=len)
    return most
