"""Setting up clients: the text editors as tables, then real files in homes of all three platforms.

`tests/data/clients/<client>.<case>.<format>` are our own samples of configuration files. Dropping one
more there makes it a test of the promise: put in, put in again, take out, and the bytes are the same.
"""

import json
import os
import random
import re
import shlex
import stat
import subprocess
import sys

import pytest

from mcore.clients import CLIENTS, Environment, find, jsonc, toml_text, yaml_text
from mcore.clients.edits import ConfigFault, Raw, look_up
from mcore.clients.hook import CHARS, DEFAULT_CHARS, hook_output, hook_text
from mcore.clients.setup import apply, listing, plan, snippet
from mcore.clients.shown import MAX_LINE, unified
from mcore.errors import SetupError, UsageError

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = sorted(os.listdir(os.path.join(HERE, "data", "clients")))
COMMAND = ["/opt/py/bin/python3", "/opt/memory-agent/memory.py", "mcp", "--vault", "/home/lin/我的 vault"]
OTHER = ["/usr/bin/python3.10", "/old/memory.py", "mcp", "--vault", "/gone"]
EDITORS = {"json": jsonc, "toml": toml_text, "yaml": yaml_text}
ENTRY = {"command": "/p", "args": ["-m", "x"]}


def machine(tmp_path, platform="linux", **env):
    home = tmp_path / "person"
    home.mkdir(exist_ok=True)
    return Environment(str(home), env, platform)


def file_of(client, here):
    return plan(client, COMMAND, here).path


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(text.encode("utf-8"))
    return path


def read(path):
    with open(path, "rb") as stream:
        return stream.read().decode("utf-8")


def installed(client, here, text):
    return write(file_of(client, here), text)


def connect(client, here, command=COMMAND, **more):
    return apply(plan(client, command, here, **more))


def document(client, path):
    return EDITORS[find(client).format].read(read(path))


def files_under(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


# -- JSON with comments, as text ---------------------------------------------------------------------

JSON_PUTS = [
    # text before, text after {"a": {"m": 1}} has been put at a.m
    ("", '{\n  "a": {\n    "m": 1\n  }\n}\n'),
    ("{}", '{\n  "a": {\n    "m": 1\n  }\n}'),
    ("// only this\n", '// only this\n{\n  "a": {\n    "m": 1\n  }\n}\n'),
    ("\ufeff{}\r\n", '\ufeff{\r\n  "a": {\r\n    "m": 1\r\n  }\r\n}\r\n'),
    ('{"b":2}', '{"b":2,"a":{"m":1}}'),
    ('{"b": 2, "a": {}}', '{"b": 2, "a": {"m": 1}}'),
    ('{ "a": { /* none */ } }', '{ "a": { /* none */ "m": 1 } }'),
    ('{\n\t"a": {\n\t\t"x": 0\n\t}\n}', '{\n\t"a": {\n\t\t"x": 0,\n\t\t"m": 1\n\t}\n}'),
    ('{\n  "a": {\n    "x": 0, // last\n  },\n}', '{\n  "a": {\n    "x": 0, // last\n    "m": 1,\n  },\n}'),
    (
        '{\n  "a": {\n    "x": 0 // last\n    /* end */\n  }\n}',
        '{\n  "a": {\n    "x": 0, // last\n    /* end */\n    "m": 1\n  }\n}',
    ),
    (
        '{\n    "b": "}, // \\"a\\": {",\n    "a": {}\n}',
        '{\n    "b": "}, // \\"a\\": {",\n    "a": {\n        "m": 1\n    }\n}',
    ),
    ('{\n  "a": null\n}', '{\n  "a": {\n    "m": 1\n  }\n}'),
    ('{"a": {"m": 0}, "z": "a", "a": {"m": 5}}', '{"a": {"m": 0}, "z": "a", "a": {"m": 1}}'),
    ('{\n  "a": {"x": 0}\n}', '{\n  "a": {"x": 0, "m": 1}\n}'),
    ('{\n  "a": {\n    "m": 7 // mine\n  }\n}', '{\n  "a": {\n    "m": 1 // mine\n  }\n}'),
    ('{"a": {"x": 0 // c\n}}', '{"a": {"x": 0, // c\n"m": 1\n}}'),
    ('{ "a": {"x": 0 } }', '{ "a": {"x": 0, "m": 1 } }'),
]


@pytest.mark.parametrize("before, after", JSON_PUTS)
def test_json_gets_one_more_member_and_keeps_every_other_byte(before, after):
    text = jsonc.put(before, ("a", "m"), 1)
    assert text == after
    assert look_up(jsonc.read(text), ("a", "m")) == Raw("1")
    assert jsonc.put(text, ("a", "m"), 1) == text


JSON_ROUND_TRIPS = [
    '{"a": {"x": 0 // c\n}}',
    '{"a":{"x":0}}',
    '{\r\n  "a": {\r\n    "x": 0\r\n  }\r\n}\r\n',
    '{\n  "a": {\n    "x": 0,\n    // "m": 1\n  }\n}\n',
    '{"a": [1], "a": {"x": "\\u00e9 \\\\ \\" // /* "}, /* a */ "c": []}',
    '// head\n{ "a" /* k */ : /* v */ { "x" : 1 , } , }  // tail',
    '{\n"a": {\n"x": 0\n}\n}',
    '{"a": {/* m */ "x": 0 /* y */ /* z */}}',
]


@pytest.mark.parametrize("text", JSON_ROUND_TRIPS)
def test_json_member_taken_out_again_leaves_the_bytes_of_before(text):
    assert jsonc.drop(jsonc.put(text, ("a", "m"), {"k": ["v", 1, True, None]}), ("a", "m")) == text


JSON_DROPS = [
    ('{"m": 1, "b": 2}', '{ "b": 2}'),
    ('{\n  // about b\n  "m": {}, "b": 2\n}', '{\n  // about b\n  "b": 2\n}'),
    ('{\n  "m": 1, // mine\n  "b": 2\n}', '{ // mine\n  "b": 2\n}'),
    ('{"b": 2, "m": 1,}', '{"b": 2,}'),
    ('{"b": 2, "m": 1}', '{"b": 2}'),
    ('{"m": 1}', "{}"),
    ('{\n  "m": 1 // mine\n}', "{ // mine\n}"),
    ('{"m": 1, "b": 0, "m": 2}', '{"m": 1, "b": 0}'),
    ('{"b": 1}', '{"b": 1}'),
]


@pytest.mark.parametrize("before, after", JSON_DROPS)
def test_json_member_written_by_hand_is_taken_out_alone(before, after):
    assert jsonc.drop(before, ("m",)) == after


BROKEN_JSON = [
    ('{"a": 1', 1, "a } is missing"),
    ('{\n  "a": 1\n  "b": 2\n}', 3, "a comma or } is expected"),
    ("{\n  a: 1\n}", 2, "a key in double quotes is expected"),
    ("{'a': 1}", 1, "a key in double quotes is expected"),
    ('{"a": tru}', 1, "a value is expected"),
    ('{"a": 01}', 1, "a value is expected"),
    ('{"a": "x\ny"}', 1, "a string is not closed"),
    ('{"a": "\\q"}', 1, "bad escape"),
    ('{"a": 1}}', 1, "after the end"),
    ('{"a": 1} {"b": 2}', 1, "after the end"),
    ('{"a": /* 1}', 1, "comment is not closed"),
    ('{"a" 1}', 1, "a colon is missing"),
    ('{,"a": 1}', 1, "a key in double quotes"),
    ('{"a": 1,,}', 1, "a key in double quotes"),
    ('{"a": [1, 2}', 1, "a comma or ] is expected"),
    ("[" * 100_000, 1, "nested deeper"),
    ('{"a": NaN}', 1, "a value is expected"),
]


@pytest.mark.parametrize("text, line, reason", BROKEN_JSON)
def test_broken_json_is_refused_with_line_and_reason(text, line, reason):
    with pytest.raises(ConfigFault, match=re.escape(reason)) as caught:
        jsonc.put(text, ("a", "m"), 1)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ['{"a": []}', '{"a": "text"}', '{"a": 3}', "[]", '"a"', "5"])
