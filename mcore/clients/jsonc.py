"""Edits JSON with comments and trailing commas as text. Pure: no files.

`read` gives plain values, `put` sets one value at a path, `drop` takes one out. Inserting and
removing are exact opposites, so that taking an entry out again gives the bytes of before: a new
member goes behind the last token or comment of its container, and brings a trailing comma only
where the container already ends with one.
"""

import json
import re
from functools import lru_cache

from mcore.clients.edits import (
    ConfigFault,
    Leaf,
    Raw,
    Splice,
    body_start,
    checked,
    line_at,
    nested,
    newline_of,
    quoted,
    settled,
)
from mcore.record import namedtuple

# A file of a real client nests some ten levels; this is far below Python's recursion limit.
MAX_DEPTH = 150

# Unrolled, so that a string without an end costs a linear search and not an exponential one.
_PLAIN = r'[^"\\\x00-\x1f]*'
_STRING = re.compile(rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{{4}}){_PLAIN})*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.])")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")
_SPACE = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\r\n]*")
_WORDS = {"true": True, "false": False, "null": None}

_Node = namedtuple("_Node", "kind start end value tail")
_Node.__doc__ = """A value and its span. `value` of an object or array is a list of `_Member`.

`tail` is the offset behind the last token or comment before the closing bracket.
"""
_Member = namedtuple("_Member", "key lead start node comma")
_Member.__doc__ = """A member of an object, or an item (`key` None).

`lead` is the offset behind the token or comment before it, `start` that of its first character,
`comma` that of the comma behind it or None.
"""
_Style = namedtuple("_Style", "newline unit tight one_line")


class _Reader:
    """One pass over a text; `root` is None for a text of white space and comments only.

    `line_ends` holds the offsets at which a // comment ends.
    """

    def __init__(self, text):
        self.text = text
        self.at = body_start(text)
        self.line_ends = set()
        self.skip()
        self.root = None
        if self.at < len(text):
            self.root = self.value(0)
            self.skip()
            if self.at < len(text):
                raise self.fault("there is text after the end of the document")

    def fault(self, reason):
        return ConfigFault(line_at(self.text, self.at), reason)

    def skip(self):
        """Go over white space and comments; the offset behind the last comment, or of where it began."""
        stop = self.at
        while True:
            self.at = _SPACE.match(self.text, self.at).end()
            if not self.text.startswith("/", self.at):
                return stop
            if self.text.startswith("//", self.at):
                self.at = stop = _LINE.match(self.text, self.at).end()
                self.line_ends.add(stop)
            elif self.text.startswith("/*", self.at):
                end = self.text.find("*/", self.at + 2)
                if end < 0:
                    raise self.fault("a /* comment is not closed")
                self.at = stop = end + 2
            else:
                return stop

    def value(self, depth):
        if depth > MAX_DEPTH:
            raise self.fault(f"nested deeper than {MAX_DEPTH} levels")
        start, first = self.at, self.text[self.at : self.at + 1]
        if first in ("{", "["):
            return self.container(first, depth)
        if first == '"':
            value = self.string()
            return _Node("string", start, self.at, value, None)
        for kind, pattern in (("number", _NUMBER), ("word", _WORD)):
            found = pattern.match(self.text, start)
            if found:
                self.at = found.end()
                value = Raw(found.group()) if kind == "number" else _WORDS[found.group()]
                return _Node(kind, start, self.at, value, None)
        raise self.fault(f"a value is expected, not {first!r}" if first else "the text ends too early")

    def string(self):
        """The string here."""
        found = _STRING.match(self.text, self.at)
        if not found:
            raise self.fault("a string is not closed or holds a bad escape or control character")
        self.at = found.end()
        token = found.group()
        return json.loads(token) if "\\" in token else token[1:-1]

    def container(self, bracket, depth):
        start, close = self.at, "}" if bracket == "{" else "]"
        self.at += 1
        members, lead, comma = [], self.skip(), True
        while not self.text.startswith(close, self.at):
            if comma is None:
                what = f"a comma or {close} is expected" if self.at < len(self.text) else f"a {close} is missing"
                raise self.fault(what)
            begin, key = self.at, self.key() if bracket == "{" else None
            node = self.value(depth + 1)
            before, comma = self.skip(), None
            if self.text.startswith(",", self.at):
                comma = self.at
                self.at += 1
                before = self.skip()
            members.append(_Member(key, lead, begin, node, comma))
            lead = before
        self.at += 1
        return _Node("object" if bracket == "{" else "array", start, self.at, members, lead)

    def key(self):
        if not self.text.startswith('"', self.at):
            there = self.text[self.at : self.at + 1]
            raise self.fault(f"a key in double quotes is expected, not {there!r}" if there else "a } is missing")
        key = self.string()
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.fault(f"a colon is missing behind the key {key!r}")
        self.at += 1
        self.skip()
        return key


