"""Random cards, queries, protocol lines and config files: no fault of ours, and nothing over a second.

    python bench/faults/fuzz.py [--cards 100000] [--queries 100000] [--lines 20000] [--configs 2000] [--seed 1]

Each input is a valid one, changed at random: bytes flipped, cut, doubled and exchanged for what parsers stumble on.
A card must be read, cut, scanned and indexed, or refused by name; a query answered; a protocol line answered as
JSON-RPC says, with the server alive behind it; a config file taken or refused with its reason. `--slow` is the most
CPU seconds for one. Status 1 when one is lost.
"""

import contextlib
import json
import os
import random
import sys
import time

from harness import Place, Server, Tally, note, parser

from mcore import paths, secretscan, vault
from mcore.cardfile import new_card_text, read_card
from mcore.errors import McoreError
from mcore.ops import OPERATIONS
from mcore.render import plain
from mcore.tokenize import columns

BATCH = 500  # cards indexed at once, lines to one server
MAX_CHARS = 4_000

CARDS = (
    b"---\ntitle: nginx\nkind: tool\ntags: [a, b]\ncreated: 2026-01-01\n---\n\nroot is /srv/www\n",
    "---\ntitle: 云服务器\naliases:\n  - 阿里云\nsource: {a: [1, 2]}\n---\n# 标题\n正文 password = hunter2x\n".encode(),
    b"+++\ntitle = 'toml'\ndate = 2026-01-01\n+++\nbody ghp_abc\n",
    b"# Only a heading\n\n| a | b |\n|---|---|\n| 1 | 2 |\n```\ncode\n```\n[[link]] #tag\n",
    b"---\ntitle: >-\n  folded\n  text\nnote: |\n  literal\nx: &a [*a, !!str 1]\n---\ntext\n",
)
QUERIES = tuple(
    query.encode()
    for query in ("nginx root", "阿里云 服务器", "ecs-prod-01", "how to deploy?", '"a" OR b*', "v2.0-rc1 id_ed25519")
)


def call(id, name, **arguments):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


LINES = (
    call(1, "memory_search", query="nginx", limit=3),
    call("x", "memory_get", path="1.md", offset=2),
    call(2, "memory_stats"),
    {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "a"}},
    {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "x"}},
    [{"jsonrpc": "2.0", "id": 5, "method": "ping"}],
)
CONFIGS = (
    b'{"vault": "~/notes", "db": "/tmp/x.db", "ignore": ["*.tmp", "old"], "max_card_bytes": 9999, "sync_seconds": 1.5}',
    b'{"vault": "notes"}',
    b"{}",
)
_SIGNS = r""": - [ ] { } " ' &a *a !!binary | >- # \u0000 \ud800 1e999 -1 null true ../../etc/passwd ` ``` NEAR( AND ^ *
data:image/png;base64, password= sk- -----BEGIN tools/call id memory_capture params 云 ﬁ é"""
PIECES = (
    *(sign.encode() for sign in _SIGNS.split()),
    *("\u202e".encode(), "\u200b".encode(), "\U0001f680".encode(), b"\xed\xa0\x80", b"\x00", b"\xff", b"\xfe\xff"),
    *(b"\xef\xbb\xbf", b"---\n", b"\n", b"\r\n", b"\t", b": ", b"- ", b"|\n", b">-\n"),
    *(b"a" * 3000, b"[" * 2000, b"(" * 2000, b"|-" * 900, b"9" * 40),
)


def changed(rng, data):
    """`data` after a few random changes."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.randrange(1, 20))
        how = rng.randrange(6)
        if how == 0:
            data[at:at] = rng.choice(PIECES)
        elif how == 1:
            data[at:end] = rng.choice(PIECES)
        elif how == 2:
            del data[at:end]
        elif how == 3:
            data[at:at] = data[at:end] * rng.randrange(1, 5)
        elif how == 4:
            data[at:at] = rng.randbytes(rng.randrange(1, 8))
        elif at < len(data):
            data[at] ^= 1 << rng.randrange(8)
    return bytes(data[:MAX_CHARS])


class Trials:
    """One kind of input, each tried with its CPU time watched."""

    def __init__(self, name, slow):
        self.tally, self.slow, self.most = Tally(name), slow, 0.0

    def one(self, data, work):
        """Runs `work()`; refusals are no faults, anything else that is raised is one."""
        started, faults = time.process_time(), []
        try:
            faults += work() or ()
        except McoreError as refused:
            if not refused.message:
                faults.append("refused without a reason")
        except Exception as fault:
            faults.append(f"{type(fault).__name__}: {fault}")
        seconds = time.process_time() - started
        self.most = max(self.most, seconds)
        if seconds > self.slow:
            faults.append(f"took {seconds:.2f} s")
        self.tally.trial(f"{data!r:.400}", faults)

    def end(self):
        self.tally.end(f"; the slowest took {self.most:.3f} s")
        return self.tally


def cards(rng, count, slow):
    trials = Trials("cards", slow)
    with Place() as place, contextlib.closing(place.app()) as app:
        for number in range(count):
            data = changed(rng, rng.choice(CARDS))
            trials.one(data, lambda data=data: read_whole(data))
            with open(os.path.join(place.vault, f"{number % BATCH}.md"), "wb") as handle:
                handle.write(data)
            if number % BATCH == BATCH - 1 or number == count - 1:
                trials.one(b"a batch", lambda: index_all(app))
    return trials.end()


def read_whole(data):
    """Everything that is done with a card's text, without an index."""
    text, _ = vault.decode(data)
    card = read_card("03-Knowledge/a.md", text)
    columns(card.title, card.labels, card.body)
    secretscan.scan(card.body)
    secretscan.redact(card.title)
    json.dumps(plain(card))
    again = read_card("a.md", new_card_text(card.title, "tool", card.source, card.tags, "", card.body, card.fields))
    if again.body.strip() != card.body.strip():
        yield "its body is another one when it is written and read again"


