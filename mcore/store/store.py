"""An open index: every question and every change of it."""

import os
import sqlite3
from contextlib import contextmanager

from mcore import termlists
from mcore.postings import DamagedList
from mcore.store.conditions import filters, in_force, in_scope, scope_sql
from mcore.store.faults import BUSY_SECONDS, guarded
from mcore.store.form import state_of
from mcore.store.probe import INSERT_TEXT
from mcore.store.rows import (
    TOLD,
    Found,
    Known,
    LifeRow,
    Limits,
    LinkRow,
    Outside,
    Row,
    detail_of,
    is_life,
    is_sane_id,
    is_text,
    real_name,
)
from mcore.store.words import Words
from mcore.validity import FORGOTTEN
from mcore.vault import Stamp

BATCH = termlists.BATCH
TITLED = 20  # cards of one title that stand in front of others; as many hits as an answer has at most
_CARD_COLUMNS = ("doc", *Row._fields[:-1])
_INSERT_CARD = f"INSERT INTO cards ({', '.join(_CARD_COLUMNS)}) VALUES ({', '.join('?' * len(_CARD_COLUMNS))})"
_DETAIL = (
    "SELECT id, rel_path, raw_name, title, kind, source, tags, created, updated, length, "
    "size, mtime_ns, ctime_ns, inode, remark FROM cards "
)
# Weight of title, labels, body and names in BM25; a title word says more than a body word.
WEIGHTS = (3.0, 2.0, 1.0, 0.5)
_BM25 = f"bm25(cards_fts, {', '.join(map(str, WEIGHTS))})"


