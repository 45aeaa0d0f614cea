"""mcore.cli: argv in, answer on stdout, everything else on stderr, one documented exit status."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from io import BytesIO, TextIOWrapper

import pytest
from conftest import ROOT

from mcore import __version__
from mcore.cli import _parser, _plain_options, main
from mcore.ops import OPERATIONS

BODY = "a body that has more than twenty characters"
TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
POSIX = os.name == "posix"


@pytest.fixture
def vault(write_note):
    write_note("03-Knowledge/nginx.md", "---\ntitle: nginx 站点\n---\nroot is /srv/www, 数据库备份")
    write_note("07-Tools/redis.md", "# redis\n\ncache eviction, 缓存淘汰")


def start(tmp_path, *argv, **more):
    """A command as a process of its own over the test's vault, which an interrupt reaches as at a terminal.

    A process that a shell script put into the background has interrupts ignored, and hands that on.
    """
    if POSIX:
        more.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    env = {**os.environ, "MEMORY_AGENT_VAULT": str(tmp_path / "vault"), **more.pop("env", {})}
    command = [sys.executable, os.path.join(ROOT, "memory.py"), *argv]
    pipes = {name: more.pop(name, subprocess.PIPE) for name in ("stdin", "stdout", "stderr")}
    return subprocess.Popen(command, env=env, **pipes, **more)


def finish(process, data=b""):
    """(status, stdout, stderr) of a started command, as bytes."""
    out, err = process.communicate(data, timeout=60)
    return process.returncode, out, err


def fill(write_note, notes=1500):
    """Notes that take a second or two to index (of 500 a quick machine says nothing), of words that differ: cutting
    and storing them is the work."""
    for number in range(notes):
        words = " ".join(f"word{number * 7 + n}x数据{n % 97}" for n in range(350))
        write_note(f"{number}.md", f"# note {number}\n\nzebra {words}")


# ---- exit statuses -------------------------------------------------------------------------------

STATUSES = [
    (0, "search nginx"), (0, "show 03-Knowledge/nginx.md"), (0, "index"), (0, "index --rebuild"),
    (0, "stats"), (0, "paths"), (0, "--version"), (0, "--help"), (0, ""), (0, "help"), (0, "search --help"),
    (0, "mcp --help"), (0, "-h"), (0, "--json stats"), (0, "--db x.db paths"), (0, "--vault=v paths"),
    (0, "show nginx --help"), (1, "search zzzzqqqq"), (1, "show 99"), (1, "show no.md"),
    (1, "search -- -x"), (1, "show -- -1"), (1, "show -1"), (1, "capture --title t --body short"),
    (1, f"capture --reject-secrets --title t --body {TOKEN}"), (2, "search"), (2, "show"),
    (2, "capture --body-text"), (2, "bogus"), (2, "serach x"), (2, "--bogus"), (2, "--db"),
    (2, "search x --bogus"), (2, "search -n"), (2, "search x -n y"), (2, "search x -n 1.5"),
    (2, "search x -n --5"), (2, "stats x"), (2, "show 1 2"), (2, "show 1 --offset x"),
    (2, "index --rebuil"), (2, "mcp x"), (2, "mcp --db"), (2, "search x --no-sync=1"),
    (2, f"capture --title t --kind nope --body {'x' * 30}"), (2, "--db . search x"),
    (2, "--vault memory.py search x"),
]  # fmt: skip


@pytest.mark.parametrize("status, line", STATUSES, ids=lambda value: str(value) or "nothing")
def test_every_command_ends_with_a_documented_status(vault, memory, monkeypatch, tmp_path, status, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory.py").write_text("a file")
    ran = memory(*line.split())
    assert ran.code == status, ran
    assert "Traceback" not in ran.out + ran.err and "fault in memory-agent" not in ran.out + ran.err
    assert bool(ran.out) == (status < 2 and not (status == 1 and line.startswith("show")))
    assert bool(ran.err) == (not ran.out)


@pytest.mark.parametrize("line", ["restore {card} --db {db}", "--db {db} restore {card}", "restore --db {db} {card}"])
def test_the_index_named_beside_a_card_is_no_archive_to_restore(memory, tmp_path, line):
    """`restore` takes a card or an archive: which one is told by its words, not by the files that flags name."""
    memory("capture", "--title", "t", "--body", BODY)
    memory("forget", "03-Knowledge/t.md")
    ran = memory(*line.format(card="03-Knowledge/t.md", db=tmp_path / "home/memory.db").split())
    assert (ran.code, ran.out.split()[:2]) == (0, ["restored:", "03-Knowledge/t.md"])


def test_a_title_that_is_taken_and_refused_is_three(memory):
    argv = ["capture", "--on-conflict", "reject", "--title", "t", "--body"]
    assert [memory(*argv, BODY).code, memory(*argv, BODY).code, memory(*argv, BODY + "!").code] == [0, 0, 3]
    assert "03-Knowledge/t.md" in memory(*argv, BODY + "!").out


@pytest.mark.skipif(not POSIX, reason="signals of POSIX")
def test_an_interrupt_is_130_and_leaves_a_whole_index(write_note, tmp_path):
    fill(write_note)
    index = start(tmp_path, "index", "--rebuild")
    deadline = time.monotonic() + 30
    while not any(".build-" in name for name in _listed(tmp_path / "home")) and time.monotonic() < deadline:
        time.sleep(0.01)
    index.send_signal(signal.SIGINT)
    status, out, err = finish(index)
    assert (status, out) == (130, b"") and b"interrupted" in err and b"Traceback" not in err
    assert not [name for name in os.listdir(tmp_path / "home") if ".build-" in name]
    with closing(sqlite3.connect(tmp_path / "home/memory.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    status, out, _ = finish(start(tmp_path, "search", "zebra", "--json"))
    assert status == 0 and json.loads(out)["hits"]


def _listed(folder):
    return os.listdir(folder) if folder.exists() else []


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_credential_that_is_refused_as_an_argument_is_not_repeated(memory, form):
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    for argv in (["show", f"{token}.md"], ["search", "x", "--as-of", token], ["update", token, "--tags", "a"]):
        ran = memory(*argv, *form)
        assert ran.code in (1, 2) and "redacted-github-token" in ran.out + ran.err and token not in ran.out + ran.err


def test_a_fault_of_ours_is_two_and_says_how_to_report_it(vault, memory, monkeypatch):
    monkeypatch.setattr("mcore.importer.Indexer.index", lambda *_: {}["missing"])
    ran = memory("index")
    assert ran.code == 2 and "Traceback" not in ran.err and "missing" not in ran.err
    assert ran.err.startswith("memory: a fault in memory-agent stopped this command (KeyError)\n  do:  ")
    assert json.loads(memory("index", "--json").out)["error"]["slug"] == "error"
    assert "Traceback" in memory("index", "--debug").err


def test_debug_shows_where_an_expected_failure_came_from_and_changes_nothing_else(vault, memory):
    plain, debug = memory("show", "99"), memory("show", "99", "--debug")
    assert plain.code == debug.code == 1
    assert "Traceback" in debug.err and debug.err.endswith(plain.err)


# ---- JSON ----------------------------------------------------------------------------------------


TEXTS_ALONE = re.compile(r"$|help$|-h$|--version|.*--help")


@pytest.mark.parametrize("status, line", [row for row in STATUSES if not TEXTS_ALONE.match(row[1])])
def test_json_is_one_object_also_for_errors(vault, memory, monkeypatch, tmp_path, status, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory.py").write_text("a file")
    ran = memory("--json", *line.split())
    answer = json.loads(ran.out)
    assert ran.code == status and ran.err == "" and isinstance(answer, dict)
    if "error" in answer:
        assert list(answer) == ["error"] and list(answer["error"]) == ["slug", "message", "hint"]
        assert status in (1, 2) and answer["error"]["slug"] and answer["error"]["message"]
    else:
        assert answer["warnings"] is not None


CAPTURED = "status path id indexed conflict existing_path collision_paths secrets_found similar revision warnings"
FOUND = "query hits matched searched hidden outdated nearest as_of scope retrieval freshness explained warnings"
REVISED = "status path id revision former_revision history_path fields indexed secrets_found warnings"
KEYS = {
    "search nginx": FOUND,
    "search zzzzqqqq --kind tool": FOUND,
    "context": "query scope view text cards left_out max_chars freshness warnings",
    "update 1 --title new": REVISED,
    "update 1 --body short": REVISED,
    "forget 1": REVISED,
    "restore 1": REVISED,
    "retract 1": REVISED,
    "purge 1": "status path files bytes read_count unreachable warnings",
    "history 1": "path id title revisions total replaces replaced_by warnings",
    f"supersede 1 --body {'x' * 30}": "status path id revision supersedes valid_from retracts existing_path indexed "
    "secrets_found similar warnings",
    "show 03-Knowledge/nginx.md": "id path title kind source tags created updated fields text offset length returned "
    "has_more next_offset freshness revision scope state valid_from valid_to replaces replaced_by warnings",
    "index": "added updated moved removed unchanged total skipped seconds warnings",
    "index --rebuild": "added updated moved removed unchanged total skipped seconds warnings",
    "stats": "total kinds sources latest read_counts vault freshness scopes forgotten retracted warnings",
    "paths": "home db vault config warnings",
    "capture --title t --body short": CAPTURED,
    f"capture --title t --body {'x' * 30}": CAPTURED,
}


@pytest.mark.parametrize("line", KEYS)
def test_every_key_of_an_answer_is_always_there(vault, memory, line):
    answer = json.loads(memory(*line.split(), "--json").out)
    assert list(answer) == KEYS[line].split()
    for entry in answer["warnings"]:
        assert list(entry) == ["slug", "message", "hint"]


def test_json_alone_is_an_error_object(memory):
    ran = memory("--json")
    assert (ran.code, json.loads(ran.out)["error"]["message"]) == (2, "no command is given")


def test_json_after_two_dashes_is_a_word(vault, memory):
    ran = memory("search", "nginx", "--", "--json")
    assert ran.code == 0 and ran.out.startswith("1 hit")


# ---- messages ------------------------------------------------------------------------------------

MESSAGES = [
    ("show no.md",
     "memory: there is no card 'no.md' in the vault\n"
     "  why: a card is named by the path that search returns, relative to the vault\n"
     "  do:  search for it; memory index names the files that are left out\n"),
    ("serach x",
     "memory: there is no command 'serach'\n"
     "  do:  did you mean 'search'?\n"),
    ("find x",
     "memory: there is no command 'find'\n"
     "  do:  did you mean 'search'?\n"),
    ("index notes",
     "memory: index: unrecognized arguments: notes\n"
     "  do:  memory index --help shows its arguments; every value follows its flag "
     "(a folder of cards: --vault FOLDER)\n"),
    ("show Wifi at the office",
     "memory: show: unrecognized arguments: at the office\n"
     "  do:  memory show --help shows its arguments; text with spaces is put in quotes\n"),
    ("search x -n many",
     "memory: search: limit must be a whole number\n"
     "  do:  limit: 1-20\n"),
    ("search --limit",
     "memory: search: argument -n/--limit: expected one argument\n"
     "  do:  memory search --help shows its arguments; a value that begins with a dash is given as --name=VALUE\n"),
    ("search -rf",
     "memory: search: the following arguments are required: query\n"
     "  do:  memory search --help shows its arguments; words that begin with a dash come after --\n"),
    ("capture --title t --body x --on-conflict never",
     "memory: capture: on_conflict must be one of suffix, reject, not 'never'\n"
     "  do:  on_conflict: same title, other body: second card, or refuse\n"),
    ("--db {tmp}/folder search x",
     "memory: cannot open the index {tmp}/folder\n"
     "  why: a folder has its name\n"
     "  do:  move it away or choose --db\n"),
    ("--vault {tmp}/file search x",
     "memory: the vault {tmp}/file is not a folder\n"
     "  why: a file has its name\n"
     "  do:  choose a folder with --vault\n"),
    ("mcp --port 80",
     "memory: memory mcp: cannot use '--port'\n"
     "  do:  memory mcp takes --db, --vault, --home and --tools\n"),
]  # fmt: skip


@pytest.mark.parametrize("line, message", MESSAGES, ids=[line for line, _ in MESSAGES])
def test_a_message_says_what_happened_why_and_what_to_do(vault, memory, tmp_path, line, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    ran = memory(*line.format(tmp=tmp_path).split())
    assert (ran.out, ran.err) == ("", message.format(tmp=tmp_path))


@pytest.mark.parametrize("data, line, reason", [
    (b'{"vault": 5}', 1, "'vault' must be text"),
    (b'{\n "db": "x",\n "vault": \n}', 4, "it is not JSON (Expecting value, column 1)"),
    (b'{\n\n"ignore": "x"}', 3, "'ignore' must be a list of names"),
    (b"\n\n\xff", 3, "it is not UTF-8 text"),
    (b"[]", 1, 'it must hold one JSON object, such as {"vault": "~/notes"}'),
    (b'{"vault": "\\ud800"}', 1, "'vault' holds half a character (a lone surrogate)"),
    (b'{"db": "a\\u0000"}', 1, "'db' holds a NUL character"),
    (b"[" * 100_000, 1, "it is not usable JSON"),
])
def test_a_broken_config_is_two_with_the_file_the_line_and_the_reason(memory, tmp_path, data, line, reason):
    (tmp_path / "home").mkdir()
    config = tmp_path / "home/config.json"
    config.write_bytes(data)
    message = f"memory: cannot use {config}\n  why: line {line}: {reason}\n  do:  "
    for command in ("search x", "stats", "index", "paths", "show 1", f"capture --title t --body {'x' * 30}"):
        ran = memory(*command.split())
        assert ran.code == 2 and ran.err.startswith(message)
    assert config.read_bytes() == data


@pytest.mark.parametrize("argv", [
    [TOKEN], ["search", "x", "--kind-of", TOKEN], ["show", TOKEN], ["capture", "--title", "t", "--body", BODY, TOKEN],
    ["capture", "--title", "t", "--body", BODY, "--kind", TOKEN], ["search", "x", "-n", TOKEN], ["mcp", TOKEN],
    ["--vault", "memory.py", "capture", "--title", TOKEN, "--body", f"{BODY} {TOKEN}"],
])
def test_no_message_repeats_a_credential(memory, monkeypatch, tmp_path, argv):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory.py").write_text("a file")
    for more in ([], ["--json"]):
        ran = memory(*argv, *more)
        assert ran.code in (1, 2) and TOKEN[4:] not in ran.out + ran.err


def test_a_relative_path_in_a_deleted_folder_is_said(tmp_path):
    if not POSIX:
        pytest.skip("a folder in use cannot be deleted here")
    (tmp_path / "gone").mkdir()
    code = "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); sys.path.insert(0, sys.argv[2]); "
    code += "from mcore.cli import main; sys.exit(main(['--vault', 'x', 'stats']))"
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "gone", ROOT], capture_output=True)
    assert ran.returncode == 2 and b"the current folder was deleted" in ran.stderr


# ---- arguments -----------------------------------------------------------------------------------


def test_words_of_a_query_need_no_quotes_and_flags_stand_anywhere(vault, memory):
    memory("index")
    expected = memory("search", "cache eviction", "-n", "1", "--json").out
    for line in ("search cache eviction -n 1 --json", "search cache -n1 eviction --json"):
        assert memory(*line.split()).out == expected
    assert memory(*"--json search --limit=1 cache eviction".split()).out == expected


def test_the_vault_and_the_index_may_stand_before_or_after_the_command(vault, memory, tmp_path):
    for argv in (["--db", "{db}", "stats"], ["stats", "--db", "{db}"], ["--db={db}", "stats"], ["stats", "--db={db}"]):
        db = tmp_path / "other.db"
        assert memory(*[arg.format(db=db) for arg in argv]).code == 0 and db.exists()
        db.unlink()


@pytest.mark.parametrize(
    "value, hits", [("1", 1), ("20", 2), ("100", 2), ("0", 1), ("-1", 1), ("+2", 2), ("9" * 30, 2)]
)
def test_the_limit_is_pulled_to_its_bounds(vault, memory, value, hits):
    assert len(json.loads(memory("search", "nginx redis", "-n", value, "--json").out)["hits"]) == hits


def test_help_of_a_command_is_the_same_either_way(memory):
    assert memory("help", "search") == memory("search", "--help") and memory("help", "mcp") == memory("mcp", "-h")
    assert memory("help") == memory("--help") == memory("help", "help")
    assert memory("help", "serach").code == 2


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_help_names_every_argument(memory, operation):
    ran = memory(operation.name, "--help")
    assert ran.code == 0 and ran.out.startswith(f"usage: memory {operation.name}")
    for p in operation.params:
        if p.door != "mcp" and not p.positional:
            assert "--" + p.name.replace("_", "-") in ran.out
    assert operation.name in memory("--help").out and operation.summary in memory("--help").out


def test_the_version_is_the_one_of_the_package(memory):
    assert memory("--version").out == f"memory-agent {__version__}\n"


# ---- standard input ------------------------------------------------------------------------------


@pytest.fixture
def stdin(monkeypatch):
    """stdin(data) puts bytes on standard input, with a console's code page around them."""

    def put(data, encoding="gbk"):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data), encoding))

    return put


