"""mcore/changes.py: a look at the vault is quick where nothing is new, and never misses what is."""

import os
import time

import pytest
from conftest import paths_of

from mcore.changes import find_changes
from mcore.errors import SetupError
from mcore.importer import Freshness
from mcore.prepare import RACY_NS

POSIX = os.name == "posix"


@pytest.fixture
def app(make_app):
    return make_app()


@pytest.fixture(scope="module")
def rested(tmp_path_factory):
    """Equal vaults whose files the clock tells from any later edit: waited for once, taken away one by one."""
    vaults = []
    for _ in range(20):
        root = tmp_path_factory.mktemp("rested") / "vault"
        for name in ("root.md", "a/one.md", "a/two.md", "b/deep/three.md"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"okapi {name}")
            os.utime(root / name, (1, 1))
        vaults.append(root)
    time.sleep(RACY_NS / 1e9)
    return vaults


@pytest.fixture
def settled(app, rested, tmp_path):
    """An App whose vault has three folders, all of them settled."""
    rested.pop().rename(tmp_path / "vault")
    app.indexer.index(app.store)
    wait_until_settled(app)
    return app


def wait_until_settled(app):
    """Until the clock tells edits apart; looks at the vault as a search does."""
    until = time.monotonic() + 20
    while None in app.store.folders().values():
        assert time.monotonic() < until, app.store.folders()
        time.sleep(0.1)
        app.indexer.refresh(app.store)


def folders_compared(app):
    return {
        folder
        for folder, digest in find_changes(app.store, app.settings, thorough=False).scan.folders.items()
        if digest
    }


def test_a_settled_vault_is_looked_at_and_not_compared(settled):
    assert folders_compared(settled) == set()
    assert settled.indexer.refresh(settled.store) == Freshness(4, 0, 0, 0)
    report = settled.indexer.index(settled.store)
    assert (report.unchanged, report.total, report.added) == (4, 4, 0)


def test_only_the_folder_of_an_edit_is_compared(settled, write_note):
    write_note("a/one.md", "zebra")
    assert folders_compared(settled) == {"a/"}
    assert settled.indexer.refresh(settled.store) == Freshness(4, 1, 0, 0)
    assert folders_compared(settled) == {"a/"}, "racy: the clock may not tell the next edit"
    wait_until_settled(settled)
    assert folders_compared(settled) == set() and paths_of(settled.searcher.search("zebra")) == ["a/one.md"]


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda root: os.unlink(f"{root}/a/one.md"), ["a/two.md", "b/deep/three.md", "root.md"]),
        (
            lambda root: os.rename(f"{root}/a/one.md", f"{root}/one.md"),
            ["a/two.md", "b/deep/three.md", "one.md", "root.md"],
        ),
        (lambda root: os.rename(f"{root}/b", f"{root}/c"), ["a/one.md", "a/two.md", "c/deep/three.md", "root.md"]),
        (
            lambda root: (os.unlink(f"{root}/b/deep/three.md"), os.rmdir(f"{root}/b/deep")),
            ["a/one.md", "a/two.md", "root.md"],
        ),
        (lambda root: os.rename(f"{root}/a", f"{root}/.git"), ["b/deep/three.md", "root.md"]),
        (lambda root: os.replace(f"{root}/a/two.md", f"{root}/a/one.md"), ["a/one.md", "b/deep/three.md", "root.md"]),
    ],
)
def test_whatever_happens_to_a_settled_folder_is_taken_in(settled, change, expected):
    change(settled.settings.vault.path)
    assert sorted(paths_of(settled.searcher.search("okapi"))) == expected
    assert sorted(settled.store.paths()) == expected


def test_a_settled_vault_is_not_written_to_by_a_look(settled, make_app):
    """Folders without cards are settled too, folders that are gone forgotten once."""
    root = settled.settings.vault.path
    os.makedirs(f"{root}/empty/below")
    os.unlink(f"{root}/a/one.md")
    os.unlink(f"{root}/a/two.md")
    os.rmdir(f"{root}/a")
    for _ in range(2):
        settled.indexer.refresh(settled.store)
    assert sorted(settled.store.folders()) == ["", "b/", "b/deep/", "empty/", "empty/below/"]
    version = settled.store.version()
    other = make_app()
    assert other.indexer.refresh(other.store) == Freshness(2, 0, 0, 0)
    assert settled.store.version() == version


