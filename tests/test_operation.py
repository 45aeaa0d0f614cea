"""mcore.operation: one record per operation, and the one place where arguments are checked."""

import json
import math

import pytest

from mcore.errors import UsageError
from mcore.operation import Operation, bind, by_tool, input_schema, param
from mcore.ops import OPERATIONS

PARAMS = (
    param("text", help="a text", required=True, positional=True),
    param("count", "integer", "1-20", default=10, minimum=1, maximum=20, clamp=True, flags=("-n",)),
    param("exact", "integer", "1-5", minimum=1, maximum=5),
    param("least", "integer", "2 or more", minimum=2),
    param("tags", "array", "tags", default=()),
    param("word", help="a word", default="one", choices=("one", "two")),
    param("flag", "boolean", "a switch", default=False),
    param("only_cli", help="of the command line", door="cli"),
    param("only_mcp", "integer", "of the server", door="mcp"),
)
SAMPLE = Operation("sample", "memory_sample", "", "", "", PARAMS, None, None, None, True, False, True, {})


def bound(name, value, door="mcp"):
    return bind(SAMPLE, {"text": "x", name: value}, door)[name]


def refusal(door="mcp", **raw):
    with pytest.raises(UsageError) as caught:
        bind(SAMPLE, raw, door)
    return caught.value


def test_every_parameter_is_there_with_its_default():
    assert bind(SAMPLE, {"text": "x"}) == {
        "text": "x", "count": 10, "exact": None, "least": None, "tags": (), "word": "one", "flag": False,
        "only_cli": None, "only_mcp": None,
    }


def test_null_takes_the_default_and_does_not_stand_for_a_required_value():
    assert bound("count", None) == 10 and bound("tags", None) == ()
    assert "needs the argument 'text'" in refusal(text=None).message


INTEGERS = [
    # given, taken by `count` (clamped to 1-20; None: refused)
    (5, 5), ("5", 5), (" 7 ", 7), ("+7", 7), (5.0, 5), (0, 1), (-1, 1), ("-3", 1), (100, 20), (10**30, 20),
    (-(10**30), 1), ("9" * 40, 20), ("٣", 3), ("５", 5), (1e18, 20),
    (True, None), (False, None), ("", None), (" ", None), ("x", None), ("5x", None), ("5.0", None), ("1e3", None),
    ("--5", None), ("+-5", None), ("-", None), ("+", None), ("²", None), ("0x5", None), ("1_0", None), (5.5, None),
    (math.inf, None), (-math.inf, None), (math.nan, None), ([5], None), ({}, None), ("9" * 5000, None), ("5\n6", None),
]  # fmt: skip


@pytest.mark.parametrize("given, taken", INTEGERS, ids=lambda value: repr(value)[:20])
def test_a_whole_number_is_taken_in_any_usual_form_and_pulled_to_its_bounds(given, taken):
    if taken is None:
        error = refusal(text="x", count=given)
        assert error.message == "sample: count must be a whole number" and error.hint == "count: 1-20"
    else:
        assert bound("count", given) == taken


@pytest.mark.parametrize("name, value, words", [
    ("exact", 6, "must be between 1 and 5, not 6"),
    ("exact", 0, "must be between 1 and 5, not 0"),
    ("least", 1, "must be at least 2"),
])
def test_without_clamp_a_number_out_of_bounds_is_refused(name, value, words):
    assert refusal(**{"text": "x", name: value}).message == f"sample: {name} {words}"


ARRAYS = [
    (["a", "b"], ["a", "b"]), (("a",), ["a"]), ([], []), ("a,b", ["a", "b"]), (" a , b ,", ["a", "b"]),
    ("", []), ("甲，乙", ["甲", "乙"]), ('["a", "b,c"]', ["a", "b,c"]), ("[]", []), ("[wip], x", ["[wip]", "x"]),
    ("[" * 100_000, ["[" * 100_000]), ("[1, 2]", None), ([1], None), ([["a"]], None), ([None], None),
    ({"a": 1}, None), (5, None), (True, None),
]  # fmt: skip


@pytest.mark.parametrize("given, taken", ARRAYS, ids=lambda value: repr(value)[:20])
def test_a_list_is_taken_as_a_list_as_json_text_or_with_commas(given, taken):
    if taken is None:
        assert refusal(text="x", tags=given).message == "sample: tags must be a list of texts"
    else:
        assert bound("tags", given) == taken


@pytest.mark.parametrize("given, taken", [
    ("30d", "30d"), (30, "30"), (30.0, "30"), (0.6, "0.6"), (-1, "-1"), (True, None), ([30], None), ({}, None),
])  # fmt: skip
def test_a_scalar_may_be_given_as_a_number(given, taken):
    sample = SAMPLE._replace(params=(param("ttl", "scalar", help="how long"),))
    assert input_schema(sample)["properties"]["ttl"]["type"] == "string"
    if taken is None:
        with pytest.raises(UsageError, match="ttl must be text"):
            bind(sample, {"ttl": given})
    else:
        assert bind(sample, {"ttl": given}) == {"ttl": taken}


@pytest.mark.parametrize("value", [1, True, 1.5, [], {}, ["x"]])
def test_a_text_must_be_text(value):
    assert refusal(text=value).message == "sample: text must be text"