@pytest.mark.parametrize("data, text", [
    ("数据库备份在每天凌晨三点执行，见 crontab 文件".encode(), "数据库备份在每天凌晨三点执行，见 crontab 文件"),
    (b"\xef\xbb\xbfwith a byte order mark at its start", "with a byte order mark at its start"),
    (b"not UTF-8 \xff\xfe but kept as well as it goes", "not UTF-8 \ufffd\ufffd but kept as well as it goes"),
    (b"line ends\r\nof windows stay lines\r\n", "line ends\nof windows stay lines"),
    (b"---\ntitle: not mine\n---\nthe body goes on here", "---\ntitle: not mine\n---\nthe body goes on here"),
])
@pytest.mark.parametrize("body", [[], ["--body", "-"], ["--body=-"]])
def test_a_body_is_read_from_standard_input_as_utf8(memory, stdin, data, text, body):
    stdin(data)
    answer = json.loads(memory("capture", "--title", "t", *body, "--json").out)
    shown = json.loads(memory("show", answer["path"], "--json").out)
    assert (answer["status"], shown["title"], shown["text"]) == ("created", "t", text + "\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_body_in_marked_utf16_is_read(memory, stdin, encoding):
    stdin("数据库备份在每天凌晨三点执行，见 crontab 文件".encode(encoding))
    answer = json.loads(memory("capture", "--title", "t", "--json").out)
    assert json.loads(memory("show", answer["path"], "--json").out)["text"].startswith("数据库备份在每天")
    assert answer["warnings"] == []


def test_a_body_of_another_encoding_is_told_and_binary_data_refused(memory, stdin):
    stdin("数据库备份在每天凌晨三点执行，见 crontab 文件".encode("gbk"))
    answer = json.loads(memory("capture", "--title", "t", "--json").out)
    assert [note["slug"] for note in answer["warnings"]] == ["not-utf8"]
    stdin(bytes(range(256)))
    refused = memory("capture", "--title", "u", "--json")
    assert refused.code == 2 and "binary data" in json.loads(refused.out)["error"]["message"]


def test_a_body_given_leaves_standard_input_alone(memory, stdin):
    stdin(b"something else of more than twenty characters")
    path = json.loads(memory("capture", "--title", "t", "--body", BODY, "--json").out)["path"]
    assert json.loads(memory("show", path, "--json").out)["text"] == BODY + "\n"
    assert sys.stdin.buffer.read() == b"something else of more than twenty characters"


def test_without_any_body_capture_says_what_to_give(memory, monkeypatch, stdin):
    stdin(b"")
    assert memory("capture", "--title", "t").code == 1
    monkeypatch.setattr(sys, "stdin", None)
    ran = memory("capture", "--title", "t")
    assert ran.err == "memory: capture needs a body\n  do:  give --body TEXT, or pipe the text into the command\n"
    assert ran.code == 2


# ---- output --------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [
    {"PYTHONIOENCODING": "gbk"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "cp1252"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
], ids=lambda env: " ".join(env.values()))
def test_output_is_utf8_whatever_the_console_says(write_note, tmp_path, env):
    write_note("站点🚀.md", "# 站点🚀𠮷\n\n数据库 résumé")
    status, out, err = finish(start(tmp_path, "search", "résumé", "--json", env=env))
    assert status == 0 and json.loads(out.decode("utf-8"))["hits"][0]["title"] == "站点🚀𠮷"
    status, out, err = finish(start(tmp_path, "show", "站点🚀.md", env=env))
    assert status == 0 and "数据库 résumé" in out.decode("utf-8"), err
    status, out, err = finish(start(tmp_path, "show", "没有.md", env=env))
    assert status == 1 and "没有.md" in err.decode("utf-8")


