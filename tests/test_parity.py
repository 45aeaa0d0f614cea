"""One operation, two doors: the same call gives the same answer on the command line and over MCP.

Each row is tried in three data roots with equal vaults: typed as a command, called as the server calls it, and
sent to a real server. An operation with a tool and without a row fails the last test.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from mcore.app import App
from mcore.cli import main
from mcore.errors import McoreError
from mcore.operation import bind
from mcore.ops import OPERATIONS
from mcore.render import plain

BODY = "nginx 站点根目录在 /srv/www/html, 重启用 systemctl"
TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
NOTES = {
    "03-Knowledge/nginx.md": "---\ntitle: nginx 站点\nsource: alice\ntags: [web]\n---\nroot is /srv/www, 数据库备份",
    "07-Tools/redis.md": "# redis\n\ncache eviction, 缓存淘汰 🚀𠮷",
    "broken.md": b"---\ntitle: [x\n---\n\xff binary-ish zebra",
    "binary.md": b"\x00\xff\xfe\x00" * 9,
    "long.md": "# long\n\n" + "0123456789" * 3000,
}

ROWS = [
    # command word, as typed, arguments over MCP
    ("search", ["nginx"], {"query": "nginx"}),
    ("search", ["数据库", "root"], {"query": "数据库 root"}),
    ("search", ["redis zzzz", "-n", "1"], {"query": "redis zzzz", "limit": 1}),
    ("search", ["redis", "-n", "99"], {"query": "redis", "limit": 99}),
    ("search", ["redis", "--limit=-3"], {"query": "redis", "limit": "-3"}),
    ("search", ["redis", "--kind", "tool", "--source", ""], {"query": "redis", "kind": "tool", "source": ""}),
    ("search", ["redis", "--kind", "system"], {"query": "redis", "kind": "system"}),
    ("search", ["nginx", "--source", "bob"], {"query": "nginx", "source": "bob"}),
    ("search", ["redis zzzz", "--match", "cascade"], {"query": "redis zzzz", "match": "cascade"}),
    ("search", ["where is the root?", "--match=fill"], {"query": "where is the root?", "match": "fill"}),
    ("search", ["redis", "--match", "never"], {"query": "redis", "match": "never"}),
    ("search", ["redis zzzz", "--explain"], {"query": "redis zzzz", "explain": True}),
    ("search", ["zzzzqqqq"], {"query": "zzzzqqqq"}),
    ("search", ["rediss"], {"query": "rediss"}),
    ("search", [""], {"query": ""}),
    ("search", ["--", "-x --json"], {"query": "-x --json"}),
    ("search", [], {}),
    ("search", ["x", "-n", "many"], {"query": "x", "limit": "many"}),
    ("show", ["07-Tools/redis.md"], {"path": "07-Tools/redis.md"}),
    ("show", ["broken.md"], {"path": "broken.md"}),
    ("show", ["long.md"], {"path": "long.md"}),
    ("show", ["long.md", "--offset", "2990", "--max-chars", "5"], {"path": "long.md", "offset": 2990, "max_chars": 5}),
    ("show", ["long.md", "--max-chars", "0"], {"path": "long.md", "max_chars": 0}),
    ("show", ["long.md", "--offset", "99999"], {"path": "long.md", "offset": "99999"}),
    ("show", ["1"], {"id": 1}),
    ("show", ["2"], {"id": "2"}),
    ("show", ["99"], {"id": 99}),
    ("show", ["no/such.md"], {"path": "no/such.md"}),
    ("show", ["../../etc/passwd"], {"path": "../../etc/passwd"}),
    ("show", ["1", "--offset", "x"], {"id": 1, "offset": "x"}),
    ("capture", ["--title", "t", "--body", BODY], {"title": "t", "body": BODY}),
    ("capture", ["--title", "t", "--body", BODY + "2", "--tags", "a, b", "--kind", "tool"],
     {"title": "t", "body": BODY + "2", "tags": ["a", "b"], "kind": "tool"}),
    ("capture", ["--title", "nginx", "--body", "root is elsewhere now, on another host"],
     {"title": "nginx", "body": "root is elsewhere now, on another host"}),
    ("capture", ["--title", "nginx", "--body", "root is elsewhere now, on another host", "--on-conflict", "reject"],
     {"title": "nginx", "body": "root is elsewhere now, on another host", "on_conflict": "reject"}),
    ("capture", ["--title", "x/y", "--body", f"{BODY} {TOKEN}"], {"title": "x/y", "body": f"{BODY} {TOKEN}"}),
    ("capture", ["--title", "z", "--body", f"{BODY} {TOKEN}", "--reject-secrets"],
     {"title": "z", "body": f"{BODY} {TOKEN}", "reject_secrets": True}),
    ("capture", ["--title", "t", "--body", "short"], {"title": "t", "body": "short"}),
    ("capture", ["--title", " ", "--body", BODY], {"title": " ", "body": BODY}),
    ("capture", ["--body", BODY], {"body": BODY}),
    ("capture", ["--title", "t", "--body", BODY, "--kind", "nope"], {"title": "t", "body": BODY, "kind": "nope"}),
    ("search", ["nginx", "--scope", "shop", "--scope-only", "--as-of", "any", "--offset", "1",
                "--query-variants", "站点,web root"],
     {"query": "nginx", "scope": "shop", "scope_only": True, "as_of": "any", "offset": 1,
      "query_variants": ["站点", "web root"]}),
    ("search", ["nginx", "--as-of", "someday"], {"query": "nginx", "as_of": "someday"}),
    ("capture", ["--title", "life", "--body", BODY + " life", "--scope", "project/Shop", "--aliases", "甲,乙",
                 "--questions", "where is it?", "--valid-from", "2020-01-01", "--valid-to", "2999-01-01",
                 "--ttl", "9999d", "--review-by", "2020-01-01", "--confidence", "0.6", "--pinned"],
     {"title": "life", "body": BODY + " life", "scope": "project/Shop", "aliases": ["甲", "乙"],
      "questions": ["where is it?"], "valid_from": "2020-01-01", "valid_to": "2999-01-01", "ttl": "9999d",
      "review_by": "2020-01-01", "confidence": "0.6", "pinned": True}),
    ("capture", ["--title", "life", "--body", BODY, "--scope", "shop"],
     {"title": "life", "body": BODY, "scope": "shop"}),
    ("update", ["07-Tools/redis.md", "--title", "Redis", "--body", BODY + " redis", "--kind", "tool",
                "--tags", "kv, 缓存", "--source", "ops", "--priority", "3", "--aliases", "缓存库",
                "--questions", "which cache?", "--scope", "domain/ops", "--valid-from", "2020-01-01",
                "--valid-to", "2999-01-01", "--ttl", "9999d", "--review-by", "2027-01-01",
                "--confidence", "high", "--pinned"],
     {"card": "07-Tools/redis.md", "title": "Redis", "body": BODY + " redis", "kind": "tool", "tags": ["kv", "缓存"],
      "source": "ops", "priority": "3", "aliases": ["缓存库"], "questions": ["which cache?"], "scope": "domain/ops",
      "valid_from": "2020-01-01", "valid_to": "2999-01-01", "ttl": "9999d", "review_by": "2027-01-01",
      "confidence": "high", "pinned": True}),
    ("update", ["07-Tools/redis.md", "--tags", "", "--expected-revision", "0123456789abcdef"],
     {"card": "07-Tools/redis.md", "tags": [], "expected_revision": "0123456789abcdef"}),
    ("update", ["07-Tools/redis.md"], {"card": "07-Tools/redis.md"}),
    ("update", ["no.md", "--title", "x"], {"card": "no.md", "title": "x"}),
    ("supersede", ["07-Tools/redis.md", "--body", BODY + " valkey", "--title", "valkey", "--valid-from", "2021-01-01",
                   "--tags", "kv", "--expected-revision", "0123456789abcdef"],
     {"card": "07-Tools/redis.md", "body": BODY + " valkey", "title": "valkey", "valid_from": "2021-01-01",
      "tags": ["kv"], "expected_revision": "0123456789abcdef"}),
    ("supersede", ["07-Tools/redis.md", "--body", BODY + " valkey", "--title", "valkey", "--wrong"],
     {"card": "07-Tools/redis.md", "body": BODY + " valkey", "title": "valkey", "wrong": True}),
    ("supersede", ["07-Tools/redis.md", "--body", BODY + " third"],
     {"card": "07-Tools/redis.md", "body": BODY + " third"}),
    ("history", ["07-Tools/redis.md", "--diff", "--limit", "1"],
     {"card": "07-Tools/redis.md", "diff": True, "limit": 1}),
    ("forget", ["long.md", "--expected-revision", "0123456789abcdef"],
     {"card": "long.md", "expected_revision": "0123456789abcdef"}),
    ("forget", ["long.md"], {"card": "long.md"}),
    ("restore", ["long.md", "--revision", "0123456789abcdef"], {"card": "long.md", "revision": "0123456789abcdef"}),
    ("restore", ["long.md"], {"card": "long.md"}),
    ("restore", ["long.md", "--expected-revision", "bad"], {"card": "long.md", "expected_revision": "bad"}),
    ("retract", ["long.md", "--reason", "数字不对", "--expected-revision", "0123456789abcdef"],
     {"card": "long.md", "reason": "数字不对", "expected_revision": "0123456789abcdef"}),
    ("retract", ["long.md", "--reason", "数字不对"], {"card": "long.md", "reason": "数字不对"}),
    ("context", ["nginx", "--scope", "all", "--max-chars", "900", "--view", "compact"],
     {"query": "nginx", "scope": "all", "max_chars": 900, "view": "compact"}),
    ("context", [], {}),
    ("context", ["--max-chars", "5"], {"max_chars": 5}),
    ("purge", ["long.md"], {"card": "long.md"}),
    ("purge", ["long.md", "--yes"], {"card": "long.md", "yes": True}),
    ("stats", [], {}),
    ("index", [], {}),
    ("index", ["--rebuild"], {"rebuild": True}),
]  # fmt: skip

COMMANDS = {operation.name: operation for operation in OPERATIONS}
SHARED = {o.name for o in OPERATIONS if o.tool and sum(o.tool == other.tool for other in OPERATIONS) > 1}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """For each way in, the answers to all rows in turn; the rows of one way share a data root."""
    root = tmp_path_factory.mktemp("parity")
    for name, text in NOTES.items():
        path = root / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    outside = {name: os.environ.get(name) for name in ("MEMORY_AGENT_HOME", "MEMORY_AGENT_VAULT")}
    found = {}
    try:
        for way in (typed, called, served):
            home = root / way.__name__
            shutil.copytree(root / "notes", home / "vault")
            os.environ["MEMORY_AGENT_HOME"] = str(home)
            os.environ["MEMORY_AGENT_VAULT"] = str(home / "vault")
            found[way.__name__] = [settled(answer, str(home)) for answer in way()]
    finally:
        for name, value in outside.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return found


def typed():
    """Every row as a command line, in process."""
    from contextlib import redirect_stdout
    from io import BytesIO, TextIOWrapper

    for word, argv, _ in ROWS:
        stdout = TextIOWrapper(BytesIO(), "ascii")
        with redirect_stdout(stdout):
            main([word, "--json", *argv])
        yield json.loads(stdout.buffer.getvalue().decode("utf-8"))


def called():
    """Every row as the server calls it, without the server."""
    app = App()
    for word, _, arguments in ROWS:
        try:
            yield plain(COMMANDS[word].run(app, bind(COMMANDS[word], arguments)))
        except McoreError as error:
            message = f"{error.message}: {error.why}" if error.why else error.message
            yield {"error": {"slug": error.slug, "message": message, "hint": error.hint}}
    app.close()


def served():
    """Every row as a request to a real server, answered one after another."""
    lines = [
        {
            "jsonrpc": "2.0",
            "id": "init",
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "cli", "version": "0"},
            },
        }
    ]
    lines.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    process = subprocess.Popen(
        [sys.executable, os.path.join(ROOT, "memory.py"), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def ask(message):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline()) if "id" in message else None

    for line in lines:
        ask(line)
    for number, (word, _, arguments) in enumerate(ROWS):
        if word in SHARED:
            arguments = {**arguments, "action": word}
        params = {"name": COMMANDS[word].tool, "arguments": arguments}
        reply = ask({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        assert reply["id"] == number
        yield reply["result"]["structuredContent"]
    process.stdin.close()
    assert process.wait(30) == 0


def settled(answer, home):
    """An answer without what differs from run to run: times and the data root's name."""
    answer.pop("seconds", None)
    text = json.dumps(answer).replace(json.dumps(home)[1:-1], "HOME")
    text = re.sub(r"\d{4}-?\d\d-?\d\dT\d\d:?\d\d:?\d\dZ", "TIME", text)
    return json.loads(re.sub(r"\b[0-9a-f]{16}\b", "REVISION", text))  # a card's text holds a time