def test_json_value_of_another_kind_on_the_way_is_refused(text):
    with pytest.raises(ConfigFault, match="stands where an object is expected"):
        jsonc.put(text, ("a", "m"), 1)


def test_a_string_without_an_end_costs_no_more_than_its_length():
    with pytest.raises(ConfigFault):
        jsonc.read('{"a": "' + "x" * 300_000)


def space(random_, rich=True):
    pieces = ["", "", " ", "\n", "\n  ", "\t", "\r\n", '// c }{ "\n', "/* [ */", "/*\n*/"]
    return random_.choice(pieces if rich else pieces[:3])


def random_json(random_, depth=0):
    """A document that uses every freedom of layout there is."""
    if depth and (depth > 3 or random_.random() < 0.4):
        return random_.choice(['"// no"', '"\\"}"', '"中"', "1", "-2.5e3", "true", "null", '""'])
    keys = random_.sample(["a", "b", "m-x", "//k", "中"], random_.randrange(4))
    keys += ["a"] if not depth and "a" not in keys else []
    is_list = depth > 1 and random_.random() < 0.4
    parts = []
    for key in keys:
        value = random_json(random_, depth + 1)
        if not depth and key == "a":
            value = '{"x": ' + random_json(random_, 2) + space(random_) + "}"
        label = "" if is_list else json.dumps(key, ensure_ascii=False) + space(random_) + ":"
        parts.append(space(random_) + label + space(random_) + value + space(random_))
    end = ("," if parts and random_.random() < 0.3 else "") + space(random_)
    return ("[" if is_list else "{") + ",".join(parts) + end + ("]" if is_list else "}")


def test_three_hundred_random_layouts_of_json_survive_a_round_trip():
    random_ = random.Random(20261130)
    for _ in range(300):
        text = random_json(random_)
        before = jsonc.read(text)
        after = jsonc.put(text, ("a", "memory"), ENTRY)
        assert jsonc.read(after) == {**before, "a": {**before["a"], "memory": ENTRY}}, text
        assert jsonc.drop(after, ("a", "memory")) == text


# -- TOML as text -----------------------------------------------------------------------------------

SERVER = ("mcp_servers", "memory")
BLOCK = '[mcp_servers.memory]\ncommand = "/p"\nargs = ["-m", "x"]\n'

TOML_PUTS = [
    ("", BLOCK),
    ("# c\n", "# c\n\n" + BLOCK),
    ("a = 1", "a = 1\n\n" + BLOCK[:-1]),
    ("a = 1\r\n", ("a = 1\n\n" + BLOCK).replace("\n", "\r\n")),
    (
        '[mcp_servers.x]\ncommand = "x" # [y]\n# tail\n\n# head\n[z]\n',
        '[mcp_servers.x]\ncommand = "x" # [y]\n# tail\n\n' + BLOCK + "\n# head\n[z]\n",
    ),
    (
        '[mcp_servers.x]\ncommand = "x"\n# over z\n[z]\nq = 1\n',
        '[mcp_servers.x]\ncommand = "x"\n\n' + BLOCK + "# over z\n[z]\nq = 1\n",
    ),
    ('mcp_servers.x.command = "x"\nb = 2\n', 'mcp_servers.x.command = "x"\nb = 2\n\n' + BLOCK),
    ("t = '''\n[mcp_servers.memory]\n'''\n", "t = '''\n[mcp_servers.memory]\n'''\n\n" + BLOCK),
]


@pytest.mark.parametrize("before, after", TOML_PUTS)
def test_toml_gets_a_section_behind_its_family_and_gives_it_back(before, after):
    assert toml_text.put(before, SERVER, ENTRY) == after
    assert toml_text.drop(after, SERVER) == before


def test_toml_sub_tables_of_the_entry_go_with_it():
    text = 'a = 1\n\n[mcp_servers.memory]\ncommand = "x"\n\n[mcp_servers.memory.env]\nK = "v"\n\n[b]\n'
    assert toml_text.drop(text, SERVER) == "a = 1\n\n[b]\n"


def test_toml_entry_in_two_places_goes_from_both():
    text = '[mcp_servers.memory.env]\nK = "v"\n\n[b]\nq = 1\n\n[mcp_servers.memory]\ncommand = "x"\n'
    assert toml_text.drop(text, SERVER) == "\n[b]\nq = 1\n"


@pytest.mark.parametrize(
    "before, after",
    [
        ('[mcp_servers.memory]\ncommand = "old" # mine\n', '[mcp_servers.memory]\ncommand = "new" # mine\n'),
        ('[mcp_servers]\nmemory.command = "old"\n', '[mcp_servers]\nmemory.command = "new"\n'),
        ("[mcp_servers]\nmemory = { command = 'old', x = 1 }\n",
         '[mcp_servers]\nmemory = { command = "new", x = 1 }\n'),
        ("[mcp_servers.'memory']\nx = 1 # c\n\n[z]\n", "[mcp_servers.'memory']\nx = 1 # c\ncommand = \"new\"\n\n[z]\n"),
    ],
)  # fmt: skip
def test_toml_pair_is_changed_where_it_stands(before, after):
    assert toml_text.put(before, (*SERVER, "command"), "new") == after


@pytest.mark.parametrize(
    "text", ["mcp_servers = {}\n", 'mcp_servers = { x = { command = "y" } }\n', "mcp_servers = 3\n"]
)
def test_toml_inline_table_is_refused_with_a_hint(text):
    with pytest.raises(ConfigFault, match="written inline") as caught:
        toml_text.put(text, SERVER, ENTRY)
    assert "section" in caught.value.hint and caught.value.line == 1


def test_toml_item_of_an_array_of_tables_is_added_and_taken_out():
    text = '[[hooks.SessionStart]]\nmatcher = "a"\n[[hooks.SessionStart.hooks]]\ncommand = "b"\n\n[z]\nq = 1\n'
    item = {"matcher": "m", "hooks": [{"type": "command", "command": "c", "timeout": 10}]}
    after = toml_text.put(text, ("hooks", "SessionStart", 1), item)
    assert toml_text.read(after)["hooks"]["SessionStart"][1]["hooks"] == [
        {"type": "command", "command": "c", "timeout": Raw("10")}
    ]
    assert toml_text.drop(after, ("hooks", "SessionStart", 1)) == text
    assert toml_text.read(toml_text.drop(after, ("hooks", "SessionStart", 0)))["z"] == {"q": Raw("1")}


BROKEN_TOML = [
    ("a = \n", 1, "a value is missing"),
    ("a\n", 1, "is expected behind a"),
    ('x = 1\na = "b\n', 2, "a string is not closed"),
    ("a = 1 b = 2\n", 1, "the line should end here"),
    ("a = 1\na = 2\n", 2, "defined twice"),
    ("[a]\n\n[a]\n", 3, "defined twice"),
    ("a = [1 2]\n", 1, "a comma or ]"),
    ('a = "\\q"\n', 1, "no escape"),
    ("a = yes\n", 1, "no value"),
    ("[a\n", 1, "is expected behind a"),
    ("a = 1\na.b = 2\n", 2, "a value, not a table"),
    ("a = " + "[" * 5000 + "\n", 1, "nested deeper"),
    ("= 1\n", 1, "a key is expected"),
    ('"""a""" = 1\n', 1, "multi-line string"),
]


