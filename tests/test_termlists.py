"""mcore.termlists: lists say what FTS5 says, also after cards came, went and changed."""

import os
import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from test_store import row

from mcore import termlists
from mcore.errors import StoreDamaged
from mcore.postings import each
from mcore.prepare import list_parts
from mcore.stem import stem
from mcore.store import open_store, rebuilding

WORDS = (
    "nginx root redis cache 数据库 备份 缓存 淘汰 deploy deployed deploying café ünïcode ecs-prod getUserName a the"
).split()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "memory.db")


def cards(n, seed=1):
    rng = random.Random(seed)
    for number in range(n):
        title, body = (" ".join(rng.choices(WORDS, k=k)) for k in (2, rng.randint(3, 30)))
        yield row(f"{seed}-{number}.md", body, title=title, labels=rng.choice(WORDS))


def built(path, rows, share=None):
    store = open_store(path)
    rebuilding.begin_loading(store)
    with store.writing():
        store.insert(list(rows))
    rebuilding.end_loading(store, share)
    return store


def places(store, term):
    """doc -> weighted count, asked of FTS5 occurrence by occurrence."""
    counts, fields = Counter(), set()
    sql = "SELECT doc, col FROM temp.places WHERE " + ("term >= ? AND term < ?" if term[-1] == "*" else "term = ?")
    values = (term[0], term[0] + "\U0010ffff") if term[-1] == "*" else (term,)
    for doc, column in store.query(sql, values):
        counts[doc] += 1
        fields.add((doc, column))
    for doc, column in fields:
        counts[doc] += termlists.FIELD_WEIGHTS[column] - 1
    return dict(counts)


def listed(store, term):
    unpacked, since = store.words.read_list(term)
    return {doc: count for doc, count in [*each(unpacked), *since] if count}


def terms_with_lists(store):
    return [term for (term,) in store.query("SELECT term FROM lists")]


def test_every_list_says_what_fts5_says(path):
    with closing(built(path, cards(300))) as store:
        terms = terms_with_lists(store)
        assert {"nginx", "cafe", "unicode", "据库", "数*", "ecsprod", "name"} <= set(terms)
        for term in terms:
            assert listed(store, term) == places(store, term), term


def test_rows_added_later_are_counted_in_and_a_new_build_says_the_same(path, tmp_path):
    first, then = list(cards(300)), list(cards(40, seed=2))
    with closing(built(path, first)) as store, closing(built(str(tmp_path / "whole.db"), [*first, *then])) as whole:
        with store.writing():
            for one in then:
                store.insert([one])
        for term in terms_with_lists(store):
            assert listed(store, term) == places(store, term) == listed(whole, term), term
        assert store.words.sizes(["nginx", "none"]) == whole.words.sizes(["nginx", "none"])
        assert store.words.measures() == whole.words.measures()


def test_terms_without_a_list_are_asked_of_fts5(path):
    with closing(built(path, cards(20))) as store:
        assert terms_with_lists(store) == [] and store.words.sizes(["nginx"]) == {}
        counts = {term: places(store, term) for term in ("nginx", "备份")}
        assert store.words.counted(["nginx", "备份", "none"]) == counts
        assert store.words.counted_start("数") == places(store, "数*")


def test_rows_given_as_utf_8_are_the_same(path, tmp_path):
    """So a helper process hands them over."""
    given, tables = list(cards(230)), ("vocabulary", "stems", "lists", "lengths", "recent")
    coded = [one._replace(columns=tuple(text.encode() for text in one.columns)) for one in given]
    with closing(built(path, given[:200])) as store, closing(built(str(tmp_path / "coded.db"), coded[:200])) as other:
        for some, rows in ((store, given[200:]), (other, coded[200:])):
            with some.writing():
                some.insert(rows)
        assert places(store, "cafe") == places(other, "cafe") != {}
        for table in tables:
            rows = store.query(f"SELECT * FROM {table} ORDER BY 1, 2")
            assert rows and other.query(f"SELECT * FROM {table} ORDER BY 1, 2") == rows


def test_stems_name_the_words_of_the_index_added_ones_too(path):
    with closing(built(path, cards(30))) as store:
        with store.writing():
            store.insert([row("new.md", "deploys and deployment; Deployer")])
        assert {"deployed", "deploying", "deploys"} <= set(store.words.of_stems([stem("deploy")])[stem("deploy")])
        assert store.words.of_stems(["zebra"]) == {}


def test_lists_are_due_after_many_single_additions(path, monkeypatch):
    monkeypatch.setattr(termlists, "DUE_ROWS", 50)
    with closing(built(path, cards(100))) as store:
        with store.writing():
            store.insert(list(cards(50, seed=2)))
        assert not store.lists_due()
        with store.writing():
            store.insert(list(cards(1, seed=3)))
        assert store.lists_due()
        with store.writing():
            store.make_lists()
        assert not store.lists_due() and store.query("SELECT count(*) FROM recent") == [(0,)]
        assert listed(store, "nginx") == places(store, "nginx")


