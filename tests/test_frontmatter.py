"""Frontmatter: every choice of mcore.frontmatter, one table each, and what no input may do to it."""

import calendar
import datetime
import json
import os
import random
import time

import pytest

from mcore.frontmatter import (
    Split,
    _locate,
    _located_quickly,
    boolean,
    compose,
    lookup,
    number,
    parse,
    searchable,
    split,
    tags,
    text_list,
    timestamp,
    unclosed,
)

NOTES = os.path.join(os.path.dirname(__file__), "data", "frontmatter")


def fields(block):
    return parse(f"---\n{block}\n---\n").fields


def toml(block):
    return parse(f"+++\n{block}\n+++\n").fields


# Where the block is

SPLITS = [
    # text, block, style, body
    ("---\na: 1\n---\nbody", "a: 1\n", "yaml", "body"),
    ("---\na: 1\n...\nbody", "a: 1\n", "yaml", "body"),
    ("---\na: 1\n---", "a: 1\n", "yaml", ""),
    ("---\n---\nbody", "", "yaml", "body"),
    ("---\n# only a comment\n---\nbody", "# only a comment\n", "yaml", "body"),
    ("--- \na: 1\n---\t\nbody", "a: 1\n", "yaml", "body"),
    ("\ufeff---\na: 1\n---\nbody", "a: 1\n", "yaml", "body"),
    ("\n  \n---\na: 1\n---\nbody", "a: 1\n", "yaml", "body"),
    ("---\r\na: 1\r\n---\r\n\r\nbody\r\n", "a: 1\r\n", "yaml", "body\r\n"),
    ("---\ra: 1\r---\rbody\r", "a: 1\r", "yaml", "body\r"),
    ("---\na: |\n  ---\n---\nbody", "a: |\n  ---\n", "yaml", "body"),
    ("---\na: 1\n---\n\n\nbody", "a: 1\n", "yaml", "\nbody"),
    ("---\na: 1\n---\n \t\nbody", "a: 1\n", "yaml", "body"),
    ("---\na: 1\n---\n---\nb: 2\n---\n", "a: 1\n", "yaml", "---\nb: 2\n---\n"),
    ('---\n{"a": 1}\n---\nbody', '{"a": 1}\n', "json", "body"),
    ("---\n{a: 1,\n b}\n---\nbody", "{a: 1,\n b}\n", "yaml", "body"),
    ("---json\n{}\n---\nbody", "{}\n", "json", "body"),
    ('{"a": 1}\nbody', '{"a": 1}', "json", "body"),
    ('\ufeff\n{\n "a": 1\n}\n\nbody', '{\n "a": 1\n}', "json", "body"),
    ("+++\na = 1\n+++\nbody", "a = 1\n", "toml", "body"),
    ("\ufeff+++ \r\n[a]\r\n+++\r\nbody", "[a]\r\n", "toml", "body"),
    ("+++\n# only a comment\n+++\nbody", "# only a comment\n", "toml", "body"),
    ("---\n@odd first line\na: 1\nb: 2\n---\nbody", "@odd first line\na: 1\nb: 2\n", "yaml", "body"),
    ('---\na: "x\ny\nz"\n---\nbody', 'a: "x\ny\nz"\n', "yaml", "body"),
    ("---\na: [\nx,\ny,\n]\n---\nbody", "a: [\nx,\ny,\n]\n", "yaml", "body"),
    ("---\na: x\n\nloose text\nb: y\n---\nbody", "a: x\n\nloose text\nb: y\n", "yaml", "body"),
    ("---\n- a\n---\nb: 1\n---\n", None, None, None),
]


@pytest.mark.parametrize(("text", "block", "style", "body"), SPLITS)
def test_the_block_is_found_and_the_body_keeps_its_characters(text, block, style, body):
    found = split(text)
    assert found == Split(block, style, text if body is None else body, found.body_start)
    assert text[found.body_start :] == found.body == parse(text).body


WHOLE_BODIES = [
    "",
    "plain text",
    "---",
    "---\n",
    "---\na: 1\n",
    "---\na: 1\n----\n",
    " ---\na: 1\n---\n",
    "----\na: 1\n----\n",
    "text\n---\na: 1\n---\n",
    "```\n---\na: 1\n---\n```\n",
    "<!-- x -->\n---\na: 1\n---\n",
    "---js\nmodule.exports = { a: 1 }\n---\nbody",
    "---\nJust some prose between two rules.\nIt goes on.\n---\nmore",
    "---\n- a list\n- between rules\n---\n",
    "---\n**Author**: me\n**Date**: today\n---\n",
    "---\n> quoted: text\n---\n",
    "---\n1. first: step\n---\n",
    "---\n<div class=a>note: x</div>\n---\n",
    "---\nIn this note: all is prose.\nIt has more lines.\nAnd more.\n---\n",
    "---\nSummary: a rule came first.\n\n## Heading\n\nThen prose.\nAnd more.\n\n---\nmore",
    "+++\na = 1\n",
    "+++\nprose\n+++\n",
    "title:: a Logseq page\ntags:: b\n\n- block",
    "title: no fence\n\nbody",
    "{{ shortcode }}\n",
    "{}\nbody",
    '{"a": 1} and text behind it',
    '{"a": 1',
    '["a"]\n',
    "; not frontmatter",
]


