"""mcore.store: every state of the SQLite file is an index or an error that says what to do."""

import os
import random
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from mcore import schema
from mcore.errors import SetupError, StoreBusy, StoreDamaged, StoreError, StoreNewer
from mcore.store import Row, checking, is_sane_id, looking, open_store, rebuilding, salvage
from mcore.store.rows import Taken
from mcore.store.store import Store
from mcore.store.structure import on_its_level
from mcore.termlists import varints
from mcore.tokenize import columns

POSIX = os.name == "posix"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "home" / "memory.db")


def row(rel_path="a.md", body="body words", labels="", **fields):
    given = dict.fromkeys(Row._fields) | Row._field_defaults | {
        "rel_path": rel_path, "title": rel_path, "kind": "tool", "source": "", "tags": "[]", "length": len(body),
        "content_hash": body.encode(), "size": 0, "mtime_ns": 0, "ctime_ns": 0, "inode": 0, "racy": 0, "remark": "",
        "indexed_at": "",
    }  # fmt: skip
    given.update(fields)
    given["columns"] = columns(given["title"], labels, body)
    return Row(**given)


def filled(path, *rows):
    """An open index with these cards."""
    store = open_store(path)
    with store.writing():
        for one in rows or [row()]:
            store.insert([one])
    return store


def none_late(left):
    """For take_over: what the other index lacks is to be gone."""
    return []


# ---- opening -------------------------------------------------------------------------------------


def test_a_new_index_is_made_with_its_folders_for_its_owner_alone(path):
    """SPEC: "data root, mode 0700"."""
    with closing(open_store(path)) as store:
        assert store.total() == 0 and store.vault() is None
    if POSIX:
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


def test_an_empty_file_becomes_an_index(path):
    os.makedirs(os.path.dirname(path))
    open(path, "w").close()
    with closing(open_store(path)) as store:
        assert store.total() == 0


def test_an_index_has_its_mark_and_version(path):
    open_store(path).close()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert other.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def overwrite(path, data, at=0):
    with open(path, "r+b") as handle:
        handle.seek(at)
        handle.write(data)


def sql(path, *statements):
    with closing(sqlite3.connect(path)) as other:
        for statement in statements:
            other.execute(statement)
        other.commit()


