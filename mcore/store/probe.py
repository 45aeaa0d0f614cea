"""What FTS5 makes of single texts, asked of a database in memory."""

import sqlite3
from collections import defaultdict
from contextlib import closing

from mcore import schema, termlists
from mcore.store.faults import guarded
from mcore.tokenize import columns

INSERT_TEXT = "INSERT INTO cards_fts (rowid, title, labels, body, names) VALUES (?, ?, ?, ?, ?)"


def tokens_of(text):
    """The tokens that the full text makes of a text, each once."""
    with guarded(":memory:"), closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(schema.CARDS_FTS)
        connection.execute("INSERT INTO cards_fts (body) VALUES (?)", (text,))
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, cards_fts, row)")
        return [term for (term,) in connection.execute(f"SELECT term FROM temp.words WHERE {termlists.IS_WORD}")]


def holds(columns, expr):
    """Whether a card cut into these columns answers an FTS5 expression, asked of an index of this one card."""
    with guarded(":memory:"), closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(schema.CARDS_FTS)
        connection.execute("INSERT INTO cards_fts (title, labels, body, names) VALUES (?, ?, ?, ?)", columns)
        return bool(connection.execute("SELECT 1 FROM cards_fts WHERE cards_fts MATCH ?", (expr,)).fetchone())


def expected_sums(cards):
    """doc -> the sum over the postings that the index should have for it; `cards` are
    (doc, title, labels, body)."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(schema.CARDS_FTS)
        connection.execute("BEGIN")
        connection.executemany(INSERT_TEXT, ((doc, *columns(*texts)) for doc, *texts in cards))
        connection.execute("COMMIT")
        connection.execute("CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, cards_fts, instance)")
        return posting_sums(connection)


def posting_sums(connection):
    """doc -> the sum over the postings in temp.places."""
    sums = defaultdict(int)
    for doc, term, col, offset in connection.execute("SELECT doc, term, col, offset FROM temp.places"):
        sums[doc] += hash((term, col, offset))
    return sums