DRIVES = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \x85 \u202egnp \x7f\x08"


def test_no_text_answer_can_drive_a_terminal_or_forge_a_line(write_note, memory, tmp_path):
    head = 'title: "x\\e[31m\\n9. forged"\nsource: "s\\r\\u202e"\ntags: ["t\\n2. forged"]\n"k\\nforged": v'
    write_note("a.md", f"---\n{head}\n---\nquokka {HOSTILE} body")
    name = "b\n3. forged \x1b[31m.md"
    try:
        write_note(name, f"quokka {HOSTILE}")
    except OSError:
        name = "b.md"
        write_note(name, f"quokka {HOSTILE}")
    commands = [
        ["search", "quokka"], ["search", "quokka", "--json"], ["show", "a.md"], ["show", "a.md", "--json"],
        ["show", name], ["stats"], ["stats", "--json"], ["index", "--rebuild"], ["show", HOSTILE],
        ["show", HOSTILE, "--json"], ["search", HOSTILE, "--json"], [HOSTILE], ["search", "x", "--kind", HOSTILE],
        ["--vault", f"v{HOSTILE}", "paths"],
        ["capture", "--title", f"quokka {HOSTILE}", "--body", f"quokka {HOSTILE} and more of it", "--source", HOSTILE],
        ["capture", "--title", "t", "--body", BODY, "--kind", HOSTILE], ["search", "x", f"--{HOSTILE}"],
    ]  # fmt: skip
    for argv in commands:
        ran = memory(*argv)
        assert not re.search(DRIVES, ran.out + ran.err), argv
        if argv[0] in ("search", "stats", "capture"):
            assert not [line for line in ran.out.splitlines() if re.match(r"(2|3|9)\. forged", line)], ran.out


