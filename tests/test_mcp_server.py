"""mcore.mcp_server without a process: what a message means, who may run, what a call's answer holds."""

import json
import threading
from collections import namedtuple

import pytest
from fixture_server import OPERATIONS, App

from mcore import jsonrpc
from mcore.jsonrpc import read
from mcore.mcp_server.answers import tool_entry
from mcore.mcp_server.lanes import Lanes, Task, next_task
from mcore.mcp_server.session import (
    HANDSHAKE_VERSIONS,
    INSTRUCTIONS,
    NEWEST_HANDSHAKE,
    STATELESS_VERSION,
    VERSIONS,
    Answer,
    Batch,
    Call,
    Cancel,
    Session,
)
from mcore.mcp_server.worker import Progress, Worker

META = "io.modelcontextprotocol/"
SERVER = {"name": "memory-agent", "title": "memory-agent", "version": "1.2.3"}


def session(version=None):
    """A session, after the handshake when a version is given."""
    made = Session(lambda: OPERATIONS, "1.2.3")
    if version:
        ask(made, "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "tester", "version": "1"})
    return made


def ask(made, method, **params):
    """The outcome of one request with id 1."""
    return made.receive(read(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()))


def result(outcome):
    return outcome.message["result"]


def code(outcome):
    return outcome.message["error"]["code"]


def meta(version=STATELESS_VERSION, **more):
    """The `_meta` of a stateless request."""
    return {META + "protocolVersion": version, META + "clientCapabilities": {}, **more}


# -- the handshake era


@pytest.mark.parametrize(
    "offered, settled",
    [(version, version) for version in HANDSHAKE_VERSIONS]
    + [(odd, NEWEST_HANDSHAKE) for odd in ("1999-01-01", "2099-12-31", "2024-10-07", "", STATELESS_VERSION)],
)
def test_initialize_settles_the_offered_version_or_the_newest(offered, settled):
    made = session()
    answer = result(ask(made, "initialize", protocolVersion=offered, capabilities={}, clientInfo={"name": "x"}))
    assert answer["protocolVersion"] == made.version == settled
    assert answer["serverInfo"] == SERVER
    assert answer["capabilities"] == {"tools": {}}
    assert set(answer) == {"protocolVersion", "serverInfo", "capabilities", "instructions"}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": 7},
        {"protocolVersion": None, "capabilities": {}},
        {"protocolVersion": "2025-11-25", "capabilities": []},
        {"protocolVersion": "2025-11-25", "clientInfo": "x"},
    ],
)
def test_a_bad_initialize_is_refused_and_leaves_no_trace(params):
    made = session()
    assert code(ask(made, "initialize", **params)) == jsonrpc.INVALID_PARAMS
    assert (made.version, made.client) == (None, "")


def test_instructions_are_short_enough_to_precede_every_conversation():
    assert 200 < len(INSTRUCTIONS.encode()) <= 600


# (method, params, code)
REFUSED = [
    ("no/such", {}, jsonrpc.METHOD_NOT_FOUND),
    ("", {}, jsonrpc.METHOD_NOT_FOUND),
    ("tools/", {}, jsonrpc.METHOD_NOT_FOUND),
    ("__init__", {}, jsonrpc.METHOD_NOT_FOUND),
    ("resources/list", {}, jsonrpc.METHOD_NOT_FOUND),
    ("prompts/list", {}, jsonrpc.METHOD_NOT_FOUND),
    ("logging/setLevel", {"level": "info"}, jsonrpc.METHOD_NOT_FOUND),
    ("completion/complete", {}, jsonrpc.METHOD_NOT_FOUND),
    ("server/discover", {}, jsonrpc.METHOD_NOT_FOUND),
    ("notifications/initialized", {}, jsonrpc.METHOD_NOT_FOUND),
    ("tools/list", {"cursor": "next"}, jsonrpc.INVALID_PARAMS),
    ("tools/list", {"cursor": ""}, jsonrpc.INVALID_PARAMS),
    ("tools/call", {}, jsonrpc.INVALID_PARAMS),
    ("tools/call", {"name": 5, "arguments": {}}, jsonrpc.INVALID_PARAMS),
    ("tools/call", {"name": "no_such_tool", "arguments": {}}, jsonrpc.INVALID_PARAMS),
    ("tools/call", {"name": "fixture_find", "arguments": [1]}, jsonrpc.INVALID_PARAMS),
    ("tools/call", {"name": "fixture_find", "arguments": "x"}, jsonrpc.INVALID_PARAMS),
]


