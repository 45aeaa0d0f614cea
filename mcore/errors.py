"""What can go wrong, as values with a slug, an exit code and a cure.

Expected outcomes (`conflict`, `rejected`, no hits) are results, never exceptions. An exception
here means *could not do it*. Each door translates `McoreError` in one place.
"""

from mcore.record import namedtuple

EXIT_OK = 0
EXIT_NOTHING = 1
EXIT_SETUP = 2
EXIT_CONFLICT = 3
EXIT_INTERRUPTED = 130


Note = namedtuple("Note", "slug message hint")
Note.__doc__ = """One entry of a result's `warnings`: something to know, not a failure."""


def warning(slug, message, hint=""):
    """A Note; `hint` says what to do, if anything."""
    return Note(slug, message, hint)


class McoreError(Exception):
    """Something the caller can act on: what happened, why, and what to do.

    `message` says what happened, `why` the cause, `hint` the next step; the last two may be empty.
    """

    slug = "error"
    exit_code = EXIT_SETUP

    def __init__(self, message, why="", hint=""):
        super().__init__(message)
        self.message = message
        self.why = why
        self.hint = hint


class UsageError(McoreError):
    """The call's words are off: a missing, unknown or mistyped argument."""

    slug = "usage"


class SetupError(McoreError):
    """The environment is wrong: configuration, folders, permissions, SQLite build."""

    slug = "setup"


class CardError(McoreError):
    """A file cannot be read as a card; in an index run it is listed instead of raised."""

    slug = "card"


class CardChanged(CardError):
    """A card's file was changed by another hand between being read and being written; it was left alone."""

    slug = "card-changed"


class StoreError(McoreError):
    """The index is damaged, locked, or made by a newer program; never an empty answer."""

    slug = "store"


class StoreBusy(StoreError):
    """Another process holds the index; nothing is wrong with it."""

    slug = "store-busy"


class StoreDamaged(StoreError):
    """The index cannot be trusted; a rebuild restores all of it."""

    slug = "store-damaged"


class StoreOutdated(StoreDamaged):
    """An older program made the index; a rebuild brings it up to date, and App does that by itself."""

    slug = "store-outdated"


class StoreNewer(StoreError):
    """A newer program made the index; this one can neither read nor mend it."""


class ArchiveError(McoreError):
    """A backup cannot be trusted: damaged, hostile, or not one of ours; nothing was written from it."""

    slug = "archive"


class NotFound(McoreError):
    """No card has that id or path."""

    slug = "not-found"
    exit_code = EXIT_NOTHING


class Cancelled(McoreError):
    """The caller withdrew the request while it ran; nothing further is answered."""

    slug = "cancelled"
