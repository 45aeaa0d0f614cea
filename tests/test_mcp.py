"""The MCP server as a client sees it: a real child process, bytes in, bytes out.

Runs under pytest, and as `python tests/test_mcp.py [WORD]` with the standard library alone: then it
prints a line for each check (of those whose name holds WORD) and exits 1 when one failed.
"""

import atexit
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRODUCT = [sys.executable, os.path.join(ROOT, "memory.py"), "mcp"]
FIXTURE = [sys.executable, os.path.join(ROOT, "tests", "fixture_server.py")]
POSIX = os.name == "posix"

TOOLS = [
    "memory_search", "memory_context", "memory_stats", "memory_get", "memory_capture", "memory_update",
    "memory_supersede", "memory_forget", "memory_history", "memory_reindex",
]  # fmt: skip
HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
META = "io.modelcontextprotocol/"
STATELESS = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}

# What both official SDKs hand down to a server; everything else is absent.
INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "TEMP")


# -- a client


# The server ends within a second (0.02 to 0.6 s measured); on a crowded machine that takes longer.
CROWDED_SECOND = 5


class Client:
    """One server process and what it has said. Lines are split at byte 0x0A alone."""

    def __init__(self, command, home, env=None, cwd=None, **popen):
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=popen.pop("stderr", subprocess.PIPE),
            env={**inherited, "MEMORY_AGENT_HOME": home, "PYTHONUTF8": "0", **(env or {})},
            cwd=cwd,
            bufsize=0,
            **popen,
        )
        self.complaints = []
        self._heard = queue.Queue()
        self._kept = []
        threading.Thread(target=self._listen, daemon=True).start()
        if self.process.stderr:
            threading.Thread(target=self._collect, daemon=True).start()

    def _listen(self):
        for line in iter(self.process.stdout.readline, b""):
            self._heard.put(line)
        self._heard.put(None)

    def _collect(self):
        for line in self.process.stderr:
            self.complaints.append(line.decode("utf-8", "replace"))

    def write(self, data):
        """Sends bytes as they are."""
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def tell(self, *messages):
        """Sends JSON values, each as a line, in one write."""
        self.write(b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages))

    def next(self, timeout=10):
        """The next message; None when stdout was closed. Every line must be what the protocol allows."""
        try:
            line = self._heard.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"nothing was said within {timeout} s; stderr: {self.complaints[-3:]}") from None
        if line is None:
            self._heard.put(None)
            return None
        return checked(line)

    def reply(self, id_, timeout=10):
        """The response with this id, of this type; messages before it are kept for later."""
        for message in self._kept:
            if answers(message, id_):
                self._kept.remove(message)
                return message
        until = time.monotonic() + timeout
        while True:
            message = self.next(max(0.01, until - time.monotonic()))
            need(message is not None, f"stdout was closed before {id_!r} was answered; {self.complaints[-3:]}")
            if answers(message, id_):
                return message
            self._kept.append(message)

    def before_ping(self):
        """Everything the server says before it answers a ping that is sent now."""
        self.tell(request("after", "ping"))
        said, self._kept = self._kept, []
        while not answers(message := self.next(), "after"):
            need(message is not None, "stdout was closed")
            said.append(message)
        return said

    def ask(self, method, timeout=10, **params):
        """One request and its response."""
        self.tell(request(method, method, **params))
        return self.reply(method, timeout)

    def call(self, tool, **arguments):
        """The result of one tools/call."""
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def rest(self):
        """Closes stdin and gives every message up to the end."""
        self.process.stdin.close()
        said, self._kept = self._kept, []
        while (message := self.next()) is not None:
            said.append(message)
        return said

    def exit_within(self, seconds):
        """The exit status; fails when the process still runs after `seconds`."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s") from None

    def end(self):
        """Kills what is left and closes the pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stderr):
            try:
                pipe and pipe.close()
            except OSError:
                pass


@contextmanager
def connected(command=PRODUCT, version="2025-11-25", home=None, **options):
    """A client of a running server, after the handshake unless `version` is None."""
    client = Client(command, home or new_home(), **options)
    try:
        if version:
            answer = client.ask("initialize", 20, **handshake(version))
            need("result" in answer, f"initialize: {answer}")
            client.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield client
        told = "".join(client.complaints)
        need("Traceback" not in told, f"a traceback on stderr: {told[-300:]}")
    finally:
        client.end()


_HOMES = []