@pytest.mark.parametrize("method, params, wanted", REFUSED)
@pytest.mark.parametrize("era", ["before initialize", "2024-11-05", "2025-11-25"])
def test_what_is_not_served_is_refused_with_its_code_in_every_state(era, method, params, wanted):
    made = session(era if era in HANDSHAKE_VERSIONS else None)
    assert code(ask(made, method, **params)) == wanted


def test_the_unknown_tool_error_names_the_tools_there_are():
    message = ask(session(), "tools/call", name="no_such_tool").message["error"]["message"]
    assert "no_such_tool" in message and "fixture_find" in message


@pytest.mark.parametrize("version", [None, *HANDSHAKE_VERSIONS])
def test_ping_and_list_are_served_with_and_without_a_handshake(version):
    made = session(version)
    assert result(ask(made, "ping")) == {}
    listed = result(ask(made, "tools/list", _meta={"progressToken": 0}))
    assert set(listed) == {"tools"}
    assert listed == result(ask(session(), "tools/list"))


# -- notifications and batches


@pytest.mark.parametrize(
    "method, params",
    [
        ("ping", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "fixture_add", "arguments": {"title": "never"}}),
        ("initialize", {"protocolVersion": "2025-03-26"}),
        ("notifications/cancelled", {}),
        ("notifications/cancelled", {"requestId": None}),
        ("notifications/cancelled", {"requestId": True}),
        ("notifications/cancelled", {"requestId": [1]}),
        ("notifications/progress", {"progressToken": "none", "progress": "x"}),
        ("no/such", {}),
    ],
)
def test_a_message_without_id_asks_for_nothing(method, params):
    made = session("2025-11-25")
    line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
    assert made.receive(read(line)) is None
    assert made.version == "2025-11-25"


@pytest.mark.parametrize("id_", [0, "a", 1.5])
def test_a_cancellation_names_the_request(id_):
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}})
    assert session().receive(read(line.encode())) == Cancel(id_)


BATCH = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},7]'


def test_a_batch_is_served_under_the_one_revision_that_has_batches():
    outcome = session("2025-03-26").receive(read(BATCH))
    assert isinstance(outcome, Batch)
    first, second, third = outcome.outcomes
    assert result(first) == {} and second is None and code(third) == jsonrpc.INVALID_REQUEST


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_under_any_other_revision_gets_one_error(version):
    outcome = session(version).receive(read(BATCH))
    assert isinstance(outcome, Answer)
    assert outcome.message["id"] is None and code(outcome) == jsonrpc.INVALID_REQUEST


def test_an_empty_batch_is_an_error_under_every_revision():
    for version in (None, *HANDSHAKE_VERSIONS):
        assert code(session(version).receive(read(b"[]"))) == jsonrpc.INVALID_REQUEST


# -- the stateless era


def test_discover_says_all_that_a_handshake_says():
    answer = result(ask(session(), "server/discover", _meta=meta()))
    assert answer["supportedVersions"] == list(VERSIONS) and set(VERSIONS) == {STATELESS_VERSION, *HANDSHAKE_VERSIONS}
    assert answer["capabilities"] == {"tools": {}} and answer["instructions"] == INSTRUCTIONS
    assert answer["resultType"] == "complete" and answer["cacheScope"] == "private" and answer["ttlMs"] >= 0
    assert answer["_meta"] == {META + "serverInfo": SERVER}


