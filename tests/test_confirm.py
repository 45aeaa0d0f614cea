"""mcore.confirm: "nothing found" is said when the files agree, whatever has happened to the full text."""

import os
import re
import sqlite3
from contextlib import closing

import pytest
from conftest import paths_of

from mcore import confirm
from mcore.errors import StoreDamaged

# What a note holds and what finds it, one for each way in which the two may be spelled otherwise.
SPELLINGS = [
    ("the zebrafish card", "zebrafish"),
    ("Zebrafish", "zebraf"),
    ("zebra fish", "zebra-fish"),
    ("ecs-prod is up", "ecsprod"),
    ("call get_userName", "user name"),
    ("release v2.0-rc1", "v2.0-rc1"),
    ("阿里云服务器", "里云"),
    ("阿里云服务器", "器"),
    ("數據庫備份", "数据库"),
    ("\uff4e\uff47\uff49\uff4e\uff58 配置", "nginx"),
    ("\ufb01le system", "file"),
    ("caf\u00e9", "cafe"),
    ("cafe\u0301", "caf\u00e9"),
    ("cafe", "caf\u00e9"),
    ("stra\u00ad\u00dfe", "strasse"),
    ("zebra\u200bfish", "zebrafish"),
    ("\u0130stanbul", "\u0130stanbul"),
    ("学生がいる", "がい"),
    ("데이터베이스", "이터"),
    ("ŽLUŤOUČKÝ", "žluťoučký"),
    ("Ελληνικά", "ΕΛΛΗΝΙΚΆ"),
    ("a·b", "a·b"),
    ('---\ntitle: "\\u963f\\u91cc"\n---\nsome words', "阿里"),
    ("---\ntags: [one, zebrafish]\n---\nsome words", "zebrafish"),
    ("zebrafish 阿里".encode("utf-16"), "阿里"),
    ("UTF\0zebrafish", "zebrafish"),
]


@pytest.fixture
def app(make_app):
    return make_app()


def sql(app, *statements):
    """What another program, or a flipped bit, does to the index."""
    with closing(sqlite3.connect(app.db_path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def forget_words(app, **words):
    """Leaves the full text of every card empty, or with other words: card_md="zebra"."""
    docs = {path: doc for path, doc in app.store.query("SELECT rel_path, doc FROM cards")}
    sql(app, "INSERT INTO cards_fts (cards_fts) VALUES ('delete-all')")
    for path, doc in docs.items():
        text = words.get(path.replace(".", "_"), "")
        sql(app, f"INSERT INTO cards_fts (rowid, title, labels, body, names) VALUES ({doc}, '', '', '{text}', '')")


@pytest.mark.parametrize("text, query", SPELLINGS)
def test_a_card_that_the_full_text_lost_is_no_empty_answer(app, write_note, text, query):
    """README: "A damaged or locked index is an error, never an empty answer"."""
    write_note("card.md", text)
    write_note("other.md", "nothing of interest")
    assert paths_of(app.searcher.search(query)) == ["card.md"]
    forget_words(app)
    with pytest.raises(StoreDamaged) as caught:
        app.searcher.search(query)
    assert "card.md" in caught.value.why and "index --rebuild" in caught.value.hint
    app.indexer.rebuild(app.rebuild_path())
    assert paths_of(app.searcher.search(query)) == ["card.md"]


def test_a_card_whose_name_alone_answers_is_missed_too(app, write_note):
    write_note("zebrafish.md", "# Title\n\nnothing of interest")
    app.searcher.search("title")
    forget_words(app)
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish")


def test_the_only_hit_must_hold_what_was_asked(app, write_note):
    write_note("a.md", "zebrafish")
    write_note("b.md", "okapi")
    app.searcher.search("zebrafish")
    forget_words(app, b_md="zebrafish")
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish")


def test_a_kind_that_changed_in_the_index_alone_is_no_empty_answer(app, write_note):
    write_note("a.md", "---\nkind: project\n---\nzebrafish")
    app.searcher.search("zebrafish")
    sql(app, "UPDATE cards SET kind = 'projecu'")
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish", kind="project")


def test_a_kind_that_cannot_be_stored_as_it_is_is_no_damage(app, write_note):
    write_note("a.md", '---\nkind: "to\\0ol"\n---\nzebrafish')
    assert app.searcher.search("zebrafish", kind="project").hidden == {"kind": 1}


@pytest.mark.parametrize("path", ["7", "x'ff'"])
def test_a_row_of_cards_that_makes_no_sense_is_damage(app, write_note, path):
    write_note("a.md", "zebrafish")
    app.searcher.search("zebrafish")
    sql(app, f"UPDATE cards SET raw_name = {path if path == '7' else 'NULL'}, rel_path = {path}")
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish", sync=False)


def flip(app, old, new):
    """Puts other bytes into the index's file, in all places that hold `old`."""
    app.close()
    with open(app.db_path, "r+b") as handle:
        data = handle.read()
        assert old in data
        handle.seek(0)
        handle.write(data.replace(old, new))


@pytest.mark.parametrize("path", [b"b,md", b"c.md"], ids=["of no file", "of another card"])
@pytest.mark.parametrize("sync", [True, False])
def test_a_path_that_a_flipped_bit_changed_is_no_deleted_file(app, write_note, path, sync):
    write_note("b.md", "# zebra\nzebrafish")
    write_note("c.md", "# other\nzebrafish")
    app.searcher.search("zebrafish")
    flip(app, b"b.mdzebra", path + b"zebra")
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebra", sync=sync)
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish", sync=sync)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cards_fts_docsize SET sz = NULL",
        "UPDATE cards_fts_data SET block = NULL WHERE id = 1",
        "UPDATE lengths SET codes = NULL",
        "UPDATE lengths SET codes = 7",
    ],
)
def test_a_record_of_the_full_text_without_content_is_damage(app, write_note, statement):
    write_note("a.md", "zebrafish")
    app.searcher.search("zebrafish")
    sql(app, "CREATE TABLE free AS SELECT * FROM lengths", "DROP TABLE lengths",
        "CREATE TABLE lengths (last INTEGER PRIMARY KEY, codes BLOB)", "INSERT INTO lengths VALUES (0, x'00')",
        statement)  # fmt: skip
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish")