def new_home():
    """A data root of its own, removed at exit."""
    _HOMES.append(tempfile.mkdtemp(prefix="memory-mcp-"))
    return _HOMES[-1]


@atexit.register
def _remove_homes():
    for home in _HOMES:
        shutil.rmtree(home, ignore_errors=True)


def handshake(version):
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test-client", "version": "1"}}


def request(id_, method, **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def call(id_, tool, _token=None, **arguments):
    meta = {} if _token is None else {"_meta": {"progressToken": _token}}
    return request(id_, "tools/call", name=tool, arguments=arguments, **meta)


def cancel(id_):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_, "reason": "test"}}


def answers(message, id_):
    """Whether `message` is the response to `id_`, which must come back with its type."""
    if not isinstance(message, dict) or "method" in message:
        return False
    return type(message.get("id")) is type(id_) and message["id"] == id_


def checked(line):
    """The message of one line of stdout, which must be exactly what the protocol allows."""
    need(line.endswith(b"\n") and not line.endswith(b"\r\n"), f"a line end that is not LF: {line[-20:]!r}")
    text = line[:-1].decode("utf-8")
    need(len(text.splitlines()) == 1, f"a line that some readers split: {text[:80]!r}")
    message = json.loads(text, parse_constant=lambda name: need(False, f"{name} is no JSON"))
    json.dumps(message, ensure_ascii=False).encode("utf-8")  # fails on a lone surrogate
    for part in message if isinstance(message, list) else [message]:
        need(part.get("jsonrpc") == "2.0", f"not JSON-RPC 2.0: {text[:80]}")
        need("method" in part or ("result" in part) != ("error" in part), f"neither result nor error: {text[:80]}")
        need(not ("method" in part and "id" in part), f"a request from the server: {text[:80]}")
    return message


def need(true, why):
    """An assertion that says why without pytest."""
    if not true:
        raise AssertionError(why)


def outcome(message):
    """The error code of a response, or "ok"."""
    return message["error"]["code"] if "error" in message else "ok"


# -- the handshake


def test_nothing_is_opened_or_written_before_the_first_call():
    home = new_home()
    with connected(home=home) as client:
        client.ask("ping")
        client.ask("tools/list")
        need(os.listdir(home) == [], f"{os.listdir(home)}")


def test_each_handshake_revision_is_settled_and_an_unknown_one_gets_the_newest():
    rows = [(version, version) for version in HANDSHAKE]
    rows += [(version, HANDSHAKE[-1]) for version in ("1999-01-01", "2099-12-31", "2026-07-28")]
    with connected(version=None) as client:
        for offered, settled in rows:
            answer = client.ask("initialize", **handshake(offered))
            need(answer["result"]["protocolVersion"] == settled, f"{offered}: {answer}")


def test_a_whole_session_may_arrive_in_one_write():
    with connected(version=None) as client:
        client.tell(
            request("a", "initialize", **handshake("2025-06-18")),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            request("b", "tools/list"),
            call("c", "memory_stats"),
        )
        for id_ in "abc":
            need(outcome(client.reply(id_, 20)) == "ok", id_)


def test_a_client_of_2026_needs_no_handshake():
    with connected(version=None) as client:
        found = client.ask("server/discover", _meta=STATELESS)["result"]
        need("2026-07-28" in found["supportedVersions"], found)
        listed = client.ask("tools/list", _meta=STATELESS)["result"]
        need(listed["tools"] == client.ask("tools/list")["result"]["tools"], "another list than in the handshake era")
        counted = client.ask("tools/call", name="memory_stats", _meta=STATELESS)["result"]
        for value in (found, listed, counted):
            need(value["resultType"] == "complete" and META + "serverInfo" in value["_meta"], value)


def test_a_probe_of_2026_can_fall_back_to_the_handshake():
    with connected(version=None) as client:
        need("error" in client.ask("server/discover"), "a probe without _meta needs an error to go on from")
        need(outcome(client.ask("initialize", **handshake("2025-11-25"))) == "ok", "initialize after it")


def test_four_servers_on_one_vault_all_write_and_find():
    home = new_home()
    clients = [Client(PRODUCT, home) for _ in range(4)]
    try:
        for number, client in enumerate(clients):
            body = f"the body of card number {number}, long enough to be kept"
            client.tell(call("w", "memory_capture", title=f"shared card {number}", body=body))
        for client in clients:
            written = client.reply("w", 30)["result"]["structuredContent"]
            need(written["status"] == "created", written)
        for client in clients:
            hits = client.call("memory_search", query="shared card")["structuredContent"]["hits"]
            need(len(hits) == 4, f"{len(hits)} of 4 cards found")
    finally:
        for client in clients:
            client.end()


