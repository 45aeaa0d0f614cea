"""mcore.importer: after a search or an index run the index says what the files say, whatever their dates say."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest
from conftest import ROOT, paths_of

from mcore.changes import look
from mcore.errors import Cancelled, SetupError, StoreDamaged
from mcore.importer import Freshness
from mcore.prepare import RACY_NS, is_racy, utc_now
from mcore.store import open_store
from mcore.vault import Stamp, stamp_of

POSIX = os.name == "posix"
SEARCH, INDEX = "search", "index"


@pytest.fixture
def app(make_app):
    return make_app()


def take_in(app, how):
    """Brings the index up to date as a search or as `memory index` does."""
    if how == SEARCH:
        return app.indexer.refresh(app.store)
    return app.indexer.index(app.store)


def found(app, word, sync=False):
    return paths_of(app.searcher.search(word, 20, sync=sync))


def build_files(tmp_path):
    return [name for name in os.listdir(tmp_path / "home") if ".build-" in name]


# ---- what changed is found, whatever the dates say ------------------------------------------------

both = pytest.mark.parametrize("how", [SEARCH, INDEX])


@both
def test_a_new_an_edited_and_a_deleted_note(app, write_note, how):
    """SPEC: "adds, updates, removes what changed"."""
    write_note("a.md", "okapi")
    write_note("b.md", "zebra")
    take_in(app, how)
    write_note("a.md", "okapi and quokka")
    os.unlink(write_note("b.md"))
    write_note("c.md", "wombat")
    take_in(app, how)
    assert [found(app, word) for word in ("okapi", "quokka", "zebra", "wombat")] == [["a.md"], ["a.md"], [], ["c.md"]]


@both
@pytest.mark.parametrize("wait", [0, 0.02])
def test_an_edit_of_the_same_size_with_the_old_date(app, write_note, how, wait):
    path = write_note("a.md", "okapi")
    take_in(app, how)
    info = os.stat(path)
    time.sleep(wait)
    write_note("a.md", "zebra")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    take_in(app, how)
    assert (found(app, "okapi"), found(app, "zebra")) == ([], ["a.md"])


@both
def test_an_edit_that_no_clock_could_tell(app, write_note, how):
    """Read in the very tick of the edit, a file has the same stamp before and after; it is read again."""
    write_note("a.md", "okapi")
    take_in(app, how)
    path = write_note("a.md", "zebra")
    with app.store.writing():
        app.store.restamp("a.md", stamp_of(path), racy=1)
    take_in(app, how)
    assert (found(app, "okapi"), found(app, "zebra")) == ([], ["a.md"])


@both
@pytest.mark.parametrize("mtime", [-86400 * 365, 0, 1_000_000_000, 7_258_118_400, 10_413_792_000])
def test_a_file_restored_with_a_date_of_any_year(app, write_note, how, mtime):
    path = write_note("a.md", "okapi")
    take_in(app, how)
    write_note("a.md", "zebra")
    os.utime(path, (mtime, mtime))
    take_in(app, how)
    assert (found(app, "okapi"), found(app, "zebra")) == ([], ["a.md"])


@both
def test_two_names_swapped(app, write_note, how):
    one, other = write_note("a.md", "okapi"), write_note("b.md", "zebra")
    take_in(app, how)
    before = app.store.ids()
    os.rename(one, one + ".spare")
    os.rename(other, one)
    os.rename(one + ".spare", other)
    take_in(app, how)
    assert (found(app, "okapi"), found(app, "zebra")) == (["b.md"], ["a.md"])
    assert app.store.ids() == {"a.md": before["b.md"], "b.md": before["a.md"]}


@both
def test_a_move_keeps_the_id_and_the_reading_count(app, write_note, how, tmp_path):
    """SPEC: "Ids nevertheless survive a rebuild and a rename of an unchanged file"."""
    path = write_note("a.md", "okapi")
    write_note("b.md", "zebra")
    take_in(app, how)
    before = app.store.ids()
    with app.store.writing():
        app.store.count_read("a.md", "now")
    (tmp_path / "vault" / "deep").mkdir()
    os.rename(path, tmp_path / "vault" / "deep" / "c.md")
    take_in(app, how)
    assert app.store.ids() == {"deep/c.md": before["a.md"], "b.md": before["b.md"]}
    assert app.store.read_counts(9)[2] == [("deep/c.md", 1, "now")]
    assert found(app, "okapi") == ["deep/c.md"]


@both
def test_a_move_with_an_edit_is_a_new_card(app, write_note, how):
    os.unlink(write_note("a.md", "okapi"))
    take_in(app, how)
    path = write_note("a.md", "okapi")
    take_in(app, how)
    os.unlink(path)
    write_note("c.md", "okapi and more")
    take_in(app, how)
    assert found(app, "okapi") == found(app, "more") == ["c.md"]


@both
def test_a_move_onto_another_card(app, write_note, how):
    path, other = write_note("a.md", "okapi"), write_note("b.md", "zebra")
    take_in(app, how)
    before = app.store.ids()
    os.replace(path, other)
    take_in(app, how)
    assert (found(app, "okapi"), found(app, "zebra")) == (["b.md"], [])
    assert app.store.ids() == {"b.md": before["a.md"]}


@both
def test_a_copy_is_a_card_of_its_own(app, write_note, how):
    write_note("a.md", "okapi")
    take_in(app, how)
    before = app.store.ids()["a.md"]
    write_note("0-copy.md", "okapi")
    take_in(app, how)
    assert sorted(found(app, "okapi")) == ["0-copy.md", "a.md"] and app.store.ids()["a.md"] == before


@both
def test_a_note_becomes_a_folder_and_a_folder_a_note(app, write_note, how, tmp_path):
    os.unlink(write_note("x.md", "okapi"))
    write_note("x.md", "okapi")
    take_in(app, how)
    os.unlink(tmp_path / "vault" / "x.md")
    inner = write_note("x.md/inner.md", "zebra")
    take_in(app, how)
    assert (found(app, "okapi"), found(app, "zebra")) == ([], ["x.md/inner.md"])
    os.unlink(inner)
    os.rmdir(tmp_path / "vault" / "x.md")
    write_note("x.md", "wombat")
    take_in(app, how)
    assert (found(app, "zebra"), found(app, "wombat")) == ([], ["x.md"])


@both
def test_a_note_becomes_unreadable_and_readable_again(app, write_note, how):
    write_note("a.md", "okapi")
    take_in(app, how)
    write_note("a.md", b"\xff\xfa\0binary")
    take_in(app, how)
    assert found(app, "okapi") == [] and app.store.count_unreadable() == 1
    assert app.searcher.search("okapi").freshness.unreadable == 1
    report = app.indexer.index(app.store)
    assert [(entry.path, entry.reason) for entry in report.skipped] == [("a.md", "binary data, not text")]
    write_note("a.md", "okapi again")
    take_in(app, how)
    assert found(app, "okapi") == ["a.md"] and app.store.count_unreadable() == 0


@both
def test_an_unreadable_file_of_the_same_size_and_tick_becomes_readable(app, write_note, how):
    path = write_note("a.md", b"\xff\xfa\0\0\0")
    take_in(app, how)
    assert app.store.known_unreadable()["a.md"][1] != stamp_of(path)
    write_note("a.md", b"okapi")
    take_in(app, how)
    assert found(app, "okapi") == ["a.md"]


@pytest.mark.skipif(not POSIX, reason="a limit of open files")
def test_a_file_that_could_not_be_opened_for_a_moment_is_tried_again(app, write_note, monkeypatch):
    import resource

    monkeypatch.setattr("mcore.prepare.RACY_NS", -(10**18))  # the files count as old
    write_note("a.md", "okapi")
    os.utime(write_note("b.md", "okapi"), (1, 1))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    scan = look(app.settings, thorough=False)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        prepared = app.indexer.files.prepare("b.md", scan)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "Too many open files" in prepared.reason
    app.indexer._apply(app.store, [prepared], [], [])
    assert sorted(found(app, "okapi", sync=True)) == ["a.md", "b.md"] and app.store.count_unreadable() == 0


def test_a_limit_that_was_raised_lets_the_file_in(make_app, write_note, tmp_path, monkeypatch):
    """The remark says "raise max_card_bytes in config.json to read it": then it must help."""
    monkeypatch.setattr("mcore.prepare.RACY_NS", -(10**18))  # the files count as old
    write_note("a.md", "okapi " * 100)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.json").write_text('{"max_card_bytes": 10}')
    first = make_app()
    assert "larger than 10 bytes" in first.indexer.index(first.store).skipped[0].reason
    first.close()
    (tmp_path / "home" / "config.json").write_text("{}")
    second = make_app()
    assert second.indexer.index(second.store).skipped == [] and found(second, "okapi") == ["a.md"]


@both
def test_a_folder_put_on_the_ignore_list_leaves_the_index(make_app, write_note, tmp_path, how):
    write_note("drafts/a.md", "okapi")
    write_note("b.md", "okapi")
    first = make_app()
    take_in(first, how)
    first.close()
    (tmp_path / "home" / "config.json").write_text('{"ignore": ["drafts"]}')
    second = make_app()
    take_in(second, how)
    assert found(second, "okapi") == ["b.md"] and second.store.total() == 1


@both
@pytest.mark.skipif(not POSIX, reason="links")
def test_a_folder_swapped_for_a_link_out_of_the_vault_leaves_the_index(app, write_note, tmp_path, how):
    write_note("notes/a.md", "okapi inside")
    take_in(app, how)
    os.rename(tmp_path / "vault" / "notes", tmp_path / "outside")
    (tmp_path / "outside" / "a.md").write_text("okapi outside")
    os.symlink(tmp_path / "outside", tmp_path / "vault" / "notes")
    assert app.searcher.search("okapi", sync=False).hits == []
    take_in(app, how)
    assert app.store.total() == 0


def test_a_deleted_card_is_never_returned(app, write_note):
    path = write_note("a.md", "okapi")
    write_note("b.md", "okapi")
    app.indexer.index(app.store)
    os.unlink(path)
    blind = app.searcher.search("okapi", sync=False)
    assert paths_of(blind) == ["b.md"] and blind.freshness.stale == 1
    fresh = app.searcher.search("okapi")
    assert paths_of(fresh) == ["b.md"] and fresh.freshness.stale == 0


def test_an_edit_made_a_moment_ago_is_found_without_being_asked_for(app, write_note):
    """README: "search looks for changed files first, by itself"."""
    write_note("a.md", "okapi")
    app.indexer.index(app.store)
    write_note("a.md", "zebra")
    result = app.searcher.search("zebra")
    assert paths_of(result) == ["a.md"] and result.freshness == Freshness(1, 1, 0, 0)


def test_a_card_that_another_program_took_in_meanwhile_stays(app, write_note):
    """It was not there when this one looked at the folder, and is in the index when it writes."""
    write_note("a.md", "okapi")
    app.indexer.index_one(app.store, "a.md")
    app.indexer._apply(app.store, [], removed=["a.md"], unreadable_gone=[])
    assert found(app, "okapi") == ["a.md"]


def test_an_index_run_counts_what_happened(app, write_note):
    for name in "abcdefgh":
        write_note(f"{name}.md", f"text of {name}")
    report = app.indexer.index(app.store)
    assert (report.added, report.total, report.skipped, report.warnings) == (8, 8, [], [])
    os.unlink(write_note("a.md"))
    write_note("b.md", "edited")
    os.utime(write_note("c.md", "text of c"))
    root = os.path.dirname(write_note("new.md", "new"))
    os.rename(os.path.join(root, "d.md"), os.path.join(root, "moved.md"))
    report = app.indexer.index(app.store)
    assert (report.added, report.updated, report.moved, report.removed, report.unchanged) == (1, 1, 1, 1, 5)
    assert report.total == 8


@pytest.mark.skipif(not POSIX, reason="bytes in names")
def test_a_name_that_is_not_utf8_is_found_moved_and_removed(app, write_note, tmp_path):
    raw = os.path.join(os.fsencode(tmp_path / "vault"), b"caf\xe9.md")
    write_note("x.md", "zebra")
    with open(raw, "wb") as handle:
        handle.write(b"okapi")
    assert found(app, "okapi", sync=True) == ["caf\ufffd.md"] and found(app, "okapi") == ["caf\ufffd.md"]
    before = app.store.ids()["caf\ufffd.md"]
    os.rename(raw, raw.replace(b"caf\xe9", b"bar\xe9"))
    assert found(app, "okapi", sync=True) == ["bar\ufffd.md"]
    assert app.store.ids()["bar\ufffd.md"] == before
    os.unlink(raw.replace(b"caf\xe9", b"bar\xe9"))
    assert found(app, "okapi", sync=True) == [] and app.store.total() == 1


def test_random_edits_end_in_what_a_fresh_index_says(tmp_path):
    """F8, small: `python bench/faults/random_edits.py` runs a thousand longer sequences."""
    from bench.faults.random_edits import run_sequence

    faults = []
    for seed in range(25):
        folder = tmp_path / str(seed)
        folder.mkdir()
        faults += run_sequence(str(folder), seed, edits=20)
    assert faults == []


# ---- the vault as a whole ------------------------------------------------------------------------


def test_no_vault_yet_is_an_empty_answer_with_a_remark(app):
    result = app.searcher.search("okapi")
    assert result.hits == [] and result.freshness == Freshness(0, 0, 0, 0)
    assert [note.slug for note in app.indexer.index(app.store).warnings] == ["no-vault"]


@both
def test_a_vault_that_went_away_empties_no_index(app, write_note, tmp_path, how):
    write_note("a.md", "okapi")
    take_in(app, how)
    before = app.store.ids()
    os.rename(tmp_path / "vault", tmp_path / "unmounted")
    with pytest.raises(SetupError, match="not there"):
        take_in(app, how)
    os.rename(tmp_path / "unmounted", tmp_path / "vault")
    take_in(app, how)
    assert app.store.ids() == before and found(app, "okapi") == ["a.md"]


@pytest.mark.parametrize("inside", ["data root in the vault", "vault in the data root", "one folder"])
def test_the_vault_and_the_data_root_may_lie_in_each_other(write_note, tmp_path, monkeypatch, memory, inside):
    write_note("a.md", "okapi")
    home = {"data root in the vault": "vault/.memory", "vault in the data root": ".", "one folder": "vault"}[inside]
    monkeypatch.setenv("MEMORY_AGENT_HOME", str(tmp_path / home))
    for _ in range(2):
        assert memory("index").code == 0
        assert '"total": 1' in memory("stats", "--json").out
    assert memory("index", "--rebuild").code == 0 and memory("search", "okapi").code == 0


# ---- a search's budget ---------------------------------------------------------------------------


def test_what_does_not_fit_the_budget_is_stale_and_said(app, write_note):
    for number in range(5):
        write_note(f"{number}.md", f"okapi {number}")
    first = app.indexer.refresh(app.store, seconds=0)
    assert first.checked == 5 and first.changed >= 1 and first.changed + first.stale == 5 and first.stale
    for _ in range(5):
        app.indexer.refresh(app.store, seconds=0)
    assert len(found(app, "okapi")) == 5


def test_the_budget_of_the_settings_counts(make_app, write_note, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.json").write_text('{"sync_seconds": 0}')
    for number in range(5):
        write_note(f"{number}.md", f"okapi {number}")
    result = make_app().searcher.search("okapi")
    assert result.freshness.stale > 0 and "stale" in [note.slug for note in result.warnings]


def test_the_id_of_a_moved_card_lives_through_searches_of_no_budget(app, write_note, tmp_path):
    for number in range(6):
        write_note(f"{number}.md", f"okapi {number}")
    app.indexer.index(app.store)
    before = app.store.ids()
    for number in range(6):
        os.rename(tmp_path / "vault" / f"{number}.md", tmp_path / "vault" / f"moved-{number}.md")
    assert app.indexer.refresh(app.store, seconds=0).stale
    for _ in range(6):
        app.indexer.refresh(app.store, seconds=0)
    assert app.store.ids() == {f"moved-{path}": id for path, id in before.items()}


def test_a_busy_index_makes_a_search_stale_and_no_error(app, write_note):
    write_note("a.md", "okapi")
    app.indexer.index(app.store)
    write_note("a.md", "okapi zebra")
    write_note("b.md", "okapi")
    with closing(open_store(app.store.path)) as other, other.writing():
        result = app.searcher.search("okapi")
    assert paths_of(result) == ["a.md"] and result.freshness.changed == 0 and result.freshness.stale == 2
    assert len(found(app, "okapi", sync=True)) == 2


def test_a_search_starts_no_rebuild(app, write_note):
    write_note("a.md", "okapi")
    app.indexer.index(app.store)
    for number in range(30):
        write_note("a.md", f"okapi {number}")
        assert found(app, "nowhere", sync=True) == []
    assert app.store.dead_rows() == 30


def test_dead_rows_are_swept_out_by_an_index_run(app, write_note):
    write_note("b.md", "zebra")
    for number in range(10):
        write_note("a.md", f"okapi {number}")
        app.indexer.refresh(app.store)
    before = app.store.ids()
    assert app.store.dead_rows() == 9
    app.indexer.index(app.store)
    assert app.store.dead_rows() == 0 and app.store.ids() == before and found(app, "okapi") == ["a.md"]


# ---- rebuild -------------------------------------------------------------------------------------


def rebuild(app):
    return app.indexer.rebuild(app.rebuild_path())


def test_ids_and_reading_counts_survive_a_rebuild(app, write_note, tmp_path):
    """README: "`--rebuild` builds the index from nothing"; SPEC: it "keeps card_stats"."""
    for name in "abc":
        write_note(f"{name}.md", f"text of {name}")
    app.indexer.index(app.store)
    os.unlink(write_note("a.md"))
    app.indexer.index(app.store)
    with app.store.writing():
        app.store.count_read("b.md", "now")
    before = app.store.ids()
    os.rename(tmp_path / "vault" / "b.md", tmp_path / "vault" / "moved.md")
    write_note("new.md", "new")
    report = rebuild(app)
    after = app.store.ids()
    assert (after["moved.md"], after["c.md"]) == (before["b.md"], before["c.md"])
    assert after["new.md"] > max(1, *before.values())
    assert app.store.read_counts(9)[2] == [("moved.md", 1, "now")]
    assert (report.added, report.moved, report.unchanged, report.removed, report.total) == (1, 1, 1, 0, 3)


@pytest.mark.parametrize("how", [INDEX, "rebuild"])
def test_equal_files_keep_their_ids_when_all_dates_change(app, write_note, how):
    """As after a checkout or a restored backup; equal notes once swapped their ids."""
    for name in "hgfedcba":
        write_note(f"{name}.md", "the same text")
    app.indexer.index(app.store)
    before = app.store.ids()
    for name in "hgfedcba":
        os.utime(os.path.join(app.settings.vault.path, f"{name}.md"), (1, 1))
    rebuild(app) if how == "rebuild" else take_in(app, how)
    assert app.store.ids() == before


def test_a_thousand_equal_notes_move_in_order(app, write_note, tmp_path):
    for number in range(1000):
        write_note(f"old/{number:04}.md", "")
    app.indexer.index(app.store)
    before = app.store.ids()
    os.rename(tmp_path / "vault" / "old", tmp_path / "vault" / "new")
    assert app.indexer.index(app.store).moved == 1000
    assert app.store.ids() == {path.replace("old", "new"): id for path, id in before.items()}


def test_an_interrupted_rebuild_leaves_the_old_index_whole(app, write_note, tmp_path):
    """SPEC: "Readers see the old index until the new one is complete"."""
    for number in range(20):
        write_note(f"{number}.md", f"okapi {number}")
    app.indexer.index(app.store)
    before = app.store.ids()
    write_note("0.md", "zebra")

    def interrupt(done, total):
        if done == total // 2:
            raise KeyboardInterrupt

    for stop in (interrupt, None):
        app.progress = stop
        app.cancelled = None if stop else lambda: True
        with pytest.raises((KeyboardInterrupt, Cancelled)):
            rebuild(app)
        with pytest.raises((KeyboardInterrupt, Cancelled)):
            app.indexer.index(app.store)
        assert build_files(tmp_path) == []
        assert app.store.ids() == before and len(found(app, "okapi")) == 20 and found(app, "zebra") == []
    app.progress = app.cancelled = None
    assert found(app, "zebra", sync=True) == ["0.md"]


def test_a_build_by_helpers_is_the_same_and_can_be_interrupted(app, write_note, tmp_path, monkeypatch):
    monkeypatch.setattr("mcore.prepare.HELPERS_ABOVE", 10)
    for number in range(600):
        write_note(f"{number}.md", f"okapi 阿里云 {number}")
    write_note("bad.md", b"\0\1\x80" * 9)
    assert app.indexer.index(app.store).added == 600

    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    app.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        rebuild(app)
    assert build_files(tmp_path) == []
    app.progress = None
    before = app.store.ids()
    report = rebuild(app)
    assert (report.unchanged, [entry.path for entry in report.skipped]) == (600, ["bad.md"])
    assert app.store.ids() == before and found(app, "阿里云 599") == ["599.md"]


def test_progress_is_told_from_nothing_to_all(app, write_note):
    for number in range(3):
        write_note(f"{number}.md", "x")
    told = []
    app.progress = lambda done, total: told.append((done, total))
    app.indexer.index(app.store)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_readers_see_the_old_index_until_the_new_one_is_whole(app, write_note):
    for number in range(10):
        write_note(f"{number}.md", f"okapi {number}")
    app.indexer.index(app.store)
    for number in range(10):
        write_note(f"{number}.md", f"zebra {number}")
    seen = []
    with closing(open_store(app.store.path)) as reader:

        def counts():
            return [reader.count_matches(f'"{word}"') for word in ("okapi", "zebra")]

        app.progress = lambda done, total: seen.append(counts())
        rebuild(app)
        assert seen == [[10, 0]] * 11 and counts() == [0, 10]


@pytest.mark.parametrize("how", [INDEX, "rebuild"])
def test_an_id_given_while_a_rebuild_runs_stays_that_card_s(app, make_app, write_note, monkeypatch, how):
    """A card captured during a rebuild once got an id that the rebuild then gave to another card."""
    monkeypatch.setattr("mcore.importer.indexer.REBUILD_ABOVE", 5)
    for number in range(10):
        write_note(f"{number}.md", f"okapi {number}")
    app.indexer.index(app.store)
    for number in range(5, 30):
        write_note(f"{number}.md", f"new okapi {number}")
    given = {}

    def capture(done, total):
        if done == total // 2:
            other = make_app()
            write_note("late.md", "quokka")
            given[other.indexer.index_one(other.store, "late.md")] = "late.md"

    app.progress = capture
    rebuild(app) if how == "rebuild" else app.indexer.index(app.store)
    ids = app.store.ids()
    assert len(ids) == len(set(ids.values())) == 31 and given.items() <= {id: path for path, id in ids.items()}.items()
    assert found(app, "quokka") == ["late.md"] and found(app, "quokka", sync=True) == ["late.md"]
    assert app.store.ids() == ids


@pytest.mark.skipif(not POSIX, reason="signals")
def test_a_rebuild_killed_at_any_moment_leaves_an_index_that_answers(app, write_note, tmp_path):
    for number in range(300):
        write_note(f"{number}.md", f"okapi {number} " + "filler words " * 200)
    app.indexer.index(app.store)
    before = app.store.ids()
    code = (
        f"import sys; sys.path.insert(0, {ROOT!r}); from mcore.cli import main;"
        f"main(['--vault', {app.settings.vault.path!r}, 'index', '--rebuild'])"
    )
    for wait in (0.1, 0.2, 0.3):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert app.store.ids() == before and len(found(app, "okapi")) == 20
    for name in build_files(tmp_path):
        os.utime(tmp_path / "home" / name, (1, 1))
    rebuild(app)
    assert build_files(tmp_path) == [] and app.store.ids() == before


@pytest.mark.parametrize("damage", ["garbage", "cut", "a table is missing", "newer", "mark", "absurd ids"])
def test_a_rebuild_restores_any_damaged_index(app, write_note, damage):
    """SPEC: "delete the database and `memory index --rebuild` restores everything that Markdown holds"."""
    for number in range(30):
        write_note(f"{number}.md", f"okapi {number}")
    app.indexer.index(app.store)
    path = app.store.path
    before = app.store.ids()
    with app.store.writing():
        app.store.count_read("3.md", "now")
    statements = {
        "a table is missing": "DROP TABLE meta",
        "newer": "PRAGMA user_version = 99",
        "mark": "PRAGMA application_id = 1",
        "absurd ids": f"UPDATE cards SET id = {(1 << 63) - 1} WHERE rel_path = '0.md'",
    }
    if damage in statements:
        app.store.connection.execute(statements[damage])
    app.close()
    if damage == "garbage":
        with open(path, "r+b") as handle:
            handle.write(b"garbage" * 1000)
    elif damage == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    report = rebuild(app)
    assert report.total == 30 and len(found(app, "okapi")) == 20
    if damage in statements:
        same = {name: id for name, id in before.items() if name != "0.md"}
        assert same.items() <= app.store.ids().items() and app.store.read_counts(1)[:2] == (1, 1)
    write_note("later.md", "quokka")
    assert found(app, "quokka", sync=True) == ["later.md"]


def test_a_rebuild_mends_what_it_keeps_too(app, write_note):
    """Reading counts stay in place in a rebuild; where their own pages are damaged they move to a new file."""
    write_note("a.md", "okapi")
    app.indexer.index(app.store)
    with app.store.writing():
        app.store.count_read("a.md", "now")
    roots = dict(app.store.query("SELECT name, rootpage FROM sqlite_master"))
    app.store.connection.execute("PRAGMA writable_schema = ON")
    app.store.connection.execute(
        f"UPDATE sqlite_master SET rootpage = {roots['sqlite_autoindex_unreadable_1']} "
        "WHERE name = 'sqlite_autoindex_card_stats_1'"
    )
    app.close()
    rebuild(app)
    assert app.store.query("PRAGMA integrity_check") == [("ok",)]
    assert app.store.query("SELECT read_count FROM card_stats WHERE rel_path = 'a.md'") == [(1,)]


def test_a_rebuild_of_a_damaged_index_that_is_cut_short_loses_nothing(app, write_note):
    """What the damaged file still gives stays where it is until the new index is whole (bench/faults/kills.py)."""
    for number in range(30):
        write_note(f"{number}.md", f"okapi {number}")
    app.indexer.index(app.store)
    with app.store.writing():
        app.store.count_read("3.md", "now")
    app.store.connection.execute("DROP TABLE meta")
    app.close()
    app.cancelled = lambda: True
    with pytest.raises(Cancelled):
        rebuild(app)
    app.cancelled = None
    with pytest.raises(StoreDamaged):
        app.store  # noqa: B018  (opens it)
    rebuild(app)
    assert len(found(app, "okapi")) == 20 and app.store.read_counts(1)[:2] == (1, 1)


# ---- one card ------------------------------------------------------------------------------------


def test_one_card_is_indexed_alone(app, write_note):
    """SPEC: "indexes **that card only** (never a full pass)"."""
    write_note("a.md", "okapi")
    write_note("b.md", "zebra")
    assert app.indexer.index_one(app.store, "a.md") == 1
    assert app.indexer.index_one(app.store, "a.md") == 1
    assert app.store.paths() == ["a.md"]


ODD_NOTES = {
    "empty.md": b"",
    "fm.md": b"---\n",
    "nul.md": b'---\ntitle: "a\\0b"\n---\nokapi',
    "title.md": b"# ti\0tle\nokapi \0 x",
    "gbk.md": "# 标题\nokapi 中文".encode("gbk"),
    "utf16.md": "# t\nokapi".encode("utf-16"),
    "bom.md": b"\xef\xbb\xbf# x\nokapi",
    "cr.md": b"# x\rokapi\r",
    "surrogate.md": b"\xed\xa0\x80 okapi",
    "tags.md": b"---\ntags: [" + b", ".join(b"t%d" % n for n in range(10_000)) + b"]\n---\nokapi",
    "wide.md": b"x" * 1_000_000 + b" okapi",
    "lines.md": b"\n" * 500_000 + b"okapi",
    "fence.md": b"```\n" * 10_000 + b"okapi",
    "deep.md": b"---\na: " + b"[" * 5000 + b"\n---\nokapi",
    "kind.md": b"---\nkind: " + b"k" * 5000 + b"\nsource: [a]\ncreated: {b: c}\n---\nokapi",
}


def test_notes_of_every_odd_kind_are_found(app, write_note):
    for name, data in ODD_NOTES.items():
        write_note(name, data)
    report = app.indexer.index(app.store)
    assert (report.added, report.skipped) == (len(ODD_NOTES), [])
    assert {note.message.split(":")[0] for note in report.warnings} == {"gbk.md", "surrogate.md"}
    assert set(found(app, "okapi")) == set(ODD_NOTES) - {"empty.md", "fm.md"}
    assert paths_of(app.searcher.search("t9999")) == ["tags.md"]


def test_a_card_of_16_mb_is_read_and_one_byte_more_is_named(app, write_note):
    write_note("big.md", b"okapi\n" + b"." * ((16 << 20) - 12) + b"\nzebra")
    write_note("bigger.md", b"." * ((16 << 20) + 1))
    report = app.indexer.index(app.store)
    assert [entry.path for entry in report.skipped] == ["bigger.md"]
    assert found(app, "zebra") == found(app, "okapi") == ["big.md"]


# ---- the small parts -----------------------------------------------------------------------------

NOW = 1_800_000_000_000_000_000


@pytest.mark.parametrize(
    "mtime, ctime, racy",
    [
        (NOW, NOW, True),
        (NOW - RACY_NS // 2, 0, True),
        (0, NOW - RACY_NS // 2, True),
        (NOW - 2 * RACY_NS, NOW - 2 * RACY_NS, False),
        (NOW + RACY_NS // 2, 0, True),
        (NOW * 4, NOW - 2 * RACY_NS, False),
        (-NOW, NOW - 2 * RACY_NS, False),
        (0, NOW * 4, True),
    ],
)
def test_a_stamp_near_the_moment_of_reading_is_not_trusted(mtime, ctime, racy):
    assert is_racy(Stamp(1, mtime, ctime, 1), NOW) is racy


def test_a_date_of_the_far_future_is_not_read_again_for_ever(app, write_note):
    os.utime(write_note("a.md", "okapi"), (7_258_118_400, 7_258_118_400))
    app.indexer.index(app.store)
    stamp, now = stamp_of(os.path.join(app.settings.vault.path, "a.md")), time.time_ns() + 2 * RACY_NS
    assert is_racy(stamp, now) is False


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (7_258_118_400, "2200-01-01T00:00:00Z"), (1e30, "")],
)
def test_a_time_is_utc_text(seconds, text):
    assert utc_now(seconds) == text