@pytest.mark.parametrize(
    "old, new", [(b'tokenize="unicode61', b'tokmnize="unicode61'), (b'categories ', b'\x00ategories ')]
)
def test_a_flipped_bit_in_the_definition_of_the_full_text_is_damage(app, write_note, old, new):
    write_note("a.md", "zebrafish")
    app.searcher.search("zebrafish")
    flip(app, old, new)
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish")


def test_a_rebuild_over_a_definition_of_another_name_keeps_the_reading_counts(app, write_note):
    write_note("a.md", "zebrafish")
    app.searcher.search("zebrafish")
    with app.store.writing():
        app.store.count_read("a.md", "now")
    flip(app, b"cards_fts_idxcards_fts_idx", b"cards_fts_idxcards_fts_idX")
    app.indexer.rebuild(app.rebuild_path())
    assert paths_of(app.searcher.search("zebrafish")) == ["a.md"] and app.store.reads_of("a.md") == 1


def test_a_hit_that_does_not_hold_what_was_asked_is_damage(app, write_note):
    write_note("a.md", "id planted000034x")
    write_note("b.md", "id planted000033x")
    app.searcher.search("planted000034x")
    docs = dict(app.store.query("SELECT rel_path, doc FROM cards"))
    app.close()
    sql(app, "INSERT INTO cards_fts (cards_fts) VALUES ('delete-all')",
        f"INSERT INTO cards_fts (rowid, body, names) VALUES ({docs['a.md']}, '', 'planted 000034 x')",
        f"INSERT INTO cards_fts (rowid, body) VALUES ({docs['b.md']}, 'planted000034x')")  # fmt: skip
    with pytest.raises(StoreDamaged):
        app.searcher.search("planted000034x")


def test_hits_of_another_wording_need_not_hold_the_query(app, write_note):
    for name, text in {"a": "the zebrafish", "b": "two zebrafish", "c": "a word"}.items():
        write_note(f"{name}.md", text)
    assert len(app.searcher.search("word", variants=["zebrafish"]).hits) == 3


@pytest.mark.parametrize("column", ["content_hash", "mtime_ns", "scope", "title"])
def test_a_row_of_another_type_is_damage(app, write_note, column):
    write_note("a.md", "---\nscope: project/x\n---\nzebrafish")
    app.searcher.search("zebrafish")
    value = "x'07'" if column != "content_hash" else "7"
    sql(app, f"UPDATE cards SET {column} = {value}")
    with pytest.raises(StoreDamaged):
        app.searcher.search("zebrafish", scope="all", sync=False)


@pytest.mark.parametrize("query", ["okapi", "云服务商", "brafish", "...", "fish", "里巴"])
def test_a_true_empty_answer_is_one(app, write_note, query):
    write_note("a.md", "zebrafish 阿里云")
    result = app.searcher.search(query)
    assert result.hits == [] and not [note for note in result.warnings if note.slug == "unconfirmed"]


def test_what_is_left_out_on_purpose_is_no_damage(app, write_note):
    write_note("a.md", "---\nkind: tool\n---\nzebrafish")
    gone = write_note("b.md", "okapi")
    write_note("c.md", "quokka")
    assert app.searcher.search("zebrafish", kind="project").hidden == {"kind": 1}
    os.unlink(gone)
    assert app.searcher.search("okapi", sync=False).hits == []
    for later in ("wombat", b"\xff\xfe\xfd\0wombat\0"):
        write_note("c.md", later)
        assert app.searcher.search("wombat", sync=False).hits == []
    assert app.searcher.search("quokka", sync=False).warnings == []


def test_what_could_not_be_confirmed_in_time_is_said(app, write_note, monkeypatch):
    for text in ("okapi", "zebrafish"):
        write_note("a.md", text)
        app.searcher.search(text)
    monkeypatch.setattr(confirm, "SECONDS", -1)
    (note,) = app.searcher.search("okapi").warnings
    assert note.slug == "unconfirmed" and "1 card" in note.message


def test_words_that_no_record_has_need_no_look_at_the_files(app, write_note, monkeypatch):
    """Half a second at 10,000 cards, else."""
    write_note("a.md", "zebrafish 阿里云")
    app.searcher.search("zebrafish")
    monkeypatch.setattr(confirm, "SECONDS", -1)
    for query in ("okapi", "云服", "里巴", "wombats and okapis"):
        result = app.searcher.search(query)
        assert (result.hits, result.warnings) == ([], [])


@pytest.mark.parametrize(
    "odd, needles",
    [(confirm._ODD, r"\w"), (confirm._ODD_BESIDE_LATIN_AND_HAN, "[0-9a-z_\u4e00-\u9fff]")],
    ids=["any script", "Latin and Han"],
)
def test_a_character_that_is_not_folded_hides_no_letter(odd, needles):
    """Those that are passed over fold to themselves, or to signs (other scripts, where those do not matter)."""
    plain = [char for char in map(chr, range(0x80, 0x20000)) if not odd.match(char)]
    assert len(plain) > 20_000
    wrong = [char for char in plain if (to := confirm._folded(char)) != char and (not to or re.search(needles, to))]
    assert wrong == []