# -- the wire

# (line, the ids and codes that it is answered with)
WIRE = [
    (b"{broken", [(None, -32700)]),
    (b"hello", [(None, -32700)]),
    (b'{"jsonrpc":"2.0","id":1,"method":"pi\tng"}', [(None, -32700)]),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff\xfe"}}', [(None, -32700)]),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', [(None, -32700)]),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 100_000, [(None, -32700)]),
    (b"[" * 100_000 + b"]" * 100_000, [(None, -32700)]),
    (b"x" * 5_000_000, [(None, -32700)]),
    (b"x" * 17_000_000, [(None, -32600)]),
    (b"42", [(None, -32600)]),
    (b"null", [(None, -32600)]),
    (b"[]", [(None, -32600)]),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', [(None, -32600)]),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', [(None, -32600)]),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', [(None, -32600)]),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', [(None, -32600)]),
    (b'{"jsonrpc":"2.0","id":2}', [(2, -32600)]),
    (b'{"jsonrpc":"2.0","id":3,"method":7}', [(3, -32600)]),
    (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', [(4, -32600)]),
    (b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":[1]}', [(5, -32602)]),
    (b'{"jsonrpc":"2.0","id":6,"method":"no/such"}', [(6, -32601)]),
    (b'{"jsonrpc":"2.0","id":7,"method":"x\\udfff/y"}', [(7, -32601)]),
    (b'{"jsonrpc":"2.0","id":8,"method":"resources/list"}', [(8, -32601)]),
    (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"no_such_tool"}}', [(9, -32602)]),
    (b'{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{"cursor":"x"}}', [(10, -32602)]),
    (b' \t{"jsonrpc" : "2.0", "id" : 11 , "method":"ping" }  \r', [(11, "ok")]),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":12,"method":"ping"}', [(12, "ok")]),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n\n{"jsonrpc":"2.0","id":"1"}', [(1, "ok"), ("1", -32600)]),
    (b"", []),
    (b" \t\r", []),
    (b'{"jsonrpc":"2.0","id":987,"result":{}}', []),
    (b'{"jsonrpc":"2.0","method":"ping"}', []),
    (b'{"jsonrpc":"2.0","method":"no/such"}', []),
    (b'{"jsonrpc":"2.0","method":"initialize","params":{}}', []),
    (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"memory_stats"}}', []),
    (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never-sent"}}', []),
    (b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}', []),
]


def test_every_odd_line_gets_the_right_error_or_the_right_silence():
    with connected() as client:
        for line, wanted in WIRE:
            client.write(line + b"\n")
            said = [(message["id"], outcome(message)) for message in client.before_ping()]
            need(said == wanted, f"{line[:60]!r}: {said}, wanted {wanted}")


def test_an_id_comes_back_as_it_was():
    ids = [0, -1, 2**53 - 1, 1.5, "", "1", 1, "k" * 2000, "日本語-é", "🧠", "a\u2028b\u2029c\u0085d", 'nul\0tab\t"\\']
    with connected() as client:
        client.tell(*[request(id_, "ping") for id_ in ids])
        for id_ in ids:
            client.reply(id_)