# An edit reads the same text several times, and a file may hold megabytes.
_parsed = lru_cache(maxsize=3)(_Reader)


def read(text):
    """The document as plain values (numbers as Raw, the last of two equal keys wins), None when empty.

    Raises ConfigFault with line and reason for anything but JSON with comments and trailing commas.
    """
    root = _parsed(text).root
    return None if root is None else _plain(root)


def put(text, path, value):
    """`text` with `value` at `path`, replaced or added; missing maps and lists on the way are made.

    A value that is there already keeps its layout. Raises ConfigFault when the text does not read,
    or something of another kind stands on the way.
    """
    root = _parsed(text).root
    style = _style(text, root)
    if root is None:
        lead = text if not text[body_start(text) :] or text.endswith(("\n", "\r")) else text + style.newline
        return lead + _dump(nested(path, value), style, "", False) + style.newline
    node = root
    for depth, step in enumerate(path):
        if node.kind == "word" and node.value is None:
            return _replaced(text, node, nested(path[depth:], value), style)
        member = _member(text, node, step)
        if member is None:
            splices = _insertion(text, node, step, nested(path[depth + 1 :], value), style, node is root)
            return checked(text, splices, leaves)
        node = member.node
    return text if _plain(node) == settled(value) else _replaced(text, node, value, style)


def drop(text, path):
    """`text` without the member or item at `path` (of two equal keys the last, which is in force)."""
    node = _parsed(text).root
    container = None
    for step in path:
        container, member = node, node and _member(text, node, step)
        if member is None:
            return text
        node = member.node
    return checked(text, _removal(text, container, member), leaves)


def is_last(text, path):
    """Whether nothing follows the value at `path` in its container: where `put` would have put it."""
    node = _parsed(text).root
    for step in path:
        container, member = node, _member(text, node, step)
        node = member.node
    return container.value[-1] is member


def leaves(text):
    """Every scalar of the document in order, for the check after an edit."""
    found = []

    def walk(node, path):
        if node.kind not in ("object", "array"):
            found.append(Leaf(path, text[node.start : node.end], node.start))
            return
        for member in node.value:
            walk(member.node, path + ("[]" if member.key is None else member.key,))

    root = _parsed(text).root
    if root is not None:
        walk(root, ())
    return found


def snippet(value):
    """`value` as the text of a new file."""
    return _dump(value, _Style("\n", "  ", False, False), "", False)


def _plain(node):
    if node.kind == "object":
        return {member.key: _plain(member.node) for member in node.value}
    if node.kind == "array":
        return [_plain(member.node) for member in node.value]
    return node.value


def _member(text, node, step):
    """The member of `node` at `step`; None when it is missing; a fault when `node` has no such steps."""
    wanted = "object" if isinstance(step, str) else "array"
    if node.kind != wanted:
        raise ConfigFault(
            line_at(text, node.start),
            f"{text[node.start : node.start + 20].split()[0]!r} stands where an {wanted} is expected",
            "mend or remove that value first",
        )
    if wanted == "array":
        return node.value[step] if step < len(node.value) else None
    return next((member for member in reversed(node.value) if member.key == step), None)