@pytest.mark.parametrize("text", WHOLE_BODIES)
def test_what_is_no_frontmatter_stays_body_to_the_last_character(text):
    assert split(text) == Split(None, None, text, 0)
    assert parse(text) == ({}, text, None, [])


def test_a_bom_is_not_part_of_a_body_without_frontmatter():
    assert split("\ufeffbody") == Split(None, None, "body", 1)


# What the fields are

TYPED = [
    ("a: true\nb: False\nc: TRUE\nd: fALSE", {"a": True, "b": False, "c": True, "d": False}),
    ("a:\nb: ~\nc: null\nd: NULL\ne: # comment", dict.fromkeys("abcde")),
    ("a: yes\nb: No\nc: on\nd: off\ne: y", {"a": "yes", "b": "No", "c": "on", "d": "off", "e": "y"}),
    ("a: 8.10\nb: 007\nc: 1_000\nd: 0x1F\ne: 1e3\nf: 12:30", {
        "a": "8.10", "b": "007", "c": "1_000", "d": "0x1F", "e": "1e3", "f": "12:30"}),
    ("a: 2024-01-05\nb: 2024-13-45\nc: 2024-01-05T10:00:00Z\nd: 2024/1/5 10:30", {
        "a": "2024-01-05", "b": "2024-13-45", "c": "2024-01-05T10:00:00Z", "d": "2024/1/5 10:30"}),
    ("a: 'true'\nb: \"null\"\nc: '~'\nd: ''", {"a": "true", "b": "null", "c": "~", "d": ""}),
    ("on: push\ntrue: x\n2024: y\nnull: z", {"on": "push", "true": "x", "2024": "y", "null": "z"}),
    ("a: .inf\nb: .NaN\nc: +1\nd: -", {"a": ".inf", "b": ".NaN", "c": "+1", "d": "-"}),
]  # fmt: skip

SHAPES = [
    ("tags:\n- a\n- b\nx: 1", {"tags": ["a", "b"], "x": "1"}),
    ("tags:\n    - a\n    - b\nx: 1", {"tags": ["a", "b"], "x": "1"}),
    ("tags:\n  - \nx:\n- ~\n- a\n-\n- # none", {"tags": [], "x": ["a"]}),
    ("a: []\nb: {}\nc: [ ]\nd: [null, ~, x, ]", {"a": [], "b": {}, "c": [], "d": ["x"]}),
    ("a: [x, 'y, z', \"w\", [v], {u: 1}, t: 2]", {"a": ["x", "y, z", "w", ["v"], {"u": "1"}, {"t": "2"}]}),
    ("a: [x, # one\n  y\n  z,\n]\nb: 1", {"a": ["x", "y z"], "b": "1"}),
    ('a: {b: c, "d": [e], f, g: , h: http://x/y}', {
        "a": {"b": "c", "d": ["e"], "f": None, "g": None, "h": "http://x/y"}}),
    ("a: [[Note]]\nb: [x:y, true, 1]", {"a": [["Note"]], "b": ["x:y", True, "1"]}),
    ("a:\n  b:\n    c: 1\n  d: 2\ne: 3", {"a": {"b": {"c": "1"}, "d": "2"}, "e": "3"}),
    ("a:\n  - b: 1\n    c: 2\n  -   d: 3\n      e: 4", {"a": [{"b": "1", "c": "2"}, {"d": "3", "e": "4"}]}),
    ("a:\n  - - x\n    - y\n  - - z", {"a": [["x", "y"], ["z"]]}),
    ("a:\n-\n  b: 1\n- c:\n  - d", {"a": [{"b": "1"}, {"c": ["d"]}]}),
    ("a: one\n  two\n\n  three: no\nb: 1", {"a": "one two\nthree: no", "b": "1"}),
    ("a:\n  text below\n  goes on\nb: 1", {"a": "text below goes on", "b": "1"}),
    ("a: x # comment\n# comment\nb: y#z\nc: '#d'", {"a": "x", "b": "y#z", "c": "#d"}),
    ("a: http://x/y:1\nb: 10:30\nc: x :y", {"a": "http://x/y:1", "b": "10:30", "c": "x :y"}),
    ("'a b': 1\n\"c\\td\": 2\ne f: 3\n标题: 4\n🔑: 5\ng : 6\nh:: 7", {
        "a b": "1", "c\td": "2", "e f": "3", "标题": "4", "🔑": "5", "g": "6", "h:": "7"}),
    ("a: 标题：值\nb：c: d", {"a": "标题：值", "b：c": "d"}),
    ("a: \u3000wide\u00a0\nb:\t\ttabbed\t", {"a": "\u3000wide\u00a0", "b": "tabbed"}),
    ("  a: 1\n  b: 2", {"a": "1", "b": "2"}),
    ("  a: 1\nb: 2\n c: [3]\n  d: 4", {"a": "1", "b": "2 c: [3] d: 4"}),
    ("a: \"x\\n\\u4e2d\\U0001F600\\x41\\/\\\\\"", {"a": "x\n中😀A/\\"}),
    ('a: "\\ud83d\\ude00 \\ud800"', {"a": "😀 \ufffd"}),
    ("a: 'it''s\n  folded\n\n  twice '\nb: 1", {"a": "it's folded\ntwice ", "b": "1"}),
    ('a: "folded  \n  here \\\n  joined\\n\n  x"\nb: 1', {"a": "folded here joined\n x", "b": "1"}),
    ('"tags": [a]\n"x": {"y":1}', {"tags": ["a"], "x": {"y": "1"}}),
    ("a: 1\na: 2", {"a": "2"}),
    ("{a: 1,\n b: [c]}", {"a": "1", "b": ["c"]}),
]  # fmt: skip

