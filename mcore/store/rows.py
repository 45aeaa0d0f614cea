"""What is stored of a card and what is told of it: the rows that go in and come out. No SQL."""

import os
import sqlite3

from mcore.record import namedtuple
from mcore.vault import Stamp

NO_LIFE = (None, "", None, None, None, 0, None, None, "", 0)  # of a card whose frontmatter says nothing of its life
Row = namedtuple(
    "Row",
    "id rel_path raw_name title kind source tags priority ttl created updated length "
    "content_hash size mtime_ns ctime_ns inode racy remark indexed_at "
    "scope mark valid_from valid_to review_by pinned confidence links notes special columns",
    defaults=(*NO_LIFE, ("", "", "", "")),
)
Row.__doc__ = """One card as it is stored; `columns` (tokenize.Columns) goes to the full-text index; they may be UTF-8.

`id` None lets the database choose one that was never used. `scope` to `special` are what the frontmatter says
of the card's life (see schema).
"""
# Columns that are recorded once (a scope, a mark, a time and a path are keys of SQLite's own indexes as well).
TOLD = "title kind source tags priority ttl created updated length review_by pinned confidence links notes".split()
Found = namedtuple("Found", "id rel_path title kind source score")
Detail = namedtuple("Detail", "id rel_path raw_name title kind source tags created updated length stamp remark")
Limits = namedtuple("Limits", "at scopes ranges", defaults=(None, None, ()))
Limits.__doc__ = """Which cards may answer: those in force `at` a time (None: at any), in one of `scopes` (None: any).

`ranges` are the mapped folders, as `scope.folder_ranges` gives them. Forgotten cards never pass.
"""
Outside = namedtuple("Outside", "docs elsewhere not_in_force forgotten")
Outside.__doc__ = """The docs that limits keep out; of them those for their scope alone, and for their time alone;
how many cards are forgotten."""
LifeRow = namedtuple(
    "LifeRow", "scope mark valid_from valid_to review_by pinned confidence closed_at closed_by content_hash mtime_ns"
)
LinkRow = namedtuple("LinkRow", "rel_path links valid_from created mtime_ns")
Known = namedtuple("Known", "rel_path name doc kind source content_hash")
Known.__doc__ = """What the index says of one card's file; `name` is its real name below the vault."""
Taken = namedtuple("Taken", "lacking moves kept updated gone total late", defaults=(0,))
Taken.__doc__ = """What came of a takeover: `lacking` (rel_path, id) of the cards that the new index has neither
under their path nor their id, `moves` old rel_path -> new; counts of cards: `kept` their id, `updated`
with other content under their path, `gone` ids, the `total` of the new index, and of the lacking the `late`
ones that were added to it.
"""


def real_name(rel_path, raw_name):
    """The name of a card's file below the vault as the system has it."""
    # NOT NULL and TEXT say otherwise, a flipped bit does not care.
    if not isinstance(rel_path, str) or not isinstance(raw_name, (bytes, type(None))):
        raise sqlite3.DatabaseError("malformed row of cards")
    return os.fsdecode(raw_name) if raw_name else rel_path


def is_text(values):
    """Whether every value is text, as it was stored; a flipped bit does not heed a column's type."""
    return all(isinstance(value, str) for value in values)


def is_life(life):
    """Whether the types of a LifeRow are those that were stored."""
    times = (life.valid_from, life.valid_to, life.review_by, life.closed_at)
    return (
        isinstance(life.content_hash, bytes)
        and isinstance(life.mtime_ns, int)
        and is_text((life.scope, life.mark))
        and all(isinstance(text, (str, type(None))) for text in (life.confidence, life.closed_by))
        and all(isinstance(at, (int, float, type(None))) for at in times)
    )


def detail_of(rows):
    """The Detail of the only row of a card, None for none."""
    if not rows:
        return None
    *head, size, mtime_ns, ctime_ns, inode, remark = rows[0]
    return Detail(*head, Stamp(size, mtime_ns, ctime_ns, inode), remark)


def is_sane_id(value):
    """Whether a stored number may be an id (or a count); after the largest one SQLite could give no more."""
    return isinstance(value, int) and 0 < value < 1 << 53