def test_two_files_that_swap_their_names_are_told_apart(settled):
    root = settled.settings.vault.path
    os.rename(f"{root}/a/one.md", f"{root}/a/x")
    os.rename(f"{root}/a/two.md", f"{root}/a/one.md")
    os.rename(f"{root}/a/x", f"{root}/a/two.md")
    assert paths_of(settled.searcher.search("one.md")) == ["a/two.md"]


def test_a_file_that_cannot_be_read_does_not_keep_its_folder_open(settled, write_note):
    os.utime(write_note("a/binary.md", b"\0\1\2\xff"), (1, 1))
    assert settled.indexer.refresh(settled.store).unreadable == 1
    wait_until_settled(settled)
    assert settled.indexer.refresh(settled.store) == Freshness(5, 0, 0, 1)
    assert [skip.path for skip in settled.indexer.index(settled.store).skipped] == ["a/binary.md"]
    os.unlink(os.path.join(settled.settings.vault.path, "a/binary.md"))
    assert settled.indexer.refresh(settled.store).unreadable == 0


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root may read everything")
def test_cards_of_a_folder_that_is_closed_stay(settled):
    folder = os.path.join(settled.settings.vault.path, "a")
    os.chmod(folder, 0)
    try:
        assert settled.indexer.refresh(settled.store) == Freshness(2, 0, 0, 2)
    finally:
        os.chmod(folder, 0o700)
    assert settled.indexer.refresh(settled.store) == Freshness(4, 0, 0, 0)


def test_rows_that_went_missing_are_noticed(settled):
    """Damage, or another program's hand: the settled folders say how many cards there were."""
    settled.store.connection.execute("DELETE FROM cards WHERE rel_path = 'a/one.md'")
    assert paths_of(settled.searcher.search("one.md")) == ["a/one.md"]


def test_what_another_process_writes_meanwhile_is_not_called_settled(settled, write_note, make_app):
    write_note("a/one.md", "zebra")
    version = settled.store.version()
    other = make_app()
    other.indexer.refresh(other.store)
    settled.store.settle([("a/", 1, 2)], [], version, 1)
    assert settled.store.folders()["a/"] is None
    settled.store.settle([("a/", 1, 2)], [], settled.store.version(), 1)
    assert settled.store.folders()["a/"] == 1


def test_folders_there_is_no_time_for_keep_their_cards(settled, write_note):
    """Each look begins elsewhere, so that every folder has its turn."""
    write_note("b/new.md", "okapi")
    late = find_changes(settled.store, settled.settings, thorough=False, deadline=0)
    assert (late.removed, late.late, late.unchanged, late.scan.checked) == ([], 4, 0, 0)


@pytest.mark.skipif(not POSIX, reason="names are bytes")
def test_folders_whose_names_read_alike_are_compared_each_time(app, tmp_path):
    root = os.fsencode(tmp_path / "vault")
    for folder in (b"\xff", b"\xfe", "\ufffd".encode()):
        os.makedirs(os.path.join(root, folder))
        with open(os.path.join(root, folder, folder.hex().encode() + b".md"), "w") as handle:
            handle.write("okapi")
    for _ in range(2):
        assert len(app.searcher.search("okapi").hits) == 3
    os.unlink(os.path.join(root, b"\xfe", b"fe.md"))
    assert len(app.searcher.search("okapi").hits) == 2


@pytest.mark.parametrize("cards, away", [(10, False), (11, True)])
def test_an_emptied_vault_is_told_from_one_that_is_away(app, write_note, cards, away):
    """A drive that is not mounted leaves an empty folder; a beginner's only card may have been deleted."""
    paths = [write_note(f"{number}.md", "okapi") for number in range(cards)]
    app.indexer.index(app.store)
    for path in paths:
        os.unlink(path)
    if away:
        with pytest.raises(SetupError, match="nothing in it"):
            app.searcher.search("okapi")
        assert app.store.total() == cards
    else:
        assert app.searcher.search("okapi").hits == [] and app.store.total() == 0