@pytest.mark.parametrize("value", ['{"a": 1}', "[1]", "null", "5", "true", "", "a\0b", "\u200b", "x" * 100_000])
def test_a_text_is_taken_as_it_is_and_never_decoded(value):
    assert bind(SAMPLE, {"text": value})["text"] == value


@pytest.mark.parametrize("given, taken", [
    ("bad\udcff\udcfename", "bad\ufffd\ufffdname"),  # bytes of a command line
    ("cut\udce4\udcb8", "cut\ufffd"),  # as a file name with these bytes is listed
    ("\ud800x", "\ufffdx"),  # an escape in JSON
    ("\ud83d\ude00", "\ufffd\ufffd"),
])
def test_half_characters_become_a_replacement_in_texts_and_lists(given, taken):
    assert bind(SAMPLE, {"text": given})["text"] == taken
    assert bound("tags", [given]) == [taken]


@pytest.mark.parametrize("value", ["true", "false", 1, 0, "", None])
def test_a_switch_is_true_or_false_and_nothing_else(value):
    if value is None:
        assert bound("flag", value) is False
    else:
        assert refusal(text="x", flag=value).message == "sample: flag must be true or false"


def test_a_choice_outside_the_list_names_the_list_and_no_credential():
    assert refusal(text="x", word="three").message == "sample: word must be one of one, two, not 'three'"
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    message = refusal(text="x", word=token).message
    assert token[:12] not in message and "redacted" in message


def test_each_door_has_its_own_arguments_and_an_unknown_one_is_named():
    assert bound("only_cli", "x", door="cli") == "x" and bound("only_mcp", 5) == 5
    error = refusal(text="x", only_cli="x")
    assert error.message == "sample has no argument 'only_cli'"
    assert error.hint == "it takes: text, count, exact, least, tags, word, flag, only_mcp"
    assert "no argument 'only_mcp'" in refusal(door="cli", text="x", only_mcp=1).message
    assert "no argument 'TEXT'" in refusal(TEXT="x").message


# ---- every real operation ------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_schema_is_one_plain_object_that_the_strictest_clients_take(operation):
    schema = input_schema(operation)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["type"] == "object" and set(schema) <= {"type", "properties", "required"}
    for name, entry in schema["properties"].items():
        assert name.isidentifier() and name.islower()
        assert set(entry) <= {"type", "items", "enum", "description"}
        assert entry["type"] in ("string", "integer", "boolean", "array") and entry.get("description") != ""
    assert set(schema.get("required", ())) <= set(schema["properties"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_record_is_complete_and_its_defaults_pass_its_own_checks(operation):
    assert operation.summary and operation.title and callable(operation.run) and callable(operation.text)
    first = next(o for o in OPERATIONS if o.tool == operation.tool)  # the one that speaks for a shared tool
    assert (operation.tool is None) == (not first.description)
    assert all(p.help for p in operation.params)
    for door in ("cli", "mcp"):
        raw = {p.name: "1" for p in operation.params if p.required and p.door in ("both", door)}
        args = bind(operation, raw, door)
        assert list(args) == [p.name for p in operation.params]
        kept = {p.name: p.default for p in operation.params if p.default is not None and p.door in ("both", door)}
        again = bind(operation, {**raw, **{name: list(v) if v == () else v for name, v in kept.items()}}, door)
        assert {name: tuple(v) if v == [] else v for name, v in again.items()} == args


def test_names_are_unique_and_flags_do_not_clash():
    names = [o.name for o in OPERATIONS if not o.claims]
    assert len(set(names)) == len(names)
    assert all(tool.startswith("memory_") for tool in by_tool(o for o in OPERATIONS if o.tool))
    for operation in OPERATIONS:
        flags = [f for p in operation.params if p.door != "mcp" for f in (*p.flags, "--" + p.name.replace("_", "-"))]
        assert len(set(flags)) == len(flags)
        assert not set(flags) & {"--json", "--db", "--vault", "--debug", "--help", "-h"}


# ---- several operations, one tool ----------------------------------------------------------------


def spoken(name, *params, **more):
    """An operation of the tool `t` that answers with its name and its arguments."""
    record = {"read_only": False, "destructive": False, "idempotent": True, "output": {}, **more}
    return Operation(name=name, tool="t", title="T", summary="s", description="d", params=params,
                     run=lambda app, args: (name, args), text=str, exit_code=lambda result: 0, **record)  # fmt: skip


def test_operations_that_share_a_tool_are_told_apart_by_action():
    card = param("card", "card", "which", required=True)
    keep, drop = spoken("keep", card), spoken("drop", card, param("yes", "boolean", "do it", default=False),
                                              destructive=True)  # fmt: skip
    joined = by_tool([keep, drop])["t"]
    assert input_schema(joined)["properties"]["action"]["enum"] == ["keep", "drop"]
    assert (joined.destructive, joined.read_only, joined.idempotent) == (True, False, True)
    assert joined.run(None, bind(joined, {"card": 7})) == ("keep", {"card": "7"})
    assert joined.run(None, bind(joined, {"card": "a.md", "action": "drop", "yes": True})) == (
        "drop", {"card": "a.md", "yes": True},
    )  # fmt: skip
    with pytest.raises(UsageError, match="keep has no argument 'yes'"):
        joined.run(None, bind(joined, {"card": "a.md", "yes": True}))


def test_a_tool_of_one_operation_is_that_operation():
    alone = spoken("keep")
    assert by_tool([alone]) == {"t": alone}