BLOCK_TEXTS = [
    ("a: |\n  x\n   y\n\n  z\n\nb: 1", {"a": "x\n y\n\nz\n", "b": "1"}),
    ("a: |-\n  x\n\nb: 1", {"a": "x", "b": "1"}),
    ("a: |+\n  x\n\n\nb: 1", {"a": "x\n\n\n", "b": "1"}),
    ("a: >\n  x\n  y\n\n  z\n   w\n  v\n", {"a": "x y\nz\n w\nv\n"}),
    ("a: >- # comment\n  x: 1\n  # no comment\n", {"a": "x: 1 # no comment"}),
    ("a: |2-\n   x\n  y", {"a": " x\ny"}),
    ("a:\n  - |\n    x\n  - >-\n    y\n    z", {"a": ["x\n", "y z"]}),
    ("a: |\nb: >-\nc: |+\n\nd: 1", {"a": "", "b": "", "c": "\n", "d": "1"}),
    ("a: > quoted\nb: |x| y", {"a": "> quoted", "b": "|x| y"}),
    ("a: |\n\tx\n\t  y", {"a": "x\n  y\n"}),
]

REPAIRS = [
    ("globs: **/*.ts\nx: *.py, *.md # both", {"globs": "**/*.ts", "x": "*.py, *.md # both"}),
    ("a: {{date}}\nb: {{ .Title | x }}\nc: [{{d}}]", {
        "a": "{{date}}", "b": "{{ .Title | x }}", "c": "[{{d}}]"}),
    ("a: Triggers on: 'x', 'y'\nb: fix: issue #12", {"a": "Triggers on: 'x', 'y'", "b": "fix: issue #12"}),
    ("a: @me\nb: `code`\nc: 50%\nd: %x\ne: !important\nf: &anchor\ng: *alias", {
        "a": "@me", "b": "`code`", "c": "50%", "d": "%x", "e": "!important", "f": "&anchor", "g": "*alias"}),
    ("a:\n- @me\n- `code`\n- **bold**: x\n- !t y", {"a": ["@me", "`code`", "**bold**: x", "!t y"]}),
    ('a: "say "hi" now"\nb: \'it\'s\'\nc: "C:\\path"', {
        "a": '"say "hi" now"', "b": "'it's'", "c": '"C:\\path"'}),
    ('a: "open\nb: [x, y\nc: {z\nd: 1', {"a": '"open', "b": "[x, y", "c": "{z", "d": "1"}),
    ("a: [x] - y\nb: - z\nc: ,w", {"a": "[x] - y", "b": "- z", "c": ",w"}),
    ("a: x\n\nmore at the margin\n\nand more\nb: 1", {"a": "x more at the margin\nand more", "b": "1"}),
    ("a:\nloose text\nb: 1", {"a": "loose text", "b": "1"}),
    ("a: 'x'\n  more\nb: |\n    y\n  z\nc: 1", {"a": "x more", "b": "y\nz", "c": "1"}),
    ("a: [x]\n  b: 1\n c: 2\nd: 3", {"a": ["x"], "b": "1", "c": "2", "d": "3"}),
    ("a: x\n- y\n- z", {"a": ["x", "y", "z"]}),
    ("a: [x]\n  - y\nb: 1", {"a": ["x", "y"], "b": "1"}),
    ("a:\n    - x\n  - y\nb: 1", {"a": ["x", "y"], "b": "1"}),
    ("a:\n  - 'x'\n  y\nb: 1", {"a": ["x", "y"], "b": "1"}),
    ("a:\n  - 'x'\n     y\n    - z\nb: 1", {"a": ["x", "y", "z"], "b": "1"}),
    ("a:\n\t- x\n\t- y\nb:\n\tc: 1\n\td: 2", {"a": ["x", "y"], "b": {"c": "1", "d": "2"}}),
    ("a:\n  - x\n\t- y\nb:\n  c: 1\n\td: 2", {"a": ["x", "y"], "b": {"c": "1", "d": "2"}}),
    ("a: [\n\t\"x\",\n\ty\n]", {"a": ["x", "y"]}),
    ("a:x\n标签：甲, 乙\nb: http://c", {"a": "x", "标签": "甲, 乙", "b": "http://c"}),
    ("[a]: 1\n@b: 2\n*c: 3\n<<: *d", {"[a]": "1", "@b": "2", "*c": "3", "<<": "*d"}),
    ("a: &x [1]\nb: *x\nc: !!str 1", {"a": "&x [1]", "b": "*x", "c": "!!str 1"}),
]  # fmt: skip