def test_a_search_in_text_numbers_its_hits_and_marks_the_words(vault, memory):
    assert re.fullmatch(
        r"1 hit \(every term\) in 2 cards\n"
        r"1\. redis  \[tool\]  id \d  07-Tools/redis\.md\n"
        r"   .*cache \*\*eviction\*\*, 缓存淘汰\n",
        memory("search", "eviction").out,
    )
    low = memory("search", "eviction zzzzqqqq").out
    assert "LOW CONFIDENCE" in low and "coverage 50%" in low


def test_an_empty_answer_in_text_is_a_sentence_and_what_to_try(vault, memory):
    assert memory("search", "zzzzqqqq").out == (
        "Nothing found in 2 cards (0 card files could not be read).\n"
        "Try fewer or other words: names, identifiers, the other language.\n"
    )
    assert "The filter kind hides 1 hit: try again without it." in memory("search", "redis", "--kind", "system").out
    assert "The vault has these words: redis" in memory("search", "rediss").out


def test_a_cut_is_said_with_how_to_go_on(write_note, memory):
    write_note("long.md", "x" * 50)
    assert "[40 more characters: go on with offset 10]" in memory("show", "long.md", "--max-chars", "10").out
    assert "more characters" not in memory("show", "long.md", "--full", "--max-chars", "10").out
    assert "[offset 99 is past the end: the card has 50 characters]" in memory("show", "long.md", "--offset", "99").out


