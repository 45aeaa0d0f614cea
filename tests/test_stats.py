"""mcore.stats: what the vault holds, and where everything is."""

import os
import sqlite3
from contextlib import closing

import pytest

from mcore.show import show
from mcore.stats import paths, stats


@pytest.fixture
def app(write_note, make_app):
    write_note("03-Knowledge/a.md", "---\nsource: alice\n---\n# A\n\none")
    write_note("03-Knowledge/b.md", "---\nsource: alice\n---\n# B\n\ntwo")
    write_note("07-Tools/c.md", "---\nsource: bob\n---\n# C\n\nthree")
    write_note("d.md", "---\nkind: Mistake\n---\n# D\n\nfour")
    return make_app()


def test_totals_by_kind_and_source_count_every_card_once(app):
    result = stats(app)
    assert result.total == 4
    assert result.kinds == {"knowledge": 2, "mistake": 1, "tool": 1}
    assert result.sources == {"alice": 2, "": 1, "bob": 1}
    assert result.vault == app.settings.vault.path and result.warnings == []


def test_the_latest_cards_are_the_files_changed_last(app, tmp_path):
    for seconds, name in enumerate(["d.md", "07-Tools/c.md", "03-Knowledge/b.md", "03-Knowledge/a.md"]):
        os.utime(tmp_path / "vault" / name, (1_700_000_000 + seconds,) * 2)
    latest = stats(app).latest
    assert [card.path for card in latest] == ["03-Knowledge/a.md", "03-Knowledge/b.md", "07-Tools/c.md", "d.md"]
    assert latest[0].changed_at == "2023-11-14T22:13:23Z" and latest[0].title == "A"


def test_at_most_five_latest_cards_are_named(write_note, make_app):
    for number in range(12):
        write_note(f"{number}.md", f"note {number}")
    assert len(stats(make_app()).latest) == 5


@pytest.mark.parametrize("seconds", [0, 1, -86_400, 4_102_444_800, 2**33])
def test_odd_times_of_files_are_shown(app, tmp_path, seconds):
    try:
        os.utime(tmp_path / "vault/d.md", (seconds, seconds))
    except (OSError, OverflowError):
        pytest.skip("this file system has no such time")
    assert all(card.changed_at.endswith("Z") for card in stats(app).latest)


def test_readings_are_listed_most_read_first(app):
    for path in ("d.md", "d.md", "03-Knowledge/a.md"):
        show(app, path=path)
    counts = stats(app).read_counts
    assert (counts.cards, counts.readings) == (2, 3)
    assert [(entry["path"], entry["read_count"]) for entry in counts.most] == [("d.md", 2), ("03-Knowledge/a.md", 1)]
    assert all(entry["last_read_at"].endswith("Z") for entry in counts.most)


def test_numbers_are_of_this_moment_or_say_so(app, write_note):
    stats(app)
    write_note("e.md", "a fifth note")
    assert stats(app, sync=False).total == 4
    with closing(sqlite3.connect(app.db_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        busy = stats(app)
        other.execute("ROLLBACK")
    assert (busy.total, busy.freshness.stale, [note.slug for note in busy.warnings]) == (4, 1, ["stale"])
    assert busy.warnings[0].message == "1 changed file is not in this answer yet"
    assert stats(app).total == 5


def test_a_missing_vault_is_said(make_app, tmp_path):
    result = stats(make_app(vault=tmp_path / "nowhere"))
    assert (result.total, [note.slug for note in result.warnings]) == (0, ["no-vault"])


# ---- paths ---------------------------------------------------------------------------------------


def test_paths_names_each_place_and_what_decided_it(make_app, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.json").write_text('{"vault": "cards"}')
    monkeypatch.setenv("MEMORY_AGENT_DB", str(tmp_path / "x.db"))
    from mcore.app import App

    result = paths(App())
    assert result.home == {"path": str(tmp_path / "home"), "from": "environment"}
    assert result.db == {"path": str(tmp_path / "x.db"), "from": "environment"}
    assert result.vault == {"path": str(tmp_path / "home/cards"), "from": "config"}
    assert result.config == {"path": str(tmp_path / "home/config.json"), "from": "default"}
    assert make_app(db=tmp_path / "y.db").settings.db == (str(tmp_path / "y.db"), "flag")


def test_paths_makes_nothing(make_app, tmp_path):
    paths(make_app())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("damage", ["garbage", "folder", "absent"])
def test_paths_works_whatever_the_index_is(make_app, tmp_path, damage):
    (tmp_path / "home").mkdir()
    db = tmp_path / "home/memory.db"
    if damage == "folder":
        db.mkdir()
    elif damage == "garbage":
        db.write_bytes(b"no database" * 500)
    assert paths(make_app()).db == {"path": str(db), "from": "default"}


def test_a_second_vault_has_an_index_of_its_own_and_paths_says_which(app, make_app, write_note, tmp_path):
    assert stats(app).total == 4
    write_note("x.md", "another vault", vault="second")
    second = make_app(vault=tmp_path / "second")
    assert stats(second).total == 1 and stats(app).total == 4
    assert paths(second).db["path"] != paths(app).db["path"] == str(tmp_path / "home/memory.db")
    assert os.path.dirname(paths(second).db["path"]) == str(tmp_path / "home")


def test_a_forgotten_card_is_named_nowhere(app, tmp_path):
    show(app, path="d.md")
    show(app, path="03-Knowledge/a.md")
    (tmp_path / "vault/d.md").write_text("---\nkind: Mistake\nforgotten_at: 2026-01-01\n---\n# D\n\nfour")
    result = stats(app)
    assert (result.total, result.forgotten, result.read_counts.readings) == (3, 1, 2)
    assert [entry["path"] for entry in result.read_counts.most] == ["03-Knowledge/a.md"]
    assert "d.md" not in {card.path for card in result.latest} and "mistake" not in result.kinds
