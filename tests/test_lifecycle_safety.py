"""Cards that change under load and under the knife: two writers on one card, a kill at any moment.

Real processes. A kill comes in turn at every system call of a change that opens, links, renames or removes a
file; after each one the vault must hold the old card or the new one, whole, and the former text.
"""

import errno
import json
import os
import subprocess
import sys

import pytest
from blackbox import cards_below
from conftest import ROOT
from test_concurrency import together, whole

OLD = "the database host is alpha.example, port 5432"
NEW = "the database host is beta.example since the move"
CARD = "03-Knowledge/db-host.md"
MADE = ["capture", "--title", "db host", "--body", OLD, "--aliases", "主库"]


@pytest.fixture
def made(memory):
    """The answer to the capture of one card."""
    return json.loads(memory(*MADE, "--json").out)


def history_of(tmp_path, card=CARD):
    folder = tmp_path / "vault/.history" / card
    return [(folder / name).read_bytes() for name in sorted(os.listdir(folder))] if folder.exists() else []


def test_of_many_updates_of_one_revision_one_wins_and_the_others_are_told(tmp_path, memory, made):
    guard = ["--expected-revision", made["revision"]]
    batches = [[["update", CARD, "--body", f"{NEW}, says agent{n}", *guard]] for n in range(8)]
    answers = [answer for (answer,) in together(tmp_path, batches)]
    assert sorted((code, answer["status"]) for code, answer in answers) == [(0, "updated")] + [(3, "conflict")] * 7
    winner = next(n for n, (code, _) in enumerate(answers) if code == 0)
    shown = json.loads(memory("show", CARD, "--json").out)
    assert f"says agent{winner}" in shown["text"] and shown["revision"] == answers[winner][1]["revision"]
    assert {answer["revision"] for _, answer in answers} == {shown["revision"]}
    assert len(history_of(tmp_path)) == 1 and OLD.encode() in history_of(tmp_path)[0]
    assert whole(tmp_path / "home/memory.db")


def test_updates_without_a_guard_all_happen_one_after_another(tmp_path, memory, made):
    said = [["update", CARD, "--body", f"{NEW}, says agent{n}"] for n in range(6)]
    batches = [[said[n], ["update", CARD, f"--priority={n}"]] for n in range(6)]
    for batch in together(tmp_path, batches):
        assert {answer["status"] for _, answer in batch} <= {"updated"}, batch
    texts = [*history_of(tmp_path), (tmp_path / "vault" / CARD).read_bytes()]
    for n in range(6):
        assert any(f"says agent{n}".encode() in text for text in texts)
    assert len(texts) == 13 and len(json.loads(memory("search", "database", "--json").out)["hits"]) == 1


def test_of_many_successors_of_one_card_there_is_one(tmp_path, memory, made):
    batches = [[["supersede", CARD, "--body", f"{NEW}, says agent{n}", "--kind", kind]]
               for n, kind in enumerate(["knowledge", "mistake"] * 4)]  # fmt: skip
    answers = [answer for (answer,) in together(tmp_path, batches)]
    assert sorted(answer["status"] for _, answer in answers) == ["conflict"] * 7 + ["created"]
    first = next(answer for code, answer in answers if code == 0)
    assert {answer["existing_path"] for code, answer in answers if code} == {first["path"]}
    assert len(cards_below(tmp_path / "vault")) == 2
    hits = json.loads(memory("search", "database", "--json").out)["hits"]
    assert [(hit["path"], hit["replaces"]) for hit in hits] == [(first["path"], [CARD])]


def test_everything_at_once_loses_nothing(tmp_path, memory, made):
    batches = [
        [["update", CARD, "--tags", f"t{n}"] for n in range(6)],
        [["forget", CARD], ["restore", CARD]] * 3,
        [["search", "database"]] * 6 + [["index", "--rebuild"]],
        [["capture", "--title", "other", "--body", f"{OLD} {n}"] for n in range(4)],
    ]
    updated, marked, _, captured = together(tmp_path, batches)
    assert {answer["status"] for _, answer in updated} == {"updated"}
    assert {answer["status"] for _, answer in marked} <= {"forgotten", "restored", "unchanged"}
    assert [answer["status"] for _, answer in captured] == ["created"] * 4
    assert memory("restore", CARD).code == 0
    text = (tmp_path / "vault" / CARD).read_text("utf-8")
    assert "tags: [t5]" in text and OLD in text and "forgotten" not in text
    assert json.loads(memory("search", "t5", "--json").out)["hits"][0]["path"] == CARD
    assert whole(tmp_path / "home/memory.db")