@pytest.mark.parametrize("text, line, reason", BROKEN_TOML)
def test_broken_toml_is_refused_with_line_and_reason(text, line, reason):
    with pytest.raises(ConfigFault, match=re.escape(reason)) as caught:
        toml_text.put(text, SERVER, ENTRY)
    assert caught.value.line == line


TOML_VALUES = """
a.b = "x\\u00e9\\n" # c
'k y' = 'C:\\n'
"q\\"" = [1, 2.5, true, # in [
  "three", { z = 1979-05-27T07:32:00Z }, ]
m = \"\"\"
one \\
   two ""quoted""\"\"\"
n = '''it's'''
d = 1979-05-27 07:32:00
[t . u]
x = {}
[[l]]
y = 1
[l.sub]
z = 2
[[l]]
"""


def test_toml_is_read_as_the_standard_library_reads_it():
    document = toml_text.read(TOML_VALUES)
    assert document["a"] == {"b": "xé\n"} and document["k y"] == "C:\\n"
    assert document['q"'][3:] == ["three", {"z": Raw("1979-05-27T07:32:00Z")}]
    assert document["m"] == 'one two ""quoted""' and document["n"] == "it's"
    assert document["l"] == [{"y": Raw("1"), "sub": {"z": Raw("2")}}, {}]
    if sys.version_info >= (3, 11):
        import tomllib

        theirs = tomllib.loads(TOML_VALUES)
        assert list(theirs) == list(document) and theirs["m"] == document["m"]


# -- YAML as text -----------------------------------------------------------------------------------

YAML_PUTS = [
    ("", "e:\n  m:\n    k: v\n"),
    ("# c\n", "# c\ne:\n  m:\n    k: v\n"),
    ("---\na: 1", "---\na: 1\ne:\n  m:\n    k: v"),
    ("e: {} # none\nb: 1\n", "e: # none\n  m:\n    k: v\nb: 1\n"),
    ("e:\nb: 1\n", "e:\n  m:\n    k: v\nb: 1\n"),
    ("e: ~ # none\nb: 1\n", "e: # none\n  m:\n    k: v\nb: 1\n"), ("b: 1\ne: null", "b: 1\ne:\n  m:\n    k: v"),
    ("~\n", "e:\n  m:\n    k: v\n"),
    ("e:\n    x:\n        y: 1\n    # tail\n# root\n",
     "e:\n    x:\n        y: 1\n    # tail\n    m:\n        k: v\n# root\n"),
    ("e:\r\n  x: |\r\n    m:\r\n      k: no\r\n\r\nb: 1\r\n",
     "e:\r\n  x: |\r\n    m:\r\n      k: no\r\n  m:\r\n    k: v\r\n\r\nb: 1\r\n"),
    ("\ufeffe:\n  x: [a,\n    b]\n", "\ufeffe:\n  x: [a,\n    b]\n  m:\n    k: v\n"),
    ("e:\n  'x': \"a: # b\n    c\"\n", "e:\n  'x': \"a: # b\n    c\"\n  m:\n    k: v\n"),
]  # fmt: skip


@pytest.mark.parametrize("before, after", YAML_PUTS)
def test_yaml_gets_one_more_entry_in_the_layout_of_its_neighbours(before, after):
    assert yaml_text.put(before, ("e", "m"), {"k": "v"}) == after
    if "x" in before:
        assert yaml_text.drop(after, ("e", "m")) == before


@pytest.mark.parametrize(
    "before, after",
    [
        ("s:\n  - name: a\n", "s:\n  - name: a\n  - name: m\n    args:\n      - x\n"),
        ("s:\n- name: a\nr: 1\n", "s:\n- name: a\n- name: m\n  args:\n  - x\nr: 1\n"),
        ("s:\n  -\n    name: a # c", "s:\n  -\n    name: a # c\n  - name: m\n    args:\n      - x"),
    ],
)
def test_yaml_list_gets_one_more_item_and_gives_it_back(before, after):
    assert yaml_text.put(before, ("s", 1), {"name": "m", "args": ["x"]}) == after
    assert yaml_text.drop(after, ("s", 1)) == before


@pytest.mark.parametrize(
    "word", ["yes", "null", "-m", "1.5", "a: b", "#x", "", " x", "C:\\p", "中", "@a/b", "a\nb", "\x85"]
)
def test_yaml_strings_stay_strings(word):
    assert yaml_text.read(yaml_text.put("", ("k",), word)) == {"k": word}


@pytest.mark.parametrize(
    "text, line, reason",
    [
        ("e: {x: {y: z}}\n", 1, "flow style"),
        ("a: 1\ne: &anchor\n  x: 1\n", 3, "anchor or tag"),
        ("a: &b {}\ne: *b\n", 2, "as an alias"),
        ("e: text\n", 1, "a map is expected here"),
        ("e:\n  - x\n", 2, "a map is expected here"),
        ("- e\n", 1, "a map is expected here"),
        ("e:\n\tx: 1\n", 2, "a tab is used"),
        ("a: 1\n---\ne:\n", 2, "several documents"),
        ('a: "b\ne:\n', 1, "not closed"),
        ("a: [1, 2\n", 1, "not closed"),
        ("a: b: c\n", 1, "needs quotes"),
        ("a: 1\n  b: 2\n", 2, "indented deeper"),
        ("a:\n    b: 1\n  c: 2\n", 3, "indented deeper"),
        ("a: 1\na: 2\n", 2, "stands twice"),
        ("? a\n: b\n", 1, "not understood"),
        ('a: "x" y\n', 1, "text behind a value"),
        ("a: @x\n", 1, "cannot begin with"),
        ("a: 1\njust text\n", 2, "a key with a colon"),
        ("a: |\n    x\n  y\n", 3, "indented less"),
    ],
)
def test_yaml_that_cannot_be_edited_safely_is_refused(text, line, reason):
    with pytest.raises(ConfigFault, match=re.escape(reason)) as caught:
        yaml_text.put(text, ("e", "m"), {"k": "v"})
    assert caught.value.line == line


# -- The samples ------------------------------------------------------------------------------------

VARIANTS = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "bom": lambda text: "\ufeff" + text,
    "no-last-line-end": lambda text: text.rstrip("\n"),
}


def sample(name):
    with open(os.path.join(HERE, "data", "clients", name), encoding="utf-8") as stream:
        return name.split(".")[0], stream.read()


def test_every_client_has_samples():
    assert len(SAMPLES) >= 36
    assert {name.split(".")[0] for name in SAMPLES} == {client.name for client in CLIENTS}


CASES = [(name, "as-is") for name in SAMPLES]
CASES += [(name, list(VARIANTS)[place % len(VARIANTS)]) for place, name in enumerate(SAMPLES)]


@pytest.mark.parametrize("name, variant", CASES)
def test_a_sample_is_connected_once_and_given_back_byte_for_byte(name, variant, tmp_path):
    client, text = sample(name)
    text = VARIANTS.get(variant, str)(text)
    here = machine(tmp_path)
    path = installed(client, here, text)
    hooks = find(client).hooks is not None
    first = plan(client, COMMAND, here, hooks=hooks)
    assert first.changed and first.path == path and first.diff.startswith(f"--- {path}\n+++ {path}\n@@ ")
    applied = apply(first)
    assert read(applied.backup) == text
    connected = read(path)
    assert untouched(text, connected)
    again = plan(client, COMMAND, here, hooks=hooks)
    assert not again.changed and again.diff == "" and apply(again).backup is None
    assert next(found for found in listing(COMMAND, here) if found.name == client).connected
    connect(client, here, remove=True)
    assert read(path) == text
    assert files_under(here.home) == sorted([path, applied.backup])


