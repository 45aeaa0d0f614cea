"""The SQLite file: every SQL statement stands here, and no card file is touched.

Every SQLite error leaves as a StoreError that names the file, says why and what to do; a lock is
told apart from damage. One Store belongs to one thread.
"""

import os
import sqlite3
from collections import namedtuple
from contextlib import closing, contextmanager

from mcore import schema
from mcore.card import CARD_SUFFIXES
from mcore.errors import SetupError, StoreBusy, StoreDamaged, StoreError
from mcore.tokenize import columns
from mcore.vault import Stamp

BUSY_SECONDS = 30.0  # five seconds were too short for other tools under load (context-mode #218)
FTS_HASH_BYTES = 32 << 20  # in bulk loads: 87 s of CPU fell to 32-37 s at 100,000 cards
_LAST_CHAR = "\U0010ffff"
BATCH = 500  # below SQLite's limit of 999 variables in old builds

Row = namedtuple(
    "Row",
    "id doc rel_path raw_name title kind source tags priority ttl created updated length "
    "content_hash size mtime_ns ctime_ns inode racy remark indexed_at labels body",
)
Row.__doc__ = """One card as it is stored; `labels` and `body` go to the full-text index.

`id` None lets the database choose one that was never used.
"""

Found = namedtuple("Found", "id rel_path title kind source score")
Detail = namedtuple("Detail", "id rel_path raw_name title kind source tags created updated length stamp remark")

Known = namedtuple("Known", "rel_path name doc kind source content_hash")
Known.__doc__ = """What the index says of one card's file; `name` is its real name below the vault."""

_CARD_COLUMNS = Row._fields[:-2]
_INSERT_CARD = f"INSERT INTO cards ({', '.join(_CARD_COLUMNS)}) VALUES ({', '.join('?' * len(_CARD_COLUMNS))})"
_DETAIL = (
    "SELECT id, rel_path, raw_name, title, kind, source, tags, created, updated, length, "
    "size, mtime_ns, ctime_ns, inode, remark FROM cards "
)
_LEFT = (
    "SELECT rel_path, id FROM main.cards WHERE rel_path NOT IN (SELECT rel_path FROM built.cards) "
    "AND id NOT IN (SELECT id FROM built.cards)"
)
# Weight of title, labels, body and names in BM25; a title word says more than a body word.
WEIGHTS = (3.0, 2.0, 1.0, 0.5)
_BM25 = f"bm25(cards_fts, {', '.join(map(str, WEIGHTS))})"