# ---- a kill at any moment ------------------------------------------------------------------------

# Runs one command and dies without a word at the k-th call that touches a file of the vault.
KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
vault, left = sys.argv[2], int(sys.argv[3])
from mcore.cli import main
import mcore.app, mcore.revise, mcore.capture, mcore.store
CALLS = {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"}
def hook(event, args):
    global left
    if event in CALLS and isinstance(args[0], (str, bytes)) and os.fsdecode(args[0]).startswith(vault):
        left -= 1
        if left < 0:
            os._exit(9)
sys.addaudithook(hook)
sys.stdout = open(os.devnull, "w")
os._exit(main(sys.argv[4:]))
"""

CHANGES = {
    "update": ["update", CARD, "--body", NEW],
    "forget": ["forget", CARD],
    "supersede": ["supersede", CARD, "--body", NEW],
}


@pytest.mark.skipif(os.name != "posix", reason="dies between two calls of POSIX")
@pytest.mark.parametrize("name", CHANGES)
def test_a_kill_at_any_call_leaves_the_old_card_or_the_new_one(tmp_path, memory, made, name):
    card = tmp_path / "vault" / CARD
    before = card.read_bytes()
    deaths = 0
    for calls in range(200):
        command = [sys.executable, "-S", "-c", KILLED, ROOT, str(tmp_path / "vault"), str(calls), *CHANGES[name]]
        code = subprocess.run(command, env=os.environ).returncode
        now = card.read_bytes()
        if name == "supersede":
            assert now == before
        elif now != before:
            assert before in history_of(tmp_path)
            assert NEW.encode() in now if name == "update" else b"forgotten_at" in now
        for path, data in cards_below(tmp_path / "vault"):
            assert data.endswith(b"\n") and data.startswith(b"---\n"), path
        if code != 9:
            break
        deaths += 1
        assert memory("search", "database", "--as-of", "any", "--json").code in (0, 1)
    assert code in (0, 3) and deaths > 3  # 3: a kill after the new card was published; it has its successor
    hits = json.loads(memory("search", "database", "--json").out)["hits"]
    assert len(hits) == (0 if name == "forget" else 1)
    assert name == "forget" or "beta" in hits[0]["snippet"]
    assert memory("index").code == 0


# Runs one command in which the k-th call that writes, names or syncs something fails, and all after it if asked to.
FAILING = """
import errno, os, sys
sys.path.insert(0, sys.argv[1])
vault, left, for_ever = sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1"
from mcore.cli import main
def failing(name, real):
    def call(*args, **more):
        global left
        place = args[0]
        touches = isinstance(place, int) or os.fsdecode(place).startswith(vault)
        writes = name != "open" or args[1] & (os.O_WRONLY | os.O_RDWR)
        if touches and writes:
            left -= 1
            if left == -1 or left < 0 and for_ever:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **more)
    return call
for name in ("open", "fsync", "link", "replace", "mkdir", "chmod"):
    setattr(os, name, failing(name, getattr(os, name)))