def untouched(before, after):
    """Whether every line of `before` is in `after` in its order, commas and emptied brackets aside."""
    lines = iter([re.sub(r"[,{}\s]", "", line) for line in after.split("\n")])
    if before.count("\n") < 2:
        signs = iter(after)
        return all(sign in signs for sign in before if sign not in "{} ")
    return all(re.sub(r"[,{}\s]", "", line) in lines for line in before.split("\n"))


@pytest.mark.parametrize("name", SAMPLES)
def test_without_a_backup_only_the_entry_goes(name, tmp_path):
    client, text = sample(name)
    here = machine(tmp_path)
    path = installed(client, here, text)
    before = document(client, path)
    os.unlink(connect(client, here).backup)
    connect(client, here, remove=True)
    # A file that is all ours once the backup is gone is taken for one that we made.
    after = document(client, path) if os.path.exists(path) else {}
    for container in ("mcpServers", "servers", "context_servers", "mcp", "extensions"):
        if isinstance(before, dict) and not before.get(container):
            before.pop(container, None)
            after.pop(container, None)
    assert after == before


@pytest.mark.parametrize("name", SAMPLES)
def test_what_the_user_changed_meanwhile_survives_the_removal(name, tmp_path):
    client, text = sample(name)
    here = machine(tmp_path)
    path = installed(client, here, text)
    connect(client, here)
    mark = "\n// later\n" if find(client).format == "json" else "\n# later\n"
    write(path, read(path) + mark)
    connect(client, here, remove=True)
    assert read(path).endswith(mark) and "memory-agent/memory.py" not in read(path)


# -- Shapes and places ------------------------------------------------------------------------------