# ---- streams that are gone -----------------------------------------------------------------------


@pytest.mark.skipif(not POSIX, reason="a shell of POSIX")
@pytest.mark.parametrize(
    "line", ["search nginx", "search nginx --json", "show 99", "show 99 --json", "bogus --json", "-h", "show --help"]
)
def test_a_closed_pipe_is_quiet(vault, tmp_path, line):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as stdout:
        process = start(tmp_path, *line.split(), stdout=stdout)
    status, _, err = finish(process)
    assert b"Traceback" not in err and b"Exception" not in err
    assert status == (1 if line == "show 99" else 0)


@pytest.mark.skipif(not POSIX, reason="a shell of POSIX")
@pytest.mark.parametrize("line", ["search nginx", "search nginx --json", "show 99 --json", "--help"])
@pytest.mark.parametrize("target", [">&-", "> /dev/full"])
def test_an_answer_that_cannot_be_written_is_two_and_said(vault, tmp_path, line, target):
    if target.endswith("full") and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    env = {**os.environ, "MEMORY_AGENT_VAULT": str(tmp_path / "vault")}
    command = f'"{sys.executable}" "{ROOT}/memory.py" {line} {target}'
    ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, env=env)
    assert ran.returncode == 2 and ran.stderr.startswith(b"memory: cannot write the answer")
    assert b"Traceback" not in ran.stderr and b"Exception" not in ran.stderr