status = main(sys.argv[5:])
sys.stdout.flush()
os._exit(status if left < 0 else 77)
"""


@pytest.mark.skipif(os.name != "posix", reason="calls of POSIX")
@pytest.mark.parametrize("for_ever", ["0", "1"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_call_that_fails_leaves_the_old_card_or_the_new_one_and_is_told(tmp_path, memory, made, name, for_ever):
    card = tmp_path / "vault" / CARD
    before = card.read_bytes()
    for calls in range(100):
        command = [sys.executable, "-S", "-c", FAILING, ROOT, str(tmp_path / "vault"), str(calls), for_ever]
        ran = subprocess.run([*command, *CHANGES[name]], env=os.environ, capture_output=True, encoding="utf-8")
        assert ran.returncode in (0, 2, 3, 77) and "Traceback" not in ran.stderr, ran.stderr
        now = card.read_bytes()
        assert now == before or before in history_of(tmp_path)
        if ran.returncode == 2:
            assert "No space left" in ran.stderr and "  do:  " in ran.stderr
        if ran.returncode in (77, 3) or now != before:
            break
    assert calls > 2
    assert not [path for path, _ in cards_below(tmp_path / "vault") if ".tmp-" in path]


def test_a_history_that_cannot_be_looked_into_is_not_taken_for_none(tmp_path, memory, made, monkeypatch):
    assert memory("update", CARD, "--body", NEW).code == 0
    before, kept, listdir = (tmp_path / "vault" / CARD).read_bytes(), history_of(tmp_path), os.listdir

    def failing(path="."):
        if ".history" in os.fspath(path):
            raise OSError(errno.EIO, "Input/output error")
        return listdir(path)

    with monkeypatch.context() as broken:
        broken.setattr(os, "listdir", failing)
        for argv in (["update", CARD, "--body", OLD], ["forget", CARD], ["purge", CARD, "--yes"], ["history", CARD]):
            ran = memory(*argv)
            assert ran.code == 2 and "Input/output error" in ran.err and "a fault" not in ran.err, argv
    assert (tmp_path / "vault" / CARD).read_bytes() == before and history_of(tmp_path) == kept


@pytest.mark.skipif(os.name != "posix", reason="dies between two calls of POSIX")
def test_a_killed_purge_can_be_carried_on(tmp_path, memory, made):
    assert memory("update", CARD, "--body", NEW).code == 0
    for calls in range(200):
        argv = ["purge", CARD, "--yes"]
        command = [sys.executable, "-S", "-c", KILLED, ROOT, str(tmp_path / "vault"), str(calls), *argv]
        if subprocess.run(command, env=os.environ).returncode != 9:
            break
    memory("purge", CARD, "--yes")
    assert [str(path) for path in (tmp_path / "vault").rglob("*") if "db-host" in path.name] == []
    assert json.loads(memory("search", "database", "--as-of", "any", "--json").out)["hits"] == []


@pytest.mark.skipif(os.name != "posix", reason="dies between two calls of POSIX")
def test_a_purge_that_was_killed_once_the_card_was_gone_is_carried_on_to_the_last_word(tmp_path, memory, made):
    argv = ["purge", CARD, "--yes"]
    for calls in range(200):
        command = [sys.executable, "-S", "-c", KILLED, ROOT, str(tmp_path / "vault"), str(calls), *argv]
        assert subprocess.run(command, env=os.environ).returncode == 9
        if not (tmp_path / "vault" / CARD).exists():
            break
    assert memory("search", "alpha").code == 1  # takes the card out, and leaves its words in the file
    assert memory(*argv).code == 0
    assert b"alpha" not in (tmp_path / "home/memory.db").read_bytes()
    assert not (tmp_path / "vault/.history").exists()


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_history_that_is_a_link_out_of_the_vault_is_not_followed(tmp_path, memory, made):
    (tmp_path / "outside").mkdir()
    (tmp_path / "vault/.history").symlink_to(tmp_path / "outside", target_is_directory=True)
    before = (tmp_path / "vault" / CARD).read_bytes()
    for argv in (["update", CARD, "--body", NEW], ["forget", CARD], ["purge", CARD, "--yes"]):
        ran = memory(*argv)
        assert ran.code == 2 and "is a link" in ran.err, argv
    assert (tmp_path / "vault" / CARD).read_bytes() == before
    assert os.listdir(tmp_path / "outside") == []


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_vault_that_cannot_be_locked_for_a_successor_is_an_error_with_its_reason(memory, made, monkeypatch):
    opened = os.open

    def failing(path, flags, *more, **named):
        if flags == os.O_RDONLY and os.path.isdir(path):
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", failing)
    ran = memory("supersede", CARD, "--body", NEW)
    assert ran.code == 2 and "Input/output error" in ran.err and "a fault" not in ran.err
