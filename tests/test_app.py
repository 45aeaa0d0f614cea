"""mcore.app: an index belongs to one vault, and is opened anew when its file was replaced."""

import os
import sqlite3
from contextlib import closing

import pytest
from conftest import paths_of

from mcore.app import App
from mcore.doctor import examine
from mcore.errors import SetupError
from mcore.importer import Freshness


@pytest.fixture
def vaults(write_note, tmp_path):
    """Two folders of notes, with the same name in both; their paths."""
    write_note("n.md", "okapi common", vault="one")
    write_note("n.md", "zebra common", vault="two")
    return str(tmp_path / "one"), str(tmp_path / "two")


def found(app, word="common"):
    return paths_of(app.searcher.search(word))


def text_of(app):
    """The word that tells which vault an app answers from."""
    return [word for word in ("okapi", "zebra") if found(app, word)]


def test_a_second_vault_gets_an_index_of_its_own(make_app, vaults):
    """README: "a second vault under the same data root gets an index of its own beside the first"."""
    one, two = make_app(vault=vaults[0]), make_app(vault=vaults[1])
    assert (text_of(one), text_of(two)) == (["okapi"], ["zebra"])
    assert one.db_path != two.db_path and os.path.dirname(one.db_path) == os.path.dirname(two.db_path)
    one.close()
    two.close()
    again = make_app(vault=vaults[0])
    assert text_of(again) == ["okapi"] and again.db_path == one.db_path and again.store.ids() == {"n.md": 1}


def test_each_vault_keeps_its_index_while_the_other_is_away(make_app, vaults, tmp_path):
    """A drive that was not mounted once made the second vault take the first one's index."""
    one, two = make_app(vault=vaults[0]), make_app(vault=vaults[1])
    assert found(one) and found(two)
    for app in (one, two):
        with app.store.writing():
            app.store.count_read("n.md", vaults[app is two])
        app.close()
    os.rename(vaults[0], tmp_path / "unmounted")
    alone = make_app(vault=vaults[1])
    assert text_of(alone) == ["zebra"] and alone.db_path == two.db_path
    assert alone.store.read_counts(9)[2] == [("n.md", 1, vaults[1])]
    os.rename(tmp_path / "unmounted", vaults[0])
    back = make_app(vault=vaults[0])
    assert text_of(back) == ["okapi"] and back.store.read_counts(9)[2] == [("n.md", 1, vaults[0])]


def test_a_vault_that_moved_takes_its_index_along(make_app, vaults, tmp_path):
    first = make_app(vault=vaults[0])
    assert found(first)
    with first.store.writing():
        first.store.count_read("n.md", "now")
    first.close()
    os.rename(vaults[0], tmp_path / "new place")
    moved = make_app(vault=tmp_path / "new place")
    assert text_of(moved) == ["okapi"] and moved.store.ids() == {"n.md": 1}
    assert moved.store.vault() == os.path.realpath(tmp_path / "new place")
    assert moved.store.read_counts(9)[2] == [("n.md", 1, "now")]