@pytest.mark.parametrize(("block", "expected"), TYPED + SHAPES + BLOCK_TEXTS)
def test_yaml_is_read_as_its_writer_meant_it(block, expected):
    assert fields(block) == expected
    assert parse("---\r\n" + block.replace("\n", "\r\n") + "\r\n---\r\n").fields == expected


@pytest.mark.parametrize(("block", "expected"), REPAIRS)
def test_a_line_that_does_not_parse_costs_no_other_line(block, expected):
    assert fields(f"first: 1\n{block}\n\nlast: [2]") == {"first": "1", **expected, "last": ["2"]}
    assert parse(f"---\nfirst: 1\n{block}\n\nlast: [2]\n---\n").style == "yaml"


WARNED = [
    ("---\na: 1\nb: 2\na: 3\n---\n", [(4, "duplicate key 'a', the last one counts")]),
    ("\n---\na: **/*\n---\n", [(3, "not valid YAML, the rest of the line is the value")]),
    ("---\na: #tag\n---\n", [(2, "what follows the # is a comment")]),
    ("+++\na = 1\na = 2\n+++\n", [(3, "duplicate key 'a', the last one counts")]),
    ("+++\n\nb = x y\n+++\n", [(3, "not valid TOML, the rest of the line is the value")]),
    ('{"a": 1, "a": 2}\n', [(1, "duplicate key 'a', the last one counts")]),
]


@pytest.mark.parametrize(("text", "warnings"), WARNED)
def test_a_warning_names_the_line_of_the_file(text, warnings):
    assert parse(text).warnings == warnings


TOML = [
    ("a = 'x'\nb=\"y\\u00e9\\n\"\nc = true\nd = False", {"a": "x", "b": "yé\n", "c": True, "d": False}),
    ("a = 1\nb = -2.50\nc = 1_000\nd = inf\ne = 0x1F", {
        "a": "1", "b": "-2.50", "c": "1_000", "d": "inf", "e": "0x1F"}),
    ("a = 2024-01-05\nb = 2024-01-05 10:00:00Z # c\nc = 10:00:00", {
        "a": "2024-01-05", "b": "2024-01-05 10:00:00Z", "c": "10:00:00"}),
    ("a = [1, 'b', [true], # c\n  {d = 1}, ]\nb = []", {"a": ["1", "b", [True], {"d": "1"}], "b": []}),
    ("a.b = 1\n'c d'.\"e\" = 2\n[f.g]\nh = 3\n[f]\ni = 4", {
        "a": {"b": "1"}, "c d": {"e": "2"}, "f": {"g": {"h": "3"}, "i": "4"}}),
    ("[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\nb = 3", {"a": [{"b": "1", "c": {"d": "2"}}, {"b": "3"}]}),
    ("a = \"\"\"\nx\\\n   y\n\"z\"\"\"\"\nb = '''l\\\n'''", {"a": 'xy\n"z"', "b": "l\\\n"}),
    ("a = x y # z\nb = 'open\nc = [1,\nd = 2", {"a": "x y # z", "b": "'open", "c": "[1,", "d": "2"}),
    ("a: x\nodd key = 1\nnothing here\nb = 2", {"a": "x", "odd key": "1", "b": "2"}),
    ("[odd name]\na = 1\n[b\nc = 2", {"odd name": {"a": "1"}, "b": {"c": "2"}}),
    ("a = 1\na.b = 2\n[a]\nc = 3\n[[a]]\nd = 4", {"a": [{"d": "4"}]}),
    ('a = "C:\\path"\nb = 1', {"a": '"C:\\path"', "b": "1"}),
]  # fmt: skip


@pytest.mark.parametrize(("block", "expected"), TOML)
def test_toml_is_read_and_an_unreadable_line_costs_only_itself(block, expected):
    assert toml(block) == expected


