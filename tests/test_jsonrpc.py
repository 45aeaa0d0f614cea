"""mcore.jsonrpc: what a line says, and what a message looks like as a line."""

import json
import random

import pytest

from mcore import jsonrpc
from mcore.jsonrpc import Invalid, Lines, Notification, Request, encode, read

PARSE, INVALID, PARAMS = jsonrpc.PARSE_ERROR, jsonrpc.INVALID_REQUEST, jsonrpc.INVALID_PARAMS

# (line, message)
WELL_FORMED = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(1, "ping", {})),
    (b' \t{"jsonrpc" : "2.0", "id" : 2 , "method":"ping" } \r', Request(2, "ping", {})),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":3,"method":"ping"}', Request(3, "ping", {})),
    (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":null}', Request(4, "ping", {})),
    (b'{"jsonrpc":"2.0","id":5,"method":"","params":{"a":[1]}}', Request(5, "", {"a": [1]})),
    (b'{"jsonrpc":"2.0","id":6,"method":"m","result":1}', Request(6, "m", {})),
    ('{"jsonrpc":"2.0","id":7,"method":"记\u2028\x85忆"}'.encode(), Request(7, "记\u2028\x85忆", {})),
    (b'{"jsonrpc":"2.0","id":8,"method":"m","params":{"a":"\\ud83d\\ude80"}}', Request(8, "m", {"a": "🚀"})),
    (b'{"jsonrpc":"2.0","method":"notifications/x"}', Notification("notifications/x", {})),
    (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}', Notification("tools/call", {"name": "x"})),
    (b'{"jsonrpc":"2.0","method":"notifications/x","params":[]}', Notification("notifications/x", {})),
    (b'{"method":"notifications/x"}', Notification("notifications/x", {})),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', None),
    (b'{"jsonrpc":"2.0","id":"zz","error":{"code":-1,"message":"x"}}', None),
    (b'{"result":{}}', None),
    (b"", None),
    (b" \t\r", None),
]


@pytest.mark.parametrize("line, message", WELL_FORMED)
def test_a_well_formed_line_is_read(line, message):
    assert read(line) == message


# (line, id of the error, code)
MALFORMED = [
    (b"hello", None, PARSE),
    (b"{'a':1}", None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"pi\tng\x01"}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff\xfe\x80"}}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xed\xa0\x80"}}', None, PARSE),
    (b"\x00", None, PARSE),
    (b"\x0b", None, PARSE),
    (b"[" * 100_000, None, PARSE),
    (b'{"a":' * 100_000, None, PARSE),
    (None, None, INVALID),
    (b"42", None, INVALID),
    (b'"ping"', None, INVALID),
    (b"null", None, INVALID),
    (b"true", None, INVALID),
    (b"{}", None, INVALID),
    (b'{"jsonrpc":"2.0"}', None, INVALID),
    (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":"' + b"k" * 10_001 + b'","method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":11}', 11, INVALID),
    (b'{"jsonrpc":"2.0","id":12,"method":7}', 12, INVALID),
    (b'{"jsonrpc":"2.0","id":13,"method":null}', 13, INVALID),
    (b'{"jsonrpc":"1.0","id":14,"method":"ping"}', 14, INVALID),
    (b'{"id":"15","method":"ping"}', "15", INVALID),
    (b'{"jsonrpc":2.0,"id":16,"method":"ping"}', 16, INVALID),
    (b'{"jsonrpc":"2.0","id":17,"method":"ping","params":[1]}', 17, PARAMS),
    (b'{"jsonrpc":"2.0","id":18,"method":"ping","params":"x"}', 18, PARAMS),
    (b'{"jsonrpc":"2.0","id":19,"method":"ping","params":0}', 19, PARAMS),
]


@pytest.mark.parametrize("line, id_, code", MALFORMED, ids=[repr(row[0])[:50] for row in MALFORMED])
def test_a_malformed_line_gets_the_code_that_json_rpc_names(line, id_, code):
    message = read(line)
    assert isinstance(message, Invalid)
    assert (message.id, message.code) == (id_, code)


def test_no_error_repeats_what_the_line_held():
    secret = b"hunter2"
    for line in (secret, b'{"a":"' + secret + b'"', b'["' + secret + b'"] x', b'"' + secret + b'\xff"', secret * 1000):
        assert "hunter2" not in read(line).message


