"""README: "Two writers never lose, double or overwrite a card; readers never see half an index".

Real processes, each a command or a loop of calls, started together.
"""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

from blackbox import cards_below, check_names
from conftest import ROOT

BODY = "the root of nginx on host ecs-prod is /srv/www"

# Waits for the starting line, then runs each command line it was given and prints [status, answer] a line.
RUNNER = """
import io, json, os, sys
sys.path.insert(0, sys.argv[1])
from contextlib import redirect_stdout
from mcore.cli import main
commands = json.loads(sys.argv[2])
sys.stdin.buffer.read(1)
for command in commands:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(out):
        status = main(command)
    print(json.dumps([status, json.loads(out.buffer.getvalue() or b"null")]), flush=True)
"""


def together(tmp_path, batches, **env):
    """Runs each batch of commands (with --json) in a process of its own, all at once; their answers."""
    env = {**os.environ, "MEMORY_AGENT_VAULT": str(tmp_path / "vault"), **env}
    env = {name: value for name, value in env.items() if value is not None}
    pipe = subprocess.PIPE
    processes = []
    for batch in batches:
        command = [sys.executable, "-c", RUNNER, ROOT, json.dumps([[*argv, "--json"] for argv in batch])]
        processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env))
    for process in processes:
        process.stdin.write(b"x")
        process.stdin.flush()
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and err == b"", err.decode("utf-8", "replace")
        answers.append([json.loads(line) for line in out.splitlines()])
    return answers


def capture(title, body, *more):
    return ["capture", "--title", title, "--body", body, *more]


def whole(db):
    """Whether the index is whole: its pages, and its full text against its cards."""
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("INSERT INTO cards_fts (cards_fts) VALUES ('integrity-check')")
        cards, distinct = connection.execute("SELECT count(*), count(DISTINCT doc) FROM cards").fetchone()
        missing = connection.execute("SELECT count(*) FROM cards WHERE doc NOT IN (SELECT id FROM cards_fts_docsize)")
        assert cards == distinct and missing.fetchone() == (0,)
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_eight_agents_capture_one_card_and_there_is_one(tmp_path, memory):
    answers = together(tmp_path, [[capture("nginx", BODY)]] * 8)
    statuses = sorted(answer["status"] for ((_, answer),) in answers)
    assert statuses == ["created"] + ["unchanged"] * 7
    assert {answer["path"] for ((_, answer),) in answers} == {"03-Knowledge/nginx.md"}
    assert len({answer["id"] for ((_, answer),) in answers}) == 1
    assert [name for name, _ in cards_below(tmp_path / "vault")] == ["03-Knowledge/nginx.md"]
    assert whole(tmp_path / "home/memory.db")


def test_eight_agents_capture_one_title_with_other_bodies_and_all_are_kept(tmp_path, memory):
    answers = together(tmp_path, [[capture("nginx", f"{BODY} as agent{n} says")] for n in range(8)])
    assert [(code, answer["status"], answer["indexed"]) for ((code, answer),) in answers] == [(0, "created", True)] * 8
    assert sum(answer["conflict"] for ((_, answer),) in answers) == 7
    cards = cards_below(tmp_path / "vault")
    assert sorted(name for name, _ in cards) == sorted(
        ["03-Knowledge/nginx.md", *(f"03-Knowledge/nginx-{n}.md" for n in range(2, 9))]
    )
    for n in range(8):
        assert sum(f"agent{n} says".encode() in data for _, data in cards) == 1
        hits = json.loads(memory("search", f"agent{n}", "--no-sync", "--json").out)["hits"]
        assert [hit["path"] for hit in hits] == [answers[n][0][1]["path"]]


def test_eight_agents_refuse_a_title_that_one_of_them_took(tmp_path):
    batches = [[capture("nginx", f"{BODY} as agent{n} says", "--on-conflict", "reject")] for n in range(8)]
    codes = sorted(code for ((code, _),) in together(tmp_path, batches))
    assert codes == [0] + [3] * 7 and len(cards_below(tmp_path / "vault")) == 1


def test_titles_that_share_a_name_are_kept_apart_under_load(tmp_path):
    titles = ["a b", "a/b", "a:b", "A B", "a-b", "a?b"]
    batches = [[capture(title, f"{BODY} {n}")] for n, title in enumerate(titles)]
    answers = together(tmp_path, batches)
    assert [answer["status"] for ((_, answer),) in answers] == ["created"] * 6
    cards = cards_below(tmp_path / "vault")
    assert len(cards) == 6
    check_names([name for name, _ in cards])