def index_all(app):
    report = app.indexer.index(app.store)
    if report.total + len(report.skipped) < 1:
        yield f"nothing was indexed: {report}"


def queries(rng, count, slow):
    trials = Trials("queries", slow)
    with Place() as place, contextlib.closing(place.app()) as app:
        for number, data in enumerate(CARDS):
            with open(os.path.join(place.vault, f"{number}.md"), "wb") as handle:
                handle.write(data)
        app.indexer.index(app.store)
        text_of = next(operation.text for operation in OPERATIONS if operation.name == "search")

        def ask(query):
            result = app.searcher.search(query, rng.randrange(-3, 30), sync=False)
            text_of(result)
            json.dumps(plain(result))

        for _ in range(count):
            query = changed(rng, rng.choice(QUERIES)).decode("utf-8", rng.choice(("replace", "surrogateescape")))
            trials.one(query.encode("utf-8", "surrogatepass"), lambda query=query: ask(query))
    return trials.end()


def lines(rng, count, slow):
    tally = Tally("protocol lines")
    with Place() as place:
        for number in range(20):
            place.write(f"{number}.md", note(number))
        for first in range(0, count, BATCH):
            some = []
            for _ in range(min(BATCH, count - first)):
                line = json.dumps(rng.choice(LINES)).encode()
                some.append(changed(rng, line).replace(b"\n", b" ") if rng.random() < 0.9 else line)
            faults = faults_of_session(place, some)
            tally.tried += len(some) - 1  # a session is lost or survives as one
            tally.trial(f"lines {first} to {first + len(some)}", faults)
    tally.end()
    return tally


def faults_of_session(place, some):
    """What is wrong after a server was given some lines: it must be alive, and every answer JSON-RPC."""
    server, faults = Server(place), []
    try:
        for line in some:
            server.process.stdin.write(line + b"\n")
        server.process.stdin.flush()
        server.send("memory_search", query="the last one")
        for raw in server.process.stdout:
            message = json.loads(raw)
            for answer in message if isinstance(message, list) else [message]:
                text = json.dumps(answer)
                if answer.get("jsonrpc") != "2.0" or '"internal"' in text or "-32603" in text:
                    faults.append(f"answered {text[:300]}")
            if isinstance(message, dict) and message.get("id") == server.sent and "the last one" in str(message):
                break
        else:
            faults.append("the server ended")
    except (ValueError, OSError) as fault:
        faults.append(f"{type(fault).__name__}: {fault}")
    finally:
        server.close()
    return faults


def configs(rng, count, slow):
    trials = Trials("config files", slow)
    with Place() as place:
        for _ in range(count):
            data = changed(rng, rng.choice(CONFIGS))
            with open(os.path.join(place.home, "config.json"), "wb") as handle:
                handle.write(data)

            def resolve():
                settings = paths.resolve(env={"MEMORY_AGENT_HOME": place.home})
                if not os.path.isabs(settings.vault.path) or "\0" in settings.vault.path + settings.db.path:
                    yield f"a path that cannot be used: {settings.vault}"

            trials.one(data, resolve)
    return trials.end()


def main(argv=None):
    kinds = {"cards": 100_000, "queries": 100_000, "lines": 20_000, "configs": 2000}
    options = parser(__doc__.splitlines()[0], **kinds, seed=1)
    options.add_argument("--slow", type=float, default=1.0, metavar="SECONDS")
    options = options.parse_args(argv)
    rng, in_all = random.Random(options.seed), Tally()
    for run in (cards, queries, lines, configs):
        count = getattr(options, run.__name__)
        if count:
            in_all.add(run(rng, count, options.slow))
    return in_all.end()


if __name__ == "__main__":
    sys.exit(main())