def note_files():
    return sorted(name for name in os.listdir(NOTES) if name.endswith(".md"))


def test_there_are_note_files():
    assert len(note_files()) >= 5


@pytest.mark.parametrize("name", note_files())
def test_a_note_file_reads_as_the_json_beside_it(name):
    with open(os.path.join(NOTES, name), encoding="utf-8", newline="") as file:
        note = parse(file.read())
    with open(os.path.join(NOTES, name[:-3] + ".json"), encoding="utf-8") as file:
        expected = json.load(file)
    assert note.fields == expected["fields"]
    assert note.style == expected["style"]
    assert tags(note.fields) == expected["tags"]
    assert [line for line, _ in note.warnings] == expected["warned_lines"]


# What the values mean

NUMBERS = [
    ("5", 5), ("-5", -5), ("+5", 5), ("007", 7), ("1_000", 1000), ("8.10", 8.1), ("1.", 1.0), (".5", 0.5),
    ("1e3", 1000.0), ("-2.5E-1", -0.25), (" 3 ", 3), (3, 3), (2.5, 2.5), ("", None), ("1.2.3", None),
    ("0x1F", None), ("1__0", None), ("٣", None), ("1e999", None), ("nan", None), (".inf", None), ("-", None),
    (float("nan"), None), (True, None), (None, None), ([1], None), ("2024-01-05", None), ("9" * 5000, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), NUMBERS)
def test_a_number_is_read_on_demand(value, expected):
    found = number(value)
    assert found == expected and type(found) is type(expected)


BOOLEANS = [
    (True, True), (False, False), ("yes", True), ("ON", True), (" True ", True), ("no", False),
    ("Off", False), ("false", False), ("y", None), ("1", None), ("是", None), ("", None), (None, None),
    ([], None), (1, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), BOOLEANS)
def test_a_field_declared_boolean_reads_yes_and_on(value, expected):
    assert boolean(value) is expected


MIDNIGHT = 1704412800  # 2024-01-05T00:00:00Z, from `date -u -d 2024-01-05 +%s`
TIMES = [
    ("2024-01-05", 0), ("2024-1-5", 0), ("2024/01/05", 0), ("2024/1/5 10:30", 37800), ("2024年1月5日", 0),
    ("2024年01月05日 10:30", 37800), ("2024年1月5日10:30:15", 37815), ("2024-01-05T10:30", 37800),
    ("2024-01-05 10:30:15", 37815), ("2024-01-05t10:30:15.250z", 37815.25), ("2024-01-05T10:30:15Z", 37815),
    ("2024-01-05T10:30:15+08:00", 9015), ("2024-01-05 10:30:15 +0800", 9015), ("2024-01-05 10:30 +08", 9000),
    ("2024-01-05T10:30:15-0530", 57615), (" 2024-01-05 ", 0), ("1704412800", 0), ("1704412800250", 0.25),
    (1704412800, 0), ("2024-01-05T23:59:59", 86399), ("2024-01-05T9:30", 34200),
    ("2024.1.5", 0), ("2024.01.05 10:30", 37800), ("2024. 1. 5.", 0), ("20240105", 0), (20240105, 0),
    ("20240105T103015Z", 37815), ("２０２４－０１－０５　１０：３０", 37800), ("2024年 1月 5日", 0),
    ("2024年1月5号 10点30分", 37800),
    ("2024年1月5日 10時30分15秒", 37815), ("2024년 1월 5일", 0), ("2024년 1월 5일 10시 30분", 37800),
    ("5 January 2024", 0), ("Jan 5, 2024", 0), ("Jan. 5 2024", 0), ("January 5th, 2024 at 10:30 am", 37800),
    ("5th of January 2024", 0), ("05-Jan-2024", 0), ("Friday, January 5, 2024 10:30 PM", 81000),
    ("Fri, 05 Jan 2024 10:30:15 +0800", 9015), ("Fri, 5 Jan 2024 10:30:15 GMT", 37815),
    ("Fri Jan  5 10:30:15 UTC 2024", 37815), ("Fri Jan 5 10:30:15 2024 +0800", 9015), ("2024-01-05 12:15 AM", 900),
    ("2024-01-05 10:30 UTC", 37800), ("2024-01-05 10:30 UTC+8", 9000), ("2024-01-05, 10:30", 37800),
]  # fmt: skip


@pytest.mark.parametrize(("value", "after_midnight"), TIMES)
def test_a_time_is_read_in_every_written_form(value, after_midnight):
    assert timestamp(value) == MIDNIGHT + after_midnight