def _style(text, root):
    """How this text is laid out: line end, indent of one level, colons without a space, one line."""
    unit, tight = "  ", False
    if root is not None and root.kind == "object" and root.value:
        first = root.value[0]
        unit = _indent(text, first.start) if _opens_line(text, first.start) else ""
        unit = unit[len(_indent(text, root.start)) :] or "  "
        colon = text[first.start : first.node.start]
        tight = colon.endswith(":")
    return _Style(newline_of(text), unit, tight, "\n" not in text.strip())


def _indent(text, offset):
    """The white space that opens the line of `offset`."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    start = max(start, body_start(text))
    return re.compile(r"[ \t]*").match(text, start).group()


def _opens_line(text, offset):
    """Whether only white space stands before `offset` on its line, and the line is not the first."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return start > 0 and not text[start:offset].strip()


def _replaced(text, node, value, style):
    """`text` with `node` written anew."""
    fresh = _dump(value, style, _indent(text, node.start), style.one_line)
    return checked(text, [Splice(node.start, node.end, fresh)], leaves)


def _insertion(text, container, key, value, style, is_root):
    """The splices that put a member or item at the end of `container`."""
    label = "" if not isinstance(key, str) else quoted(key) + (":" if style.tight and style.one_line else ": ")
    outer = _indent(text, container.start)
    if container.value:
        last = container.value[-1]
        own_line = _opens_line(text, last.start)
        indent = _indent(text, last.start)
        splices = [] if last.comma is not None else [Splice(last.node.end, last.node.end, ",")]
        end = "," if last.comma is not None else ""
    elif not text[container.start + 1 : container.end - 1].strip():
        own_line = is_root or not style.one_line
        start, stop = container.start + 1, container.end - 1
        if own_line:
            indent = outer + style.unit
            fresh = _dump(value, style, indent, False)
            return [Splice(start, stop, f"{style.newline}{indent}{label}{fresh}{style.newline}{outer}")]
        return [Splice(start, stop, label + _dump(value, style, "", True))]
    else:
        own_line = "\n" in text[container.tail : container.end]
        indent, splices, end = outer + style.unit, [], ""
    if own_line or container.tail in _parsed(text).line_ends:
        lead = style.newline + indent
    else:
        lead = "" if style.tight and style.one_line else " "
    fresh = lead + label + _dump(value, style, indent, not own_line) + end
    return [*splices, Splice(container.tail, container.tail, fresh)]


def _removal(text, container, member):
    """The splices that take `member` out of `container`, the opposite of `_insertion`."""
    place = next(index for index, other in enumerate(container.value) if other is member)
    end = member.node.end if member.comma is None else member.comma + 1
    if len(container.value) == 1:
        rest = text[container.start + 1 : member.lead] + text[end : container.end - 1]
        if not rest.strip():
            return [Splice(container.start + 1, container.end - 1, "")]
    splices = []
    if member.comma is None and place:
        comma = container.value[place - 1].comma
        splices.append(Splice(comma, comma + 1, ""))
    start = member.lead
    behind = _LINE.match(text, end).group().lstrip()
    if member.lead in _parsed(text).line_ends and behind and not behind.startswith("//"):
        # The line end before the entry closes a // comment: it must stay for what follows.
        start = member.start
        end = re.compile(r"[ \t]*").match(text, end).end()
    return [*splices, Splice(start, end, "")]


def _dump(value, style, indent, compact):
    """`value` as JSON: maps one member a line (unless `compact`), lists of scalars on one line."""
    comma, colon = (",", ":") if compact and style.tight else (", ", ": ")
    inner = indent + style.unit
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        parts = [
            quoted(key) + (colon if compact else ": ") + _dump(item, style, inner, compact)
            for key, item in value.items()
        ]
        brackets = "{}"
    elif isinstance(value, (list, tuple)):
        compact = compact or not any(isinstance(item, (dict, list)) for item in value)
        parts = [_dump(item, style, inner, compact) for item in value]
        brackets = "[]"
    else:
        return quoted(value) if isinstance(value, str) else json.dumps(value)
    if compact or not parts:
        return brackets[0] + comma.join(parts) + brackets[1]
    lines = f",{style.newline}{inner}".join(parts)
    return f"{brackets[0]}{style.newline}{inner}{lines}{style.newline}{indent}{brackets[1]}"