class Store:
    """An open index. Use `open_store`; close it when done."""

    def __init__(self, connection, path):
        self.connection = connection
        self.path = path
        self._has_vocabulary = False

    def close(self):
        self.connection.close()

    # ---- transactions ----------------------------------------------------------------------------

    @contextmanager
    def writing(self, wait=BUSY_SECONDS):
        """One write transaction, whole or not at all. Raises StoreBusy after `wait` seconds."""
        with guarded(self.path):
            try:
                self._wait(wait)
                try:
                    self.connection.execute("BEGIN IMMEDIATE")
                finally:
                    self._wait(BUSY_SECONDS)
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _wait(self, seconds):
        """Sets how long a statement waits for others' locks."""
        self.connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def _roll_back(self):
        self._has_vocabulary = False  # made inside the transaction, it goes with it
        if self.connection.in_transaction:
            try:
                self.connection.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # what went wrong before is what is told; closing rolls back too

    @contextmanager
    def reading(self):
        """One read transaction: every question inside sees the same index."""
        with guarded(self.path):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("COMMIT")

    def query(self, sql, values=()):
        """All rows of one statement."""
        with guarded(self.path):
            return self.connection.execute(sql, values).fetchall()

    def _in_batches(self, sql, values):
        """Rows of a statement with `{}` for a list of values, asked in batches."""
        values = list(values)
        for at in range(0, len(values), BATCH):
            part = values[at : at + BATCH]
            yield from self.connection.execute(sql.format(", ".join("?" * len(part))), part)

    # ---- what the index knows of the files -------------------------------------------------------

    def each_stamp(self):
        """(rel_path, stamp as a tuple, racy) of every indexed card, one at a time (memory)."""
        with guarded(self.path):
            for row in self.connection.execute("SELECT rel_path, racy, size, mtime_ns, ctime_ns, inode FROM cards"):
                if not isinstance(row[0], str):  # NOT NULL says otherwise, a flipped bit does not care
                    raise sqlite3.DatabaseError("malformed row of cards")
                yield row[0], row[2:], row[1]

    def ids(self):
        """rel_path -> id of every indexed card."""
        return dict(self.query("SELECT rel_path, id FROM cards"))

    def known_unreadable(self):
        """rel_path -> (reason, Stamp) of card files that could not be read."""
        rows = self.query("SELECT rel_path, reason, size, mtime_ns, ctime_ns, inode FROM unreadable")
        return {path: (reason, Stamp(*stamp)) for path, reason, *stamp in rows}

    def hashes(self, rel_paths):
        """rel_path -> (id, content_hash) of those paths that are indexed."""
        with guarded(self.path):
            sql = "SELECT rel_path, id, content_hash FROM cards WHERE rel_path IN ({})"
            return {path: (id, digest) for path, id, digest in self._in_batches(sql, rel_paths)}

    def remarks(self):
        """(rel_path, remark) of every card whose text could not be decoded whole."""
        return self.query("SELECT rel_path, remark FROM cards WHERE remark <> '' ORDER BY rel_path")

    # ---- writing (inside `writing`) --------------------------------------------------------------

    def remove(self, ids):
        """Takes cards out; their rows in cards_fts stay behind, dead (see schema)."""
        for at in range(0, len(ids), BATCH):
            part = list(ids)[at : at + BATCH]
            self.connection.execute(f"DELETE FROM cards WHERE id IN ({', '.join('?' * len(part))})", part)

    def insert(self, rows):
        """Adds cards. All are cut before all are stored: taking turns cost a quarter more CPU (caches)."""
        last = self.connection.execute("SELECT coalesce(max(id), 0) FROM cards_fts_docsize").fetchone()[0]
        rows = [row._replace(doc=doc) for doc, row in enumerate(rows, last + 1)]
        cut = [(row.doc, *columns(row.title, row.labels, row.body)) for row in rows]
        self.connection.executemany(
            "INSERT INTO cards_fts (rowid, title, labels, body, names) VALUES (?, ?, ?, ?, ?)", cut
        )
        self.connection.executemany(_INSERT_CARD, [row[: len(_CARD_COLUMNS)] for row in rows])

    def dead_rows(self):
        """How many rows of cards_fts belong to no card any more."""
        return self.query("SELECT count(*) FROM cards_fts_docsize")[0][0] - self.total()

    def restamp(self, rel_path, stamp, racy):
        """Notes that a file was looked at again and holds what it held."""
        self.connection.execute(
            "UPDATE cards SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, racy = ? WHERE rel_path = ?",
            (*stamp, racy, rel_path),
        )

    def set_unreadable(self, rel_path, reason, stamp):
        self.connection.execute(
            "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?, ?)", (rel_path, reason, *stamp)
        )

    def clear_unreadable(self, rel_paths):
        self.connection.executemany("DELETE FROM unreadable WHERE rel_path = ?", [(p,) for p in rel_paths])

    def move_stats(self, moves):
        """Carries reading counts along; `moves` maps old rel_path to new."""
        rows = list(self._in_batches("SELECT * FROM card_stats WHERE rel_path IN ({})", moves))
        self.connection.executemany("DELETE FROM card_stats WHERE rel_path = ?", [(r[0],) for r in rows])
        self.connection.executemany(
            "INSERT OR REPLACE INTO card_stats VALUES (?, ?, ?)", [(moves[r[0]], *r[1:]) for r in rows]
        )

    def count_read(self, rel_path, now):
        """One more reading of a card; `now` is UTC text."""
        self.connection.execute(
            "INSERT INTO card_stats VALUES (?, 1, ?) ON CONFLICT (rel_path) DO UPDATE "
            "SET read_count = read_count + 1, last_read_at = excluded.last_read_at",
            (rel_path, now),
        )

    # ---- asking ----------------------------------------------------------------------------------

    def match(self, expr, limit, kind=None, source=None):
        """The best `limit` cards for an FTS5 expression, best first; larger scores are better."""
        where, values = _filters(kind, source)
        rows = self.query(
            f"SELECT cards.id, rel_path, cards.title, kind, source, -{_BM25} AS score "
            f"FROM cards_fts JOIN cards ON cards.doc = cards_fts.rowid "
            f"WHERE cards_fts MATCH ?{where} ORDER BY score DESC, rel_path LIMIT ?",
            (expr, *values, limit),
        )
        return [Found(*row) for row in rows]

    def count_matches(self, expr, kind=None, source=None):
        """How many cards an FTS5 expression finds."""
        where, values = _filters(kind, source)
        return self.query(
            f"SELECT count(*) FROM cards_fts JOIN cards ON cards.doc = cards_fts.rowid WHERE cards_fts MATCH ?{where}",
            (expr, *values),
        )[0][0]

    def vocabulary(self, start, limit=20_000):
        """The indexed tokens that begin with `start`, at most `limit`."""
        self._open_vocabulary()
        rows = self.query(
            "SELECT term FROM temp.words WHERE term >= ? AND term < ? LIMIT ?", (start, start + _LAST_CHAR, limit)
        )
        return [term for (term,) in rows]

    def _open_vocabulary(self):
        """Makes FTS5's views of its tokens: `words` a row per token, `places` one per occurrence."""
        if self._has_vocabulary:
            return
        with guarded(self.path):
            for name, detail in (("words", "row"), ("places", "instance")):
                self.connection.execute(
                    f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name} USING fts5vocab(main, cards_fts, {detail})"
                )
        self._has_vocabulary = True

    # ---- whether an empty answer can be trusted --------------------------------------------------

    def check_rows(self):
        """Raises StoreDamaged when rows of `cards` cannot be found by their keys, or lack their full text."""
        self._check("integrity_check(cards)")
        if self.dead_rows() < 0:
            raise StoreDamaged(f"cannot use the index {self.path}", "cards are missing from its full text", REBUILD)

    def check_pages(self):
        """Raises StoreDamaged when any page of the file is damaged, those in no use among them."""
        self._check("integrity_check(1)")

    def _check(self, pragma):
        found = self.query(f"PRAGMA {pragma}")[0][0]
        if found != "ok":
            raise StoreDamaged(f"cannot use the index {self.path}", f"it is damaged ({found})", REBUILD)

    def known_files(self):
        """A Known for every card."""
        rows = self.query("SELECT rel_path, raw_name, doc, kind, source, content_hash FROM cards")
        if any(not isinstance(path, str) or not isinstance(raw, (bytes, type(None))) for path, raw, *_ in rows):
            raise StoreDamaged(f"cannot use the index {self.path}", "it is damaged (malformed row of cards)", REBUILD)
        return [Known(path, os.fsdecode(raw) if raw else path, *rest) for path, raw, *rest in rows]

    # ---- what the ranking reads ------------------------------------------------------------------

    def rows_in_index(self):
        """How many rows cards_fts has, dead ones among them: what rarity is measured against."""
        return self.query("SELECT count(*) FROM cards_fts_docsize")[0][0]

    def frequencies(self, tokens):
        """token -> number of rows that hold it, for the tokens that are there."""
        self._open_vocabulary()
        with guarded(self.path):
            return dict(self._in_batches("SELECT term, doc FROM temp.words WHERE term IN ({})", tokens))

    def vocabulary_sizes(self, start, limit):
        """(token, number of rows that hold it) for at most `limit` tokens that begin with `start`."""
        self._open_vocabulary()
        return self.query(
            "SELECT term, doc FROM temp.words WHERE term >= ? AND term < ? LIMIT ?", (start, start + _LAST_CHAR, limit)
        )

    def occurrences(self, tokens):
        """(doc, column) of every occurrence of the tokens."""
        self._open_vocabulary()
        with guarded(self.path):
            marks = ", ".join("?" * len(tokens))
            sql = f"SELECT doc, col FROM temp.places WHERE term IN ({marks})"
            return self.connection.execute(sql, tokens).fetchall()

    def docs_matching(self, expr, among=None):
        """The rows of cards_fts (of the docs `among`, if given) that an FTS5 expression finds, dead ones too."""
        sql, values = "SELECT rowid FROM cards_fts WHERE cards_fts MATCH ?", [expr]
        if among is not None:
            sql += f" AND +rowid IN ({', '.join('?' * len(among))})"
            values += among
        return [doc for (doc,) in self.query(sql, values)]

    def docs_of(self, kind=None, source=None):
        """The docs of the cards that pass the filters."""
        where, values = _filters(kind, source)
        return {doc for (doc,) in self.query(f"SELECT doc FROM cards WHERE 1{where}", values)}

    def lengths(self, docs):
        """(doc -> tokens, mean tokens of a row), from FTS5's own records."""
        with guarded(self.path):
            sizes = self._in_batches("SELECT id, sz FROM cards_fts_docsize WHERE id IN ({})", docs)
            lengths = {doc: sum(_varints(size)) for doc, size in sizes}
        # FTS5 keeps the sums under id 1 of its data table: number of rows, then tokens of each column.
        rows, *tokens = _varints(self.query("SELECT block FROM cards_fts_data WHERE id = 1")[0][0]) or [0]
        return lengths, max(1.0, sum(tokens) / max(1, rows))

    def found(self, docs):
        """doc -> Found with score 0 for the docs that still belong to a card."""
        with guarded(self.path):
            sql = "SELECT doc, id, rel_path, title, kind, source, 0.0 FROM cards WHERE doc IN ({})"
            return {doc: Found(*rest) for doc, *rest in self._in_batches(sql, docs)}

    def matching_ids(self, expr, ids):
        """Which of `ids` an FTS5 expression finds.

        The unary + keeps SQLite from asking FTS5 once for each id: one walk of the posting lists is
        far cheaper (a prefix of one character, ten ids: 29 ms fell to 3).
        """
        marks = ", ".join("?" * len(ids))
        docs = dict(self.query(f"SELECT doc, id FROM cards WHERE id IN ({marks})", list(ids)))
        marks = ", ".join("?" * len(docs))
        rows = self.query(f"SELECT rowid FROM cards_fts WHERE cards_fts MATCH ? AND +rowid IN ({marks})", (expr, *docs))
        return {docs[doc] for (doc,) in rows}

    def real_names(self, ids):
        """id -> the file's name below the vault as the system has it."""
        with guarded(self.path):
            rows = self._in_batches("SELECT id, rel_path, raw_name FROM cards WHERE id IN ({})", ids)
            return {id: os.fsdecode(raw) if raw else rel_path for id, rel_path, raw in rows}

    def by_id(self, id):
        return _detail(self.query(_DETAIL + "WHERE id = ?", (id,)))

    def by_path(self, rel_path):
        return _detail(self.query(_DETAIL + "WHERE rel_path = ?", (rel_path,)))

    def paths(self):
        """Every rel_path, sorted."""
        return [path for (path,) in self.query("SELECT rel_path FROM cards ORDER BY rel_path")]

    def total(self):
        return self.query("SELECT count(*) FROM cards")[0][0]

    def count_unreadable(self):
        return self.query("SELECT count(*) FROM unreadable")[0][0]

    def counts_by(self, column):
        """value -> number of cards, for `kind` or `source`, most first."""
        return dict(self.query(f"SELECT {column}, count(*) AS n FROM cards GROUP BY 1 ORDER BY n DESC, 1"))

    def latest(self, limit):
        """The cards changed last, newest first."""
        return self.query(
            "SELECT id, rel_path, title, kind, mtime_ns FROM cards ORDER BY mtime_ns DESC, rel_path LIMIT ?", (limit,)
        )

    def read_counts(self, limit):
        """(cards ever read, readings in all, most read as (rel_path, read_count, last_read_at))."""
        cards, readings = self.query("SELECT count(*), coalesce(sum(read_count), 0) FROM card_stats")[0]
        most = self.query(
            "SELECT rel_path, read_count, last_read_at FROM card_stats "
            "ORDER BY read_count DESC, last_read_at DESC LIMIT ?",
            (limit,),
        )
        return cards, readings, most

    def vault(self):
        """The vault this index belongs to, or None before it has one."""
        rows = self.query("SELECT CAST(value AS BLOB) FROM meta WHERE key = 'vault'")
        return os.fsdecode(rows[0][0]) if rows else None

    def set_vault(self, path):
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES ('vault', ?)", (os.fsencode(path),))

    # ---- rebuilding ------------------------------------------------------------------------------

    def last_id(self):
        """The largest id ever given to a card; 0 when damage has made it absurd."""
        rows = self.query("SELECT seq FROM sqlite_sequence WHERE name = 'cards'")
        return rows[0][0] if rows and is_sane_id(rows[0][0]) else 0

    def start_ids_after(self, last):
        self.connection.execute("DELETE FROM main.sqlite_sequence WHERE name = 'cards'")
        self.connection.execute("INSERT INTO main.sqlite_sequence VALUES ('cards', ?)", (last,))

    def bulk_mode(self):
        """Prepares a new, private index for loading: no journal, a large hash for FTS5."""
        with guarded(self.path):
            self.connection.execute("PRAGMA journal_mode = OFF")
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.execute("PRAGMA cache_size = -65536")
            self.connection.execute("INSERT INTO cards_fts (cards_fts, rank) VALUES ('hashsize', ?)", (FTS_HASH_BYTES,))

    def end_bulk_mode(self):
        """Puts the settings that travel with the tables back to their defaults."""
        with guarded(self.path):
            self.connection.execute("INSERT INTO cards_fts (cards_fts, rank) VALUES ('hashsize', 1048576)")

    def take_over(self, other_path, late_rows):
        """Replaces every derived table by the one of another index, in one transaction.

        Readers see the old tables until it commits; `card_stats` stays. FTS5's shadow tables are
        copied as they are, which is far quicker than indexing again. `late_rows` is given rel_path -> id
        of the cards that the other index lacks, and returns the rows to add for them: there must be no
        moment at which a card that another process has just indexed is not there.
        """
        with guarded(self.path):
            self.connection.execute("ATTACH DATABASE ? AS built", (os.fsencode(other_path),))
            try:
                with self.writing():
                    last, left = self.last_id(), dict(self.query(_LEFT))
                    for table in schema.TABLES[:-1]:
                        self.connection.execute(f"DROP TABLE IF EXISTS main.{table}")
                    _create_derived(self.connection)
                    for table in ("cards", "unreadable", "meta"):
                        self.connection.execute(f"INSERT INTO main.{table} SELECT * FROM built.{table}")
                    for part in ("data", "idx", "docsize", "config"):
                        self.connection.execute(f"DELETE FROM main.cards_fts_{part}")
                        self.connection.execute(
                            f"INSERT INTO main.cards_fts_{part} SELECT * FROM built.cards_fts_{part}"
                        )
                    built_last = self.query("SELECT max(seq) FROM built.sqlite_sequence WHERE name = 'cards'")[0][0]
                    self.start_ids_after(max(last, built_last or 0))
                    late = late_rows(left) if left else ()
                    if late:
                        for statement in ("SAVEPOINT copied", "ROLLBACK TO copied", "RELEASE copied"):
                            self.connection.execute(statement)  # FTS5 forgets what it knew of the empty tables
                        self.insert(late)
            finally:
                self.connection.execute("DETACH DATABASE built")