def test_an_index_that_was_named_is_never_mixed_with_another_vault(make_app, vaults, tmp_path):
    one = make_app(db=tmp_path / "x.db", vault=vaults[0])
    assert found(one)
    two = make_app(db=tmp_path / "x.db", vault=vaults[1])
    with pytest.raises(SetupError, match="belongs to another vault") as caught:
        two.store  # noqa: B018
    assert vaults[0] in caught.value.why and "--db" in caught.value.hint
    two.indexer.rebuild(two.rebuild_path())
    assert text_of(two) == ["zebra"]
    one.close()
    with pytest.raises(SetupError):
        one.store  # noqa: B018


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_vault_is_known_under_each_of_its_names(make_app, vaults, tmp_path, monkeypatch):
    os.symlink(vaults[0], tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    names = [vaults[0], vaults[0] + "/", vaults[0] + "//.", f"{vaults[1]}/../one", tmp_path / "link", "one", "./link/"]
    apps = [make_app(vault=name) for name in names]
    assert [text_of(app) for app in apps] == [["okapi"]] * len(names)
    assert len({app.db_path for app in apps}) == 1 and apps[0].store.ids() == {"n.md": 1}


def test_an_index_replaced_by_another_program_is_opened_anew(make_app, vaults, tmp_path):
    app = make_app(vault=vaults[0])
    assert found(app)
    other = make_app(db=tmp_path / "other.db", vault=vaults[0])
    assert found(other)
    other.close()
    before = app.store
    os.replace(tmp_path / "other.db", app.db_path)
    assert app.store is not before and found(app) == ["n.md"]


def test_an_index_deleted_while_open_is_made_anew(make_app, vaults):
    app = make_app(vault=vaults[0])
    assert found(app)
    for side in ("", "-wal", "-shm"):
        if os.path.exists(app.db_path + side):
            os.unlink(app.db_path + side)
    assert found(app) == ["n.md"]


def test_an_open_index_is_kept_open(make_app, vaults):
    app = make_app(vault=vaults[0])
    assert app.store is app.store
    app.close()
    app.close()
    assert found(app) == ["n.md"]


def test_another_program_sees_a_rebuild_at_once(make_app, vaults, write_note):
    app, other = make_app(vault=vaults[0]), make_app(vault=vaults[0])
    assert found(app) == found(other) == ["n.md"]
    write_note("m.md", "quokka", vault="one")
    other.indexer.rebuild(other.rebuild_path())
    result = app.searcher.search("quokka", sync=False)
    assert paths_of(result) == ["m.md"]


def test_no_sync_says_that_no_look_was_taken(make_app, vaults):
    app = make_app(vault=vaults[0])
    assert app.freshness(sync=False) == Freshness(0, 0, 0, 0)
    assert app.freshness() == Freshness(1, 1, 0, 0)


def test_settings_are_read_once_and_nothing_is_made_before_it_is_needed(make_app, vaults, tmp_path):
    app = make_app(vault=vaults[0])
    assert app.settings is app.settings and app.db_path.endswith("memory.db")
    assert not (tmp_path / "home").exists()


def test_an_absolute_path_needs_no_current_folder(vaults, tmp_path, monkeypatch):
    """Or the answer says that the folder it was started in is gone."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    try:
        (tmp_path / "gone").rmdir()
    except OSError:
        pytest.skip("this system keeps the current folder")
    for flags in ((None, "relative"), ("relative.db", None)):
        with pytest.raises(SetupError, match="current folder|relative"):
            App(*flags).settings  # noqa: B018
    assert App().settings.vault.origin == "default"
    assert App(None, vaults[0]).settings.vault.path == vaults[0]


@pytest.mark.skipif(os.name != "posix", reason="bytes in names")
@pytest.mark.parametrize("where", ["vault", "home"])
def test_a_place_whose_name_is_not_utf8_works(memory, tmp_path, monkeypatch, where):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff")
    os.makedirs(odd)
    monkeypatch.setenv({"vault": "MEMORY_AGENT_VAULT", "home": "MEMORY_AGENT_HOME"}[where], odd)
    body = "a body of more than twenty characters about an okapi"
    assert memory("capture", "--title", "t", "--body", body).code == 0
    for command in (["search", "okapi"], ["index"], ["index", "--rebuild"], ["paths"], ["stats", "--json"]):
        ran = memory(*command)
        assert (ran.code, ran.err) == (0, ""), command


# ---- an index of an older program ----------------------------------------------------------------


CAN_DROP_COLUMNS = pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 35), reason="cannot drop columns")


def as_version_1(path):
    """Makes an index what version 1 of the schema had."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for index in ("cards_special", "cards_closed", "cards_linked", "cards_titled"):
            connection.execute(f"DROP INDEX {index}")
        for column in ("scope mark valid_from valid_to review_by pinned confidence links notes closed_at closed_by "
                       "special").split():  # fmt: skip
            connection.execute(f"ALTER TABLE cards DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")


@CAN_DROP_COLUMNS
def test_an_index_of_an_older_form_is_built_anew_with_ids_and_counts(write_note, make_app, memory, tmp_path):
    write_note("a.md", "zebra one")
    write_note("b.md", "---\nscope: project/x\n---\nzebra two")
    app = make_app()
    assert app.searcher.search("zebra", scope="all").searched == 2
    ids = app.store.ids()
    assert memory("show", "b.md").code == 0
    path = app.store.path
    app.close()
    as_version_1(path)
    app = make_app()
    assert [hit.path for hit in app.searcher.search("zebra", scope="project/x", scope_only=True).hits] == ["b.md"]
    assert app.store.ids() == ids and app.store.reads_of("b.md") == 1
    assert not [name for name in (tmp_path / "home").iterdir() if "damaged" in name.name]


@CAN_DROP_COLUMNS
@pytest.mark.parametrize("first", [0, 1])
def test_after_an_upgrade_each_vault_has_its_own_index_and_counts(make_app, vaults, first):
    """A second vault once took the first one's outdated index, and both lost their reading counts."""
    apps = [make_app(vault=vault) for vault in vaults]
    for app in apps:
        found(app)
        with app.store.writing():
            app.store.count_read("n.md", os.path.basename(app.settings.vault.path))
        app.close()
    for app in apps:
        as_version_1(app.db_path)
    for number in (first, 1 - first):
        app = make_app(vault=vaults[number])
        assert app.db_path == apps[number].db_path and text_of(app) == [("okapi", "zebra")[number]]
        assert app.store.read_counts(9)[2] == [("n.md", 1, ("one", "two")[number])]


@CAN_DROP_COLUMNS
def test_an_outdated_index_that_was_named_is_never_built_for_another_vault(make_app, vaults, tmp_path):
    db = tmp_path / "named.db"
    found(make_app(db=db, vault=vaults[0]))
    as_version_1(db)
    with pytest.raises(SetupError, match="belongs to another vault"):
        found(make_app(db=db, vault=vaults[1]))
    assert text_of(make_app(db=db, vault=vaults[0])) == ["okapi"]


@CAN_DROP_COLUMNS
@pytest.mark.skipif(os.name == "nt", reason="no lock beside the index there")
def test_an_outdated_index_that_cannot_be_built_anew_is_named_as_that(make_app, vaults):
    """A search where nothing may be written once said no more than that it could not write beside the index."""
    app = make_app(vault=vaults[0])
    found(app)
    app.close()
    as_version_1(app.db_path)
    os.mkdir(app.db_path + ".lock")
    with pytest.raises(SetupError) as caught:
        found(make_app(vault=vaults[0]))
    assert "older form" in caught.value.why and "directory" in caught.value.why


@CAN_DROP_COLUMNS
def test_doctor_names_an_outdated_index_and_brings_it_up_to_date(make_app, vaults):
    app = make_app(vault=vaults[0])
    found(app)
    app.close()
    as_version_1(app.db_path)
    report = examine(make_app(vault=vaults[0]))
    assert [(each.slug, each.severity) for each in report.findings if each.slug.startswith("index")] == [
        ("index-outdated", "warning")
    ]
    fixed = examine(make_app(vault=vaults[0]), fix=True)
    assert fixed.counts["cards"] == 1 and not [each for each in fixed.findings if each.slug.startswith("index")]
