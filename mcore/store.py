"""The SQLite file: every SQL statement stands here, and no card file is touched.

Every SQLite error leaves as a StoreError that names the file, says why and what to do; a lock is
told apart from damage. One Store belongs to one thread.
"""

import os
import sqlite3
from collections import namedtuple
from contextlib import contextmanager

from mcore import schema, termlists
from mcore.card import CARD_SUFFIXES
from mcore.errors import SetupError, StoreBusy, StoreDamaged, StoreError
from mcore.postings import DamagedList
from mcore.tokenize import columns
from mcore.vault import Stamp

BUSY_SECONDS = 30.0  # five seconds were too short for other tools under load (context-mode #218)
FTS_HASH_BYTES = 32 << 20  # in bulk loads: 87 s of CPU fell to 32-37 s at 100,000 cards
CACHE_KB = 16_000  # pages kept in memory; of SQLite's 2 MB a question at 100,000 cards missed a third
_LAST_CHAR = "\U0010ffff"
LONG_LISTS_BYTES = 16 << 20  # of unpacked lists kept in memory
BATCH = termlists.BATCH

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
        self._has_vocabulary = self._is_loading = False
        self._measures = (None, None)
        self._long_lists = {}  # term -> its unpacked list; emptied when the index changes

    def close(self):
        self.connection.close()

    # ---- transactions ----------------------------------------------------------------------------

    @contextmanager
    def writing(self, wait=BUSY_SECONDS):
        """One write transaction, whole or not at all. Raises StoreBusy after `wait` seconds."""
        with guarded(self.path):
            self.connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            finally:
                self.connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

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
        return termlists.in_batches(self.connection, sql, values)

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
        if not self._is_loading:
            termlists.add(self.connection, cut)

    def lists_due(self):
        """Whether enough cards were added one by one that the lists of frequent terms are made anew."""
        with guarded(self.path):
            return termlists.due(self.connection)

    def make_lists(self):
        """Makes the lists of frequent terms from the full text as it is."""
        with guarded(self.path):
            termlists.make(self.connection)

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

    def has_words(self, start):
        """Whether any indexed token begins with `start`."""
        self._open_vocabulary()
        sql = "SELECT 1 FROM temp.places WHERE term >= ? AND term < ? LIMIT 1"
        return bool(self.query(sql, (start, start + _LAST_CHAR)))

    def _open_vocabulary(self):
        if not self._has_vocabulary:
            with guarded(self.path):
                termlists.open_views(self.connection)
            self._has_vocabulary = True

    # ---- what the ranking reads ------------------------------------------------------------------

    def measures(self):
        """(rows of cards_fts with the dead ones, mean tokens of a row, a length code for every row)."""
        changes = self.connection.total_changes
        state = (self.query("PRAGMA data_version")[0][0], changes)
        if self._measures[0] != state:
            self._long_lists = {}
            with guarded(self.path):
                rows = termlists.row_count(self.connection)
                found = rows, termlists.mean_length(self.connection), termlists.length_codes(self.connection)
            self._measures = (state, found)
        return self._measures[1]

    def list_sizes(self, terms):
        """term -> number of rows that hold it, for the terms with a list of their own."""
        with guarded(self.path):
            return termlists.sizes(self.connection, terms)

    def read_list(self, term):
        """(the list of a term as `postings.unpack` gives it, [(doc, count)] of the rows since it was made).

        Long lists are kept: the same few hundred terms come again in query after query.
        """
        with guarded(self.path):
            unpacked = self._long_lists.get(term)
            if unpacked is None:
                unpacked = termlists.read(self.connection, term)
                if isinstance(unpacked, bytes):
                    self._keep(term, unpacked)
            return unpacked, termlists.since(self.connection, term)

    def _keep(self, term, unpacked):
        """Keeps a long list in memory, the oldest others only as far as there is room."""
        kept = self._long_lists
        while kept and (len(kept) + 1) * len(unpacked) > LONG_LISTS_BYTES:
            del kept[next(iter(kept))]
        if len(unpacked) <= LONG_LISTS_BYTES:
            kept[term] = unpacked

    def counted(self, terms):
        """term -> {doc: weighted count} for terms without a list."""
        with guarded(self.path):
            return termlists.counted(self.connection, terms)

    def held(self, terms):
        """Those of some tokens that the index holds, in their order."""
        listed = self.list_sizes(terms)
        rest = self.counted([term for term in terms if term not in listed])
        return [term for term in terms if term in listed or term in rest]

    def counted_start(self, char):
        """{doc: weighted count} of the tokens that begin with a character."""
        with guarded(self.path):
            return termlists.counted_start(self.connection, char)

    def words_of_stems(self, stems):
        """stem -> the words of the index with that stem, other than the stem itself."""
        with guarded(self.path):
            return termlists.words_of(self.connection, stems)

    def docs_matching(self, expr, among=None, limit=None):
        """The rows of cards_fts (of the docs `among`, if given) that an FTS5 expression finds, dead ones too."""
        sql, values = "SELECT rowid FROM cards_fts WHERE cards_fts MATCH ?", [expr]
        if among is not None:
            sql += f" AND +rowid IN ({', '.join('?' * len(among))})"
            values += among
        if limit is not None:
            sql, values = sql + " LIMIT ?", [*values, limit]
        return [doc for (doc,) in self.query(sql, values)]

    def docs_of(self, kind=None, source=None):
        """The docs of the cards that pass the filters."""
        where, values = _filters(kind, source)
        return {doc for (doc,) in self.query(f"SELECT doc FROM cards WHERE 1{where}", values)}

    def found(self, docs, kind=None, source=None):
        """doc -> Found with score 0 for the docs that still belong to a card and pass the filters."""
        where, values = _filters(kind, source)
        docs, found = list(docs), {}
        with guarded(self.path):
            for at in range(0, len(docs), BATCH):
                part = docs[at : at + BATCH]
                rows = self.connection.execute(
                    "SELECT doc, id, rel_path, title, kind, source, 0.0 FROM cards "
                    f"WHERE doc IN ({', '.join('?' * len(part))}){where}",
                    (*part, *values),
                )
                found.update((doc, Found(*rest)) for doc, *rest in rows)
        return found

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
        """Prepares a new, private index for loading: no journal, a large hash for FTS5, lists at the end."""
        self._is_loading = True
        with guarded(self.path):
            self.connection.execute("PRAGMA journal_mode = OFF")
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.execute("PRAGMA cache_size = -65536")
            self.connection.execute("INSERT INTO cards_fts (cards_fts, rank) VALUES ('hashsize', ?)", (FTS_HASH_BYTES,))

    def end_bulk_mode(self):
        """Makes the lists, and puts the settings that travel with the tables back to their defaults."""
        with self.writing():
            self.make_lists()
        self._is_loading = False
        with guarded(self.path):
            self.connection.execute("INSERT INTO cards_fts (cards_fts, rank) VALUES ('hashsize', 1048576)")

    def take_over(self, other_path):
        """Replaces every derived table by the one of another index, in one transaction.

        Readers see the old tables until it commits; `card_stats` stays. FTS5's shadow tables are
        copied as they are, which is far quicker than indexing again. Returns (rel_path, id) of the
        cards that the other index lacks.
        """
        with guarded(self.path):
            self.connection.execute("ATTACH DATABASE ? AS built", (os.fsencode(other_path),))
            try:
                with self.writing():
                    last, left = self.last_id(), self.query(_LEFT)
                    for table in schema.TABLES[:-1]:
                        self.connection.execute(f"DROP TABLE IF EXISTS main.{table}")
                    _create_derived(self.connection)
                    for table in schema.PLAIN:
                        self.connection.execute(f"INSERT INTO main.{table} SELECT * FROM built.{table}")
                    for part in ("data", "idx", "docsize", "config"):
                        self.connection.execute(f"DELETE FROM main.cards_fts_{part}")
                        self.connection.execute(
                            f"INSERT INTO main.cards_fts_{part} SELECT * FROM built.cards_fts_{part}"
                        )
                    built_last = self.query("SELECT max(seq) FROM built.sqlite_sequence WHERE name = 'cards'")[0][0]
                    self.start_ids_after(max(last, built_last or 0))
                return left
            finally:
                self.connection.execute("DETACH DATABASE built")


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
    connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")


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

    Old ids are (rel_path, id, content_hash); reading counts are rows of card_stats. Whatever cannot
    be read is left out; nothing is raised.
    """
    cards, stats = [], []
    if not os.path.isfile(path):
        return cards, stats
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA cell_size_check = ON")
    except sqlite3.Error:
        return cards, stats
    for found, sql in (
        (stats, "SELECT rel_path, read_count, last_read_at FROM card_stats"),
        (cards, "SELECT rel_path, id, content_hash FROM cards"),
    ):
        try:
            for row in connection.execute(sql):
                if isinstance(row[0], str) and is_sane_id(row[1]) and isinstance(row[2], (str, bytes)):
                    found.append(row)
        except (sqlite3.Error, UnicodeDecodeError):
            continue
    connection.close()
    return cards, stats


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
    "no such fts5 table",
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
