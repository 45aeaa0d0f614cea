"""The doctor: finds what is wrong, names the cure, changes nothing unless `--fix` is said, and no card even then."""

import json
import os
import shutil
import sqlite3
import sys
from collections import namedtuple
from contextlib import closing

import pytest
from test_promises import state

from mcore.doctor import examine
from mcore.doctor.cards import check_vault
from mcore.doctor.index import check_index

POSIX = os.name == "posix"
TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
Seen = namedtuple("Seen", "slug severity where line")


@pytest.fixture(autouse=True)
def own_user_home(tmp_path, monkeypatch):
    """No client of this machine is looked at; what a test makes is its user's alone."""
    (tmp_path / "userhome").mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "userhome"))
    former = os.umask(0o077)
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    yield
    os.umask(former)


def seen(report, *slugs):
    return [Seen(*found[:4]) for found in report.findings if not slugs or found.slug in slugs]


@pytest.fixture
def app(make_app, write_note):
    """Two cards, indexed."""
    write_note("03-Knowledge/a.md", "---\ntitle: A\n---\nzebra")
    write_note("07-Tools/斑马.md", "# 斑马\n\n正文")
    app = make_app()
    app.indexer.index(app.store)
    app.close()
    return app


# ---- reading only --------------------------------------------------------------------------------


def test_a_healthy_memory_has_no_finding(app):
    report = examine(app)
    assert (report.status, report.findings, report.fixed) == ("healthy", [], [])
    assert report.counts == {"files": 2, "cards": 2, "error": 0, "warning": 0, "note": 0}
    assert report.machine.fts5 and report.machine.sqlite == sqlite3.sqlite_version


def test_nothing_is_made_where_there_is_nothing(memory, tmp_path, monkeypatch):
    monkeypatch.delenv("MEMORY_AGENT_VAULT")
    ran = memory("doctor", "--json")
    assert ran.code == 0 and not (tmp_path / "home").exists() and not (tmp_path / "vault").exists()
    slugs = {found["slug"]: found["severity"] for found in json.loads(ran.out)["findings"]}
    assert slugs == {"no-vault": "note", "index-missing": "note"}


def test_no_byte_no_name_no_time_changes(app, tmp_path, write_note):
    write_note("new.md", "not indexed")
    write_note("broken.md", b"\x00\x01binary\xff" * 9)
    before = {name: state(tmp_path / name) for name in ("vault", "home", "userhome")}
    assert examine(app).status == "findings"
    assert {name: state(tmp_path / name) for name in before} == before