def test_a_transaction_that_fails_leaves_no_trace_in_the_lists(path):
    with closing(built(path, cards(300))) as store:
        with pytest.raises(KeyboardInterrupt), store.writing():
            store.insert([row("new.md", "nginx")])
            raise KeyboardInterrupt
        assert listed(store, "nginx") == places(store, "nginx")
        with store.writing():
            store.insert([row("new.md", "nginx")])
        assert listed(store, "nginx") == places(store, "nginx")


@pytest.mark.parametrize("damage", [
    "UPDATE lists SET docs = x'00'", "UPDATE lists SET docs = substr(docs, 1, 20)", "DELETE FROM cards_fts_docsize",
    "DELETE FROM cards_fts_data WHERE id = 1", "UPDATE lengths SET codes = x'00'",
    "INSERT INTO cards_fts_docsize VALUES (1 << 60, x'00')",
])  # fmt: skip
def test_damage_is_an_error_that_names_the_cure(path, damage):
    from mcore.ranking import Ranking

    built(path, cards(300)).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(damage)
        other.commit()
    with closing(open_store(path)) as store, pytest.raises(StoreDamaged, match="cannot use the index"):
        with store.reading():
            Ranking(store).scores("nginx 备份 cache")


def test_the_second_record_of_the_words_knows_what_the_full_text_knows(path, monkeypatch):
    """Blocks of three tokens: every token is at a border of one for some question."""
    monkeypatch.setattr(termlists, "BLOCK_TERMS", 3)
    with closing(built(path, cards(40))) as store:
        with store.writing():
            store.insert([row("late.md", "okapi 云服务")])
        connection = store.connection
        tokens = [term for (term,) in connection.execute("SELECT term FROM temp.words")]
        assert all(termlists.knows(connection, token, False) for token in tokens)
        starts = {token[:end] for token in tokens for end in range(1, len(token) + 1)}
        assert all(termlists.knows(connection, start, True) for start in starts)
        for start in starts:
            assert sorted(store.words.starting(start)) == [token for token in tokens if token.startswith(start)]
        for start in (*"bqxz", "okapis", "ngin0", "云服务器", "\U0001f980"):
            assert termlists.knows(connection, start, True) is any(token.startswith(start) for token in tokens), start
            assert termlists.knows(connection, start, False) is (start in tokens)
        knows_any = store.words.knows_any
        assert knows_any("zzz Café!") and not knows_any("zzz 量子") and knows_any("okap")


def test_a_lone_accent_is_no_word(path):
    """Folding leaves nothing of it: FTS5 has the empty token for it, and gives it as NULL."""
    rows = [row(f"{n}.md", f"a \u0301 zebra{n} \u20dd") for n in range(3)]
    with closing(built(path, rows)) as store:
        with store.writing():
            store.insert([row("late.md", "okapi \u0301")])
        knows_any = store.words.knows_any
        assert knows_any("zebra1") and knows_any("okapi") and not knows_any("\u0301 quokka")
        assert store.words.starting("zebra") == ["zebra0", "zebra1", "zebra2"]
        assert store.query("SELECT count(*) FROM vocabulary WHERE first IS NULL OR first = ''") == [(0,)]


def many_words(n):
    """Rows whose words fill several pages of FTS5's index."""
    for number, given in enumerate(cards(n)):
        words = " ".join(f"word{number * 9 + at}x数{chr(0x4E00 + number)}" for at in range(9))
        yield row(given.rel_path, f"{words} {given.columns[2]}", title=given.title)


@pytest.mark.parametrize("helpers, has_room", [(0, True), (2, True), (2, False)])
def test_lists_made_in_parts_or_by_helpers_are_the_same(tmp_path, monkeypatch, helpers, has_room):
    """Helpers begin before the pieces are merged, on a copy, unless there is no room for one."""
    tables, jobs, path = {}, [], str(tmp_path / "parts.db")
    copy = path + ".build-0"
    if not has_room:
        os.mkdir(copy)

    def share(some):
        jobs.extend(some)
        parts = list_parts(some, path, helpers)
        assert not has_room or os.stat(copy).st_mode & 0o077 == 0 or os.name == "nt"
        return parts

    with closing(built(str(tmp_path / "whole.db"), many_words(400))) as store:
        tables = {name: store.query(f"SELECT * FROM {name} ORDER BY 1, 2") for name in ("lists", "stems")}
        words = store.words.starting("")
    monkeypatch.setattr(termlists, "ROWS_A_PART", 25)
    monkeypatch.setattr("mcore.store.rebuilding.FTS_HASH_BYTES", 20_000)
    with closing(built(path, many_words(400), share if helpers else None)) as store:
        assert {name: store.query(f"SELECT * FROM {name} ORDER BY 1, 2") for name in tables} == tables
        assert sorted(store.words.starting("")) == sorted(words)
        assert len(termlists._ranges(store.connection, 400)) > 4
    assert len(jobs) > 5 or not helpers
    assert os.path.exists(copy) != has_room
    assert len(tables["lists"]) > 3 < len(tables["stems"]) and len(words) > 3000