def test_captures_during_rebuilds_are_all_kept_and_found(tmp_path, write_note, memory):
    for n in range(150):
        write_note(f"{n}.md", f"filler note {n} about zebras")
    writers = [[capture(f"card {w} {n}", f"{BODY} unique{w}x{n}") for n in range(8)] for w in range(3)]
    *captured, rebuilt = together(tmp_path, [*writers, [["index", "--rebuild"]] * 6])
    for answers in captured:
        assert [(code, answer["status"], answer["indexed"]) for code, answer in answers] == [(0, "created", True)] * 8
    assert {code for code, _ in rebuilt} == {0}
    assert len(cards_below(tmp_path / "vault")) == 150 + 24
    for w in range(3):
        for n in range(8):
            hits = json.loads(memory("search", f"unique{w}x{n}", "--json").out)["hits"]
            assert [hit["path"] for hit in hits] == [f"03-Knowledge/card-{w}-{n}.md"]
    assert whole(tmp_path / "home/memory.db") and json.loads(memory("stats", "--json").out)["total"] == 174


def test_searches_during_rebuilds_never_miss_a_known_card(tmp_path, write_note, memory):
    for n in range(300):
        write_note(f"{n}.md", f"filler note {n} about zebras " + "and more words " * 20)
    write_note("known.md", "the one quokka card 袋鼠")
    assert memory("index").code == 0
    searches = [["search", "quokka"], ["search", "袋鼠", "--no-sync"], ["show", "known.md"], ["stats"]]
    *found, rebuilt = together(tmp_path, [searches * 12, searches * 12, [["index", "--rebuild"]] * 10])
    assert [code for code, _ in rebuilt] == [0] * 10
    for answers in found:
        assert [code for code, _ in answers] == [0] * len(answers)
        for _, answer in answers:
            if "hits" in answer:
                assert [hit["path"] for hit in answer["hits"]] == ["known.md"]
                assert answer["searched"] == 301
            elif "total" in answer:
                assert answer["total"] == 301
    assert whole(tmp_path / "home/memory.db")


def test_edits_by_hand_during_everything_else_end_in_the_truth(tmp_path, write_note, memory):
    for n in range(60):
        write_note(f"{n}.md", f"note {n} zebra")
    editor = f"""
import os, sys
for round in range(30):
    for n in range(0, 60, 7):
        path = os.path.join({str(tmp_path / "vault")!r}, f"{{n}}.md")
        if round % 3 == 2 and os.path.exists(path):
            os.rename(path, path[:-3] + "-moved.md")
        elif round % 3 == 0 and os.path.exists(path[:-3] + "-moved.md"):
            os.rename(path[:-3] + "-moved.md", path)
        else:
            open(path, "w").write(f"note {{n}} zebra round{{round}}")
"""
    process = subprocess.Popen([sys.executable, "-c", editor])
    readers = [[["search", "zebra", "-n", "20"], ["index"], ["stats"]] * 6] * 2
    answers = together(tmp_path, [*readers, [["index", "--rebuild"]] * 4])
    assert process.wait(60) == 0
    for batch in answers:
        assert {code for code, _ in batch} == {0}
    assert memory("index").code == 0
    files = [name for name, _ in cards_below(tmp_path / "vault")]
    with closing(sqlite3.connect(tmp_path / "home/memory.db")) as connection:
        indexed = [path for (path,) in connection.execute("SELECT rel_path FROM cards ORDER BY rel_path")]
    assert indexed == files and whole(tmp_path / "home/memory.db")
    before = json.loads(memory("search", "zebra", "-n", "20", "--json").out)["hits"]
    memory("index", "--rebuild")
    assert sorted(h["path"] for h in json.loads(memory("search", "zebra", "-n", "20", "--json").out)["hits"]) == sorted(
        h["path"] for h in before
    )


def test_two_vaults_under_one_data_root_never_mix_from_the_first_moment(tmp_path, write_note):
    for vault in ("one", "two"):
        for n in range(40):
            write_note(f"{n}.md", f"a note of {vault}vault, number {n}", vault=vault)
    lines = []
    for vault, other in (("one", "two"), ("two", "one")):
        search = ["--vault", str(tmp_path / vault), "search", "-n", "20"]
        lines.append(([*search, f"{vault}vault"], [*search, f"{other}vault"]))
    for _ in range(3):
        for name in os.listdir(tmp_path / "home") if (tmp_path / "home").exists() else ():
            os.unlink(tmp_path / "home" / name)
        answers = together(tmp_path, [list(pair) * 4 for pair in lines for _ in range(2)], MEMORY_AGENT_VAULT=None)
        for batch in answers:
            for number, (code, answer) in enumerate(batch):
                assert (code, answer.get("searched")) == (number % 2, 40), answer
                assert len(answer["hits"]) == (0 if number % 2 else 20)
        indexes = [name for name in os.listdir(tmp_path / "home") if name.endswith(".db")]
        assert len(indexes) == 2 and all(whole(tmp_path / "home" / name) for name in indexes)


def test_a_first_start_of_many_at_once_makes_one_whole_index(tmp_path, write_note):
    for n in range(50):
        write_note(f"{n}.md", f"note {n} about zebras")
    commands = [["search", "zebras"], ["stats"], ["index"], ["index", "--rebuild"], ["show", "1.md"]]
    commands.append(capture("t", BODY))
    for batch in together(tmp_path, [[command] for command in commands]):
        assert batch[0][0] == 0, batch
    assert whole(tmp_path / "home/memory.db")