@pytest.mark.skipif(not POSIX, reason="a shell of POSIX")
def test_a_card_is_kept_when_its_answer_cannot_be_written(tmp_path):
    env = {**os.environ, "MEMORY_AGENT_VAULT": str(tmp_path / "vault")}
    command = f'"{sys.executable}" "{ROOT}/memory.py" capture --title t --body "{BODY}" --json >&-'
    ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, env=env)
    assert ran.returncode == 2 and b"the command itself was carried out" in ran.stderr
    assert os.listdir(tmp_path / "vault/03-Knowledge") == ["t.md"]


@pytest.mark.skipif(not POSIX, reason="a shell of POSIX")
@pytest.mark.parametrize("closed, status", [("2>&-", 0), ("<&-", 0), ("2>&- <&-", 0)])
def test_a_search_needs_neither_stdin_nor_stderr(vault, tmp_path, closed, status):
    env = {**os.environ, "MEMORY_AGENT_VAULT": str(tmp_path / "vault")}
    command = f'"{sys.executable}" "{ROOT}/memory.py" search nginx {closed}'
    ran = subprocess.run(["/bin/sh", "-c", command], stdout=subprocess.PIPE, env=env)
    assert ran.returncode == status and b"nginx.md" in ran.stdout


# ---- progress ------------------------------------------------------------------------------------