PYTHON, ARGS = COMMAND[0], COMMAND[1:]
PLAIN = {"command": PYTHON, "args": ARGS, "env": {}}
SHAPES = {
    "claude-code": (("mcpServers", "memory"), {"type": "stdio", **PLAIN}),
    "claude-desktop": (("mcpServers", "memory"), PLAIN),
    "codex": (("mcp_servers", "memory"), {"command": PYTHON, "args": ARGS}),
    "cursor": (("mcpServers", "memory"), PLAIN),
    "vscode": (("servers", "memory"), {"type": "stdio", **PLAIN}),
    "windsurf": (("mcpServers", "memory"), {**PLAIN, "disabled": False}),
    "zed": (("context_servers", "memory"), PLAIN),
    "gemini": (("mcpServers", "memory"), PLAIN),
    "qwen": (("mcpServers", "memory"), PLAIN),
    "opencode": (("mcp", "memory"), {"type": "local", "command": COMMAND, "environment": {}, "enabled": True}),
    "cline": (("mcpServers", "memory"), {**PLAIN, "disabled": False}),
    "continue": (("mcpServers", 0), {"name": "memory", **PLAIN}),
    "goose": (
        ("extensions", "memory"),
        {"enabled": True, "type": "stdio", "name": "memory", "cmd": PYTHON, "args": ARGS, "envs": {},
         "timeout": Raw("300")},
    ),
    "kimi": (("mcpServers", "memory"), PLAIN),
    "trae": (("mcpServers", "memory"), PLAIN),
    "workbuddy": (("mcpServers", "memory"), {"type": "stdio", **PLAIN, "disabled": False}),
    "codebuddy": (("mcpServers", "memory"), {"type": "stdio", **PLAIN}),
    "dsh": (
        (0, "insert", 0),
        {
            "id": "memory-agent",
            "name": "@deepseek-ai/dsh-mcp-client",
            "config": {"serverName": "memory", "transport": "stdio", **PLAIN},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("client", [client.name for client in CLIENTS])
def test_each_client_gets_an_entry_of_its_own_shape(client, tmp_path):
    path, entry = SHAPES[client]
    here = machine(tmp_path)
    done = connect(client, here)
    assert look_up(document(client, done.path), path) == entry
    connect(client, here, remove=True)
    assert files_under(here.home) == []


def test_continue_gets_the_fields_that_a_new_file_needs(tmp_path):
    path = connect("continue", machine(tmp_path)).path
    assert {"name", "version", "schema"} <= set(document("continue", path))


def test_opencode_in_its_newer_layout_gets_the_newer_entry(tmp_path):
    here = machine(tmp_path)
    path = installed("opencode", here, sample("opencode.newer-layout.json")[1])
    connect("opencode", here)
    entry = document("opencode", path)["mcp"]["servers"]["memory"]
    assert entry == {"type": "local", "command": COMMAND, "environment": {}, "disabled": False}


LINUX = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "continue": ".continue/config.yaml",
    "goose": ".config/goose/config.yaml",
    "kimi": ".kimi-code/mcp.json",
    "trae": ".config/Trae/User/mcp.json",
    "workbuddy": ".workbuddy/mcp.json",
    "codebuddy": ".codebuddy.json",
    "dsh": ".dsh/cordis.patch.yml",
}
MAC = {
    "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
    "vscode": "Library/Application Support/Code/User/mcp.json",
    "cline": "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
    "cline_mcp_settings.json",
    "trae": "Library/Application Support/Trae/User/mcp.json",
}
WINDOWS = {
    "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
    "vscode": "AppData/Roaming/Code/User/mcp.json",
    "zed": "AppData/Roaming/Zed/settings.json",
    "cline": "AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "goose": "AppData/Roaming/Block/goose/config/config.yaml",
    "trae": "AppData/Roaming/Trae/User/mcp.json",
}


@pytest.mark.parametrize("platform, special", [("linux", {}), ("darwin", MAC), ("win32", WINDOWS)])
def test_each_client_is_looked_for_where_its_platform_keeps_it(platform, special, tmp_path):
    here = machine(tmp_path, platform)
    found = {
        found.name: os.path.relpath(found.path, here.home).replace(os.sep, "/") for found in listing(COMMAND, here)
    }
    assert found == {**LINUX, **special}


@pytest.mark.parametrize(
    "client, variable, file",
    [
        ("codex", "CODEX_HOME", "config.toml"),
        ("kimi", "KIMI_CODE_HOME", "mcp.json"),
        ("dsh", "DSH_HOME", "cordis.patch.yml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("continue", "CONTINUE_GLOBAL_DIR", "config.yaml"),
        ("zed", "XDG_CONFIG_HOME", os.path.join("zed", "settings.json")),
    ],
)
def test_an_absolute_folder_in_the_environment_wins_and_a_relative_one_is_ignored(client, variable, file, tmp_path):
    elsewhere = str(tmp_path / "elsewhere")
    assert file_of(client, machine(tmp_path, **{variable: elsewhere})) == os.path.join(elsewhere, file)
    assert file_of(client, machine(tmp_path, **{variable: "rel/ative"})).startswith(str(tmp_path / "person"))


def test_windows_takes_appdata(tmp_path):
    roaming = str(tmp_path / "roaming")
    path = file_of("claude-desktop", machine(tmp_path, "win32", APPDATA=roaming))
    assert path == os.path.join(roaming, "Claude", "claude_desktop_config.json")


def test_of_several_candidates_the_existing_file_wins_then_the_installed_program(tmp_path):
    here = machine(tmp_path)
    insiders = os.path.join(here.home, ".config", "Code - Insiders", "User")
    os.makedirs(insiders)
    assert file_of("vscode", here) == os.path.join(insiders, "mcp.json")
    jsonc_file = write(os.path.join(here.home, ".config", "opencode", "opencode.jsonc"), "{}")
    assert file_of("opencode", here) == jsonc_file


PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "zed": ".zed/settings.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "opencode": "opencode.json",
    "continue": ".continue/mcpServers/memory-agent.yaml",
    "kimi": ".kimi-code/mcp.json",
    "trae": ".trae/mcp.json",
    "codebuddy": ".mcp.json",
}


@pytest.mark.parametrize("client", [client.name for client in CLIENTS])
def test_a_project_has_its_own_file_or_is_refused(client, tmp_path):
    root = str(tmp_path / "project")
    os.makedirs(root)
    here = machine(tmp_path)
    if client not in PROJECT_FILES:
        with pytest.raises(UsageError, match="no such file in a project"):
            plan(client, COMMAND, here, project=root)
        return
    done = connect(client, here, project=root)
    assert os.path.relpath(done.path, root).replace(os.sep, "/") == PROJECT_FILES[client]
    connect(client, here, project=root, remove=True)
    assert files_under(root) == []


@pytest.mark.parametrize("project", ["relative", ".", ""])
def test_a_project_is_never_resolved_against_the_working_folder(project, tmp_path):
    with pytest.raises(UsageError, match="not the absolute path of a folder"):
        plan("cursor", COMMAND, machine(tmp_path), project=project)


# -- The call ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, reason",
    [
        (["python3", "/m.py", "mcp"], "not an absolute path"),
        (["/py", "memory.py", "mcp"], "not an absolute path"),
        (["/py", "/memory.py", "mcp", "--vault", "vault"], "not an absolute path"),
        (["/py", "/memory.py", "serve"], "must hold the word mcp"),
        ([], "must hold the word mcp"),
        (["/py", "/m\udcff.py", "mcp"], "not valid Unicode"),
    ],
)
def test_a_command_that_depends_on_path_or_folder_is_refused(command, reason, tmp_path):
    with pytest.raises(UsageError, match=reason):
        plan("cursor", command, machine(tmp_path))


def test_windows_paths_count_as_absolute(tmp_path):
    command = ["C:\\Python\\python.exe", "C:\\memory-agent\\memory.py", "mcp", "--vault", "D:\\我的 vault"]
    done = connect("cursor", machine(tmp_path, "win32"), command)
    assert json.loads(read(done.path))["mcpServers"]["memory"]["args"] == command[1:]


@pytest.mark.parametrize(
    "typed, name",
    [("Claude-Code", "claude-code"), ("claude", "claude-code"), ("gemini-cli", "gemini"), ("vs code", "vscode"),
     ("kimi_code", "kimi"), ("deepseek-harness", "dsh")],
)  # fmt: skip
def test_clients_answer_to_their_usual_names(typed, name):
    assert find(typed).name == name


def test_an_unknown_client_is_told_the_near_ones():
    with pytest.raises(UsageError, match="no client is called 'cursr'") as caught:
        find("cursr")
    assert "did you mean cursor" in caught.value.hint and "goose" in caught.value.hint


def test_a_home_that_is_not_absolute_is_refused():
    with pytest.raises(SetupError, match="not an absolute path"):
        plan("cursor", COMMAND, Environment("", {}, "linux"))


def test_trae_with_a_space_in_the_interpreter_is_refused(tmp_path):
    with pytest.raises(SetupError, match="Trae cannot start"):
        plan("trae", ["/opt/my python", "/memory.py", "mcp"], machine(tmp_path))


def test_a_dollar_sign_in_the_command_is_pointed_out(tmp_path):
    made = plan("gemini", ["/py", "/memory.py", "mcp", "--vault", "/home/$x"], machine(tmp_path))
    assert any("$" in note for note in made.notes)


# -- Whose entry it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude-desktop.official-memory.json", "goose.builtin-memory.yaml"])
def test_another_server_named_memory_is_kept_and_ours_gets_the_second_name(name, tmp_path):
    client, text = sample(name)
    here = machine(tmp_path)
    path = installed(client, here, text)
    theirs = look_up(document(client, path), SHAPES[client][0])
    made = plan(client, COMMAND, here)
    assert any("is there already" in note for note in made.notes)
    apply(made)
    container = look_up(document(client, path), SHAPES[client][0][:-1])
    assert container["memory"] == theirs and "memory-agent" in container
    assert not plan(client, COMMAND, here).changed
    gone = plan(client, COMMAND, here, remove=True)
    assert any("not ours and stays" in note for note in gone.notes)
    apply(gone)
    assert read(path) == text


def test_with_both_names_taken_nothing_is_written(tmp_path):
    here = machine(tmp_path)
    installed("cursor", here, '{"mcpServers": {"memory": {"url": "x"}, "memory-agent": {"command": "y"}}}')
    with pytest.raises(SetupError, match="cannot edit") as caught:
        plan("cursor", COMMAND, here)
    assert "named memory and memory-agent already" in caught.value.why


STALE = {
    "cursor": '{"mcpServers": {"memory": {"command": "/usr/bin/python3.10", "args": %s, "env": {"A": "b"}, "x": 1}}}',
    "codex": '[mcp_servers.memory]\ncommand = "/usr/bin/python3.10" # old\nargs = %s\nstartup_timeout_sec = 9\n\n'
    '[mcp_servers.memory.env]\nA = "b"\n',
    "goose": "extensions:\n  memory:\n    cmd: /usr/bin/python3.10 # old\n    args: %s\n    envs: {A: b}\n"
    "    timeout: 7\n",
    "opencode": '{"mcp": {"memory": {"type": "local", "command": ["/usr/bin/python3.10", "/old/memory.py", "mcp"], '
    '"environment": {"A": "b"}}}}',
    "dsh": "- insert:\n    - id: mine\n      name: '@deepseek-ai/dsh-mcp-client'\n      config:\n"
    "        serverName: memory\n"
    "        command: /usr/bin/python3.10\n        args: %s\n        env:\n          A: b\n",
    "continue": "mcpServers:\n  - name: memory\n    command: /usr/bin/python3.10\n    args: %s\n    env:\n      A: b\n",
}  # fmt: skip


@pytest.mark.parametrize("client", STALE)
def test_a_stale_entry_is_brought_up_to_date_and_keeps_the_users_fields(client, tmp_path):
    here = machine(tmp_path)
    text = STALE[client].replace("%s", json.dumps(OTHER[1:]))
    path = installed(client, here, text)
    found = next(found for found in listing(COMMAND, here) if found.name == client)
    assert not found.connected and found.detail.startswith("stale: 'memory' starts /usr/bin/python3.10")
    connect(client, here)
    entry = look_up(document(client, path), SHAPES[client][0])
    inner = entry.get("config", entry)
    command = inner.get("command") or inner.get("cmd")
    assert (command if isinstance(command, list) else [command, *inner["args"]]) == COMMAND
    assert {"A": "b"} in (inner.get("env"), inner.get("envs"), inner.get("environment"))
    assert next(found for found in listing(COMMAND, here) if found.name == client).connected
    assert not plan(client, COMMAND, here).changed


@pytest.mark.parametrize(
    "words, ours",
    [
        (["/venv/bin/memory", "mcp"], True),
        (["C:\\x\\memory.exe", "mcp", "--vault", "C:\\v"], True),
        (["python", "-m", "mcore.cli", "mcp"], True),
        (["uvx", "memory-agent", "--db", "/d", "mcp"], True),
        (["npx", "-y", "@modelcontextprotocol/server-memory"], False),
        (["uvx", "basic-memory", "--project", "memory", "mcp"], False),
        (["docker", "run", "-i", "mcp/memory"], False),
        (["/opt/engram", "mcp"], False),
        (["python3", "-m", "other", "mcp"], False),
    ],
)
def test_ours_is_what_starts_this_program(words, ours, tmp_path):
    here = machine(tmp_path)
    text = json.dumps({"mcpServers": {"memory": {"command": words[0], "args": words[1:]}}})
    installed("cursor", here, text)
    connect("cursor", here)
    servers = json.loads(read(file_of("cursor", here)))["mcpServers"]
    assert ("memory-agent" not in servers) == ours


ODD_ENTRIES = [
    ("cursor", '{"mcpServers": {"memory": null, "b": [], "c": "x", "d": {"command": 5, "args": {}}}}'),
    ("opencode", '{"mcp": {"a": {"command": []}, "b": {"command": ["x", 1]}}}'),
    ("continue", "mcpServers:\n  - name: [a]\n  - name: {b: c}\n  - plain\n  -\n  - - nested\n"),
    ("goose", "extensions:\n  a:\n  b: text\n  c: [1]\n"),
    ("dsh", "- insert: text\n- plain\n- insert:\n    - name: '@deepseek-ai/dsh-mcp-client'\n      config: text\n"),
    ("codex", "[mcp_servers]\na = 1\nb = [2]\n[mcp_servers.c]\ncommand = 3\n"),
    ("claude-code", '{"hooks": 1, "mcpServers": {}}'),
]


@pytest.mark.parametrize("client, text", ODD_ENTRIES)
def test_odd_entries_of_others_do_no_harm_and_come_to_none(client, text, tmp_path):
    here = machine(tmp_path)
    path = installed(client, here, text)
    connect(client, here)
    assert next(found for found in listing(COMMAND, here) if found.name == client).connected
    connect(client, here, remove=True)
    assert read(path) == text


def test_our_program_under_a_third_name_is_noted_and_left(tmp_path):
    here = machine(tmp_path)
    text = json.dumps({"mcpServers": {"work-notes": {"command": OTHER[0], "args": OTHER[1:]}}})
    installed("cursor", here, text)
    made = plan("cursor", COMMAND, here)
    assert any("'work-notes'" in note for note in made.notes)
    apply(made)
    connect("cursor", here, remove=True)
    assert read(made.path) == text


def test_an_entry_that_is_switched_off_stays_so_and_is_said(tmp_path):
    here = machine(tmp_path)
    entry = {"command": COMMAND[0], "args": COMMAND[1:], "disabled": True}
    installed("windsurf", here, json.dumps({"mcpServers": {"memory": entry}}))
    assert any("switched off" in note for note in plan("windsurf", COMMAND, here).notes)
    found = next(found for found in listing(COMMAND, here) if found.name == "windsurf")
    assert not found.connected and found.detail.startswith("switched off")


def test_two_equal_keys_the_last_of_which_is_ours_lose_only_ours(tmp_path):
    here = machine(tmp_path)
    ours = json.dumps({"command": COMMAND[0], "args": COMMAND[1:]})
    path = installed("cursor", here, f'{{"mcpServers": {{"memory": {{"url": "x"}}, "memory": {ours}}}}}')
    connect("cursor", here, remove=True)
    assert read(path) == '{"mcpServers": {"memory": {"url": "x"}}}'


# -- Files ------------------------------------------------------------------------------------------

BROKEN_FILES = [
    ("cursor", '{\n  "mcpServers": {\n    "a": {}\n    "b": {}\n  }\n}', "line 4: a comma or } is expected"),
    ("zed", "{\n  // x\n  \"theme\": 'One'\n}", "line 3: a value is expected"),
    ("codex", 'a = 1\n[mcp_servers.x\ncommand = "y"\n', "line 2: ']' is expected"),
    ("codex", "mcp_servers = { x = 1 }\n", "line 1: mcp_servers is written inline"),
    ("goose", "extensions:\n  a:\n\tb: 1\n", "line 3: a tab is used"),
    ("goose", "extensions: {a: {b: c}}\n", "line 1: the map here is written in flow style"),
    ("continue", "mcpServers: [{name: a}]\n", "line 1: the list here is written in flow style"),
    ("dsh", "insert: []\n", "line 1: a list is expected here"),
    ("vscode", '{"servers": []}', "line 1: '[]}' stands where an object is expected"),
    ("claude-code", "[]", "line 1: '[]' stands where an object is expected"),
]


@pytest.mark.parametrize("client, text, reason", BROKEN_FILES)
def test_a_file_that_cannot_be_edited_is_named_with_line_and_reason_and_stays(client, text, reason, tmp_path):
    here = machine(tmp_path)
    path = os.path.join(here.home, *LINUX[client].split("/"))
    write(path, text)
    for hooks in {False, find(client).hooks is not None}:
        with pytest.raises(SetupError) as caught:
            plan(client, COMMAND, here, hooks=hooks)
        assert caught.value.message == f"cannot edit {path}" and caught.value.why.startswith(reason)
    assert read(path) == text and files_under(here.home) == [path]
    assert len(listing(COMMAND, here)) == len(CLIENTS)


@pytest.mark.parametrize(
    "content, reason",
    [(b'{"a": 1}\n"\xff\xfe', "line 2: not valid UTF-8"), (b"\xff\xfe{\0}\0", "line 1: it is written in UTF-16")],
)
def test_a_file_in_another_encoding_is_refused(content, reason, tmp_path):
    here = machine(tmp_path)
    path = write(file_of("cursor", here), "")
    with open(path, "wb") as stream:
        stream.write(content)
    with pytest.raises(SetupError) as caught:
        plan("cursor", COMMAND, here)
    assert caught.value.why == reason
    found = next(found for found in listing(COMMAND, here) if found.name == "cursor")
    assert found.installed and found.detail == f"cannot be read: {reason}"


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    here = machine(tmp_path)
    os.makedirs(file_of("cursor", here))
    with pytest.raises(SetupError, match="cannot read"):
        plan("cursor", COMMAND, here)
    assert not next(found for found in listing(COMMAND, here) if found.name == "cursor").connected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_in_the_place_of_the_file_is_refused_and_not_waited_for(tmp_path):
    here = machine(tmp_path)
    os.makedirs(os.path.dirname(file_of("cursor", here)))
    os.mkfifo(file_of("cursor", here))
    with pytest.raises(SetupError) as caught:
        plan("cursor", COMMAND, here)
    assert caught.value.why == "not a regular file"


def test_a_file_that_changed_since_the_plan_is_not_written(tmp_path):
    here = machine(tmp_path)
    path = installed("claude-code", here, "{}")
    made = plan("claude-code", COMMAND, here, hooks=True)
    write(path, '{"numStartups": 2}')
    with pytest.raises(SetupError, match="cannot write") as caught:
        apply(made)
    assert "changed since" in caught.value.why
    assert read(path) == '{"numStartups": 2}' and files_under(here.home) == [path]


def test_a_file_that_appeared_since_the_plan_is_not_overwritten(tmp_path):
    here = machine(tmp_path)
    made = plan("cursor", COMMAND, here)
    write(made.path, '{"mcpServers": {}}')
    with pytest.raises(SetupError, match="cannot write"):
        apply(made)
    assert read(made.path) == '{"mcpServers": {}}'


def test_planning_writes_nothing(tmp_path):
    here = machine(tmp_path)
    path = installed("gemini", here, "{}")
    for remove in (False, True):
        plan("gemini", COMMAND, here, hooks=True, remove=remove)
    listing(COMMAND, here)
    assert read(path) == "{}" and files_under(here.home) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_modes_are_kept_and_new_files_are_private(tmp_path):
    here = machine(tmp_path)
    path = installed("claude-desktop", here, "{}")
    os.chmod(path, 0o640)
    done = connect("claude-desktop", here)
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(done.backup).st_mode) == 0o640
    new = connect("cursor", here)
    assert stat.S_IMODE(os.stat(new.path).st_mode) == 0o600 and new.backup is None


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights on Windows")
@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_one_and_its_file_is_edited(exists, tmp_path):
    here = machine(tmp_path)
    real = str(tmp_path / "dotfiles" / "cursor.json")
    if exists:
        write(real, '{"theme": 1}')
    link = file_of("cursor", here)
    os.makedirs(os.path.dirname(link))
    os.symlink(real, link)
    done = connect("cursor", here)
    assert os.path.islink(link) and json.loads(read(real))["mcpServers"]["memory"]["command"] == PYTHON
    assert done.backup == (real + ".memory-agent.bak" if exists else None)
    connect("cursor", here, remove=True)
    assert os.path.exists(real) == exists and (not exists or read(real) == '{"theme": 1}')


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_refused(tmp_path):
    here = machine(tmp_path)
    path = installed("cursor", here, "{}")
    os.chmod(path, 0o400)
    with pytest.raises(SetupError, match="cannot write"):
        connect("cursor", here)
    assert read(path) == "{}"