@pytest.mark.parametrize("damage", ["garbage", "truncated", "folder", "locked", "foreign", "newer", "empty", "none"])
def test_a_bad_index_is_named_and_stays_as_it_is(app, tmp_path, damage, monkeypatch):
    monkeypatch.setattr("mcore.doctor.index.WAIT_SECONDS", 0.1)
    path = app.db_path
    data = open(path, "rb").read()
    holder = None
    if damage == "garbage":
        open(path, "wb").write(b"no database " * 900)
    elif damage == "truncated":
        open(path, "wb").write(data[: len(data) // 2])
    elif damage in ("folder", "none", "empty", "foreign"):
        os.unlink(path)
        if damage == "folder":
            os.mkdir(path)
        elif damage == "empty":
            open(path, "wb").close()
        elif damage == "foreign":
            with closing(sqlite3.connect(path)) as other:
                other.execute("CREATE TABLE theirs (a)")
    elif damage == "newer":
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 99")
    else:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("UPDATE meta SET value = value")
    before = {name: state(tmp_path / name) for name in ("home", "vault")}
    report = examine(app)
    after = {name: state(tmp_path / name) for name in ("home", "vault")}
    if holder:
        holder.close()
    assert after == before
    expected = {
        "garbage": ("index-damaged", "error"),
        "truncated": ("index-damaged", "error"),
        "folder": ("index-foreign", "error"),
        "locked": ("index-busy", "warning"),
        "foreign": ("index-foreign", "error"),
        "newer": ("index-newer", "error"),
        "empty": ("index-missing", "warning"),
        "none": ("index-missing", "warning"),
    }[damage]
    assert [found[:2] for found in seen(report)] == [expected]
    assert report.findings[0].cure
    assert report.status == ("broken" if expected[1] == "error" else "findings")


def test_a_setting_that_nothing_reads_is_named(app, tmp_path):
    (tmp_path / "home/config.json").write_text('{"Vault": null, "sync_second": 1, "colour": "red"}')
    os.chmod(tmp_path / "home/config.json", 0o600)
    app._settings = None
    cures = [each.cure for each in examine(app).findings if each.slug == "config-unknown"]
    assert cures[:2] == ["did you mean 'vault'?", "did you mean 'sync_seconds'?"] and "scopes" in cures[2]


def test_a_broken_config_is_named_with_its_line_and_the_rest_is_looked_at(app, tmp_path, memory, write_note):
    write_note("binary.md", b"\x00\x01\xff" * 20)
    (tmp_path / "home/config.json").write_text('{\n "sync_seconds": 1,\n "vault" 3\n}')
    os.chmod(tmp_path / "home/config.json", 0o600)
    app._settings = None
    report = examine(app)
    config = str(tmp_path / "home/config.json")
    assert seen(report, "config-broken") == [("config-broken", "error", config, 3)]
    assert seen(report, "unreadable") == [("unreadable", "warning", "binary.md", None)]
    ran = memory("doctor")
    assert ran.code == 2 and f"config-broken  {config}:3" in ran.out


# ---- what it finds -------------------------------------------------------------------------------

FINDINGS = [
    # files, findings as (slug, severity, where, line)
    ({"x.md": "---\ntitle: x\ntags: [a\nkind: tool\n---\nbody"}, [("frontmatter", "warning", "x.md", 3)]),
    ({"x.md": "---\ntitle: x\ntitle: y\n---\nbody"}, [("frontmatter", "warning", "x.md", 3)]),
    ({"x.md": "---\ntitle: x\n\nbody"}, [("frontmatter", "warning", "x.md", 1)]),
    ({"x.md": "---\nvalid_to: soon\n---\nbody"}, [("validity", "warning", "x.md", None)]),
    ({"x.md": "---\nsupersedes: gone.md\n---\nbody"}, [("link", "warning", "x.md", None)]),
    ({"x.md": "---\nsupersedes: y.md\n---\nbody", "y.md": "other"}, []),
    ({"x.md": b"one\ntwo \xff\n"}, [("not-utf8", "warning", "x.md", 2)]),
    ({"x.md": b"\x00\x01\xff" * 20}, [("unreadable", "warning", "x.md", None)]),
    ({"x.md": "one\nsay \u202eevil\u202c\n"}, [("hidden-text", "warning", "x.md", 2)]),
    ({"x.md": "\n\nzero\u200bwidth"}, [("hidden-text", "note", "x.md", 3)]),
    ({"x.md": " \n"}, [("empty-card", "note", "x.md", None)]),
    ({"x.md": "# T", "y/z.md": "---\ntitle: t\n---\n"}, [("duplicate-title", "warning", "x.md", None)]),
    ({"a/README.md": "# Read me", "b/README.md": "# Read me"}, []),
    ({"x.md": "# T", "y.md": "---\nsupersedes: x.md\n---\n# T"}, []),
    ({"x.md": "# T", "y.md": "---\nforgotten_at: 2026-01-01\n---\n# T"}, []),
    ({"x.md": "---\nsupersedes: gone.md\n---\n# T"}, [("link", "warning", "x.md", None)]),
    ({"x.md": "---\nttl: soon\n---\n# T"}, [("validity", "warning", "x.md", None)]),
    ({"x.md": f"a\n密码 {TOKEN}"}, [("secret", "warning", "x.md", 2)]),
    ({"x.MDX": "y"}, [("left-out", "warning", "x.MDX", None)]),
    ({".obsidian/x.md": "y", ".git/x.md": "z"}, []),
]
if POSIX:
    FINDINGS += [
        ({"con.md": "y"}, [("name", "warning", "con.md", None)]),
        ({"d./a:b.md": "y"}, [("name", "warning", "d./a:b.md", None)]),
    ]
if sys.platform == "linux":
    FINDINGS += [
        ({"A.md": "# 1", "a.md": "# 2"}, [("name-collision", "warning", "A.md", None)]),
        ({"D/a.md": "# 1", "d/b.md": "# 2"}, [("name-collision", "warning", "D", None)]),
    ]


@pytest.mark.parametrize("files, expected", FINDINGS)
def test_each_fault_of_a_card_is_found_where_it_is(make_app, write_note, files, expected):
    for name, text in files.items():
        write_note(name, text)
    app = make_app()
    app.indexer.index(app.store)
    app.close()
    report = examine(app)
    assert seen(report) == expected
    assert all(found.cure and found.message for found in report.findings)


def test_cards_not_in_the_index_and_the_reverse(app, write_note, tmp_path):
    write_note("new.md", "a new card")
    write_note("03-Knowledge/a.md", "---\ntitle: A\n---\nhorse")
    os.unlink(tmp_path / "vault/07-Tools/斑马.md")
    report = examine(app)
    assert seen(report) == [
        ("not-in-vault", "warning", "07-Tools/斑马.md", None),
        ("not-indexed", "warning", "new.md", None),
        ("stale", "warning", "03-Knowledge/a.md", None),
    ]
    assert {found.cure for found in report.findings} == {f"memory index --vault {tmp_path / 'vault'}"}


def test_an_index_whose_vault_is_away_is_told_from_an_empty_vault(app, tmp_path):
    os.rename(tmp_path / "vault", tmp_path / "elsewhere")
    report = examine(app)
    assert ("vault-away", "error", str(tmp_path / "vault"), None) in seen(report)
    assert "not-in-vault" not in {found.slug for found in report.findings}


def test_an_emptied_vault_is_cured_as_index_and_search_say(app, tmp_path, write_note):
    for number in range(12):
        write_note(f"n{number}.md", "a note")
    app.indexer.index(app.store)
    shutil.rmtree(tmp_path / "vault")
    (tmp_path / "vault").mkdir()
    report = examine(app)
    assert ["vault-away"] == [found.slug for found in report.findings if found.severity == "error"]
    assert report.findings[0].cure.endswith("memory index --rebuild")


def test_an_index_that_lost_a_row_of_its_full_text_is_damaged(app):
    with closing(sqlite3.connect(app.db_path)) as other:
        other.execute("DELETE FROM cards_fts_docsize WHERE id = 1")
        other.commit()
    assert seen(examine(app)) == [("index-damaged", "error", app.db_path, None)]


def test_a_word_of_the_index_that_no_file_has_is_found(app, memory):
    """One flipped bit inside the full text: SQLite sees nothing wrong, and the search loses a word."""
    with open(app.db_path, "r+b") as handle:
        at = handle.read().rindex(b"zebra") + 4  # its other record, `vocabulary`, stands before
        handle.seek(at)
        handle.write(b"b")
    assert memory("search", "zebra", "--no-sync").code == 2
    report = examine(app)
    assert seen(report) == [("index-differs", "warning", app.db_path, None)]
    assert "03-Knowledge/a.md" in report.findings[0].message
    assert examine(app, fix=True).status == "healthy" and memory("search", "zebra").code == 0


@pytest.fixture
def many(make_app, write_note):
    """An index large enough for lists of frequent terms, with cards that were added after they were made."""
    for number in range(150):
        write_note(f"{number}.md", f"---\ntitle: running {number}\nkind: tool\n---\nzebra stripes 斑马 {number}")
    app = make_app()
    app.indexer.rebuild(app.rebuild_path())
    write_note("late.md", "late zebra 斑马")
    app.indexer.index(app.store)
    assert app.store.query("SELECT 1 FROM lists WHERE term = 'zebra'") and app.store.query("SELECT 1 FROM recent")
    assert app.store.query("SELECT 1 FROM stems")
    app.close()
    return app


DIFFERENCES = {
    "a list of other cards": "UPDATE lists SET docs = (SELECT docs FROM lists LIMIT 1) WHERE term = '斑马'",
    "a list is no list": "UPDATE lists SET docs = x'00' WHERE term = 'zebra'",
    "a list counts otherwise": "UPDATE lists SET size = size - 1 WHERE term = 'zebra'",
    "a list is another term's": "UPDATE lists SET term = 'zebrb' WHERE term = 'zebra'",
    "a character's list": "UPDATE lists SET docs = (SELECT docs FROM lists WHERE term = 'running') WHERE term = '斑*'",
    "an added card is missing": "DELETE FROM recent WHERE term = 'zebra'",
    "a length": "UPDATE lengths SET codes = zeroblob(length(codes))",
    "a word": "DELETE FROM vocabulary WHERE first IN (SELECT first FROM vocabulary LIMIT 1)",
    "a word's block": "UPDATE vocabulary SET first = 'zz' WHERE block IS NOT NULL",
    "a stem": "UPDATE stems SET stem = 'rub' WHERE word = 'running'",
    "a kind": "UPDATE cards SET kind = 'took' WHERE rel_path = '7.md'",
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_record_beside_the_full_text_that_differs_is_found_and_made_anew(many, difference):
    """SQLite sees nothing wrong with it; a search would miss a card, or rank it otherwise."""
    assert seen(examine(many)) == []
    with closing(sqlite3.connect(many.db_path)) as other:
        assert other.execute(DIFFERENCES[difference]).rowcount
        other.commit()
    (found,) = examine(many, deep=True).findings
    assert (found.slug, found.severity) in (("index-differs", "warning"), ("index-damaged", "error"))
    assert "memory index" in found.cure and "--rebuild" in found.cure
    report = examine(many, fix=True, deep=True)
    assert report.status == "healthy" and report.fixed == ["rebuilt the index: 151 cards"]


def test_a_path_that_is_not_the_one_it_is_found_by_is_damage(app):
    with open(app.db_path, "r+b") as handle:
        data = handle.read()
        at = data.index(b"03-Knowledge/a.mdA")
        handle.seek(at + 13)
        handle.write(b"b")
    assert seen(examine(app)) == [("index-damaged", "error", app.db_path, None)]


def test_the_words_of_many_cards_and_of_changed_ones_agree(app, write_note):
    for number in range(600):
        write_note(
            f"many/{number}.md", f"---\ntitle: t {number}\ntags: [x{number % 7}]\n---\n正文 getName_{number} 🦀\0 b"
        )
    app.indexer.index(app.store)
    for number in range(30):
        write_note(f"many/{number}.md", f"changed {number}")
    app.indexer.index(app.store)
    assert app.store.dead_rows()
    app.close()
    assert not seen(examine(app), "index-differs", "stale")


@pytest.mark.skipif(not POSIX, reason="modes of POSIX")
def test_what_others_may_read_is_named_with_the_command(app, tmp_path):
    os.chmod(tmp_path / "home", 0o755)
    os.chmod(app.db_path, 0o644)
    report = examine(app)
    assert [found.cure for found in report.findings] == [f"chmod 700 {tmp_path / 'home'}", f"chmod 600 {app.db_path}"]
    assert {found.slug for found in report.findings} == {"permissions"}


def test_a_client_that_starts_something_else_is_named_with_the_command(app, tmp_path):
    entry = {"mcpServers": {"memory": {"command": "/old/python", "args": ["/old/memory.py", "mcp"]}}}
    (tmp_path / "userhome/.claude.json").write_text(json.dumps(entry))
    (tmp_path / "userhome/.codex").mkdir()
    (tmp_path / "userhome/.cursor").mkdir()
    (tmp_path / "userhome/.cursor/mcp.json").write_text("{broken")
    report = examine(app)
    assert [(found.slug, found.severity) for found in report.findings] == [
        ("client-stale", "warning"),
        ("client-unreadable", "warning"),
        ("client-not-connected", "note"),
    ]
    assert report.findings[0].cure == "memory setup claude-code --apply"
    assert report.findings[2].cure == "memory setup codex --apply"


def test_a_credential_is_never_repeated(make_app, write_note, memory):
    write_note(f"{TOKEN}.md", f"---\n{TOKEN}: 1\n{TOKEN}: [x\n---\ntext {TOKEN}")
    for form in ([], ["--json"], ["--fix"]):
        ran = memory("doctor", *form)
        assert ran.code == 1 and TOKEN not in ran.out + ran.err and "secret" in ran.out


# ---- mending -------------------------------------------------------------------------------------


def test_fix_mends_the_index_and_no_card(app, write_note, tmp_path):
    write_note("x.md", f"---\ntitle: [broken\n---\n{TOKEN} \u202e zebra")
    before = state(tmp_path / "vault")
    report = examine(app, fix=True)
    assert state(tmp_path / "vault") == before
    assert len(report.fixed) == 1 and "1 added" in report.fixed[0]
    assert {found.slug for found in report.findings} == {"frontmatter", "secret", "hidden-text"}


@pytest.mark.parametrize("damage", ["garbage", "row", "none"])
def test_fix_rebuilds_an_index_that_is_damaged_or_missing(app, memory, damage):
    if damage == "garbage":
        open(app.db_path, "wb").write(b"no database " * 900)
    elif damage == "none":
        os.unlink(app.db_path)
    else:
        with closing(sqlite3.connect(app.db_path)) as other:
            other.execute("DELETE FROM cards_fts_docsize")
            other.commit()
    ran = memory("doctor", "--fix")
    assert (ran.code, "fixed: rebuilt the index: 2 cards" in ran.out) == (0, True)
    assert memory("search", "斑马").code == 0


@pytest.mark.parametrize("kind", ["foreign", "newer"])
def test_fix_leaves_what_is_not_ours_to_mend(app, kind):
    path = app.db_path
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")
        if kind == "foreign":
            other.execute("PRAGMA application_id = 5")
            for table in ("cards", "cards_fts", "card_stats"):
                other.execute(f"DROP TABLE {table}")
    with open(path, "rb") as handle:
        data = handle.read()
    report = examine(app, fix=True)
    assert (report.status, report.fixed) == ("broken", [])
    with open(path, "rb") as handle:
        assert handle.read() == data


def test_fix_removes_old_left_overs_of_ours_alone(app, write_note, tmp_path):
    ours = write_note("03-Knowledge/.tmp-memory-123-00112233aabb", "half a card")
    young = write_note("03-Knowledge/.tmp-memory-124-00112233aabb", "being written now")
    theirs = write_note("03-Knowledge/.tmp-other", "another program's")
    build = str(tmp_path / "home/memory.db.build-77")
    open(build, "wb").close()
    for path in (ours, theirs, build):
        os.utime(path, (1, 1))
    assert {found.slug for found in examine(app).findings} == {"stale-temp", "stale-build"}
    report = examine(app, fix=True)
    assert (report.status, len(report.fixed)) == ("healthy", 2)
    assert [os.path.exists(path) for path in (ours, young, theirs, build)] == [False, True, True, False]


def test_what_a_killed_restore_left_is_named_and_left_to_its_owner(app, tmp_path):
    left = tmp_path / "home.restore-123-00112233"
    (left / "vault").mkdir(parents=True)
    (tmp_path / "home.restore-mine").mkdir()
    assert seen(examine(app)) == []
    os.utime(left, (1, 1))
    assert seen(examine(app, fix=True)) == [("stale-restore", "warning", str(left), None)]
    assert (left / "vault").is_dir()


def test_a_card_captured_while_the_doctor_looks_is_no_finding(app, write_note, tmp_path):
    before = check_vault(app.settings)
    write_note("meanwhile.md", "a card of this moment")
    app.indexer.index(app.store)
    app.close()
    assert check_index(app, before)[1:] == (3, [])


def test_fix_builds_nothing_while_the_vault_is_away(app, tmp_path):
    os.rename(tmp_path / "vault", tmp_path / "elsewhere")
    data = open(app.db_path, "rb").read()
    assert examine(app, fix=True).fixed == []
    assert open(app.db_path, "rb").read() == data


def test_long_lists_are_cut_in_text_and_whole_in_json(memory, write_note):
    for number in range(15):
        write_note(f"{number}.md", f"---\ntitle: t{number}\ntitle: u{number}\n---\nbody")
    ran = memory("doctor")
    assert ran.code == 1 and "and 5 more of this sort" in ran.out
    found = json.loads(memory("doctor", "--json").out)["findings"]
    assert sum(each["slug"] == "frontmatter" for each in found) == 15