def test_the_stateless_list_is_the_handshake_list_with_its_lifetime():
    stateless = result(ask(session(), "tools/list", _meta=meta()))
    assert stateless["tools"] == result(ask(session("2025-06-18"), "tools/list"))["tools"]
    assert set(stateless) == {"tools", "ttlMs", "cacheScope", "resultType", "_meta"}


@pytest.mark.parametrize(
    "sent, wanted",
    [
        ({META + "protocolVersion": STATELESS_VERSION}, jsonrpc.INVALID_PARAMS),
        ({META + "protocolVersion": STATELESS_VERSION, META + "clientCapabilities": []}, jsonrpc.INVALID_PARAMS),
        (meta(7), jsonrpc.INVALID_PARAMS),
        (meta(None), jsonrpc.INVALID_PARAMS),
        (meta("1900-01-01"), -32022),
        (meta("2025-11-25"), -32022),
    ],
)
def test_a_stateless_request_is_judged_by_its_own_meta_and_leaves_no_trace(sent, wanted):
    made = session()
    assert code(ask(made, "tools/list", _meta=sent)) == wanted
    assert result(ask(made, "tools/list", _meta=meta()))["resultType"] == "complete"
    assert result(ask(made, "ping")) == {}


def test_a_version_that_is_not_served_is_answered_with_those_that_are():
    data = ask(session(), "server/discover", _meta=meta("2099-01-01")).message["error"]["data"]
    assert data == {"supported": list(VERSIONS), "requested": "2099-01-01"}
    data = ask(session(), "server/discover", _meta=meta("2025-11-25")).message["error"]["data"]
    assert "2025-11-25" not in data["supported"] and STATELESS_VERSION in data["supported"]


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "subscriptions/listen", "no/such"])
def test_methods_that_the_stateless_revision_lacks_or_we_do_not_offer_are_unknown(method):
    assert code(ask(session(), method, _meta=meta())) == jsonrpc.METHOD_NOT_FOUND


def test_initialize_is_the_handshake_whatever_its_meta_says():
    answer = ask(session(), "initialize", protocolVersion="2025-06-18", _meta=meta("1900-01-01"))
    assert result(answer)["protocolVersion"] == "2025-06-18"


# -- calls


def test_a_call_carries_what_the_request_said():
    made = session("2025-11-25")
    call = ask(made, "tools/call", name="fixture_find", arguments={"query": "x"})
    assert call == Call(1, OPERATIONS[0], {"query": "x"}, None, False, "tester")
    call = ask(made, "tools/call", name="fixture_list", _meta=meta(**{META + "clientInfo": {"name": "other"}}))
    assert (call.arguments, call.stateless, call.client) == ({}, True, "other")
    assert ask(made, "tools/call", name="fixture_list", arguments=None).arguments == {}


TOKENS = [(0, 0), ("", ""), ("t", "t"), (1.5, 1.5), (None, None), (True, None), ([], None)]


@pytest.mark.parametrize("token, kept", TOKENS)
def test_zero_is_a_progress_token_and_true_is_none(token, kept):
    assert ask(session(), "tools/call", name="fixture_list", _meta={"progressToken": token}).token == kept


def test_the_catalogue_is_not_loaded_for_the_handshake():
    def never():
        raise AssertionError("loaded")

    made = Session(never, "1")
    ask(made, "initialize", protocolVersion="2025-11-25")
    ask(made, "ping")
    ask(made, "server/discover", _meta=meta())
    with pytest.raises(AssertionError):
        ask(made, "tools/list")