IDS = [0, -1, 2**53 - 1, 2**63 + 1, 1.5, "", "1", "k" * 2000, "日本語-é", "🧠", "a\u2028b\x85c", "\0\t\"\\"]


@pytest.mark.parametrize("id_", IDS)
def test_an_id_comes_back_with_its_type_and_value(id_):
    request = read(json.dumps({"jsonrpc": "2.0", "id": id_, "method": "m"}).encode())
    answered = json.loads(encode(jsonrpc.result(request.id, {})))["id"]
    assert (type(answered), answered) == (type(id_), id_)


def test_a_batch_is_a_list_of_messages_in_their_order():
    line = b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},7,{"id":1,"result":0},[]]'
    first, second, third, fourth, fifth = read(line)
    assert (first, second, fourth) == (Request(1, "a", {}), Notification("b", {}), None)
    assert third.code == fifth.code == INVALID
    assert read(b"[]") == []


def test_lone_surrogates_are_replaced_everywhere_but_in_an_id():
    params = rb'{"\ud800":["\uD83D",{"id":"x\udc00"}],"b":"\ud83d\ude80"}'
    line = rb'{"jsonrpc":"2.0","id":1,"method":"a\udfff","params":' + params + b"}"
    assert read(line) == Request(1, "a\ufffd", {"\ufffd": ["\ufffd", {"id": "x\ufffd"}], "b": "🚀"})
    assert read(rb'[{"jsonrpc":"2.0","id":"\ud800","method":"m"}]')[0].code == INVALID


def test_no_line_of_any_bytes_makes_read_raise():
    random.seed(7)
    seed = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"q":"\\ud800"}}}'
    for _ in range(3000):
        line = bytearray(seed)
        for _ in range(random.randrange(1, 6)):
            line[random.randrange(len(line))] = random.randrange(256)
        message = read(bytes(line[: random.randrange(len(line) + 1)]))
        assert message is None or isinstance(message, (Request, Notification, Invalid, list))


# (stream, lines, rest)
STREAMS = [
    (b"", [], b""),
    (b"a\n", [b"a"], b""),
    (b"a\nb", [b"a"], b"b"),
    (b"a\r\n\nb\n", [b"a\r", b"", b"b"], b""),
    ("记\u2028忆\x85\x0b\x0c\n".encode(), ["记\u2028忆\x85\x0b\x0c".encode()], b""),
    (b"12345678\n123456789\n1\n123456789", [b"12345678", None, b"1"], None),
]


@pytest.mark.parametrize("stream, lines, rest", STREAMS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_is_cut_at_line_feeds_alone_however_it_arrives(stream, lines, rest, size):
    cutter, found = Lines(limit=8), []
    if b"\xe2" in stream:
        cutter = Lines()
    for start in range(0, len(stream), size):
        found += cutter.feed(stream[start : start + size])
    assert (found, cutter.rest()) == (lines, rest)


def test_a_line_that_is_too_long_is_not_kept_in_memory():
    cutter = Lines(limit=1000)
    for _ in range(100):
        cutter.feed(b"x" * 1000)
    assert cutter._pieces == []
    assert cutter.feed(b"\nnext\n") == [None, b"next"]


@pytest.mark.parametrize(
    "text, inside",
    [
        ("记忆", "记忆".encode()),
        ("a\u2028b\u2029c\x85d", b"a\\u2028b\\u2029c\\u0085d"),
        ("\ud800x\udfff", "\ufffdx\ufffd".encode()),
        ("\n\r\x0b\x0c\x00", b"\\n\\r\\u000b\\f\\u0000"),
    ],
)
def test_an_answer_is_one_line_of_utf8_that_every_reader_splits_alike(text, inside):
    line = encode(jsonrpc.result(1, {"text": text}))
    assert inside in line
    assert line.endswith(b"}\n") and len(line.decode("utf-8").splitlines()) == 1


def test_an_answer_with_a_number_that_is_no_json_is_refused():
    with pytest.raises(ValueError):
        encode(jsonrpc.result(1, {"score": float("nan")}))


def test_an_error_has_data_only_when_there_is_some():
    assert jsonrpc.error(1, -1, "m") == {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "m"}}
    assert jsonrpc.error(1, -1, "m", {"a": 1})["error"]["data"] == {"a": 1}