@pytest.mark.skipif(not POSIX, reason="a terminal of POSIX")
def test_long_work_shows_progress_on_a_terminal_and_nothing_when_piped(write_note, tmp_path):
    pty = pytest.importorskip("pty")
    fill(write_note)
    status, out, err = finish(start(tmp_path, "index"))
    assert (status, err) == (0, b"") and out.startswith(b"1500 cards: 1500 added")
    ours, theirs = pty.openpty()
    process = start(tmp_path, "index", "--rebuild", stderr=theirs)
    os.close(theirs)
    status, out, _ = finish(process)
    shown = _read_terminal(ours)
    assert status == 0 and out.startswith(b"1500 cards: 0 added") and b"\r" not in out
    assert re.search(rb"\d+ of 1500 cards, \d+/s, \d+ s left", shown), shown
    assert shown.endswith(b"\r\x1b[K")


def _read_terminal(fd):
    """All that was written to a terminal whose other end is closed."""
    data = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b""
        if not piece:
            os.close(fd)
            return data
        data += piece


# ---- the ways in ---------------------------------------------------------------------------------


def test_main_takes_its_arguments_from_the_process_when_none_are_given(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["memory", "--version"])
    assert main() == 0 and capsys.readouterr().out == f"memory-agent {__version__}\n"