def test_a_write_that_fails_leaves_no_trace(tmp_path):
    here = machine(tmp_path)
    write(os.path.join(here.home, ".cursor"), "a file where the folder should be")
    made = plan("claude-code", COMMAND, here)._replace(path=os.path.join(here.home, ".cursor", "mcp.json"))
    with pytest.raises(SetupError):
        apply(made)
    assert files_under(here.home) == [os.path.join(here.home, ".cursor")]


def test_the_backup_of_an_updated_entry_is_still_the_file_without_us(tmp_path):
    here = machine(tmp_path)
    path = installed("claude-desktop", here, '{\n  "mcpServers": {}\n}')
    connect("claude-desktop", here, OTHER)
    done = connect("claude-desktop", here, COMMAND)
    assert read(done.backup) == '{\n  "mcpServers": {}\n}'
    connect("claude-desktop", here, remove=True)
    assert read(path) == '{\n  "mcpServers": {}\n}'


def test_a_user_edit_between_two_writes_is_in_the_backup(tmp_path):
    here = machine(tmp_path)
    path = installed("cursor", here, '{\n  "a": 1\n}')
    connect("cursor", here, OTHER)
    edited = read(path).replace('"a": 1', '"a": 2')
    write(path, edited)
    assert read(connect("cursor", here, COMMAND).backup) == edited