def holds(columns, expr):
    """Whether a card cut into these columns answers an FTS5 expression, asked of an index of this one card."""
    with guarded(":memory:"), closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(schema.CARDS_FTS)
        connection.execute("INSERT INTO cards_fts (title, labels, body, names) VALUES (?, ?, ?, ?)", columns)
        return bool(connection.execute("SELECT 1 FROM cards_fts WHERE cards_fts MATCH ?", (expr,)).fetchone())


def _varints(block):
    """The numbers of a record in SQLite's variable-length form (seven bits a byte, high bit: more)."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers


def _filters(kind, source):
    where, values = "", []
    for column, value in (("kind", kind), ("source", source)):
        if value is not None:
            where += f" AND cards.{column} = ? COLLATE NOCASE"
            values.append(value)
    return where, values


def _detail(rows):
    if not rows:
        return None
    *head, size, mtime_ns, ctime_ns, inode, remark = rows[0]
    return Detail(*head, Stamp(size, mtime_ns, ctime_ns, inode), remark)


# ---- opening -------------------------------------------------------------------------------------


def open_store(path, wait=BUSY_SECONDS):
    """The index at `path`, made if it is not there.

    Raises StoreDamaged when it is not our database or tables are missing, StoreError when a newer
    program made it, StoreBusy when it stays locked for `wait` seconds, SetupError when the place
    cannot be written.
    """
    _prepare_place(path)
    with guarded(path):
        connection = sqlite3.connect(path, timeout=wait, isolation_level=None, cached_statements=64)
        try:
            _set_up(connection, path)
        except BaseException:
            connection.close()
            raise
    return Store(connection, path)


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
    version, ours = _identity(connection)
    connection.execute("COMMIT")
    if not ours:
        _refuse_others(connection, path, version)
        _create(connection)
    elif version > schema.VERSION:
        raise StoreError(
            f"cannot use the index {path}",
            f"it has schema {version} and this program knows up to {schema.VERSION}",
            "upgrade memory-agent, choose another file with --db, or run: memory index --rebuild",
        )
    elif version < schema.VERSION:
        raise StoreDamaged(f"cannot use the index {path}", "it was made in another form", REBUILD)
    elif not _complete(connection):
        raise StoreDamaged(f"cannot use the index {path}", "tables are missing from it", REBUILD)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:  # needs the file for itself for a moment; whoever opens it next tries again
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            pass
    connection.execute("PRAGMA synchronous = NORMAL")


def _identity(connection):
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return version, connection.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID


def _complete(connection):
    marks = ", ".join("?" * len(schema.TABLES))
    found = connection.execute(f"SELECT count(*) FROM sqlite_master WHERE name IN ({marks})", schema.TABLES)
    return found.fetchone()[0] == len(schema.TABLES)


def _refuse_others(connection, path, version):
    """Raises unless a database without our mark is new. What is not ours is never set aside: another
    program would miss it."""
    names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if _identity(connection)[1]:
        return  # another process has just made it
    if {"cards", "cards_fts", "card_stats"} <= names:
        raise StoreDamaged(f"cannot use the index {path}", "its mark is damaged", REBUILD)
    if names or version:
        raise SetupError(
            f"cannot use {path} as the index", "it is another program's database", "choose another with --db"
        )


def _create(connection):
    """Makes the tables of a new index; of several processes the first one does it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _identity(connection)[1]:
            _create_derived(connection)
            for statement in _statements(schema.KEPT):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema.VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _create_derived(connection):
    for statement in _statements(schema.DERIVED):
        connection.execute(statement)
    connection.execute(schema.CARDS_FTS)


