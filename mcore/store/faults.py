"""SQLite's errors as StoreErrors that name the file, say why and what to do; a lock is told apart from damage."""

import sqlite3
from contextlib import contextmanager

from mcore.errors import SetupError, StoreBusy, StoreDamaged, StoreError
from mcore.postings import DamagedList

BUSY_SECONDS = 30.0  # five seconds were too short for other tools under load (context-mode #218)
REBUILD = "run: memory index --rebuild (the cards are not touched, reading counts are kept)"


@contextmanager
def guarded(path):
    """Turns every SQLite error into a StoreError about the index at `path`."""
    try:
        yield
    except UnicodeDecodeError as error:  # text in the file, or SQLite's message that quotes it
        raise StoreDamaged(f"cannot use the index {path}", "it is damaged (text that is not UTF-8)", REBUILD) from error
    except DamagedList as error:
        raise StoreDamaged(f"cannot use the index {path}", f"it is damaged ({error})", REBUILD) from error
    except sqlite3.Error as error:
        told = translated(error, path)
        if told is None:  # a fault of ours in a statement, not of the file
            raise
        raise told from error


# What SQLite says of a damaged file; some arrive as OperationalError.
_DAMAGE = (
    "malformed",
    "not a database",
    "corrupt",
    "no such table",
    "no such fts5 table",
    "no such column",
    "has no column",
    "could not decode",
    "tokenizer",
    "unrecognized",
    "parse error",
    "directive",
    "reserved fts5",
    "file format",
    "vtable constructor",
    "encrypted",
    "missing from index",
    "schema",
)


def translated(error, path):
    """The StoreError, or SetupError, for an SQLite error; None for a fault of ours in a statement."""
    text = str(error)
    low = text.lower()
    if "locked" in low or "busy" in low:
        return StoreBusy(f"the index {path} is in use", "another process is writing to it", "try again in a moment")
    if "fts5" in low and "no such module" in low:
        return SetupError("this Python's SQLite has no FTS5", text, "use a Python whose sqlite3 module has FTS5")
    if "full" in low or "readonly" in low or "read-only" in low or "unable to open" in low or "disk i/o" in low:
        return StoreError(f"cannot write the index {path}", text, "check free space and permissions, then try again")
    if isinstance(error, sqlite3.OperationalError) and not any(sign in low for sign in _DAMAGE):
        return None
    return StoreDamaged(f"cannot use the index {path}", f"it is damaged ({text})", REBUILD)
