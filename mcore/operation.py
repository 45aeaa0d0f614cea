"""One operation as one record, and the single place where arguments are checked.

A door (command line, MCP) reads the list of records and adds nothing: the record gives the
arguments with their help and bounds, the call, the text form of the result and the exit code.
"""

from mcore.errors import UsageError
from mcore.record import namedtuple

Param = namedtuple(
    "Param",
    "name type help default required choices minimum maximum clamp positional flags door brief",
)
Param.__doc__ = """One argument of an operation.

`type` is string, integer, boolean, array (of strings), card (an id or a path; a string to JSON) or scalar (a
string that may be given as a number: `30` of a ttl, `0.6`).
`choices` are the allowed strings. A number outside [`minimum`, `maximum`] is pulled to the bound when
`clamp` is set, refused otherwise. `positional` and `flags` ("-n") shape the command line alone. `door`
is "cli" or "mcp" for an argument that only one of them offers, "both" otherwise. `brief` is what a model is
told where the name says nearly enough (None: `help`): every conversation pays for these words.
"""

Operation = namedtuple(
    "Operation",
    "name tool title summary description params run text exit_code read_only destructive idempotent output claims",
    defaults=(None,),
)
Operation.__doc__ = """What both doors offer.

`name` is the command word, `tool` the MCP name (None: command line only), `summary` the help line,
`description` what a model reads before it decides to call. `run(app, args)` returns a result
tuple, `text(result)` its text form, `exit_code(result)` the process status. `output` is the JSON
schema of the result's properties. Where two operations have one command word, `claims(words)` of the
first says whether a command line means it; `words` are those after the command word, without flags.
"""


def param(
    name,
    type="string",
    help="",
    *,
    default=None,
    required=False,
    choices=None,
    minimum=None,
    maximum=None,
    clamp=False,
    positional=False,
    flags=(),
    door="both",
    brief=None,
):
    """A `Param` with the usual defaults."""
    return Param(
        name, type, help, default, required, choices, minimum, maximum, clamp, positional, tuple(flags), door, brief
    )


def bind(operation, raw, door="mcp"):
    """The checked arguments of one call as a dict with every parameter present.

    `raw` maps names to JSON-like values; a missing or null value takes the default. Raises
    UsageError naming the argument, its value's fault and what would be right. An array may arrive
    as the JSON text of one or as comma-separated text (some MCP clients send both); a string is
    never decoded.
    """
    known = {p.name: p for p in operation.params if p.door in ("both", door)}
    unknown = [name for name in raw if name not in known]
    if unknown:
        raise UsageError(
            f"{operation.name} has no argument {unknown[0]!r}",
            hint="it takes: " + (", ".join(known) or "none"),
        )
    args = {p.name: p.default for p in operation.params}
    for name, p in known.items():
        value = raw.get(name)
        if value is None:
            if p.required:
                raise UsageError(f"{operation.name} needs the argument {name!r}", hint=f"give {name}: {p.help}")
            continue
        args[name] = _checked(operation, p, value)
    return args


def _checked(operation, p, value):
    """`value` as `p` wants it, or UsageError."""

    def wrong(why):
        return UsageError(f"{operation.name}: {p.name} {why}", hint=f"{p.name}: {p.help}")

    if p.type == "integer":
        value = _integer(value)
        if value is None:
            raise wrong("must be a whole number")
        low, high = p.minimum, p.maximum
        if p.clamp:
            if low is not None:
                value = max(low, value)
            return value if high is None else min(high, value)
        if (low is not None and value < low) or (high is not None and value > high):
            raise wrong(f"must be between {low} and {high}, not {value}" if high else f"must be at least {low}")
        return value
    if p.type == "boolean":
        if not isinstance(value, bool):
            raise wrong("must be true or false")
        return value
    if p.type == "array":
        return _strings(value, wrong)
    if p.type in ("card", "scalar") and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if p.type == "scalar" and isinstance(value, float):
        value = str(int(value) if value.is_integer() else value)
    if not isinstance(value, str):
        raise wrong("must be text")
    value = _whole(value)
    if p.choices and value not in p.choices:
        from mcore.secretscan import redact

        raise wrong(f"must be one of {', '.join(p.choices)}, not {redact(value)[:60]!r}")
    return value


_MAX_DIGITS = 1000  # int() refuses over 4,300


def _integer(value):
    """A whole number, also from 5.0 or "5"; None when it is none (True is not 1)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.strip()
        if not digits.removeprefix("-" if digits.startswith("-") else "+").isdecimal() or len(digits) > _MAX_DIGITS:
            return None
        return int(digits)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _strings(value, wrong):
    """A list of strings from a list, the JSON text of a list, or comma-separated text."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            import json

            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                value = text
        if isinstance(value, str):
            value = [piece for piece in (part.strip() for part in value.replace("，", ",").split(",")) if piece]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise wrong("must be a list of texts")
    return [_whole(item) for item in value]


_LONE = "[\ud800-\udfff]"


def _whole(text):
    """Text without lone surrogates, as the index names a file: undecodable bytes become U+FFFD.

    Bytes of a command line that are not UTF-8 arrive as one surrogate each; a JSON escape may hold any.
    """
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        import re

        return re.sub(_LONE, "\ufffd", text)


def carry_out(operation, app, args):
    """The result of an operation for checked arguments; what looks like a credential is taken out of its warnings."""
    result = operation.run(app, args)
    notes = getattr(result, "warnings", None)
    if not notes:
        return result
    from mcore.secretscan import redact

    return result._replace(warnings=[n._replace(message=redact(n.message), hint=redact(n.hint)) for n in notes])


def by_tool(operations):
    """Tool name -> operation, in the order of the list; operations that share a tool are joined into one."""
    groups = {}
    for operation in operations:
        groups.setdefault(operation.tool, []).append(operation)
    return {tool: group[0] if len(group) == 1 else _joined(group) for tool, group in groups.items()}


def _joined(group):
    """One operation for several: `action` names the one that is meant (the first by default)."""
    named = {operation.name: operation for operation in group}
    first = group[0]
    params = {p.name: p for operation in group for p in operation.params}
    action = param("action", help="which", choices=tuple(named), default=first.name)

    def run(app, args):
        operation = named[args["action"]]
        own = [p.name for p in operation.params]
        for name, p in params.items():
            if name not in own and args[name] != p.default:
                raise UsageError(f"{operation.name} has no argument {name!r}", hint="it takes: " + ", ".join(own))
        return operation.run(app, {name: args[name] for name in own})

    return first._replace(
        title=", ".join(named).capitalize(),
        description=" ".join(f"{name}: {operation.description}" for name, operation in named.items()),
        params=(action, *params.values()),
        run=run,
        read_only=all(operation.read_only for operation in group),
        destructive=any(operation.destructive for operation in group),
        idempotent=all(operation.idempotent for operation in group),
    )


def input_schema(operation):
    """The JSON schema of the arguments: one plain object, one type a property (strictest clients)."""
    properties, required = {}, []
    for p in operation.params:
        if p.door == "cli":
            continue
        entry = {"type": "string" if p.type in ("card", "scalar") else p.type}
        if p.type == "array":
            entry["items"] = {"type": "string"}
        if p.choices:
            entry["enum"] = list(p.choices)
        entry["description"] = p.brief or p.help
        properties[p.name] = entry
        if p.required:
            required.append(p.name)
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema
