"""`memory backup FILE` and `memory restore FILE`: nothing lost on the way, nothing written that was not checked."""

import io
import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import threading
from contextlib import closing

import pytest
from conftest import ROOT
from test_archive import strange
from test_promises import state

from mcore import archive, backup
from mcore.app import App
from mcore.errors import ArchiveError, SetupError, UsageError
from mcore.store import open_store

POSIX = os.name == "posix"
CONFIG = '{"sync_seconds": 1.5, "vault": "vault", "ignore": ["x"]}'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data root with its vault inside, settings, a truth file, an index, reading counts."""
    home = tmp_path / "home"
    files = {
        "03-Knowledge/nginx-站点.md": "---\ntitle: nginx 站点\n---\n根目录是 /srv/www".encode(),
        "07-Tools/odd.md": b"\xff\x00 not UTF-8\r\n",
        ".history/03-Knowledge/nginx-站点.md/1.md": b"former text",
        "images/a.png": bytes(range(256)) * 40,
        "empty.md": b"",
    }
    if POSIX:
        files["a:b?.md"] = b"a name for this system alone"
        files[os.fsdecode(b"bad\xff.md")] = b"a name that is no text"
    for name, data in files.items():
        path = home / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(1, 1_600_000_000_123_456_789))
    (home / "config.json").write_text(CONFIG)
    (home / "bench_queries.json").write_text('{"queries": []}')
    monkeypatch.delenv("MEMORY_AGENT_VAULT", raising=False)
    with closing(App()) as app:
        app.indexer.index(app.store)
        with app.store.writing():
            for _ in range(3):
                app.store.count_read("07-Tools/odd.md", "2026-01-02T03:04:05Z")
    return home


def made(tmp_path, name="b.tar.gz"):
    with closing(App()) as app:
        return backup.backup(app, str(tmp_path / name))


def put_back(tmp_path, path=None, home="new", **flags):
    with closing(App(home=str(tmp_path / home), **flags)) as app:
        return backup.restore(app, str(path or tmp_path / "b.tar.gz"))


def files_of(folder):
    """{relative path: (bytes, mtime)} of the files below a folder."""
    return {name: (data, time) for name, (_, _, time, data) in state(folder).items() if data is not None}


# ---- there and back ------------------------------------------------------------------------------


def test_everything_comes_back(home, tmp_path):
    before = state(home)
    result = made(tmp_path)
    assert (result.status, result.skipped, result.unread, result.warnings) == ("created", [], [], [])
    assert {name: entry for name, entry in state(home).items() if ".db-" not in name} == before
    restored = put_back(tmp_path)
    assert files_of(tmp_path / "new/vault") == files_of(home / "vault")
    assert (restored.files, restored.bytes) == (result.files, result.bytes)
    assert (restored.reading_counts, restored.left_out) == (1, ["vault"])
    assert json.loads((tmp_path / "new/config.json").read_text()) == {"sync_seconds": 1.5, "ignore": ["x"]}
    assert (tmp_path / "new/bench_queries.json").read_bytes() == (home / "bench_queries.json").read_bytes()
    with closing(App(home=str(tmp_path / "new"))) as app:
        assert app.store.every_count() == [("07-Tools/odd.md", 3, "2026-01-02T03:04:05Z")]
        assert app.store.total() == restored.cards
        assert app.searcher.search("站点").hits[0].path == "03-Knowledge/nginx-站点.md"


def test_a_backup_of_what_was_restored_is_the_same(home, tmp_path):
    first = made(tmp_path)
    put_back(tmp_path)
    with closing(App(home=str(tmp_path / "new"))) as app:
        second = backup.backup(app, str(tmp_path / "c.tar.gz"))
    with open(first.path, "rb") as one, open(second.path, "rb") as other:
        entries, again = archive.read(one)[1], archive.read(other)[1]
    assert entries.pop("config.json") != again.pop("config.json")  # without the other machine's path
    assert again == entries


def test_a_vault_of_its_own_place_comes_back_where_it_is_told(home, tmp_path):
    made(tmp_path)
    restored = put_back(tmp_path, vault=str(tmp_path / "deep/notes"), db=str(tmp_path / "x.db"))
    assert files_of(tmp_path / "deep/notes") == files_of(home / "vault")
    assert sorted(os.listdir(tmp_path / "new")) == ["bench_queries.json", "config.json"]
    assert {note.slug for note in restored.warnings} == {"settings", "flags"}
    with closing(App(home=str(tmp_path / "new"), vault=restored.vault, db=str(tmp_path / "x.db"))) as app:
        assert app.store.every_count()[0][1] == 3 and app.store.total() == restored.cards


def test_what_is_left_out_is_named(home, tmp_path):
    (home / "vault/.git").mkdir()
    (home / "vault/.git/config").write_text("x")
    (home / "vault/.tmp-memory-1-00112233aabb").write_text("half a card")
    expected = [(".git", "folder of a program, not memory")]
    if POSIX:
        os.symlink("/etc", home / "vault/linked")
        os.symlink("/etc/passwd", home / "vault/passwd.md")
        expected += [("linked", "link"), ("passwd.md", "link or not a regular file")]
    result = made(tmp_path)
    assert result.skipped == expected
    with tarfile.open(result.path) as tar:
        assert not [name for name in tar.getnames() if "tmp-memory" in name or "passwd" in name]


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_said(home, tmp_path, memory):
    os.chmod(home / "vault/empty.md", 0)
    assert made(tmp_path).unread[0].path == "empty.md"


def test_reading_counts_of_a_damaged_index_are_kept_when_they_can_be_read(home, tmp_path):
    with open(home / "memory.db", "r+b") as handle:
        handle.seek(100)
        handle.write(b"\xff" * 20)
    result = made(tmp_path)
    assert [note.slug for note in result.warnings] == ["index"] and result.files


def test_one_byte_of_a_card_is_enough_to_make_another_archive(home, tmp_path):
    first = made(tmp_path)
    (home / "vault/empty.md").write_bytes(b"x")
    assert made(tmp_path, "c.tar.gz").sha256 != first.sha256


# ---- the archive's name --------------------------------------------------------------------------


def test_a_file_that_exists_is_never_replaced(home, tmp_path, memory):
    (tmp_path / "mine.tar.gz").write_text("mine")
    ran = memory("--vault", home / "vault", "backup", tmp_path / "mine.tar.gz")
    assert ran.code == 3 and ran.out.startswith("conflict: ")
    assert (tmp_path / "mine.tar.gz").read_text() == "mine"


def test_an_archive_is_for_its_owner_alone_and_leaves_nothing_beside_it(home, tmp_path):
    result = made(tmp_path)
    if POSIX:
        assert stat.S_IMODE(os.stat(result.path).st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["b.tar.gz", "home"]
    with open(result.path, "rb") as stream:
        assert archive.sha256(stream) == result.sha256


def test_a_place_that_cannot_be_is_refused(home, tmp_path):
    with pytest.raises(UsageError):
        made(home / "vault")
    with pytest.raises(SetupError):
        made(tmp_path / "no such folder")
    with closing(App(vault=str(tmp_path / "no vault"))) as app, pytest.raises(SetupError):
        backup.backup(app, str(tmp_path / "b.tar.gz"))
    assert os.listdir(tmp_path) == ["home"]


def test_a_failed_read_back_leaves_no_archive(home, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "read", lambda stream, *more: ({}, {}))
    with pytest.raises(ArchiveError):
        made(tmp_path)
    assert os.listdir(tmp_path) == ["home"]


def test_cards_written_meanwhile_are_whole_or_absent(home, tmp_path):
    stop, body = threading.Event(), b"x" * 50_000
    (home / "vault/before.md").write_bytes(body)

    def rewrite():
        number = 0
        while not stop.is_set():
            number += 1
            for name in ("before.md", f"new-{number % 50}.md"):
                temp = home / "vault/.tmp-memory-1-00112233aabb"
                temp.write_bytes(body + bytes([65 + number % 26]))
                os.replace(temp, home / "vault" / name)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        results = [made(tmp_path, f"{number}.tar.gz") for number in range(5)]
    finally:
        stop.set()
        writer.join()
    for result in results:
        with tarfile.open(result.path) as tar:
            names = set(tar.getnames())
            sizes = {m.size for m in tar if "before" in m.name or "new-" in m.name}
        assert "vault/before.md" in names and sizes <= {50_000, 50_001}


# ---- only into an empty place --------------------------------------------------------------------


@pytest.mark.parametrize("filled", ["card", "config", "index", "file", "link", "vault"])
def test_a_place_that_holds_anything_is_refused_and_stays_as_it_is(home, tmp_path, filled):
    made(tmp_path)
    new, flags = tmp_path / "new", {}
    if filled == "card":
        (new / "vault").mkdir(parents=True)
        (new / "vault/mine.md").write_text("mine")
    elif filled == "file":
        new.write_text("mine")
    elif filled == "link":
        (tmp_path / "elsewhere").mkdir()
        os.symlink(tmp_path / "elsewhere", new)
    elif filled == "vault":
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes/mine.md").write_text("mine")
        flags["vault"] = str(tmp_path / "notes")
    else:
        new.mkdir()
        (new / {"config": "config.json", "index": "memory.db"}[filled]).write_text("{}" if filled == "config" else "")
    before = state(tmp_path)
    with pytest.raises(SetupError):
        put_back(tmp_path, **flags)
    assert state(tmp_path) == before


def test_an_empty_vault_in_the_data_root_is_an_empty_place(home, tmp_path):
    made(tmp_path)
    (tmp_path / "new/vault").mkdir(parents=True)
    assert put_back(tmp_path).files == len(files_of(home / "vault"))
    if POSIX:
        for base, folders, names in os.walk(tmp_path / "new"):
            for name in [*folders, *names]:
                mode = stat.S_IMODE(os.stat(os.path.join(base, name)).st_mode)
                assert mode == (0o700 if name in folders else 0o600), name
        assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700


HOSTILE = {
    "way up": [("vault/../../evil.md", b"x")],
    "absolute": [("/tmp/evil.md", b"x")],
    "something else": [("home/.ssh/authorized_keys", b"x")],
    "file and folder": [("vault/a", b"x"), ("vault/a/b.md", b"x")],
    "broken config": [("config.json", b'{"vault": 3}')],
    "config of nonsense": [("config.json", b"\xff{")],
    "counts of nonsense": [("reading_counts.json", b'[{"path": 1, "read_count": "x", "last_read_at": 2}]')],
    "counts of no list": [("reading_counts.json", b"7")],
    "counts too deep": [("reading_counts.json", b"[" * 100_000)],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_of_a_hostile_archive_nothing_is_written(tmp_path, what):
    path = strange(tmp_path, [("vault/good.md", b"good"), *HOSTILE[what]])
    before = state(tmp_path)
    with pytest.raises((ArchiveError, SetupError)):
        put_back(tmp_path, path)
    assert state(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_no_archive_and_not_waited_for(tmp_path, make_app):
    os.mkfifo(tmp_path / "b.tar.gz")
    with pytest.raises(SetupError) as caught:
        backup.restore(make_app(), str(tmp_path / "b.tar.gz"))
    assert caught.value.why == "not a regular file"


def test_names_that_would_fall_together_are_refused_where_they_would(tmp_path, monkeypatch):
    path = strange(tmp_path, [("vault/Case.md", b"1"), ("vault/case.md", b"2")])
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ArchiveError) as caught:
        put_back(tmp_path, path)
    assert "same name" in caught.value.why and not (tmp_path / "new").exists()


def test_an_archive_that_needs_more_room_than_there_is_is_refused(tmp_path, monkeypatch):
    import shutil

    path = strange(tmp_path, [("vault/a.md", b"x" * 5000)])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: os.terminal_size((0, 0)) and type("U", (), {"free": 4999}))
    with pytest.raises(SetupError) as caught:
        put_back(tmp_path, path)
    assert "5000 bytes" in caught.value.why and not (tmp_path / "new").exists()


@pytest.mark.skipif(not POSIX, reason="a limit on the size of files")
def test_a_full_disk_leaves_nothing_half_restored(home, tmp_path):
    made(tmp_path)
    code = (
        f"import resource, signal, sys; sys.path.insert(0, {ROOT!r}); signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); from mcore.cli import main;"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "restore", str(tmp_path / "b.tar.gz"), "--home", str(tmp_path / "new")]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert ran.returncode == 2 and "cannot restore" in ran.stderr and "Traceback" not in ran.stderr
    assert sorted(os.listdir(tmp_path)) == ["b.tar.gz", "home"]


@pytest.mark.skipif(not POSIX, reason="signals")
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_kill_at_any_moment_leaves_all_or_nothing(home, tmp_path, command):
    made(tmp_path)
    for number, delay in enumerate((0.05, 0.1, 0.14, 0.18, 0.22, 0.3)):
        target = tmp_path / f"{number}.tar.gz" if command == "backup" else tmp_path / f"new-{number}"
        words = (
            ["backup", str(target)]
            if command == "backup"
            else ["--home", str(target), "restore", str(tmp_path / "b.tar.gz")]
        )
        child = subprocess.Popen([sys.executable, os.path.join(ROOT, "memory.py"), *words], stdout=subprocess.DEVNULL)
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
        if not target.exists():
            continue
        if command == "backup":
            with open(target, "rb") as stream:
                archive.read(stream)
        else:
            assert files_of(target / "vault") == files_of(home / "vault")
            with closing(open_store(str(target / "memory.db"))) as store:
                assert store.every_count() == [("07-Tools/odd.md", 3, "2026-01-02T03:04:05Z")]


def test_both_commands_answer_in_text_and_json(home, tmp_path, memory, monkeypatch):
    vault = ("--vault", home / "vault")
    ran = memory(*vault, "backup", tmp_path / "b.tar.gz")
    assert ran.code == 0 and "read back and compared" in ran.out and "sha256 " in ran.out
    ran = memory(
        "--home", tmp_path / "new", "--vault", tmp_path / "new/vault", "restore", tmp_path / "b.tar.gz", "--json"
    )
    answer = json.loads(ran.out)
    assert (ran.code, answer["status"], answer["reading_counts"]) == (0, "restored", 1)
    ran = memory("restore", tmp_path / "missing.tar.gz", "--home", tmp_path / "newer")
    assert ran.code == 2 and "No such file" in ran.err + ran.out
    (tmp_path / "junk").write_bytes(io.BytesIO(b"junk" * 99).getvalue())
    ran = memory("restore", tmp_path / "junk", "--home", tmp_path / "newer", "--vault", tmp_path / "newer/v")
    assert ran.code == 2 and "choose another file" in ran.err