def test_a_message_may_be_large_or_come_byte_by_byte():
    with connected() as client:
        for size in (70_000, 1 << 20, 8 << 20):
            need(client.ask("ping", 30, _meta={"x": "é" * (size // 2)})["result"] == {}, f"{size} bytes")
        for byte in json.dumps(request("sölit", "ping"), ensure_ascii=False).encode() + b"\n":
            client.write(bytes([byte]))
        client.reply("sölit")


def test_a_client_that_sends_much_before_it_reads_anything_is_served():
    """A server that blocks on its own full stdout stops reading, and both wait for ever."""
    process = subprocess.Popen(FIXTURE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    try:
        lines = [json.dumps(request(number, "tools/list")).encode() + b"\n" for number in range(500)]
        for _ in range(4):
            process.stdin.write(b"".join(lines))  # 2,000 answers of 4 KB, while nobody reads
        process.stdin.close()
        count = sum(1 for _ in process.stdout)
        need(count == 2000, f"{count} answers of 2000")
    finally:
        watchdog.cancel()
        process.kill()
        process.stdout.close()


def test_a_batch_is_answered_as_one_array_under_2025_03_26():
    batch = [call(1, "fixture_list"), {"jsonrpc": "2.0", "method": "x"}, request(2, "ping"), {"id": 3}]
    with connected(FIXTURE, "2025-03-26") as client:
        client.tell(batch)
        array = client.next()
        need(isinstance(array, list), array)
        need({message["id"]: outcome(message) for message in array} == {1: "ok", 2: "ok", 3: -32600}, array)
        client.tell([{"jsonrpc": "2.0", "method": "x"}, {"jsonrpc": "2.0", "id": 9, "result": {}}])
        need(client.before_ping() == [], "a batch that asks for nothing was answered")


# (environment, folder): a code page or a folder of the client must not reach the wire
PLACES = [
    ({"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"}, None),
    ({"PYTHONIOENCODING": "cp1252"}, None),
    ({"PYTHONIOENCODING": "gbk"}, os.path.abspath(os.sep)),
]


def test_the_wire_is_utf8_whatever_the_locale_and_the_folder():
    for env, folder in PLACES:
        with connected(env=env, cwd=folder) as client:
            body = "正文带有表情🚀与不换行空格，足够长的一段文字。"
            client.call("memory_capture", title="区域设置测试", body=body)
            found = client.call("memory_search", query="区域设置")
            need("区域设置测试" in found["content"][0]["text"], f"{env}: {found}")


def test_a_closed_stderr_harms_nothing():
    if not POSIX:
        return
    with connected(FIXTURE, preexec_fn=lambda: os.close(2), stderr=None) as client:
        client.call("fixture_chatter")
        need(client.call("fixture_fail", how="crash")["isError"], "a crash without stderr")
        client.ask("ping")


def test_nothing_that_prints_or_reads_reaches_the_wire():
    """Every line is checked as it is read: print, os.write and a child process must not show up."""
    with connected(FIXTURE) as client:
        value = client.call("fixture_chatter")
        need(value["structuredContent"]["text"] == "the child read 0 characters", value)
        client.ask("ping")
        told = "".join(client.complaints)
        need("a child wrote this" in told, f"what is printed belongs on stderr: {told}")


# -- calls while others run


def test_ping_and_list_are_answered_while_a_call_runs():
    with connected(FIXTURE) as client:
        client.tell(call("slow", "fixture_slow", seconds=10))
        time.sleep(0.2)
        client.ask("ping")
        client.ask("tools/list")
        need(not any(answers(message, "slow") for message in client._kept), "the reader was not free")
        client.tell(cancel("slow"))


def test_a_search_is_answered_while_a_rebuild_runs():
    with connected(FIXTURE) as client:
        client.tell(call("slow", "fixture_slow", seconds=10), call("quick", "fixture_list"))
        client.reply("quick")
        need(not any(answers(message, "slow") for message in client._kept), "it waited for the whole rebuild")
        client.tell(cancel("slow"))


def test_a_search_sent_behind_captures_finds_what_they_wrote():
    titles = [f"note {number}" for number in range(10)]
    with connected(FIXTURE) as client:
        client.tell(*[call(title, "fixture_add", title=title) for title in titles], call("list", "fixture_list"))
        need(client.reply("list")["result"]["structuredContent"]["notes"] == titles, "not all, or not in order")


def test_a_cancelled_call_is_never_answered_and_the_server_stays_usable():
    with connected(FIXTURE) as client:
        client.tell(call(4711, "fixture_slow", _token=0, seconds=9), call(4712, "fixture_add", title="queued"))
        time.sleep(0.4)
        client.tell(cancel(4712), cancel(4711), cancel("4711"), cancel(None))
        client.before_ping()
        need(client.call("fixture_list")["structuredContent"]["notes"] == [], "a cancelled write was carried out")
        need(client.before_ping() == [], "something was said for a cancelled call")
        need(client.rest() == [], "something was said for a cancelled call at the end")


def test_progress_is_sent_for_a_token_rises_and_ends_with_the_answer():
    for token in (0, "tok-1"):
        with connected(FIXTURE) as client:
            client.tell(call(1, "fixture_slow", _token=token, seconds=1))
            client.reply(1)
            notes = [message["params"] for message in client._kept]
            client._kept = []
            values = [note["progress"] for note in notes]
            need(len(values) > 2 and values == sorted(set(values)), f"{values}")
            need(all(note["progressToken"] == token for note in notes), f"{notes}")
            need(client.before_ping() == [], "progress after the answer")


def test_no_progress_is_sent_without_a_token():
    with connected(FIXTURE) as client:
        client.tell(call(1, "fixture_slow", seconds=1))
        client.reply(1)
        need(client._kept == [], f"{client._kept}")


# -- failing calls

# (how, words): the text of a failed call must say them
FAILURES = [
    ("store", "do: do that"),
    ("crash", "KeyError"),
    ("exit", "SystemExit"),
    ("nan", "ValueError"),
    ("huge", "ask for less"),
]


def test_a_failing_call_is_a_result_and_the_next_call_works():
    with connected(FIXTURE) as client:
        for how, words in FAILURES:
            value = client.call("fixture_fail", how=how)
            need(value["isError"] is True and words in value["content"][0]["text"], f"{how}: {str(value)[:200]}")
        need("isError" not in client.call("fixture_fail", how="odd"), "odd characters are no failure")
        need("sesame" not in "".join(client.complaints), "what a card holds was told on stderr")


def test_only_accepted_tools_are_listed_and_called():
    with connected([*FIXTURE, "reading"]) as client:
        names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
        need("fixture_find" in names and "fixture_add" not in names, f"{names}")
        refused = client.ask("tools/call", name="fixture_add", arguments={"title": "x"})
        need(outcome(refused) == -32602, f"{refused}")


def test_a_catalogue_that_cannot_be_loaded_is_an_error_and_the_server_lives():
    with connected([*FIXTURE, "broken"], "2025-03-26") as client:
        client.tell([request(1, "tools/list")])
        need(outcome(client.next()) == -32603, "in a batch")
        for answer in (client.ask("tools/list"), client.ask("tools/call", name="fixture_list")):
            need(outcome(answer) == -32603, f"{answer}")
        need(client.ask("ping")["result"] == {}, "ping")


# -- the end

SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"]


def idle(client):
    client.ask("ping")


def at_work(client):
    """In the middle of a call that honours cancellation."""
    client.tell(call("slow", "fixture_slow", seconds=9))
    time.sleep(0.3)


def stubborn(client):
    """In the middle of a call that does not look whether it is cancelled."""
    client.tell(call("slow", "fixture_slow", seconds=9, stubborn=True))
    time.sleep(0.3)


def withdrawn(client):
    """In a stubborn call that was just cancelled: its end is worth no waiting."""
    stubborn(client)
    client.tell(cancel("slow"))


def in_a_line(client):
    client.write(b'{"jsonrpc":"2.0","id":1,"met')


def test_the_end_of_input_ends_the_server_within_a_second():
    for state in (idle, at_work, stubborn, withdrawn, in_a_line):
        with connected(FIXTURE) as client:
            state(client)
            client.process.stdin.close()
            need(client.exit_within(CROWDED_SECOND) == 0, f"{state.__name__}: status {client.process.returncode}")


def test_input_that_ends_at_once_is_no_error():
    with connected(PRODUCT, version=None) as client:
        client.process.stdin.close()
        need(client.exit_within(3) == 0, f"status {client.process.returncode}")


def test_a_signal_ends_the_server_within_a_second_without_a_word():
    for name in SIGNALS if POSIX else []:
        for state in (idle, at_work, stubborn):
            with connected(FIXTURE) as client:
                state(client)
                client.process.send_signal(getattr(signal, name))
                status = client.exit_within(CROWDED_SECOND)
                need(status == 0, f"{name} {state.__name__}: status {status}")
                need(client.complaints == [], f"{client.complaints}")


def test_a_signal_right_after_an_answer_is_not_lost():
    """It may come between Python's last look and the system call that waits for input."""
    for number in range(9 if POSIX else 0):
        with connected(FIXTURE, version=None) as client:
            client.ask("ping")
            time.sleep(number * 0.0003)
            client.process.send_signal(getattr(signal, SIGNALS[number % 3]))
            need(client.exit_within(CROWDED_SECOND) == 0, f"status {client.process.returncode}")


def test_a_client_that_stops_listening_ends_the_server():
    """Also when it says nothing more: the closed pipe itself is noticed."""
    for state in (idle, at_work) if POSIX else []:
        process = subprocess.Popen(FIXTURE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.stdin.write(json.dumps(request(0, "ping")).encode() + b"\n")
            if state is at_work:
                process.stdin.write(json.dumps(call(1, "fixture_slow", seconds=9)).encode() + b"\n")
            process.stdin.flush()
            process.stdout.readline()
            time.sleep(0.2)
            process.stdout.close()
            need(process.wait(CROWDED_SECOND) == 0, f"status {process.returncode}")
            need(process.stderr.read() == b"", "it complained")
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stderr.close()


def test_a_killed_client_leaves_no_server_behind():
    if not POSIX:
        return
    ping = json.dumps(request(1, "ping")).encode() + b"\n"
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"p.stdin.write({ping!r}); p.stdin.flush(); p.stdout.readline()\n"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    client = subprocess.Popen([sys.executable, "-c", code, *FIXTURE], stdout=subprocess.PIPE)
    server = int(client.stdout.readline())
    client.kill()
    client.wait()
    client.stdout.close()
    until = time.monotonic() + 3
    while time.monotonic() < until and is_running(server):
        time.sleep(0.02)
    need(not is_running(server), "still there after 3 s")


def is_running(pid):
    """Whether a process lives; a zombie that nobody waits for does not."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return True


def test_all_that_was_read_is_answered_before_the_end():
    with connected(FIXTURE) as client:
        client.tell(*[request(number, "ping") for number in range(20)])
        client.tell(*[call(f"add {number}", "fixture_add", title=str(number)) for number in range(20)])
        client.tell(call("list", "fixture_list"))
        said = client.rest()
        need(len(said) == 41, f"{len(said)} of 41 answers")
        (listed,) = [message for message in said if message["id"] == "list"]
        need(len(listed["result"]["structuredContent"]["notes"]) == 20, f"{listed}")
        need(client.exit_within(CROWDED_SECOND) == 0, f"status {client.process.returncode}")


def test_a_script_that_pipes_its_requests_in_gets_a_slow_answer_too():
    with connected(FIXTURE) as client:
        client.tell(call("slow", "fixture_slow", seconds=2), call("list", "fixture_list"))
        said = {message["id"]: message for message in client.rest()}
        need(said["list"]["result"]["structuredContent"]["notes"] == ["slow"], f"{said}")


def test_a_last_line_without_line_end_is_served_when_it_is_whole():
    with connected(version=None) as client:
        client.write(json.dumps(request(1, "ping")).encode())
        need([message["id"] for message in client.rest()] == [1], "not answered")


# -- the product's tools


def test_the_ten_tools_are_there_and_cheap_to_read():
    with connected() as client:
        tools = client.ask("tools/list")["result"]["tools"]
        need(sorted(tool["name"] for tool in tools) == sorted(TOOLS), f"{[tool['name'] for tool in tools]}")
        schemas = [json.dumps(tool["inputSchema"], ensure_ascii=False, separators=(",", ":")) for tool in tools]
        size = len("".join([*schemas, *(tool["name"] + tool["description"] for tool in tools)]).encode())
        need(size <= 6000, f"names, descriptions and input schemas together have {size} bytes")
        for tool in tools:
            for name, entry in tool["inputSchema"]["properties"].items():
                need(entry.get("description"), f"{tool['name']}.{name} is not described")


def test_a_profile_keeps_the_list_small():
    reading = ["memory_context", "memory_get", "memory_history", "memory_search", "memory_stats"]
    for profile, wanted in {"read": reading, "write": sorted(TOOLS), "all": sorted(TOOLS)}.items():
        with connected([*PRODUCT, "--tools", profile]) as client:
            tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
            need(sorted(tools) == wanted, f"{profile}: {sorted(tools)}")
            actions = tools.get("memory_forget", {}).get("inputSchema", {}).get("properties", {}).get("action", {})
            need(("purge" in actions.get("enum", ())) == (profile == "all"), f"{profile}: {actions}")
            need(("purge" in json.dumps(tools)) == (profile == "all"), f"{profile}: purge is spoken of")
            need(all(tools[name]["annotations"]["readOnlyHint"] for name in reading), profile)


def test_a_fact_is_corrected_replaced_forgotten_and_restored_over_the_wire():
    old, new = "the host is alpha.example, port 5432", "the host is beta.example since today"
    with connected() as client:

        def said(tool, **arguments):
            answer = client.call(tool, **arguments)
            need(not answer.get("isError"), f"{tool}: {answer}")
            return answer["structuredContent"]

        made = said("memory_capture", title="db host", body=old, aliases=["主库"])
        told = said("memory_update", card=made["id"], confidence="high", expected_revision=made["revision"])
        need(told["status"] == "updated" and told["history_path"], f"{told}")
        late = said("memory_update", card=made["path"], body=new, expected_revision=made["revision"])
        need((late["status"], late["revision"]) == ("conflict", told["revision"]), f"{late}")
        follows = said("memory_supersede", card=made["path"], body=new)
        hits = said("memory_search", query="主库")["hits"]
        need([(hit["path"], hit["replaces"]) for hit in hits] == [(follows["path"], [made["path"]])], f"{hits}")
        for action, count in (("forget", 0), ("restore", 1), ("retract", 1), ("restore", 1)):
            said("memory_forget", card=follows["path"], action=action)
            need(len(said("memory_search", query="host")["hits"]) == count, action)
        need(said("memory_forget", card=follows["path"], action="purge")["status"] == "preview", "a purge without yes")
        need(said("memory_forget", card=follows["path"], action="purge", yes=True)["status"] == "purged", "purge")
        need("alpha" in said("memory_context", query="host")["text"], "the old fact holds again")
        need(said("memory_history", card=made["path"])["total"] == 2, "history")


def test_every_schema_is_one_that_the_strictest_client_takes():
    with connected() as client:
        for tool in client.ask("tools/list")["result"]["tools"]:
            name, schema = tool["name"], tool["inputSchema"]
            need(set(schema) <= {"type", "properties", "required", "additionalProperties"}, f"{name}: {set(schema)}")
            need(schema["type"] == "object" and set(schema.get("required", ())) <= set(schema["properties"]), name)
            for word, entry in schema["properties"].items():
                need(isinstance(entry["type"], str) and entry.get("description") != "", f"{name}.{word}")
                need(entry["type"] != "array" or entry["items"]["type"] == "string", f"{name}.{word}")
                need(all(isinstance(choice, str) for choice in entry.get("enum", ())), f"{name}.{word}")
            need(tool["outputSchema"]["type"] == "object" and "required" not in tool["outputSchema"], name)
            need(10 <= len(tool["description"]) <= 2048 and tool["title"], name)
            hints = tool["annotations"]
            need(hints["openWorldHint"] is False and type(hints["readOnlyHint"]) is bool, name)


def test_a_card_goes_all_the_way_round():
    title, body = "协议往返𠮷🚀", "通过协议写入的正文内容 protoword，足够长的一段文字。"
    with connected() as client:
        client.tell(
            call(1, "memory_capture", title=title, body=body, tags='["甲","乙"]'),
            call(2, "memory_search", query="protoword"),
            call(3, "memory_capture", title=title, body=body),
            call(4, "memory_stats"),
            call(5, "memory_reindex"),
            call(6, "memory_search", query="协议往返"),
        )
        said = {message["id"]: message["result"] for message in client.rest()}
        content = {id_: value["structuredContent"] for id_, value in said.items()}
        need([content[1]["status"], content[3]["status"]] == ["created", "unchanged"], f"{content}")
        need([hit["title"] for hit in content[2]["hits"] + content[6]["hits"]] == [title, title], f"{content}")
        need(content[4]["total"] == 1, f"{content[4]}")
        for value in said.values():
            need(value["content"][0]["text"].strip() and not value.get("isError"), f"{value}")


def test_a_found_card_can_be_read_by_what_the_search_gave():
    with connected() as client:
        client.call("memory_capture", title="read me", body="a body that is long enough to be kept, twice over")
        (hit,) = client.call("memory_search", query="read me")["structuredContent"]["hits"]
        for named in ({"id": hit["id"]}, {"path": hit["path"]}, {"id": str(hit["id"])}):
            value = client.call("memory_get", **named)
            need("twice over" in value["structuredContent"]["text"], f"{named}: {value}")
            need("twice over" in value["content"][0]["text"], f"{named}: {value}")


def test_the_client_name_is_the_source_of_what_it_captures():
    with connected() as client:
        client.call("memory_capture", title="whose", body="a body that is long enough to be kept")
        (hit,) = client.call("memory_search", query="whose")["structuredContent"]["hits"]
        need(hit["source"] == "test-client", f"{hit}")


# (tool, arguments) -> a result with isError that a model can act on
WRONG = [
    ("memory_search", {}),
    ("memory_search", {"query": 5}),
    ("memory_search", {"query": [{"wrong": None}]}),
    ("memory_search", {"query": "x", "limit": "many"}),
    ("memory_search", {"query": "x", "limit": True}),
    ("memory_search", {"query": "x", "no_such_argument": 1}),
    ("memory_get", {}),
    ("memory_get", {"id": 999_999}),
    ("memory_capture", {"title": "t"}),
    ("memory_capture", {"title": "t", "body": "long enough a body for a card", "kind": "no-such-kind"}),
    ("memory_reindex", {"rebuild": "perhaps"}),
]

# (tool, arguments) -> a result; nothing here may fail or end the server
RIGHT = [
    ("memory_search", {"query": "x", "limit": None, "kind": None, "source": None}),
    ("memory_search", {"query": "x", "limit": 10**30}),
    ("memory_search", {"query": "x", "limit": -1}),
    ("memory_search", {"query": "x", "limit": "3"}),
    ("memory_search", {"query": "記憶 メモリ 기억 🧠 e\u0301"}),
    ("memory_search", {"query": "a\u2028b\u2029c\u0085d\u000be"}),
    ("memory_search", {"query": "nul \0 end"}),
    ("memory_search", {"query": '"quotes" \\ OR NEAR( * ^ -- ;'}),
    ("memory_stats", {}),
    ("memory_reindex", {"rebuild": True}),
]


def test_a_wrong_argument_is_a_result_that_says_what_would_be_right():
    with connected() as client:
        for tool, arguments in WRONG:
            value = client.call(tool, **arguments)
            need(value.get("isError") is True, f"{tool} {arguments}: {str(value)[:200]}")
            need(len(value["content"][0]["text"]) > 15, f"{tool} {arguments}: {value}")


def test_an_unusual_argument_is_served():
    with connected() as client:
        for tool, arguments in RIGHT:
            value = client.call(tool, **arguments)
            need(not value.get("isError"), f"{tool} {arguments}: {str(value)[:200]}")


def test_a_megabyte_as_a_query_is_answered_and_ends_nothing():
    with connected() as client:
        client.ask("tools/call", 30, name="memory_search", arguments={"query": "memory é " * 110_000})
        need(client.ask("ping")["result"] == {}, "ping")


def test_structured_content_is_what_the_output_schema_says():
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "number": float}
    kinds["null"] = type(None)
    with connected() as client:
        schemas = {tool["name"]: tool["outputSchema"] for tool in client.ask("tools/list")["result"]["tools"]}
        client.call("memory_capture", title="schema", body="a body that is long enough to be kept")
        calls = [*RIGHT, ("memory_search", {"query": "schema"}), ("memory_get", {"id": 1})]
        calls += [("memory_capture", {"title": "short", "body": "too short"})]
        for tool, arguments in calls:
            content = client.call(tool, **arguments)["structuredContent"]
            for name, entry in schemas[tool]["properties"].items():
                need(name in content, f"{tool}: {name} is missing")
                types = entry["type"] if isinstance(entry["type"], list) else [entry["type"]]
                need(isinstance(content[name], tuple(map(kinds.get, types))), f"{tool}: {name} is {content[name]!r}")


def test_a_damaged_index_is_never_an_empty_answer():
    home = new_home()
    with connected(home=home) as client:
        client.call("memory_capture", title="survivor", body="a body that is long enough to be kept")
        client.rest()
        client.exit_within(3)
    for name in os.listdir(home):
        if name.startswith("memory") and os.path.isfile(os.path.join(home, name)):
            with open(os.path.join(home, name), "wb") as file:
                file.write(os.urandom(8192))
    with connected(home=home) as client:
        value = client.call("memory_search", query="survivor")
        need(value.get("isError") or value["structuredContent"]["hits"], f"{value}")
        client.call("memory_reindex", rebuild=True)
        value = client.call("memory_search", query="survivor")
        need(not value.get("isError") and value["structuredContent"]["hits"], f"after a rebuild: {value}")


# -- as a script


def main(words):
    """Runs every check whose name holds one of `words` (all without); 1 when one failed."""
    failed = count = 0
    for name, check in list(globals().items()):
        if not name.startswith("test_") or (words and not any(word in name for word in words)):
            continue
        count += 1
        started = time.monotonic()
        try:
            check()
            verdict, why = "ok  ", ""
        except Exception as fault:
            failed += 1
            verdict, why = "FAIL", f"  {type(fault).__name__}: {fault}"
        line = f"{verdict} {name[5:].replace('_', ' ')} ({time.monotonic() - started:.1f} s){why}"
        print(line.encode("ascii", "backslashreplace").decode(), flush=True)
    print(f"{count - failed} of {count} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