@pytest.mark.parametrize("number", range(len(ROWS)), ids=[f"{n}-{row[0]}" for n, row in enumerate(ROWS)])
def test_both_doors_give_the_same_answer(answers, number):
    by_hand, direct, by_server = (answers[way][number] for way in ("typed", "called", "served"))
    if "error" in direct and direct["error"]["slug"] == "usage":
        # Each door says it in its own words: an argument that is missing is missing from different places.
        assert by_hand["error"]["slug"] == "usage"
    else:
        assert by_hand == direct
    assert by_server == direct


def test_the_rows_hold_answers_and_refusals_of_every_kind(answers):
    seen = []
    for answer in answers["called"]:
        seen.append(answer.get("status") or answer.get("error", {}).get("slug") or answer.get("matched"))
    assert {"created", "unchanged", "rejected", "all", "any", "usage", "not-found"} <= set(seen)
    assert {"updated", "conflict", "forgotten", "restored", "retracted", "preview", "purged", None} <= set(seen)


def test_every_operation_with_a_tool_has_rows():
    assert {row[0] for row in ROWS} == {operation.name for operation in OPERATIONS if operation.tool}
    for operation in OPERATIONS:
        if operation.tool:
            both = {p.name for p in operation.params if p.door == "both"}
            given = {name for word, _, arguments in ROWS if word == operation.name for name in arguments}
            assert both <= given, f"{operation.name}: no row gives {both - given}"


@pytest.mark.parametrize("word, argv, arguments", [row for row in ROWS if row[0] != "show"])
def test_typed_words_become_the_same_arguments(word, argv, arguments, monkeypatch):
    """What argparse makes of the command line, bound, is what the server binds."""
    from mcore.errors import UsageError

    seen = []
    operation = COMMANDS[word]
    spy = operation._replace(run=lambda app, args: seen.append(args), text=lambda _: "", exit_code=lambda _: 0)
    monkeypatch.setattr("mcore.ops.OPERATIONS", (spy,))
    try:
        expected = bind(operation, arguments)
    except UsageError:
        assert main([word, *argv]) == 2 and not seen
        return
    assert main([word, *argv]) == 0
    shared = {p.name for p in operation.params if p.door == "both"}
    assert {k: seen[0][k] for k in shared} == {k: expected[k] for k in shared}