def _statements(script):
    """The statements of a script whose comments and texts hold no semicolon before a line's end."""
    return [s for s in script.split(";\n") if s.strip()]


def is_sane_id(value):
    """Whether a stored number may be an id (or a count); after the largest one SQLite could give no more."""
    return isinstance(value, int) and 0 < value < 1 << 53


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
        connection.execute("PRAGMA cell_size_check = ON")
        stats = _what_is_left(connection, path, "SELECT rel_path, read_count, last_read_at FROM card_stats")
        return _what_is_left(connection, path, "SELECT rel_path, id, content_hash FROM cards"), stats


def _what_is_left(connection, path, sql):
    """The sane rows of a statement up to the first that is damaged; a failing disk is asked twice."""
    for last_try in (False, True):
        found = []
        try:
            for row in connection.execute(sql):
                if isinstance(row[0], str) and is_sane_id(row[1]) and isinstance(row[2], (str, bytes)):
                    found.append(row)
            break
        except UnicodeDecodeError:
            break
        except sqlite3.Error as error:
            what = _translated(error, path)
            if isinstance(what, StoreBusy):
                raise what from None
            if last_try or isinstance(what, StoreDamaged):
                break
    return found


REBUILD = "run: memory index --rebuild (the cards are not touched, reading counts are kept)"


@contextmanager
def guarded(path):
    """Turns every SQLite error into a StoreError about the index at `path`."""
    try:
        yield
    except UnicodeDecodeError as error:  # text in the file, or SQLite's message that quotes it
        raise StoreDamaged(f"cannot use the index {path}", "it is damaged (text that is not UTF-8)", REBUILD) from error
    except sqlite3.Error as error:
        translated = _translated(error, path)
        if translated is None:  # a fault of ours in a statement, not of the file
            raise
        raise translated from error


# What SQLite says of a damaged file; some arrive as OperationalError.
_DAMAGE = (
    "malformed",
    "not a database",
    "corrupt",
    "no such table",
    "no such column",
    "has no column",
    "could not decode",
    "tokenizer",
    "file format",
    "vtable constructor",
    "encrypted",
    "missing from index",
    "schema",
)


def _translated(error, path):
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