DAMAGE = {
    "garbage": lambda path: overwrite(path, b"garbage" * 1000),
    "text": lambda path: overwrite(path, b"# A note\n"),
    "zeros": lambda path: overwrite(path, b"\0" * 100),
    "cut in half": lambda path: os.truncate(path, os.path.getsize(path) // 2),
    "cut to a page": lambda path: os.truncate(path, 4096),
    "no cards": lambda path: sql(path, "DROP TABLE cards"),
    "no words": lambda path: sql(path, "DROP TABLE cards_fts"),
    "no reading counts": lambda path: sql(path, "DROP TABLE card_stats"),
    "version 0": lambda path: sql(path, "PRAGMA user_version = 0", "PRAGMA application_id = 0"),
    "older": lambda path: sql(path, "PRAGMA application_id = 1"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_an_error_that_names_it_and_the_cure(path, damage):
    """README: "A damaged or locked index is an error, never an empty answer"."""
    filled(path, *(row(f"{n}.md", "word " * 500) for n in range(50))).close()
    DAMAGE[damage](path)
    with pytest.raises(StoreDamaged) as caught, closing(open_store(path)) as store:
        store.match('"word"', 5)
        store.ids()
    assert path in caught.value.message and "rebuild" in caught.value.hint + caught.value.message


@pytest.mark.parametrize("key", [b"\x2f\x0f", b"\x0f\x11"], ids=["another doc", "another row"])
def test_a_row_that_was_not_asked_for_is_damage(path, key):
    filled(path, *(row(f"{n}.md", "word") for n in range(60))).close()
    with open(path, "rb") as handle:
        data = handle.read()
    head = b"\x03\x01\x01"
    assert data.count(head + b"\x0f\x0f") == 1  # doc 15 of id 15, in the unique index of docs
    overwrite(path, data.replace(head + b"\x0f\x0f", head + key))
    refused = 0
    with closing(open_store(path)) as store:
        for doc in range(1, 61):
            try:
                assert [found.id for found in store.found([doc]).values()] in ([doc], [])
            except StoreDamaged:
                refused += 1
    assert refused


def test_a_newer_index_is_left_alone(path):
    filled(path).close()
    sql(path, f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(StoreError, match="cannot use") as caught:
        open_store(path)
    assert not isinstance(caught.value, StoreDamaged) and "upgrade" in caught.value.hint


def test_another_program_s_database_is_not_taken(path, tmp_path):
    other = str(tmp_path / "other.db")
    sql(other, "CREATE TABLE bookmarks (url)", "INSERT INTO bookmarks VALUES ('x')")
    with pytest.raises(SetupError, match="as the index") as caught:
        open_store(other)
    assert "another" in caught.value.why and "--db" in caught.value.hint
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


@pytest.mark.parametrize("name", ["a.md", "a.markdown", "a.mdx", "NOTE.MD", "a.Md", "empty.md"])
def test_no_card_is_taken_for_an_index(tmp_path, name):
    """A typing error in --db, and the advice to rebuild, would have put the index in the card's place."""
    card = tmp_path / name
    card.write_text("" if name == "empty.md" else "precious")
    with pytest.raises(SetupError, match="as the index"):
        open_store(str(card))
    assert card.read_text() in ("", "precious") and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["folder", "file/memory.db", "x" * 300, "/dev/null" if POSIX else "nul"])
def test_a_place_that_cannot_hold_an_index_is_said(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises((SetupError, StoreError)) as caught:
        open_store(os.path.join(tmp_path, name))
    assert caught.value.hint


# ---- transactions --------------------------------------------------------------------------------


def test_a_transaction_is_whole_or_nothing(path):
    with closing(filled(path)) as store:
        with pytest.raises(KeyboardInterrupt), store.writing():
            store.insert([row("b.md")])
            raise KeyboardInterrupt
        assert store.paths() == ["a.md"] and store.match('"b"', 5) == []


def test_a_busy_index_is_told_apart_from_damage_after_the_wait(path):
    with closing(filled(path)) as store, closing(open_store(path)) as other, other.writing():
        with pytest.raises(StoreBusy), store.writing(wait=0.2):
            pass
        assert store.paths() == ["a.md"]


def test_a_writer_waits_for_another(path):
    filled(path).close()
    held = threading.Event()

    def hold():
        with closing(open_store(path)) as store, store.writing():
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    with closing(open_store(path)) as store, store.writing():
        store.insert([row("b.md")])
    thread.join()


def test_a_reader_sees_one_index_all_the_way(path):
    with closing(filled(path)) as reader, closing(open_store(path)) as writer:
        with reader.reading():
            assert reader.total() == 1
            with writer.writing():
                writer.insert([row("b.md")])
            assert reader.total() == 1
        assert reader.total() == 2


# ---- cards ---------------------------------------------------------------------------------------


def test_an_id_is_never_given_twice(path):
    with closing(filled(path, row("a.md"), row("b.md"))) as store:
        with store.writing():
            store.remove([2])
        with store.writing():
            store.insert([row("c.md")])
        assert store.ids() == {"a.md": 1, "c.md": 3} and store.last_id() == 3


def test_a_removed_card_is_not_found_though_its_words_stay_behind(path):
    with closing(filled(path, row("a.md", "zebra"), row("b.md", "zebra"))) as store:
        with store.writing():
            store.remove([1])
        assert [found.rel_path for found in store.match('"zebra"', 5)] == ["b.md"]
        assert (store.total(), store.dead_rows(), store.count_matches('"zebra"')) == (1, 1, 1)


def test_the_best_match_comes_first_and_larger_is_better(path):
    rows = [row("long.md", "zebra " + "other " * 50), row("short.md", "zebra"), row("titled.md", "x", title="zebra")]
    with closing(filled(path, *rows)) as store:
        found = store.match('"zebra"', 5)
        assert [f.rel_path for f in found] == ["titled.md", "short.md", "long.md"]
        assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)
        assert len(store.match('"zebra"', 2)) == 2


@pytest.mark.parametrize("kind, source, count", [(None, None, 3), ("tool", None, 2), ("tool", "me", 1), ("x", None, 0)])
def test_a_filter_leaves_only_its_cards(path, kind, source, count):
    rows = [row("a.md"), row("b.md", source="me"), row("c.md", kind="mistake")]
    with closing(filled(path, *rows)) as store:
        assert len(store.match('"body"', 9, kind, source)) == store.count_matches('"body"', kind, source) == count


def test_more_values_than_a_statement_takes_are_asked_in_batches(path):
    with closing(filled(path, *(row(f"{n}.md") for n in range(1200)))) as store:
        assert len(store.hashes(store.paths())) == 1200
        with store.writing():
            store.remove(list(range(1, 1101)))
        assert store.total() == 100


def test_reading_counts_move_with_their_cards_also_in_a_ring(path):
    with closing(open_store(path)) as store:
        with store.writing():
            for name, times in (("a.md", 1), ("b.md", 2), ("c.md", 3)):
                for _ in range(times):
                    store.count_read(name, "now")
        with store.writing():
            store.move_stats({"a.md": "b.md", "b.md": "c.md", "c.md": "a.md", "none.md": "x.md"})
        assert {name: count for name, count, _ in store.read_counts(9)[2]} == {"b.md": 1, "c.md": 2, "a.md": 3}


def test_the_vocabulary_gives_the_words_that_begin_so(path):
    with closing(filled(path, row("a.md", "redis redo zebra 云服务"))) as store:
        assert store.words.starting("red") == ["redis", "redo"] and store.words.starting("zz") == []


def test_an_index_built_apart_replaces_all_but_the_reading_counts(path, tmp_path):
    other = str(tmp_path / "built.db")
    with closing(filled(other, row("new.md", "okapi", id=7))) as built, built.writing():
        built.set_vault("/new")
        built.set_unreadable("bad.md", "why", (1, 2, 3, 4))
    with closing(filled(path, row("old.md", "zebra"))) as store, closing(open_store(path)) as reader:
        with store.writing():
            store.count_read("old.md", "now")
        with reader.reading():
            assert reader.paths() == ["old.md"]
            rebuilding.take_over(store, other, none_late)
            assert reader.paths() == ["old.md"] and len(reader.match('"zebra"', 5)) == 1
        for one in (store, reader):
            assert one.ids() == {"new.md": 7} and one.vault() == "/new" and one.count_unreadable() == 1
            assert one.match('"zebra"', 5) == [] and len(one.match('"okapi"', 5)) == 1
            assert one.read_counts(5)[2] == [("old.md", 1, "now")]
        with store.writing():
            store.insert([row("next.md")])
        assert store.ids()["next.md"] == 8


def test_an_id_is_not_given_again_after_a_rebuild(path, tmp_path):
    with closing(filled(str(tmp_path / "built.db"), row("a.md", id=2))):
        pass
    with closing(filled(path, row("a.md", id=2), row("b.md", id=9))) as store, store.writing():
        store.remove([9])
    with closing(open_store(path)) as store:
        assert rebuilding.take_over(store, str(tmp_path / "built.db"), none_late).lacking == []
        with store.writing():
            store.insert([row("c.md")])
        assert store.ids() == {"a.md": 2, "c.md": 10}


def test_taking_over_says_what_the_other_index_keeps_and_lacks(path, tmp_path):
    new = [row("a.md", id=1), row("moved.md", id=2), row("c.md", "edited", id=3), row("new.md", id=5)]
    filled(str(tmp_path / "built.db"), *new).close()
    with closing(filled(path, row("a.md"), row("b.md"), row("c.md"), row("late.md"))) as store:
        taken = rebuilding.take_over(store, str(tmp_path / "built.db"), none_late)
    assert taken == Taken([("late.md", 4)], {"b.md": "moved.md"}, kept=3, updated=1, gone=1, total=4, late=0)


def test_cards_that_the_other_index_lacks_are_there_at_once(path, tmp_path):
    """They were added in a second transaction once, and a search or a capture in between missed them."""
    filled(str(tmp_path / "built.db"), row("a.md", id=1), row("moved.md", id=2)).close()
    asked = []

    def late_rows(lacking):
        asked.append(lacking)
        return [row(path, "zebra", id=id) for path, id in lacking]

    with closing(filled(path, row("a.md"), row("b.md"), row("late.md"))) as store:
        assert rebuilding.take_over(store, str(tmp_path / "built.db"), late_rows).late == 1
        assert asked == [[("late.md", 3)]] and store.ids() == {"a.md": 1, "moved.md": 2, "late.md": 3}
        for expr, count in (('"zebra"', 1), ('"body"', 2)):
            assert len(store.match(expr, 5)) == count
        checking.check_rows(store)
        store.query("INSERT INTO cards_fts (cards_fts) VALUES ('integrity-check')")


def test_taking_over_what_is_no_index_changes_nothing(path, tmp_path):
    (tmp_path / "bad.db").write_bytes(b"garbage" * 1000)
    with closing(filled(path)) as store:
        with pytest.raises(StoreDamaged):
            rebuilding.take_over(store, str(tmp_path / "bad.db"), none_late)
        assert store.paths() == ["a.md"] and len(store.match('"body"', 5)) == 1


# ---- FTS5's segments -----------------------------------------------------------------------------


@pytest.mark.parametrize("before, after", [
    ("02 01 00 0000 0001 060104", "02 01 00 0000 0001 060104"),  # small: where it is
    ("02 01 05 0000 0001 068040", None),  # a page number cut short
    ("02 01 00 0000 0001 060182 00", "03 01 00 0000 0000 0001 060182 00"),  # 256 pages: FTS5 has four of 64 on level 2
    ("02 01 00 0000 0001 060183a25f", "06 01 00 0000 0000 0000 0000 0000 0001 060183a25f"),  # 100,000 cards
    ("02 02 00 0001 060104 0001 070104", None),  # two segments
    ("ff000001 02 01 00 0000 0001 060104", None),  # another form of record
    ("00 00 00", None),  # no segment
])  # fmt: skip
def test_the_segment_of_a_build_stands_where_fts5_would_have_put_it(before, after):
    cookie = b"\0\0\0\7"
    given = cookie + bytes.fromhex(before)
    assert on_its_level(given) == (given if after is None else cookie + bytes.fromhex(after))


def test_captures_after_a_build_leave_its_segment_alone_and_the_index_whole(path):
    """Sixteen small segments beside it were merged with it in one go: 4 s at 100,000 cards."""
    chance = random.Random(5)
    texts = ["".join(f" {chance.getrandbits(32):x}" for _ in range(150)) for _ in range(600)]
    with closing(open_store(path)) as store:
        rebuilding.begin_loading(store)
        with store.writing():
            store.insert([row(f"{n}.md", text) for n, text in enumerate(texts)])
        rebuilding.end_loading(store)
    with closing(open_store(path)) as store:
        assert segments(store) == {2: 1}
        for n in range(70):
            with store.writing():
                store.insert([row(f"late{n}.md", f"okapi {n}")])
        assert segments(store)[2] == 1
        store.query("INSERT INTO cards_fts (cards_fts) VALUES ('integrity-check')")
        assert store.count_matches('"okapi"') == 70
        assert all(store.count_matches(f'"{text.split()[0]}"') for text in texts)


def segments(store):
    """level -> number of segments, as FTS5's structure record says, for the levels that have any."""
    _, _, _, *rest = varints(store.query("SELECT block FROM cards_fts_data WHERE id = 10")[0][0][4:])
    found, level = {}, 0
    while rest:
        count = rest[1]
        rest, level = rest[2 + 3 * count :], level + 1
        if count:
            found[level - 1] = count
    return found


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_statement_that_fails_around_a_transaction_leaves_none_open(path, at):
    """bench/faults/failing_calls.py: a PRAGMA that failed right after BEGIN did, and the next command met it."""
    filled(path).close()
    left = []

    class Failing(sqlite3.Connection):
        def execute(self, *arguments):
            if left and not left.pop():
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(*arguments)

    with closing(sqlite3.connect(path, isolation_level=None, factory=Failing)) as connection:
        store = Store(connection, path)
        left[:] = [False, *[True] * (at - 1)]
        with pytest.raises(StoreError), store.writing():
            pass
        with store.writing():
            store.count_read("a.md", "now")
        with store.reading():
            assert store.read_counts(1)[:2] == (1, 1)


# ---- what a damaged index still gives ------------------------------------------------------------


def test_ids_and_reading_counts_are_saved_from_a_broken_index(path):
    with closing(filled(path)) as store, store.writing():
        store.count_read("a.md", "now")
    sql(path, "DROP TABLE meta")
    assert salvage(path) == ([("a.md", 1, b"body words")], [("a.md", 1, "now")])


def test_one_bad_cell_of_a_page_takes_the_others_not_with_it(path):
    store = filled(path)
    with store.writing():
        for number in range(12):
            store.count_read(f"{number}.md", "now")
    (page,) = store.query("SELECT rootpage FROM sqlite_master WHERE name = 'card_stats'")[0]
    store.close()
    overwrite(path, b"\xee", (page - 1) * 4096 + 22)  # where the eighth cell is said to stand
    assert len(salvage(path)[1]) >= 7


def test_numbers_that_damage_made_absurd_are_not_saved(path):
    filled(path, row("a.md"), row("b.md")).close()
    sql(path, f"UPDATE cards SET id = {(1 << 63) - 1} WHERE id = 1")
    assert salvage(path)[0] == [("b.md", 2, b"body words")]
    assert [is_sane_id(value) for value in (1, 0, -1, 1 << 53, "1", None, 1.0)] == [True] + [False] * 6


@pytest.mark.parametrize("damage", ["garbage", "text", "zeros", "cut to a page"])
def test_saving_from_any_damage_never_fails(path, damage):
    filled(path).close()
    DAMAGE[damage](path)
    cards, stats = salvage(path)
    assert isinstance(cards, list) and isinstance(stats, list)
    assert salvage(path + "-none") == ([], [])


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root may write everything")
def test_an_index_that_may_not_be_written_is_read(path):
    """An agent's sandbox: WAL needs files beside the index, which cannot be made there."""
    filled(path).close()
    folder = os.path.dirname(path)
    os.chmod(path, 0o400)
    os.chmod(folder, 0o500)
    try:
        with closing(open_store(path)) as store:
            assert store.frozen and store.paths() == ["a.md"]
            with pytest.raises(StoreError), store.writing():
                store.remove([1])
    finally:
        os.chmod(folder, 0o700)


# ---- looking -------------------------------------------------------------------------------------


def names_and_bytes(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as handle:
            found[name] = handle.read()
    return found


def test_looking_makes_and_changes_nothing(path):
    filled(path).close()
    before = names_and_bytes(os.path.dirname(path))
    with looking(path) as store:
        assert (store.total(), checking.faults(store), store.every_count()) == (1, [], [])
    assert names_and_bytes(os.path.dirname(path)) == before


def test_looking_sees_what_a_writer_has_not_yet_put_into_the_file(path):
    with closing(filled(path)), looking(path) as store:
        assert os.path.getsize(path + "-wal") and store.total() == 1


@pytest.mark.parametrize("content", [None, b""])
def test_where_no_index_is_there_is_none_to_look_at(tmp_path, content):
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    with looking(str(path)) as store:
        assert store is None
    assert os.listdir(tmp_path) == ([] if content is None else ["x.db"])


def test_an_answer_that_a_writer_may_have_torn_is_no_answer(path):
    filled(path).close()
    with pytest.raises(StoreBusy), looking(path) as store:
        filled(path, row("b.md")).close()
        store.total()


def test_looking_refuses_what_opening_refuses(path):
    filled(path).close()
    sql(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreNewer), looking(path):
        pass
    overwrite(path, b"garbage" * 1000)
    with pytest.raises(StoreDamaged), looking(path):
        pass


def test_a_card_without_its_row_in_the_full_text_is_a_fault(path):
    filled(path, row(), row("b.md")).close()
    sql(path, "DELETE FROM cards_fts_docsize WHERE id = 2")
    with looking(path) as store:
        assert checking.faults(store) == ["1 cards are missing from its full text"]


def test_reading_counts_are_kept_and_put_back(path, tmp_path):
    with closing(filled(path)) as store:
        with store.writing():
            store.count_read("a.md", "2026-01-01T00:00:00Z")
            store.count_read("a.md", "2026-01-02T00:00:00Z")
        kept = store.every_count()
    assert kept == [("a.md", 2, "2026-01-02T00:00:00Z")]
    with closing(open_store(str(tmp_path / "other.db"))) as other:
        with other.writing():
            other.set_counts(kept)
        assert other.every_count() == kept


def test_links_are_read_without_reading_every_special_card(path):
    """That was a tenth of a second of every capture at a million cards."""
    with closing(filled(path)) as store:
        asked = []
        store.connection.set_trace_callback(asked.append)
        store.links()
        store.connection.set_trace_callback(None)
        plan = store.query("EXPLAIN QUERY PLAN " + asked[-1])
        assert "cards_linked" in str(plan)


def test_adding_a_card_asks_the_full_text_for_no_term_that_the_card_lacks(path):
    """FTS5 was asked for each of 16,000 listed terms at a million cards."""
    with closing(filled(path)) as store, store.writing():
        store.connection.execute("INSERT INTO lists VALUES ('body', 1, x'00')")
        asked = []
        store.connection.set_trace_callback(asked.append)
        store.insert([row("b.md")])
        store.connection.set_trace_callback(None)
        added = next(sql for sql in asked if "INTO recent" in sql)
        plan = str(store.query("EXPLAIN QUERY PLAN " + added))
        assert "VIRTUAL TABLE INDEX 0:" in plan, plan
        assert store.query("SELECT term FROM recent") == [("body",)]