@pytest.mark.parametrize(
    "value",
    [
        "", "x", "2024", "2024-01", "2024-02-30", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-00",
        "0000-01-01", "2024-01-05T24:00", "2024-01-05T10:60", "2024-01-05T10:30:60", "2024-01-05T10",
        "2024-01-05T10:30+24:00", "2024-01/05", "2024-01-05 noon", "2024010", "12345678901", "٢٠٢٤-٠١-٠٥",
        "2024-01-05\n2024-01-06", "2024-01-05 13:30 PM",
        "2024-01-05 10:30 CST", "5 Janvier 2024", "30 Feb 2024",
        "1/5/2024", "05.01.2024", "Jan 2024", "May", "20241305", "2024.1.5.6", "2024年1月", "2024-01-05 123",
        None, True, [], {}, 1.5, -1, 10**20,
    ],
)  # fmt: skip
def test_what_is_no_time_of_the_calendar_is_none(value):
    assert timestamp(value) is None


def test_a_date_agrees_with_the_calendar_of_the_standard_library():
    for ordinal in random.Random(5).sample(range(1, 3652060), 500):
        date = datetime.date.fromordinal(ordinal)
        assert timestamp(date.isoformat()) == calendar.timegm(date.timetuple())


TAGS = [
    ({"tags": ["a", "b"]}, ["a", "b"]),
    ({"tags": "a, b，c、d"}, ["a", "b", "c", "d"]),
    ({"tags": "machine learning"}, ["machine learning"]),
    ({"tags": "#a #b/c"}, ["a", "b/c"]),
    ({"tags": "#a b"}, ["a b"]),
    ({"tags": "#a #b, c d"}, ["a", "b", "c d"]),
    ({"tags": ["#a", "x, y", "two words", "#", ""]}, ["a", "x, y", "two words"]),
    ({"tags": ["Linux", "linux", "LINUX"], "Tag": "linux, bsd"}, ["Linux", "bsd"]),
    ({"category": "e", "TAGS": "b", "tag": ["c"], "Categories": ["d", "B"], "keywords": "k"}, list("bckde")),
    ({"topics": "t", "labels": ["l"], "title": "no"}, ["t", "l"]),
    ({"tags": True}, ["true"]),
    ({"tags": ["2024", False, "1.5", None]}, ["2024", "false", "1.5"]),
    ({"tags": 7}, ["7"]),
    ({"tags": ["cafe\u0301", "caf\u00e9"]}, ["caf\u00e9"]),
    ({"tags": [["a"], ["b", ["c"]]]}, ["a", "b", "c"]),
    ({"tags": None, "tag": "", "keywords": []}, []),
    ({}, []),
]


@pytest.mark.parametrize(("found", "expected"), TAGS)
def test_tags_are_the_union_of_their_keys(found, expected):
    assert tags(found) == expected


def test_a_text_list_is_a_list_whatever_was_written():
    assert text_list(None) == []
    assert text_list(" one, two ") == ["one, two"]
    assert text_list(["a", None, True, ["b"], " "]) == ["a", "true", "b"]


def test_lookup_ignores_case_and_prefers_the_exact_key():
    found = {"Title": "a", "TITLE": "b", "名": "c", "date": None}
    assert lookup(found, "TITLE") == "b"
    assert lookup(found, "none", "title") in ("a", "b")
    assert lookup(found, "名") == "c"
    assert lookup(found, "date", "Title") is None
    assert lookup(found, "absent") is None


def test_searchable_holds_the_texts_and_not_the_bookkeeping():
    found = fields(
        "title: T1\ntags: [t2]\nkind: k3\nsource: s4\ncreated: 2024-01-05\nUpdated: u5\n"
        "description: 说明 text\ndraft: true\nmeta:\n  owner: 王\n  list: [x, {y: z}]\naliases: [别名]"
    )
    assert searchable(found) == "说明 text\n王\nx\nz\n别名"
    assert searchable({}) == ""


# Writing

NASTY = [
    "", " ", "a", "中文 title", "a b", " lead", "trail ", "\ttab", "a\nb", "a\n", "\n", "\r\n", "a\rb",
    "\0", "\x07", "\x1b[0m", "\x7f", "\x85", "a\x85b", "\u2028", "\u2029", "\u00a0", "\u3000x\u3000",
    "\ufeff", "\uffff", "\u200b", "😀", "a: b", "a:", ":a", "a :b", "a #b", "#a", "a#b", "- a", "-", "---",
    "...", "? a", "?", "[a]", "[[Note]]", "{a}", "{{date}}", "]", "}", ",", "a, b", "&a", "*a", "**/*.ts",
    "!a", "|", ">", ">-", "%a", "@a", "`a`", "'", "''", "'a'", '"', '"a"', "it's", 'say "x"', "\\", "\\n",
    "C:\\path", "\\u0041", "~", "null", "Null", "true", "False", "yes", "NO", "on", "Off", "y", "N", "1",
    "-1", "+1", "1.0", "1e5", "0x1f", "0o17", "017", "1_000", "1:30", "12:30:45", ".5", ".inf", "nan",
    "2024-01-05", "2024-01-05T10:00:00Z", "2024-01-05 10:00", "=", "<<", "key: [a", "a" * 3000, "中" * 300,
    "+++", "ſ", "a'b\"c\\d",
]  # fmt: skip