@pytest.mark.parametrize(
    "text", ["", "\n", "// nothing\n", "{}", "{ }", '{"mcpServers": {}}', '{\n  "mcpServers": {\n  }\n}\n']
)
def test_empty_files_of_every_kind_come_back_as_they_were(text, tmp_path):
    here = machine(tmp_path)
    path = installed("cursor", here, text)
    connect("cursor", here)
    assert json.loads(re.sub("//.*", "", read(path)))["mcpServers"]["memory"]["command"] == PYTHON
    connect("cursor", here, remove=True)
    assert read(path) == text


def test_continue_with_an_older_config_json_is_refused(tmp_path):
    here = machine(tmp_path)
    write(os.path.join(here.home, ".continue", "config.json"), "{}")
    with pytest.raises(SetupError) as caught:
        plan("continue", COMMAND, here)
    assert "config.json" in caught.value.why


def test_a_client_that_was_not_found_is_said(tmp_path):
    here = machine(tmp_path)
    assert any("was not found" in note for note in plan("zed", COMMAND, here).notes)
    os.makedirs(os.path.join(here.home, ".config", "zed"))
    assert not any("was not found" in note for note in plan("zed", COMMAND, here).notes)


# -- Hooks ------------------------------------------------------------------------------------------

HOOKED = [client.name for client in CLIENTS if client.hooks]
HOOK_FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "cline": "Documents/Cline/Hooks/TaskStart",
    "kimi": ".kimi-code/config.toml",
    "codebuddy": ".codebuddy/settings.json",
}


def hook_words(output):
    return [*COMMAND[:2], "hook", *COMMAND[3:], "--format", output]


def hook_path(client, here):
    return os.path.join(here.home, *HOOK_FILES[client].split("/"))


@pytest.mark.parametrize("client", HOOKED)
def test_the_hook_runs_this_program_and_goes_with_the_entry(client, tmp_path):
    here = machine(tmp_path)
    made = plan(client, COMMAND, here, hooks=True)
    apply(made)
    path = hook_path(client, here)
    assert path in made.diff
    text = read(path)
    if client == "cline":
        line = text.split("exec ")[1].strip()
    else:
        [item] = look_up(EDITORS[find(client).hooks.format].read(text), find(client).hooks.path)
        line = item["hooks"][0]["command"] if "hooks" in item else item["command"]
    assert shlex.split(line) == hook_words(find(client).hooks.output)
    assert not plan(client, COMMAND, here, hooks=True).changed
    found = next(found for found in listing(COMMAND, here) if found.name == client)
    assert found.detail == "connected as 'memory' with its session hook"
    connect(client, here, remove=True)
    assert files_under(here.home) == []


@pytest.mark.parametrize("client", HOOKED)
def test_without_hooks_asked_for_none_is_added_and_a_stale_one_is_mended(client, tmp_path):
    here = machine(tmp_path)
    connect(client, here, OTHER)
    assert not [name for name in files_under(here.home) if "hook" in read(name)]
    connect(client, here, OTHER, hooks=True)
    connect(client, here, COMMAND)
    assert COMMAND[1] in read(hook_path(client, here)) and OTHER[1] not in read(hook_path(client, here))


def test_clients_without_hooks_refuse_them(tmp_path):
    for client in CLIENTS:
        if not client.hooks:
            with pytest.raises(UsageError, match="no session hook"):
                plan(client.name, COMMAND, machine(tmp_path), hooks=True)


SETTINGS = """{
  "permissions": { "allow": ["Bash(git:*)"] },
  "hooks": {
    "SessionStart": [
      {
        "hooks": [
          { "type": "command", "command": "/usr/local/bin/greet \\"hook\\"" }
        ]
      }
    ],
    "Stop": []
  }
}
"""


def test_other_hooks_stay_and_ours_is_added_behind_them(tmp_path):
    here = machine(tmp_path)
    path = write(hook_path("claude-code", here), SETTINGS)
    connect("claude-code", here, hooks=True)
    first, second = json.loads(read(path))["hooks"]["SessionStart"]
    assert first["hooks"][0]["command"].startswith("/usr/local/bin/greet")
    assert second == {
        "matcher": "startup|resume|clear|compact",
        "hooks": [{"type": "command", "command": shlex.join(hook_words("claude")), "timeout": 10}],
    }
    connect("claude-code", here, remove=True)
    assert read(path) == SETTINGS


def test_ours_moved_into_another_group_is_taken_out_of_it_alone(tmp_path):
    here = machine(tmp_path)
    ours = {"type": "command", "command": shlex.join(hook_words("claude"))}
    other = {"type": "command", "command": "date"}
    path = write(hook_path("claude-code", here), json.dumps({"hooks": {"SessionStart": [{"hooks": [other, ours]}]}}))
    connect("claude-code", here, remove=True)
    assert json.loads(read(path)) == {"hooks": {"SessionStart": [{"hooks": [other]}]}}


def test_codex_stays_with_hooks_in_config_toml_when_that_is_in_use(tmp_path):
    here = machine(tmp_path)
    client, text = sample("codex.inline-hooks.toml")
    path = installed(client, here, text)
    made = plan(client, COMMAND, here, hooks=True)
    assert made.also == ()
    apply(made)
    hooks = toml_text.read(read(path))["hooks"]
    assert len(hooks["SessionStart"]) == 2 and shlex.split(hooks["SessionStart"][1]["hooks"][0]["command"])
    assert hooks["Stop"][0]["hooks"][0]["command"].startswith("notify-send")
    connect(client, here, remove=True)
    assert read(path) == text


def test_a_broken_hook_file_stops_the_whole_plan_before_anything_is_written(tmp_path):
    here = machine(tmp_path)
    path = write(hook_path("cursor", here), '{"version": 1,\n "hooks": [}')
    with pytest.raises(SetupError) as caught:
        plan("cursor", COMMAND, here, hooks=True)
    assert caught.value.message == f"cannot edit {path}" and caught.value.why.startswith("line 2: ")
    assert files_under(here.home) == [path]


