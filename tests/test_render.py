"""mcore.render: a result as a dict, as JSON, and as text that cannot drive a terminal."""

import json
from collections import namedtuple

import pytest

from mcore.render import for_terminal, in_line, plain, scrub, to_json

Inner = namedtuple("Inner", "a b")
Outer = namedtuple("Outer", "name items table nothing")


def test_result_tuples_become_dicts_all_the_way_down():
    value = Outer("x", [Inner(1, (2, 3)), Inner(None, [])], {"k": Inner(True, 0.5)}, None)
    assert plain(value) == {
        "name": "x",
        "items": [{"a": 1, "b": [2, 3]}, {"a": None, "b": []}],
        "table": {"k": {"a": True, "b": 0.5}},
        "nothing": None,
    }
    assert list(plain(value)) == ["name", "items", "table", "nothing"]


def test_half_characters_never_leave_in_values_or_keys():
    value = {"\ud800k": ["\udcff", {"x": "a\ud83db"}]}
    assert plain(value) == {"\ufffdk": ["\ufffd", {"x": "a\ufffdb"}]}
    assert json.loads(to_json(value).encode("utf-8")) == plain(value)
    assert scrub("ok 中文 🚀") == "ok 中文 🚀"


def test_keys_that_are_no_text_become_text():
    assert plain({1: "a", None: "b", 2.5: "c"}) == {"1": "a", "None": "b", "2.5": "c"}


SCREEN = [
    ("plain 中文 🚀 é\ttab\nline", "plain 中文 🚀 é\ttab\nline"),
    ("\x1b[31mred", "\ufffd[31mred"),
    ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
    ("\x9b31m \x90 \x85 \x7f \x00 \x08", "\ufffd31m \ufffd \ufffd \ufffd \ufffd \ufffd"),
    ("over\rwritten", "over\ufffdwritten"),
    ("dos\r\nline", "dos\nline"),
    ("\u202egnp.exe \u2066x\u2069 \u200e\u200f\u061c", "\ufffdgnp.exe \ufffdx\ufffd \ufffd\ufffd\ufffd"),
    ("emoji \u200d joiner stays", "emoji \u200d joiner stays"),
    ("half \udcff", "half \ufffd"),
]


@pytest.mark.parametrize("text, shown", SCREEN)
def test_text_cannot_drive_a_terminal(text, shown):
    assert for_terminal(text) == shown


@pytest.mark.parametrize("mark", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_a_name_with_a_line_break_stays_on_its_line(mark):
    assert len(in_line(f"a{mark}b").splitlines()) == 1
    assert len(for_terminal(in_line(f"a{mark}b")).splitlines()) == 1


def test_json_keeps_every_character_and_shows_none_that_drives_a_terminal():
    text = "".join(map(chr, range(0x500))) + "\u200e\u202e\u2066\u2028\ufeff中文🚀"
    shown = to_json({"text": text, text: 1})
    assert json.loads(shown) == {"text": text, text: 1}
    assert for_terminal(shown) == shown
    assert "中文🚀" in shown


def test_json_is_one_object_in_the_order_of_the_result():
    assert to_json(Inner(1, "b")) == '{\n  "a": 1,\n  "b": "b"\n}'