@pytest.mark.parametrize("text", NASTY)
def test_what_compose_writes_reads_back_equal(text):
    written = {"title": text, "tags": [text, "x", text], text: text, "map": {text: [text]}, "last": "end"}
    card = compose(written, f"{text}\nbody{text}")
    note = parse(card)
    assert note.fields == written
    assert note.body == f"{text}\nbody{text}"
    assert note.warnings == []


@pytest.mark.parametrize(
    "body",
    ["", "a", "a\n", "\n", "\n\n\na", "a\n\n\n", "\r\na\r\nb", "\r", " \n", "---\na: 1\n---\n", "---",
     "+++\n", "...\n", "\ufeffa", '{"a": 1}', "\0", "\u2028", "\t\n"],
)  # fmt: skip
def test_the_body_comes_back_exactly(body):
    for written in ({}, {"title": "t"}, {"tags": ["a", "b" * 200]}):
        assert parse(compose(written, body)) == (written, body, "yaml", [])


def test_a_card_reads_as_a_person_would_write_it():
    card = compose(
        {"title": "nginx 站点根目录", "tags": ["nginx", "部署"], "draft": False, "priority": 3, "ttl": None,
         "created": "2024-01-05T10:00:00Z", "aliases": ["a" * 60, "b" * 60]},
        "Body\n",
    )  # fmt: skip
    assert card == (
        "---\ntitle: nginx 站点根目录\ntags: [nginx, 部署]\ndraft: false\npriority: 3\nttl:\n"
        f'created: "2024-01-05T10:00:00Z"\naliases:\n  - {"a" * 60}\n  - {"b" * 60}\n---\n\nBody\n'
    )
    assert parse(card).fields["priority"] == "3"


def test_an_int_comes_back_as_its_text_and_a_none_in_a_list_is_left_out():
    note = parse(compose({"n": 5, "list": [None, "a", True, 7]}, ""))
    assert note.fields == {"n": "5", "list": ["a", True, "7"]}


def test_a_lone_surrogate_is_never_written():
    card = compose({"title": "a\ud800b"}, "")
    assert card.encode("utf-8")
    assert parse(card).fields == {"title": "a\ufffdb"}


def test_every_random_text_comes_back():
    source = random.Random(20240105)
    short = [text for text in NASTY if len(text) < 30]
    pieces = short + list("abc:#-?,[]{}&*!|>%@`'\"\\~ \t\n\r") + ["\u0301", "\ufffe", "\U0001fffe", "word"]

    def text():
        return "".join(source.choice(pieces) for _ in range(source.randint(0, 5)))

    for _ in range(1500):
        written = {"title": text(), "tags": [text() for _ in range(source.randint(0, 4))], text(): text()}
        body = text() + text()
        assert parse(compose(written, body)) == (written, body, "yaml", []), (written, body)


# What no input may do

FRAGMENTS = [
    "a: ", "b:", "key: ", "- ", "-", " ", "  ", "    ", "\t", "\n", "\n", "\n", "\r\n", "\r", "\n- ",
    "\n  - ", "x", '"q"', "'s'", '"', "'", "[", "]", "{", "}", ",", ", ", ":", ": ", "：", "#", " # c",
    "|", ">", "|-", ">2+", "\\", "null", "true", "1.5", "2024-01-01", "http://x/y", "中文", "%", "@", "`",
    "&a ", "*a", "!t ", "<<: ", "? ", "---", "...", "+++", " = ", "[t]\n", "[[t]]\n", '"""', "'''",
    "{{x}}", "\0", "\ufeff", "\u2028", "\x85", "\ud800", '{"a":', "\\u12", "\\ud83d", "=", ".", "a.b = ",
    "**/*.ts", "k:v", "\n\n", "tags: ", "title: ",
]  # fmt: skip


def test_no_random_block_raises_or_is_lost():
    source = random.Random(7)
    for _ in range(20_000):
        block = "".join(source.choice(FRAGMENTS) for _ in range(source.randint(1, 14)))
        fence = source.choice(("---", "---", "+++"))
        head = "first: 1\n" if fence == "---" else "first = 1\n"
        text = f"{fence}\n{head}{block}\n{fence}\nbody" if source.random() < 0.8 else block
        note = parse(text)
        tags(note.fields), searchable(note.fields), lookup(note.fields, "title")
        assert text.endswith(note.body)
        if text is not block:
            assert note.style and "first" in note.fields, text
            json.dumps(note.fields)