def test_cline_hook_of_the_user_is_not_overwritten(tmp_path):
    here = machine(tmp_path)
    path = write(hook_path("cline", here), "#!/bin/sh\necho mine\n")
    with pytest.raises(SetupError) as caught:
        plan("cline", COMMAND, here, hooks=True)
    assert "--format cline" in caught.value.hint
    connect("cline", here, remove=True)
    assert read(path) == "#!/bin/sh\necho mine\n"


@pytest.mark.skipif(os.name != "posix", reason="Cline runs no hooks on Windows")
def test_cline_hook_is_a_program_that_starts_ours(tmp_path):
    here = machine(tmp_path)
    program = write(str(tmp_path / "a 'b" / "memory.py"), "import sys; print(sys.argv[1:])\n")
    connect("cline", here, [sys.executable, program, "mcp", "--vault", "/v v"], hooks=True)
    answer = subprocess.run([hook_path("cline", here)], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == str(["hook", "--vault", "/v v", "--format", "cline"])


def test_cline_hooks_are_refused_on_windows(tmp_path):
    with pytest.raises(UsageError, match="no hooks on Windows"):
        plan("cline", COMMAND, machine(tmp_path, "win32"), hooks=True)


@pytest.mark.parametrize(
    "client, line",
    [
        ("claude-code", '"C:/Program Files/py/python.exe" C:/m/memory.py hook --vault "D:/我的 v" --format claude'),
        ("gemini", '& "C:/Program Files/py/python.exe" C:/m/memory.py hook --vault "D:/我的 v" --format gemini'),
    ],
)
def test_hook_lines_on_windows(client, line, tmp_path):
    command = ["C:\\Program Files\\py\\python.exe", "C:\\m\\memory.py", "mcp", "--vault", "D:\\我的 v"]
    here = machine(tmp_path, "win32")
    made = plan(client, command, here, hooks=True)
    [item] = jsonc.read((made.also or (made,))[0].after)["hooks"]["SessionStart"]
    assert item["hooks"][0]["command"] == line
    apply(made)
    assert not plan(client, command, here, hooks=True).changed
    connect(client, here, command, remove=True)
    assert files_under(here.home) == []


# -- What is shown ----------------------------------------------------------------------------------


def test_the_diff_names_the_file_and_masks_the_credentials_of_others(tmp_path):
    here = machine(tmp_path)
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1z2A"
    env = {"MY_API_KEY": "hunter2hunter2", "X": token}
    text = json.dumps({"mcpServers": {"gh": {"command": "gh", "env": env}}}, indent=2)
    path = installed("cursor", here, text)
    diff = plan("cursor", COMMAND, here).diff
    assert diff.startswith(f"--- {path}\n+++ {path}\n@@ ") and '+      "command": "/opt/py/bin/python3"' in diff
    assert "hunter2" not in diff and token not in diff


def test_a_file_on_one_long_line_is_shown_in_part():
    before = '{"a": "' + "x" * 5000 + '"}'
    diff = unified("/f", before, jsonc.put(before, ("m",), 1))
    assert max(map(len, diff.split("\n"))) < MAX_LINE + 60
    assert '"m": 1}' in diff and "characters" in diff and "\\ No newline at end of file" in diff


def test_new_and_vanishing_files_are_shown_against_nothing(tmp_path):
    here = machine(tmp_path)
    made = plan("cursor", COMMAND, here)
    assert made.diff.startswith(f"--- {os.devnull}\n+++ {made.path}\n")
    apply(made)
    assert f"\n+++ {os.devnull}\n" in plan("cursor", COMMAND, here, remove=True).diff


def test_removing_where_nothing_is_changes_nothing(tmp_path):
    here = machine(tmp_path)
    for client in CLIENTS:
        made = plan(client.name, COMMAND, here, remove=True)
        assert not made.changed and made.diff == "" and "nothing of ours" in made.notes[-1]
        apply(made)
    assert files_under(here.home) == []


def test_listing_tells_what_is_installed_and_connected(tmp_path):
    here = machine(tmp_path)
    os.makedirs(os.path.join(here.home, ".cursor"))
    connect("zed", here)
    installed("claude-desktop", here, sample("claude-desktop.official-memory.json")[1])
    found = {found.name: found for found in listing(COMMAND, here)}
    assert list(found) == [client.name for client in CLIENTS]
    assert found["cursor"].installed and not found["cursor"].connected
    assert found["zed"].installed and found["zed"].connected
    assert found["claude-desktop"].detail == "not connected; another server is named memory"
    assert not found["goose"].installed and found["goose"].detail == "not connected; no such file yet"


@pytest.mark.parametrize("client", [None, *[client.name for client in CLIENTS]])
def test_the_snippet_reads_as_the_entry(client):
    text = snippet(client, COMMAND)
    path, entry = SHAPES[client or "claude-desktop"]
    assert look_up(EDITORS[find(client or "claude-desktop").format].read(text), path) == entry
    assert text.endswith("\n") and text == snippet(client, COMMAND)


@pytest.mark.parametrize("client", HOOKED)
def test_the_hook_snippet_holds_the_hook(client):
    text = snippet(client, COMMAND, hooks=True, platform="linux")
    assert f"--format {find(client).hooks.output}" in text


# -- What the hook says -----------------------------------------------------------------------------

STATS = {"total": 128, "kinds": {"knowledge": 80, "project": 30, "mistake": 18}}


def test_the_hook_text_has_counts_freshness_and_the_discipline():
    text = hook_text(STATS, "Index: up to date.")
    assert "128 cards (knowledge 80, project 30, mistake 18)" in text and "Index: up to date." in text
    for word in ("memory_search", "memory_get", "memory_capture", "decision", "mistake", "hosts", "secrets"):
        assert word in text
    assert len(text) <= DEFAULT_CHARS


@pytest.mark.parametrize("limit", [2000, 900, 600, 500, 300, 100, 40, 1, 0, -5])
def test_the_hook_text_keeps_to_its_limit(limit):
    text = hook_text(STATS, "Index: 3 files changed.", limit)
    assert len(text) <= max(limit, 0)
    assert ("memory_capture" in text) == (limit >= 300)


@pytest.mark.parametrize(
    "stats, said",
    [
        (None, "could not be read"),
        ({}, "could not be read"),
        ({"total": 0, "kinds": {}}, "holds no cards yet"),
        ({"total": 1, "kinds": {"tool": 1}}, "1 card (tool 1)"),
        ({"total": 5, "kinds": None}, "5 cards is connected"),
    ],
)
def test_the_hook_text_takes_whatever_the_index_gives(stats, said):
    assert said in hook_text(stats, None)


@pytest.mark.parametrize("format", ["claude", "codex", "gemini", "qwen", "cursor", "kimi", "cline", "plain"])
@pytest.mark.parametrize("text", ["", "line one\n中文 \u2028 \udcff end"])
def test_every_hook_format_carries_the_text_or_a_valid_nothing(format, text):
    answer = hook_output(text, format)
    answer.encode("utf-8")
    clean = text.replace("\udcff", "\ufffd")
    if format in ("kimi", "plain"):
        assert answer == (clean + "\n" if text else "")
        return
    value = json.loads(answer)
    assert answer.isascii() and answer.count("\n") == 1
    if format == "cline":
        assert value == {"cancel": False, "contextModification": clean, "errorMessage": ""}
    elif format == "cursor":
        assert value == ({"additional_context": clean} if text else {})
    else:
        hook = {"hookEventName": "SessionStart", "additionalContext": clean}
        assert value == ({"hookSpecificOutput": hook} if text else {})


def test_an_unknown_hook_format_is_plain_text():
    assert hook_output("x", "no-such") == "x\n" and CHARS["kimi"] < DEFAULT_CHARS