def test_every_tool_entry_is_what_the_strictest_client_takes():
    for operation in OPERATIONS:
        entry = tool_entry(operation)
        assert entry["inputSchema"]["type"] == entry["outputSchema"]["type"] == "object"
        assert "required" not in entry["outputSchema"]  # one SDK checks failures against it too
        assert set(entry["annotations"]) >= {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


# -- one worker

Sent = namedtuple("Sent", "value notes")


def carry_out(tool, _token=None, _worker=None, **arguments):
    """The answer that a worker gives to one call, and the progress notes before it."""
    made, notes, lines = session("2025-11-25"), [], []
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": _token}}
    worker = _worker or Worker(App, made.call_answer, notes.append)
    worker.carry_out(Task(ask(made, "tools/call", **params), lines.append))
    (line,) = lines
    return Sent(json.loads(line)["result"], [json.loads(note)["params"] for note in notes])


def test_text_and_structured_content_each_tell_the_whole_result():
    value = carry_out("fixture_find", query="记忆", tags='["a"]').value
    assert value["content"] == [{"type": "text", "text": "记忆 5 a"}]
    assert value["structuredContent"]["text"] == "记忆 5 a" and "isError" not in value


# (how, slug, words the text must have)
FAILURES = [
    ("store", "store", "it is so\nwhy: because\ndo: do that"),
    ("missing", "not-found", "it is so"),
    ("crash", "internal", "KeyError"),
    ("exit", "internal", "SystemExit"),
    ("nan", "internal", "ValueError"),
    ("huge", "too-long", "ask for less"),
    ("nonsense", "usage", "must be one of"),
]


@pytest.mark.parametrize("how, slug, words", FAILURES)
def test_a_failed_call_is_a_result_that_says_what_to_do(how, slug, words, capfd):
    value = carry_out("fixture_fail", how=how).value
    assert value["isError"] is True and value["structuredContent"]["error"]["slug"] == slug
    assert words in value["content"][0]["text"]
    told = json.dumps(value) + capfd.readouterr().err
    assert "Traceback" not in told and "sesame" not in told


def test_a_fault_is_told_on_stderr_in_one_line(capfd):
    carry_out("fixture_fail", how="crash")
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("memory mcp: fixture_fail: KeyError at fixture_server.py:")


def test_the_app_is_opened_anew_after_a_failure_of_the_index_and_kept_otherwise():
    made = session()
    worker = Worker(App, made.call_answer, None)

    def number():
        return carry_out("fixture_list", _worker=worker).value["structuredContent"]["app"]

    first = number()
    for how in ("missing", "nonsense"):
        carry_out("fixture_fail", _worker=worker, how=how)
    assert number() == first
    for how in ("store", "crash"):
        before = number()
        carry_out("fixture_fail", _worker=worker, how=how)
        assert number() > before


def test_a_client_without_a_name_does_not_inherit_the_last_ones():
    made = session()
    worker = Worker(App, made.call_answer, None)
    for meta_client, wanted in (({"name": " first "}, "first"), (None, "nobody"), ({"name": 7}, "nobody")):
        lines = []
        call = ask(made, "tools/call", name="fixture_list", _meta=meta(**{META + "clientInfo": meta_client}))
        worker.carry_out(Task(call, lines.append))
        assert json.loads(lines[0])["result"]["structuredContent"]["client"] == wanted


def test_progress_rises_and_is_not_sent_without_a_token():
    notes = carry_out("fixture_slow_read", _token=0, seconds=1).notes
    values = [note["progress"] for note in notes]
    assert len(values) > 2 and values == sorted(set(values))
    assert {note["progressToken"] for note in notes} == {0} and {note["total"] for note in notes} == {100}
    assert carry_out("fixture_slow_read", seconds=1).notes == []


def test_progress_keeps_to_rising_numbers_a_pause_and_the_end():
    sent, now = [], [0.0]
    task = Task(ask(session(), "tools/call", name="fixture_list", _meta={"progressToken": "t"}), sent.append)
    told = Progress(task, lambda line: sent.append(json.loads(line)["params"]["progress"]), lambda: now[0])
    for moment, done in [(0, 1), (0.01, 2), (1, 1), (2, 3), (3, 3), (4, float("nan")), (5, "6"), (6, 7.5)]:
        now[0] = moment
        told(done, 10, "so far")
    task.finish(None)
    now[0] = 7
    told(9)
    assert sent == [1, 3, 7.5, None]


# -- the order of calls

Row = namedtuple("Row", "waiting running lane wanted")

# W a write, R a read, in order of arrival; a running task is followed by the seconds it has run.
ORDER = [
    Row("W", [], "W", 0),
    Row("R", [], "R", 0),
    Row("R", [], "W", None),
    Row("WR", [], "R", None),  # a search behind a capture waits for it
    Row("RW", [], "W", None),  # and a capture for the search before it
    Row("RW", [], "R", 0),
    Row("R", [("W", 0.5)], "R", None),
    Row("R", [("W", 1.5)], "R", 0),  # but not for a rebuild
    Row("WR", [("W", 1.5)], "R", 1),
    Row("WR", [("W", 0.5)], "R", None),
    Row("R", [("R", 0.5)], "R", 0),
    Row("W", [("R", 0.5)], "W", None),
    Row("W", [("R", 1.5)], "W", 0),
    Row("RW", [("R", 1.5), ("R", 1.5)], "W", 1),
    Row("RW", [("R", 1.5), ("R", 0.5)], "W", None),
    Row("W", [("W", 0.5)], "W", None),
    Row("W", [("W", 1.5)], "W", 0),  # a capture does not wait for a rebuild either
    Row("", [("W", 9)], "R", None),
]


@pytest.mark.parametrize("row", ORDER, ids=[f"{row.waiting or '-'} {row.running} {row.lane}" for row in ORDER])
def test_calls_keep_their_order_unless_one_takes_long(row):
    def task(letter, started=None):
        made = Task(Call(1, OPERATIONS[0]._replace(read_only=letter == "R"), {}, None, False, ""), None)
        made.started = started
        return made

    waiting = [task(letter) for letter in row.waiting]
    running = [task(letter, 100 - seconds) for letter, seconds in row.running]
    found = next_task(waiting, running, row.lane == "W", 100, patience=1.0)
    assert found is (None if row.wanted is None else waiting[row.wanted])


class Recorder:
    """A worker that notes what it carried out."""

    def __init__(self, done):
        self.done = done

    def carry_out(self, task):
        self.done.append(task.call.id)
        task.finish(b"line")

    def close(self):
        self.done.append("closed")


def test_lanes_carry_out_writes_in_order_and_close_their_workers():
    done = []
    lanes = Lanes(lambda: Recorder(done))
    write = OPERATIONS[0]._replace(read_only=False)
    for number in range(20):
        lanes.submit(Call(number, write, {}, None, False, ""), lambda line: None)
    while lanes.unfinished():
        pass
    assert lanes.close(2)
    assert done[:20] == [*range(20)] and set(done[20:]) == {"closed"}


def test_a_write_passes_one_that_takes_long():
    started, go_on, done = threading.Event(), threading.Event(), []

    class Slow(Recorder):
        def carry_out(self, task):
            if task.call.id == "rebuild":
                started.set()
                go_on.wait(20)
            super().carry_out(task)

    lanes = Lanes(lambda: Slow(done))
    write = OPERATIONS[0]._replace(read_only=False)
    lanes.submit(Call("rebuild", write, {}, None, False, ""), lambda line: None)
    assert started.wait(20)
    lanes.submit(Call("capture", write, {}, None, False, ""), lambda line: go_on.set())
    assert go_on.wait(20), "the capture waited for the rebuild"
    while lanes.unfinished():
        pass
    assert lanes.close(2) and done[:2] == ["capture", "rebuild"]


def test_a_withdrawn_task_that_waits_is_never_carried_out_and_answers_nothing():
    done, lines = [], []
    lanes = Lanes(lambda: Recorder(done))
    slow, write = OPERATIONS[0], OPERATIONS[0]._replace(read_only=False)
    blocker = Task(Call("b", slow, {}, None, False, ""), None)
    blocker.started = lanes._clock()
    lanes._running.append(blocker)  # a read that has just begun holds the write back
    lanes.submit(Call(7, write, {}, None, False, ""), lines.append)
    lanes.cancel("7")
    lanes.cancel(7)
    assert lines == [None] and lanes.unfinished() == 1
    lanes._leave(blocker)
    assert lanes.close(2) and 7 not in done