def test_a_checkout_runs_from_anywhere_and_leaves_nothing_behind(tmp_path):
    shutil.copytree(os.path.join(ROOT, "mcore"), tmp_path / "copy/mcore", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(ROOT, "memory.py"), tmp_path / "copy")
    (tmp_path / "cwd").mkdir()
    command = [sys.executable, tmp_path / "copy/memory.py", "capture", "--title", "t", "--body", BODY]
    ran = subprocess.run(command, cwd=tmp_path / "cwd", capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert os.listdir(tmp_path / "cwd") == [] and sorted(os.listdir(tmp_path / "copy")) == ["mcore", "memory.py"]
    assert sorted(os.listdir(tmp_path / "home")) == ["memory.db", "vault"]


# ---- ordinary command lines, read without argparse -----------------------------------------------

PLAIN_LINES = [
    "{} word", "{} word --json", "--json {} word", "{} --db a.db word", "--vault v {} word --debug", "{} two words",
    "{} word --scope s -n 3", "{} -n 3 --limit 4 word", "{}", "{} --no-sync word", "{} word --no-sync --home h",
    "{} --title t --body b", "{} --title t --body b --tags a,b --json", "{} word --title t", "{} --rebuild",
    "{} word --kind k --source s", "{} w x --offset 2 --explain", "{} word --max-chars 30 --full",
]  # fmt: skip
ODD_LINES = [
    "{} --limit=3 word", "{} -n3 word", "{} -- word", "{} -- -word", "{} word -h", "{} word --lim 3", "{} word --db",
    "{} - word", "{} word --db -x", "{} --nothing word", "{} --title=t --body=-",
]  # fmt: skip


@pytest.mark.parametrize("line", PLAIN_LINES + ODD_LINES)
def test_a_plain_command_line_means_what_argparse_says(line):
    for operation in OPERATIONS:
        argv = line.format(operation.name).split()
        options = _plain_options(operation, argv)
        if options is not None:
            said = vars(_parser(operation).parse_intermixed_args(argv))
            assert {k: v for k, v in options.items() if v != []} == {k: v for k, v in said.items() if v != []}, argv


def test_usual_searches_and_captures_are_plain_command_lines():
    by_name = {operation.name: operation for operation in OPERATIONS}
    for line in ("search two words --json", "capture --title t --body b --tags a", "index", "show a.md", "stats"):
        argv = line.split()
        assert _plain_options(by_name[argv[0]], argv), line