SIZE = 60_000
BOMBS = {
    "brackets": "a: " + "[" * SIZE,
    "braces": "a: " + "{" * SIZE,
    "brackets over lines": "a: " + "[\n" * (SIZE // 2),
    "openers": "k: [a,\n" * (SIZE // 7),
    "open quotes": 'k: "a\n' * (SIZE // 6),
    "quotes": "a: " + "'" * SIZE,
    "backslashes": 'a: "' + "\\" * SIZE,
    "dashes": "a:\n  " + "- " * (SIZE // 2),
    "deep maps": "".join(" " * depth + "a:\n" for depth in range(600)),
    "deep lists": "a:\n" + "".join(" " * depth + "-\n" for depth in range(1, 600)),
    "aliases": "a: &a [x]\n" + "b: [*a, *a]\n" * (SIZE // 12),
    "spaces": "a: x" + " " * SIZE + "y",
    "hashes": "a: " + " #" * (SIZE // 2),
    "colons": "a" + ": " * (SIZE // 2),
    "stray lines": 'a: "x"\n' + "  x\n x\n#\n- y\n" * (SIZE // 14),
    "prose": "prose\n" * (SIZE // 6),
    "empty lines": "a: |+\n" + "\n" * SIZE,
    "json": '{"a": ' + "[" * SIZE,
    "closed json": '{"a": ' + "[" * 900 + "]" * 900 + "}",
}
TOML_BOMBS = {
    "brackets": "a = " + "[" * SIZE,
    "braces": "a = " + "{a=" * (SIZE // 3),
    "dots": "a" + ".a" * (SIZE // 2) + " = 1",
    "deep rows": ("[" + ".".join("a" * 60) + "]\n") * (SIZE // 121),
    "open arrays": "a = [1,\n" * (SIZE // 8),
    "open texts": 'a = """\n' * (SIZE // 8),
    "quotes": 'a = """' + '"' * SIZE,
    "backslashes": 'a = """' + "\\  " * (SIZE // 3),
}


@pytest.mark.parametrize(("fence", "bombs"), [("---", BOMBS), ("+++", TOML_BOMBS)])
def test_a_hostile_block_takes_time_in_proportion_to_its_length(fence, bombs):
    # Quadratic work takes over 10 s at this size, the slowest here 0.2 s; the rest is for a crowded machine.
    for name, block in bombs.items():
        started = time.process_time()
        note = parse(f"{fence}\n{block}\n{fence}\nbody")
        searchable(note.fields), tags(note.fields), json.dumps(note.fields)
        assert time.process_time() - started < 2, name
        assert note.body.endswith("body")


def test_nesting_below_the_limit_is_kept_as_text():
    maps = "".join(" " * depth + f"k{depth}:\n" for depth in range(200))
    deep = fields(maps + " " * 200 + "needle")
    assert "needle" in searchable(deep)
    flow = fields("a: " + "[" * 100 + "needle" + "]" * 100)
    assert flow["a"] == "[" * 100 + "needle" + "]" * 100
    closed = parse('{"a": ' + "[" * 500 + '"needle"' + "]" * 500 + "}\n")
    assert "needle" in searchable(closed.fields)
    assert closed.warnings


def test_a_large_block_of_ordinary_lines_is_read_in_about_a_second():
    block = "".join(f"key {i}: some plain value with a few words\nlist{i}: [a, b]\n" for i in range(16_000))
    started = time.process_time()
    found = fields(block)
    assert time.process_time() - started < 3
    assert len(found) == 32_000


@pytest.mark.parametrize(
    "text, line",
    [
        ("---\ntitle: x\n\nbody", 1),
        ("\ufeff\n\n---\ntitle: x\n", 3),
        ("+++\ntitle = 1\nbody", 1),
        ("---\ntitle: x\n---\nbody", None),
        ("---\n\nA rule, then text: like this", None),
        ("---\nhttps://example.org: a link\n", None),
        ("title: x\n", None),
        ("", None),
    ],
)
def test_fields_whose_block_never_closes_are_told(text, line):
    assert unclosed(text) == line


def test_the_quick_look_for_a_block_finds_what_the_whole_one_does():
    rests = ("", "body", "\nbody", "\n\nbody", " \nbody")
    texts = [f"---\n{middle}\n---\n{rest}" for middle in BLOCKS for rest in rests]
    for name in os.listdir(NOTES):
        with open(os.path.join(NOTES, name), encoding="utf-8", newline="") as handle:
            texts.append(handle.read())
    quick = [(text, _located_quickly(text)) for text in texts]
    assert [text for text, place in quick if place and place != _locate(text)] == []
    assert sum(place is not None for _, place in quick) > 10


BLOCKS = [
    "title: a", "title:\n  - a", "title: a\n---", "title: a\n...\nmore: b", "title: a\r\nb: c", "{", "Title: a",
    "title : a", "title:a", "title: a\n--- \nb", "a: 1\nnothing at all\nand prose\nmore prose", "k\u00e9y: a",
    "x" * 50 + ": a", "t-x: a", "- a: b", "# c\ntitle: a", "title: 'a\n---\nb'",
]  # fmt: skip