class Store:
    """An open index. Use `open_store`; close it when done. A `frozen` one cannot be written, and what others
    write to it is not seen."""

    def __init__(self, connection, path, frozen=False):
        self.connection = connection
        self.path = path
        self.frozen = frozen
        self.is_loading = False  # whole, in bulk: no lists until the end (see rebuilding)
        self.words = Words(connection, path)
        self._has_vocabulary = False
        self._outside = None

    def close(self):
        self.connection.close()

    def wipe_freed_space(self):
        """From now on this connection overwrites what it removes with zeros."""
        with guarded(self.path):
            self.connection.execute("PRAGMA secure_delete = ON")

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

    def _in_batches(self, sql, values, more=()):
        """Rows of a statement with `{}` for a list of values, asked in batches; `more` values follow the list."""
        return termlists.in_batches(self.connection, sql, values, more)

    # ---- what the index knows of the files -------------------------------------------------------

    def each_stamp(self, folder=None):
        """(rel_path, stamp as a tuple, racy) of every indexed card (of a folder), one at a time (memory)."""
        sql, values = "SELECT rel_path, racy, size, mtime_ns, ctime_ns, inode FROM cards", ()
        if folder is not None:
            sql += " WHERE rel_path >= ? AND rel_path < ? AND instr(substr(rel_path, ?), '/') = 0"
            values = (folder, folder + termlists.LAST_CHAR, len(folder) + 1)
        with guarded(self.path):
            for row in self.connection.execute(sql, values):
                yield real_name(row[0], None), row[2:], row[1]

    def each_id(self):
        """(rel_path, id, stamp as a tuple) of every indexed card, one at a time (memory)."""
        with guarded(self.path):
            for path, id, *stamp in self.connection.execute(
                "SELECT rel_path, id, size, mtime_ns, ctime_ns, inode FROM cards"
            ):
                yield path, id, tuple(stamp)

    def known_files(self):
        """A Known for every card."""
        rows = self.query("SELECT rel_path, raw_name, doc, kind, source, content_hash FROM cards")
        with guarded(self.path):
            return [Known(path, real_name(path, raw), *rest) for path, raw, *rest in rows]

    def known_unreadable(self):
        """rel_path -> (reason, Stamp) of card files that could not be read."""
        rows = self.query("SELECT rel_path, reason, size, mtime_ns, ctime_ns, inode FROM unreadable")
        return {path: (reason, Stamp(*stamp)) for path, reason, *stamp in rows}

    def ids(self):
        """rel_path -> id of every indexed card."""
        return dict(self.query("SELECT rel_path, id FROM cards"))

    def last_id(self):
        """The largest id ever given to a card; 0 when damage has made it absurd."""
        rows = self.query("SELECT seq FROM sqlite_sequence WHERE name = 'cards'")
        return rows[0][0] if rows and is_sane_id(rows[0][0]) else 0

    def paths(self):
        """Every rel_path, sorted."""
        return [path for (path,) in self.query("SELECT rel_path FROM cards ORDER BY rel_path")]

    def hashes(self, rel_paths):
        """rel_path -> (id, content_hash) of those paths that are indexed."""
        with guarded(self.path):
            sql = "SELECT rel_path, id, content_hash FROM cards WHERE rel_path IN ({})"
            return {path: (id, digest) for path, id, digest in self._in_batches(sql, rel_paths)}

    def docs(self):
        """rel_path -> its row in cards_fts."""
        return dict(self.query("SELECT rel_path, doc FROM cards"))

    def told(self):
        """rel_path -> what a card says of itself, as a tuple of the columns TOLD."""
        rows = self.query(f"SELECT rel_path, {', '.join(TOLD)} FROM cards")
        return {path: tuple(rest) for path, *rest in rows}

    def remarks(self):
        """(rel_path, remark) of every card whose text could not be decoded whole."""
        return self.query("SELECT rel_path, remark FROM cards WHERE remark <> '' ORDER BY rel_path")

    def total(self):
        return self.query("SELECT count(*) FROM cards")[0][0]

    def count_unreadable(self):
        return self.query("SELECT count(*) FROM unreadable")[0][0]

    def dead_rows(self):
        """How many rows of cards_fts belong to no card any more."""
        return self.query("SELECT count(*) FROM cards_fts_docsize")[0][0] - self.total()

    # ---- folders in which nothing is new ---------------------------------------------------------

    def folders(self):
        """prefix -> digest (None: not settled) of every folder that has cards or unreadable files here; {} when
        they do not add up to the cards there are."""
        rows = self.query("SELECT prefix, digest, files FROM folders")
        folders = {prefix: digest for prefix, digest, _ in rows}
        if (
            None not in folders.values()
            and sum(files for _, _, files in rows) != self.total() + self.count_unreadable()
        ):
            return {}
        return folders

    def count_below(self, prefix):
        """How many cards lie in a folder and those below it."""
        return self.query(
            "SELECT count(*) FROM cards WHERE rel_path >= ? AND rel_path < ?", (prefix, prefix + termlists.LAST_CHAR)
        )[0][0]

    def version(self):
        """A number that changes when another connection has written."""
        return self.query("PRAGMA data_version")[0][0]

    def settle(self, listings, gone, version, wait):
        """Notes (prefix, digest, files) of folders in which nothing is new and forgets those that are gone,
        unless another process has written since `version`; the caller has not."""
        with self.writing(wait):
            if self.version() == version:
                self.connection.executemany("INSERT OR REPLACE INTO folders VALUES (?, ?, ?)", listings)
                self.connection.executemany("DELETE FROM folders WHERE prefix = ?", [(folder,) for folder in gone])

    def _unsettle(self, rel_paths):
        """Has the folders of some cards compared the next time."""
        folders = {(path[: path.rfind("/") + 1],) for path in rel_paths}
        self.connection.executemany("INSERT OR REPLACE INTO folders VALUES (?, NULL, 0)", folders)

    # ---- writing (inside `writing`) --------------------------------------------------------------

    def remove(self, ids):
        """Takes cards out; their rows in cards_fts stay behind, dead (see schema)."""
        for at in range(0, len(ids), BATCH):
            part = list(ids)[at : at + BATCH]
            marks = ", ".join("?" * len(part))
            gone = self.connection.execute(f"SELECT rel_path FROM cards WHERE id IN ({marks})", part).fetchall()
            self._unsettle(path for (path,) in gone)
            self.connection.execute(f"DELETE FROM cards WHERE id IN ({marks})", part)

    def insert(self, rows):
        """Adds cards. The one place where the full-text index grows."""
        last = self.connection.execute("SELECT coalesce(max(id), 0) FROM cards_fts_docsize").fetchone()[0]
        rows = list(enumerate(rows, last + 1))
        cut = [(doc, *row.columns) for doc, row in rows]
        self.connection.executemany(INSERT_TEXT, cut)
        self.connection.executemany(_INSERT_CARD, [(doc, *row[:-1]) for doc, row in rows])
        self._unsettle(row.rel_path for _, row in rows)
        if not self.is_loading:
            termlists.add(self.connection, cut)

    def lists_due(self):
        """Whether enough cards were added one by one that the lists of frequent terms are made anew."""
        with guarded(self.path):
            return termlists.due(self.connection)

    def make_lists(self, parts=None):
        """Makes the lists of frequent terms from the full text as it is; `parts` as `termlists.make` takes them."""
        with guarded(self.path):
            termlists.make(self.connection, parts)

    def restamp(self, rel_path, stamp, racy):
        """Notes that a file was looked at again and holds what it held."""
        self.connection.execute(
            "UPDATE cards SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, racy = ? WHERE rel_path = ?",
            (*stamp, racy, rel_path),
        )
        self._unsettle([rel_path])

    def set_unreadable(self, rel_path, reason, stamp):
        self.connection.execute(
            "INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?, ?, ?, ?)", (rel_path, reason, *stamp)
        )
        self._unsettle([rel_path])

    def clear_unreadable(self, rel_paths):
        gone = self.connection.executemany("DELETE FROM unreadable WHERE rel_path = ?", [(p,) for p in rel_paths])
        if gone.rowcount > 0:
            self._unsettle(rel_paths)

    def start_ids_after(self, last):
        self.connection.execute("DELETE FROM main.sqlite_sequence WHERE name = 'cards'")
        self.connection.execute("INSERT INTO main.sqlite_sequence VALUES ('cards', ?)", (last,))

    # ---- asking the full text --------------------------------------------------------------------

    def match(self, expr, limit, kind=None, source=None, limits=None):
        """The best `limit` cards for an FTS5 expression, best first; larger scores are better."""
        where, values = filters(kind, source, limits)
        rows = self.query(
            f"SELECT cards.id, rel_path, cards.title, kind, source, -{_BM25} AS score "
            f"FROM cards_fts JOIN cards ON cards.doc = cards_fts.rowid "
            f"WHERE cards_fts MATCH ?{where} ORDER BY score DESC, rel_path LIMIT ?",
            (expr, *values, limit),
        )
        return [Found(*row) for row in rows]

    def count_matches(self, expr, kind=None, source=None, limits=None):
        """How many cards an FTS5 expression finds."""
        where, values = filters(kind, source, limits)
        return self.query(
            f"SELECT count(*) FROM cards_fts JOIN cards ON cards.doc = cards_fts.rowid WHERE cards_fts MATCH ?{where}",
            (expr, *values),
        )[0][0]

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

    def docs_matching(self, expr, among=None, limit=None):
        """The rows of cards_fts (of the docs `among`, if given) that an FTS5 expression finds, dead ones too.

        With `limit` at most so many, in no order that means anything.
        """
        sql, values = "SELECT rowid FROM cards_fts WHERE cards_fts MATCH ?", [expr]
        if among is not None:
            sql += f" AND +rowid IN ({', '.join('?' * len(among))})"
            values += among
        if limit is not None:
            sql, values = sql + " LIMIT ?", [*values, limit]
        return [doc for (doc,) in self.query(sql, values)]

    def has_words(self, start):
        """Whether any indexed token begins with `start`."""
        self.open_vocabulary()
        sql = "SELECT 1 FROM temp.places WHERE term >= ? AND term < ? LIMIT 1"
        return bool(self.query(sql, (start, start + termlists.LAST_CHAR)))

    def open_vocabulary(self):
        """Makes FTS5's views of its tokens, temp.words and temp.places, once for a connection."""
        if not self._has_vocabulary:
            with guarded(self.path):
                termlists.open_views(self.connection)
            self._has_vocabulary = True

    # ---- which cards pass ------------------------------------------------------------------------

    def docs_of(self, kind=None, source=None, limits=None):
        """The docs of the cards that pass the filters."""
        where, values = filters(kind, source, limits)
        return {doc for (doc,) in self.query(f"SELECT doc FROM cards WHERE 1{where}", values)}

    def has_passing(self, kind=None, source=None, limits=None):
        """Whether the filters let any card pass."""
        where, values = filters(kind, source, limits)
        return bool(self.query(f"SELECT 1 FROM cards WHERE 1{where} LIMIT 1", values))

    def outside(self, limits):
        """The Outside of `limits` that let plain global cards pass; quick where few cards are special.

        Kept until the index changes or the next moment at which a card begins or ceases to hold.
        """
        state, key = state_of(self.connection, self.path), (limits.scopes, limits.ranges)
        if limits.at is None:
            return self._find_outside(limits)
        kept = self._outside
        if kept is None or kept[:2] != (state, key) or not kept[2] <= limits.at < kept[3]:
            ends = ", ".join(
                f"min(CASE WHEN {name} > ? THEN {name} END)" for name in ("valid_from", "valid_to", "closed_at")
            )
            rows = self.query(f"SELECT {ends} FROM cards WHERE special = 1", [limits.at] * 3)
            until = min((end for end in rows[0] if end is not None), default=float("inf"))
            kept = self._outside = (state, key, limits.at, until, self._find_outside(limits))
        return kept[4]

    def _find_outside(self, limits):
        here, names = in_scope(limits)
        holds, times = in_force(limits.at)
        # Three sets in one row: a quarter of the time that rows of (doc, here, holds) take.
        rows = self.query(
            f"SELECT group_concat(CASE WHEN {holds} AND NOT {here} THEN doc END), "
            f"group_concat(CASE WHEN {here} AND NOT {holds} AND mark <> '{FORGOTTEN}' THEN doc END), "
            f"group_concat(CASE WHEN NOT ({here} OR {holds}) OR mark = '{FORGOTTEN}' THEN doc END), "
            f"coalesce(sum(mark = '{FORGOTTEN}'), 0) FROM cards WHERE special = 1",
            [*times, *names, *names, *times, *names, *times],
        )
        elsewhere, late, out, forgotten = *map(_docs, rows[0][:3]), rows[0][3]
        if limits.scopes is not None:
            for _, first, end in limits.ranges:
                sql = f"SELECT doc FROM cards WHERE special = 0 AND rel_path >= ? AND rel_path < ? AND NOT {here}"
                elsewhere.update(doc for (doc,) in self.query(sql, [first, end, *names]))
        return Outside(elsewhere | late | out, elsewhere, late, forgotten)

    def found(self, docs, limits=None):
        """doc -> Found with score 0 for the docs that still belong to a card, one within `limits`."""
        where, values = filters(None, None, limits)
        with guarded(self.path):
            # Asked by doc, SQLite takes it from the unique index; the row itself may say another.
            own = "(SELECT doc FROM cards AS same WHERE same.id = cards.id)"
            sql = f"SELECT doc, {own}, id, rel_path, title, kind, source, 0.0 FROM cards WHERE doc IN ({{}}){where}"
            rows = list(self._in_batches(sql, docs, values))
            asked = set(docs)
            if any(doc not in asked or doc != same for doc, same, *_ in rows):
                raise DamagedList("a card has another row in the full text than it is found by")
            if not all(is_text(row[3:7]) for row in rows):
                raise DamagedList("what is kept of a card makes no sense")
            return {doc: Found(*rest) for doc, _, *rest in rows}

    def titled(self, title):
        """The docs of at most TITLED cards with this title, in capital or small Latin letters."""
        title = title.encode("utf-8", "replace").decode()  # a lone surrogate cannot be bound, and stands in no title
        sql = "SELECT doc FROM cards WHERE title = ? COLLATE NOCASE LIMIT ?"
        return [doc for (doc,) in self.query(sql, (title, TITLED))]

    def chosen(self, limits, kind, limit, pinned=False):
        """The cards that pass, pinned ones alone or the last changed first, as Found rows with score 0."""
        where, values = filters(kind, None, limits)
        where += " AND cards.special = 1 AND cards.pinned = 1" if pinned else ""
        rows = self.query(
            f"SELECT id, rel_path, title, kind, source, 0.0 FROM cards WHERE 1{where} "
            "ORDER BY mtime_ns DESC, rel_path LIMIT ?",
            [*values, limit],
        )
        return [Found(*row) for row in rows]

    # ---- when and where cards hold ---------------------------------------------------------------

    def lives(self, ids, ranges=()):
        """id -> LifeRow, its scope the one in force."""
        scope, values = scope_sql(ranges)
        columns = ", ".join(f"cards.{name}" for name in LifeRow._fields[1:])
        with guarded(self.path):
            found = {}
            for at in range(0, len(ids), BATCH):
                part = list(ids)[at : at + BATCH]
                marks = ", ".join("?" * len(part))
                sql = f"SELECT id, {scope}, {columns} FROM cards WHERE id IN ({marks})"
                found.update((id, LifeRow(*rest)) for id, *rest in self.connection.execute(sql, [*values, *part]))
            if not all(map(is_life, found.values())):
                raise DamagedList("what is kept of a card's life makes no sense")
            return found

    def closed_by(self, rel_paths):
        """(rel_path, the card that closes it) for the cards that one of `rel_paths` closes, in order."""
        with guarded(self.path):
            sql = f"SELECT rel_path, closed_by FROM cards WHERE closed_by IN ({{}}) AND mark <> '{FORGOTTEN}'"
            return sorted(self._in_batches(sql, rel_paths))

    def scopes(self, ranges=(), at=None):
        """scope -> (cards, of them in force at `at`, the last change in ns), most cards first."""
        scope, values = scope_sql(ranges)
        where, now = filters(None, None, Limits(at))
        rows = self.query(
            f"SELECT {scope} AS scope, count(*) AS n, sum(1{where}), max(mtime_ns) FROM cards "
            f"WHERE mark <> '{FORGOTTEN}' GROUP BY 1 ORDER BY n DESC, 1",
            [*values, *now],
        )
        with guarded(self.path):
            if not is_text([name for name, *_ in rows]):
                raise DamagedList("a scope is no text")
        return {name: tuple(rest) for name, *rest in rows}

    def has_scope(self, scope, ranges=()):
        """Whether a card says that it has this scope, or a folder of the vault stands for it."""
        if any(name == scope for name, _, _ in ranges):
            return True
        return bool(self.query("SELECT 1 FROM cards WHERE special = 1 AND scope = ? LIMIT 1", (scope,)))

    def marked(self, mark):
        """The rel_paths of all forgotten or all retracted cards, sorted."""
        sql = "SELECT rel_path FROM cards WHERE special = 1 AND mark = ?"
        return sorted(path for (path,) in self.query(sql, (mark,)))

    def life_notes(self):
        """(rel_path, notes) of every card with a field of its life that cannot be read."""
        return sorted(self.query("SELECT rel_path, notes FROM cards WHERE special = 1 AND notes <> ''"))

    def links(self):
        """A LinkRow for each card that supersedes or retracts others and still holds itself."""
        columns = ", ".join(LinkRow._fields)
        # Left to itself SQLite reads every special card (.14 s of 50,000) instead of the index of those with links.
        sql = f"SELECT {columns} FROM cards WHERE links IS NOT NULL AND mark <> 'retracted'"
        return [LinkRow(*row) for row in self.query(sql)]

    def set_closed(self, closings):
        """Notes which card closes which (rel_path -> (at, by)), inside `writing`; only what differs is written."""
        sql = "SELECT rel_path, closed_at, closed_by FROM cards WHERE closed_by IS NOT NULL"
        before = {path: tuple(rest) for path, *rest in self.query(sql)}
        for path in before.keys() - closings.keys():
            self.connection.execute(
                "UPDATE cards SET closed_at = NULL, closed_by = NULL, special = (scope IS NOT NULL OR mark <> '' OR "
                "valid_from IS NOT NULL OR valid_to IS NOT NULL OR review_by IS NOT NULL OR pinned OR "
                "confidence IS NOT NULL OR links IS NOT NULL OR notes <> '') WHERE rel_path = ?",
                (path,),
            )
        changed = [(*closing, path) for path, closing in closings.items() if before.get(path) != tuple(closing)]
        self.connection.executemany(
            "UPDATE cards SET closed_at = ?, closed_by = ?, special = 1 WHERE rel_path = ?", changed
        )

    # ---- single cards and totals -----------------------------------------------------------------

    def real_names(self, ids):
        """id -> the file's name below the vault as the system has it.

        Raises StoreDamaged for a path that is not found by itself: a flipped bit in it would make a card look like
        one whose file is gone, or like another.
        """
        by_path = "(SELECT id FROM cards AS same WHERE same.rel_path = cards.rel_path)"
        with guarded(self.path):
            sql = f"SELECT id, rel_path, raw_name, {by_path} FROM cards WHERE id IN ({{}})"
            rows = list(self._in_batches(sql, ids))
            if any(id != same for id, _, _, same in rows):
                raise DamagedList("the path of a card is not the one that it is found by")
            return {id: real_name(rel_path, raw) for id, rel_path, raw, _ in rows}

    def by_id(self, id):
        return detail_of(self.query(_DETAIL + "WHERE id = ?", (id,)))

    def by_path(self, rel_path):
        return detail_of(self.query(_DETAIL + "WHERE rel_path = ?", (rel_path,)))

    def counts_by(self, column):
        """value -> number of cards, for `kind` or `source`, most first; forgotten ones are not counted."""
        sql = f"SELECT {column}, count(*) AS n FROM cards WHERE mark <> '{FORGOTTEN}' GROUP BY 1 ORDER BY n DESC, 1"
        return dict(self.query(sql))

    def latest(self, limit):
        """The cards changed last, newest first, without forgotten ones."""
        return self.query(
            f"SELECT id, rel_path, title, kind, mtime_ns FROM cards WHERE mark <> '{FORGOTTEN}' "
            "ORDER BY mtime_ns DESC, rel_path LIMIT ?",
            (limit,),
        )

    def vault(self):
        """The vault this index belongs to, or None before it has one."""
        rows = self.query("SELECT CAST(value AS BLOB) FROM meta WHERE key = 'vault'")
        return os.fsdecode(rows[0][0]) if rows else None

    def set_vault(self, path):
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES ('vault', ?)", (os.fsencode(path),))

    # ---- how often cards were read ---------------------------------------------------------------

    def count_read(self, rel_path, now):
        """One more reading of a card, inside `writing`; `now` is UTC text."""
        self.connection.execute(
            "INSERT INTO card_stats VALUES (?, 1, ?) ON CONFLICT (rel_path) DO UPDATE "
            "SET read_count = read_count + 1, last_read_at = excluded.last_read_at",
            (rel_path, now),
        )

    def reads_of(self, rel_path):
        """How often a card was read."""
        rows = self.query("SELECT read_count FROM card_stats WHERE rel_path = ?", (rel_path,))
        return rows[0][0] if rows else 0

    def read_counts(self, limit):
        """(cards ever read, readings in all, most read as (rel_path, read_count, last_read_at)); forgotten
        cards are not named."""
        cards, readings = self.query("SELECT count(*), coalesce(sum(read_count), 0) FROM card_stats")[0]
        most = self.query(
            "SELECT rel_path, read_count, last_read_at FROM card_stats WHERE rel_path NOT IN "
            f"(SELECT rel_path FROM cards WHERE special = 1 AND mark = '{FORGOTTEN}') "
            "ORDER BY read_count DESC, last_read_at DESC LIMIT ?",
            (limit,),
        )
        return cards, readings, most

    def every_count(self):
        """Every (rel_path, read_count, last_read_at)."""
        return self.query("SELECT rel_path, read_count, last_read_at FROM card_stats ORDER BY rel_path")

    def set_counts(self, rows):
        """Puts reading counts in (inside `writing`); rows as `every_count` gives them."""
        self.connection.executemany("INSERT OR REPLACE INTO card_stats VALUES (?, ?, ?)", rows)

    def move_stats(self, moves):
        """Carries reading counts along, inside `writing`; `moves` maps old rel_path to new."""
        rows = list(self._in_batches("SELECT * FROM card_stats WHERE rel_path IN ({})", moves))
        self.connection.executemany("DELETE FROM card_stats WHERE rel_path = ?", [(r[0],) for r in rows])
        self.connection.executemany(
            "INSERT OR REPLACE INTO card_stats VALUES (?, ?, ?)", [(moves[r[0]], *r[1:]) for r in rows]
        )

    def forget_reads(self, rel_path):
        """Erases the reading count of a card; inside `writing`."""
        self.connection.execute("DELETE FROM card_stats WHERE rel_path = ?", (rel_path,))


def _docs(joined):
    """The docs of a group_concat, which is None for none."""
    return set(map(int, joined.split(","))) if joined else set()
