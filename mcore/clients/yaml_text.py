"""Edits block-style YAML as text, without a YAML library. Pure: no files.

The reader knows what configuration files are made of: block maps and lists (also lists that start
at the column of their key), quoted, plain and block scalars, comments, and flow values, which it
reads but never extends. What it cannot follow (tabs as indent, several documents, `? ` keys,
anchors on a container that would have to change) is refused with line and reason.
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

MAX_DEPTH = 100
FLOW_HINT = "rewrite it in block style (one entry a line), or add the lines of --print by hand"

_Node = namedtuple("_Node", "kind value start stop last")
_Node.__doc__ = """A value: kind map (list of _Entry), list (list of _Entry, key None), scalar, flow, null, alias.

`start` and `stop` are offsets (for null: both behind the colon), `last` the number, from 0, of the
last line it uses. A container with an anchor or a tag is of kind `marked`.
"""
_Entry = namedtuple("_Entry", "key line column node after")
_Entry.__doc__ = """A key or a dash: its line (from 0), its column, its value, the offset behind the colon or dash."""

_Style = namedtuple("_Style", "newline unit dash")

_SIGNS = r"\[\]{}#&*!|>'\"%@`,"
_PLAIN_KEY = re.compile(rf"(?![{_SIGNS}])(?![?-](?:\s|$))[^\s#](?:[^:#]|:(?!\s|$)|(?<!\s)#)*?(?=\s*:(?:\s|$))")
_DOUBLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SINGLE = re.compile(r"'[^']*(?:''[^']*)*'")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:[ \t]#.*)?$")
_MARK = re.compile(r"(?:[&!][^\s]*)(?:[ \t]+|$)")
_TAIL = re.compile(r"[ \t]*(?:(?<=[ \t])#.*)?$")
_SIMPLE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*)?\.?[0-9]+(?:[eE][-+]?[0-9]+)?")


class _Reader:
    """One pass over a text; `root` is None for a text of comments and markers only."""

    def __init__(self, text):
        self.text = text
        self.lines = []  # (offset, content without line end and trailing spaces)
        at = body_start(text)
        for line in text[at:].split("\n"):
            self.lines.append((at, line.rstrip("\r \t")))
            at += len(line) + 1
        self.open = self.prologue()
        first = self.next_content(self.open)
        self.root = None
        if first < len(self.lines):
            self.root, follow = self.block(first, self.indent(first), 0)
            follow = self.next_content(follow)
            if follow < len(self.lines):
                raise self.fault(follow, "this line does not fit the indentation above it")

    def fault(self, line, reason, hint=""):
        return ConfigFault(line + 1, reason, hint)

    def content(self, line):
        return self.lines[line][1]

    def prologue(self):
        """The first line of the document; directives and one `---` may stand before it."""
        for line, (_, content) in enumerate(self.lines):
            if content == "---" or content.startswith("--- #"):
                return line + 1
            if content and not content.startswith(("#", "%")):
                break
        return 0

    def next_content(self, line):
        """The first line from `line` on that is neither empty nor a comment."""
        while line < len(self.lines):
            content = self.content(line).lstrip(" ")
            if content.startswith("\t") and content.strip() and not content.strip().startswith("#"):
                raise self.fault(line, "a tab is used as indentation")
            if content.strip() and not content.strip().startswith("#"):
                if content.startswith(("--- ", "... ")) or self.content(line) in ("---", "..."):
                    raise self.fault(line, "the file holds several documents", "add the lines of --print by hand")
                return line
            line += 1
        return line

    def indent(self, line):
        content = self.content(line)
        return len(content) - len(content.lstrip(" "))

    def block(self, line, column, depth):
        """The node that begins at `column` of `line`, and the first line behind it."""
        if depth > MAX_DEPTH:
            raise self.fault(line, f"nested deeper than {MAX_DEPTH} levels")
        rest = self.content(line)[column:]
        if rest == "-" or rest.startswith("- "):
            return self.entries(line, column, depth, "list")
        if self.key(line, column) is not None:
            return self.entries(line, column, depth, "map")
        if rest.startswith("? "):
            raise self.fault(line, "keys written with ? are not understood", FLOW_HINT)
        return self.value(line, column, column - 1, depth)

    def key(self, line, column):
        """(key, column behind its colon) of the map entry here, or None."""
        rest = self.content(line)[column:]
        for pattern in (_DOUBLE, _SINGLE):
            found = pattern.match(rest)
            if found:
                behind = re.compile(r"[ \t]*:(?=[ \t]|$)").match(rest, found.end())
                return (_unquoted(found.group()), column + behind.end()) if behind else None
        found = _PLAIN_KEY.match(rest)
        if not found:
            return None
        return found.group(), column + rest.index(":", found.end()) + 1

    def entries(self, line, column, depth, kind):
        """The map or list whose entries begin at `column`, and the first line behind it."""
        found, start, keys = [], self.lines[line][0] + column, set()
        while True:
            rest = self.content(line)[column:]
            if kind == "list":
                if rest != "-" and not rest.startswith("- "):
                    break
                key, after = None, column + 1
                node, follow = self.item(line, column, depth)
            else:
                named = self.key(line, column)
                if named is None:
                    raise self.fault(line, "a key with a colon is expected")
                key, after = named
                if key in keys and key != "<<":
                    raise self.fault(line, f"the key {key!r} stands twice")
                keys.add(key)
                node, follow = self.value(line, after, column, depth)
            found.append(_Entry(key, line, column, node, self.lines[line][0] + after))
            line = self.next_content(follow)
            if line >= len(self.lines) or self.indent(line) < column:
                break
            if self.indent(line) > column:
                raise self.fault(line, "this line is indented deeper than its neighbours")
            if kind == "map" and re.match(r"-(?: |$)", self.content(line)[column:]):
                raise self.fault(line, "a list item stands among keys")
        last = found[-1].node.last
        return _Node(kind, found, start, found[-1].node.stop, last), line

    def item(self, line, column, depth):
        """The value behind a dash; a map or list may begin on the same line."""
        rest = self.content(line)[column + 1 :]
        inner = column + 1 + len(rest) - len(rest.lstrip(" "))
        rest = rest.strip()
        if rest and not rest.startswith("#"):
            if rest == "-" or rest.startswith("- ") or self.key(line, inner) is not None:
                return self.block(line, inner, depth + 1)
        return self.value(line, column + 1, column, depth)

    def value(self, line, column, outer, depth):
        """The value that begins behind `column` of `line`, deeper than column `outer`."""
        content = self.content(line)
        while column < len(content) and content[column] in " \t":
            column += 1
        rest, marked = content[column:], False
        while _MARK.match(rest):
            marked = True
            width = _MARK.match(rest).end()
            column, rest = column + width, rest[width:]
        start = self.lines[line][0] + column
        if not rest or rest.startswith("#"):
            return self.below(line, outer, depth, marked)
        if rest[0] == "*":
            return _Node("alias", None, start, start + len(rest), line), line + 1
        if _BLOCK.match(rest):
            return self.block_scalar(line, outer, start)
        if rest[0] in "\"'":
            return self.quoted_scalar(line, column, start)
        if rest[0] in "[{":
            return self.flow(start, depth)
        if rest[0] in "]},%@`" or rest.startswith("? "):
            raise self.fault(line, f"a value cannot begin with {rest[0]!r}")
        return self.plain(line, column, outer, start)

    def below(self, line, outer, depth, marked):
        """The value on the lines under a key or dash that has none on its own line."""
        follow = self.next_content(line + 1)
        nothing = self.lines[line][0] + len(self.content(line))
        if follow < len(self.lines):
            indent = self.indent(follow)
            dash = re.match(r"-(?: |$)", self.content(follow)[indent:])
            under_key = not re.match(r"-(?: |$)", self.content(line)[outer:]) if outer >= 0 else True
            if indent > outer or (indent == outer and dash and under_key):
                node, behind = self.block(follow, indent, depth + 1)
                if marked and node.kind in ("map", "list"):
                    node = node._replace(kind="marked")
                return node, behind
        return _Node("null", None, nothing, nothing, line), line + 1

    def block_scalar(self, line, outer, start):
        """A scalar after | or >; its first line sets the indentation of all."""
        told = re.search(r"[1-9]", self.content(line)[start - self.lines[line][0] :].split("#")[0])
        inner = max(outer, 0) + int(told.group()) if told else None
        follow = last = line + 1
        while follow < len(self.lines):
            content, indent = self.content(follow), self.indent(follow)
            if content and inner is None and indent > outer:
                inner = indent
            if content and (indent <= outer or indent < inner):
                if indent > outer and content[indent] != "#":
                    raise self.fault(follow, "this line is indented less than the text it belongs to")
                break
            follow += 1
            if content:
                last = follow
        stop = self.lines[last - 1][0] + len(self.content(last - 1))
        return _Node("scalar", self.text[start:stop], start, stop, last - 1), follow

    def quoted_scalar(self, line, column, start):
        sign = self.content(line)[column]
        found = (_DOUBLE if sign == '"' else _SINGLE).match(self.text, start)
        if not found:
            raise self.fault(line, "a quoted string is not closed")
        return self.ended("scalar", _unquoted(found.group()), start, found.end())

    def ended(self, kind, value, start, stop):
        """The node of a quoted or flow value; only a comment may follow it on its line."""
        last = line_at(self.text, stop) - 1
        offset, content = self.lines[last]
        if not _TAIL.match(content, stop - offset):
            raise self.fault(last, "there is text behind a value")
        return _Node(kind, value, start, stop, last), last + 1

    def plain(self, line, column, outer, start):
        """A plain scalar; deeper lines under it belong to it."""
        comment = re.search(r"[ \t]#", self.content(line)[column:])
        stop = start + (comment.start() if comment else len(self.content(line)) - column)
        first = self.text[start:stop].rstrip()
        if re.search(r":(?:\s|$)", first):
            raise self.fault(line, "a value holds a colon and a space: it needs quotes")
        stop, last, follow = start + len(first), line, line + 1
        words = [first]
        while not comment and follow < len(self.lines):
            content = self.content(follow)
            if content and self.indent(follow) <= outer:
                break
            if content.lstrip().startswith("#") or (content and self.key(follow, self.indent(follow))):
                break
            if content:
                words.append(content.strip())
                last, stop = follow, self.lines[follow][0] + len(content)
            follow += 1
        return _Node("scalar", _meaning(" ".join(words)), start, stop, last), last + 1

    def flow(self, start, depth):
        value, stop = _Flow(self, start, depth).result
        return self.ended("flow", value, start, stop)


class _Flow:
    """A flow value `[...]` or `{...}` read from an offset on; `result` is (value, offset behind it)."""

    def __init__(self, reader, start, depth):
        self.reader = reader
        self.text = reader.text
        self.at = start
        self.result = self.value(depth), self.at

    def fault(self, reason):
        return ConfigFault(line_at(self.text, min(self.at, len(self.text) - 1)), reason)

    def skip(self):
        self.at = re.compile(r"(?:[ \t\r\n]|(?<=[\s,\[{])#[^\n]*)*").match(self.text, self.at).end()

    def value(self, depth):
        if depth > MAX_DEPTH:
            raise self.fault(f"nested deeper than {MAX_DEPTH} levels")
        self.skip()
        first = self.text[self.at : self.at + 1]
        if first == "[":
            return self.items("]", depth)
        if first == "{":
            return self.items("}", depth)
        if first and first in "\"'":
            found = (_DOUBLE if first == '"' else _SINGLE).match(self.text, self.at)
            if not found:
                raise self.fault("a quoted string is not closed")
            self.at = found.end()
            return _unquoted(found.group())
        found = re.compile(r"(?:[^,\[\]{}#:\n]|:(?![\s,\]}]|\Z)|(?<!\s)#)+").match(self.text, self.at)
        if not found:
            raise self.fault("a value is missing in a flow list or map")
        self.at = found.end()
        return _meaning(found.group().strip())

    def items(self, close, depth):
        self.at += 1
        items, more = {} if close == "}" else [], True
        self.skip()
        while not self.text.startswith(close, self.at):
            if not more or self.at >= len(self.text):
                raise self.fault(f"a flow value is not closed with {close}")
            item = self.value(depth + 1)
            self.skip()
            value = None
            if self.text.startswith(":", self.at):
                self.at += 1
                self.skip()
                if not self.text.startswith((",", close), self.at):
                    value = self.value(depth + 1)
                if close == "]":
                    item = {str(item): value}
                self.skip()
            if close == "]":
                items.append(item)
            else:
                items[str(item)] = value
            more = self.text.startswith(",", self.at)
            if more:
                self.at += 1
                self.skip()
        self.at += 1
        return items


# An edit reads the same text several times.
_parsed = lru_cache(maxsize=3)(_Reader)


def read(text):
    """The document as plain values (numbers as Raw), None when empty; what an alias names is None.

    Raises ConfigFault with line and reason for what is broken or not understood.
    """
    root = _parsed(text).root
    return None if root is None else _plain(root)


def put(text, path, value):
    """`text` with `value` at `path`, replaced or added; missing maps and lists on the way are made.

    Raises ConfigFault when the text does not read or the place is written in flow style.
    """
    reader = _parsed(text)
    style = _style(text, reader)
    if reader.root is None or _is_empty(reader.root):
        return _put_root(text, reader, path, value, style)
    node, entry = reader.root, None
    for depth, step in enumerate(path):
        if entry is not None and _is_empty(node):
            splices = _fill(text, entry, path[depth:], value, style)
            return checked(text, splices, leaves)
        _fits(text, node, step)
        entry = _entry(node, step)
        if entry is None:
            wrapped = nested(path[depth + 1 :], value)
            lines = _lines(step, wrapped, node.value[0].column, style)
            return checked(text, [_behind(text, reader, node, path[:depth], lines, style)], leaves)
        node = entry.node
    if _plain(node) == settled(value):
        return text
    return checked(text, [_rewrite(entry, value, style)], leaves)


def drop(text, path):
    """`text` without the entry or item at `path`; a container left without any becomes {} or []."""
    reader = _parsed(text)
    node, entry, owner = reader.root, None, None
    for step in path:
        if node is None or node.kind not in ("map", "list"):
            return text
        if _entry(node, step) is None:
            return text
        owner, container = entry, node
        entry = _entry(node, step)
        node = entry.node
    start = reader.lines[entry.line][0]
    if text[start : start + entry.column].strip():
        raise ConfigFault(entry.line + 1, "the entry begins on the line of a dash", "take it out by hand")
    last = entry.node.last + 1
    stop = reader.lines[last][0] if last < len(reader.lines) else len(text)
    splices = [Splice(start, stop, "")]
    if stop == len(text) and not text.endswith("\n") and start > body_start(text):
        splices = [Splice(start - (2 if text.endswith("\r\n", 0, start) else 1), stop, "")]
    if len(container.value) == 1 and owner is not None:
        splices.insert(0, Splice(owner.after, owner.after, " {}" if container.kind == "map" else " []"))
        if owner.key is None:
            raise ConfigFault(entry.line + 1, "the entry begins on the line of a dash", "take it out by hand")
    return checked(text, splices, leaves)


def is_last(text, path):
    """Whether nothing follows the value at `path` in its container: where `put` would have put it."""
    node = _parsed(text).root
    for step in path:
        container, entry = node, _entry(node, step)
        node = entry.node
    return container.value[-1] is entry


def leaves(text):
    """Every scalar of the document in order, for the check after an edit."""
    found = []

    def walk(node, path):
        if node.kind in ("map", "list", "marked"):
            for entry in node.value:
                walk(entry.node, path + ("[]" if entry.key is None else entry.key,))
        elif not _is_empty(node):
            found.append(Leaf(path, text[node.start : node.stop], node.start))

    root = _parsed(text).root
    if root is not None:
        walk(root, ())
    return found


def snippet(value):
    """`value` as the text of a new file."""
    style = _Style("\n", 2, 2)
    if isinstance(value, list):
        return "\n".join(line for item in value for line in _item(item, 0, style))
    return "\n".join(line for key, item in value.items() for line in _lines(key, item, 0, style))


def _plain(node):
    if node.kind == "map" or (node.kind == "marked" and node.value[0].key is not None):
        return {entry.key: _plain(entry.node) for entry in node.value}
    if node.kind in ("list", "marked"):
        return [_plain(entry.node) for entry in node.value]
    return node.value


def _is_empty(node):
    """Whether the node is null (`~` too) or an empty flow list or map, which a block can replace."""
    return node.kind == "null" or (node.kind == "flow" and not node.value) or _is_null(node)


def _is_null(node):
    return node.kind == "scalar" and node.value is None


def _fits(text, node, step):
    """Raise unless `node` is a block container that has steps like `step`."""
    wanted = "map" if isinstance(step, str) else "list"
    if node.kind == wanted:
        return
    line = line_at(text, node.start)
    if node.kind in ("flow", "marked", "alias"):
        how = {"flow": "in flow style", "marked": "with an anchor or tag", "alias": "as an alias"}[node.kind]
        raise ConfigFault(line, f"the {wanted} here is written {how}", FLOW_HINT)
    raise ConfigFault(line, f"a {wanted} is expected here, not a {node.kind}", "mend or remove that value first")


def _entry(node, step):
    """The entry of a map or list at `step`, or None."""
    if isinstance(step, int):
        return node.value[step] if node.kind == "list" and step < len(node.value) else None
    return next((entry for entry in node.value if entry.key == step), None) if node.kind == "map" else None


def _style(text, reader):
    """How this text is laid out: line end, indent of a map in a map, of a list under its key."""
    unit = dash = None
    stack = [] if reader.root is None else [reader.root]
    while stack and (unit is None or dash is None):
        node = stack.pop(0)
        if node.kind not in ("map", "list"):
            continue
        for entry in node.value:
            inner = entry.node
            if entry.key is not None and inner.kind == "map" and unit is None:
                unit = inner.value[0].column - entry.column
            if entry.key is not None and inner.kind == "list" and dash is None:
                dash = inner.value[0].column - entry.column
            stack.append(inner)
    return _Style(newline_of(text), unit or 2, 2 if dash is None else dash)


def _put_root(text, reader, path, value, style):
    """`text`, which holds no entry yet, with the first one."""
    lines = snippet_lines(nested(path, value), style)
    if reader.root is not None and reader.root.kind != "null":
        start, stop = reader.root.start, reader.root.stop
        return checked(text, [Splice(start, stop, style.newline.join(lines))], leaves)
    lead = "" if not text[body_start(text) :] or text.endswith("\n") else style.newline
    end = style.newline if not lead else ""
    return checked(text, [Splice(len(text), len(text), lead + style.newline.join(lines) + end)], leaves)


def snippet_lines(value, style):
    """The lines of a whole document in `style`."""
    if isinstance(value, list):
        return [line for item in value for line in _item(item, 0, style)]
    return [line for key, item in value.items() for line in _lines(key, item, 0, style)]


def _fill(text, entry, path, value, style):
    """The splices that give `entry`, which has no value or an empty one, its first child."""
    lines = _below(nested(path, value), entry.column, style)
    end = text.find("\n", entry.node.stop)
    end = len(text) if end < 0 else end - (1 if text[end - 1] == "\r" else 0)
    splices = [Splice(end, end, style.newline + style.newline.join(lines))]
    if entry.node.kind != "null":
        splices.insert(0, Splice(entry.after, entry.node.stop, ""))
    return splices


def _behind(text, reader, container, path, lines, style):
    """The splice that puts `lines` behind the last entry of `container` and its closing comments."""
    column = container.value[0].column
    owner = -1
    node = reader.root
    for step in path:
        entry = _entry(node, step)
        owner, node = entry.column, entry.node
    last = container.value[-1].node.last
    while column > owner and last + 1 < len(reader.lines):
        content = reader.content(last + 1)
        if not content.lstrip().startswith("#") or reader.indent(last + 1) < column:
            break
        last += 1
    if last + 1 < len(reader.lines):
        at = reader.lines[last + 1][0]
        return Splice(at, at, "".join(line + style.newline for line in lines))
    return Splice(len(text), len(text), "".join(style.newline + line for line in lines))


def _rewrite(entry, value, style):
    """The splice that gives an existing entry another value."""
    if not isinstance(value, (dict, list)) and entry.node.kind == "scalar":
        return Splice(entry.node.start, entry.node.stop, _scalar(value))
    if not isinstance(value, (dict, list)) or not value:
        return Splice(entry.after, max(entry.after, entry.node.stop), " " + _scalar(value))
    lines = _below(value, entry.column, style)
    return Splice(entry.after, max(entry.after, entry.node.stop), "".join(style.newline + line for line in lines))


def _below(value, column, style):
    """The lines of a container under a key at `column`."""
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _lines(key, item, column + style.unit, style)]
    return [line for item in value for line in _item(item, column + style.dash, style)]


def _lines(key, value, column, style):
    """The lines of a map entry at `column` (of a list item when `key` is a number)."""
    if isinstance(key, int):
        return _item(value, column, style)
    name = " " * column + (key if _SIMPLE.fullmatch(key) and key.lower() not in _RESERVED else quoted(key)) + ":"
    if isinstance(value, (dict, list)) and value:
        return [name, *_below(value, column, style)]
    return [f"{name} {_scalar(value)}"]


def _item(value, column, style):
    """The lines of a list item whose dash stands at `column`."""
    if isinstance(value, dict) and value:
        lines = [line for key, item in value.items() for line in _lines(key, item, column + 2, style)]
        return [" " * column + "- " + lines[0].lstrip(" "), *lines[1:]]
    return [" " * column + "- " + _scalar(value)]


def _scalar(value):
    value = settled(value)
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, str):
        plain = _SIMPLE.fullmatch(value) and value.lower() not in _RESERVED
        return value if plain else quoted(value)
    if isinstance(value, (dict, list)):
        return "{}" if isinstance(value, dict) else "[]"
    return {True: "true", False: "false", None: "null"}[value]


def _meaning(word):
    """What a plain scalar stands for."""
    if word in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return word.lower() == "true"
    if word in ("null", "Null", "NULL", "~"):
        return None
    return Raw(word) if _NUMBER.fullmatch(word) else word


def _unquoted(word):
    """The text of a quoted scalar."""
    if word[0] == "'":
        return word[1:-1].replace("''", "'")
    try:
        return json.loads(word)
    except ValueError:
        return word[1:-1]  # an escape of YAML's own: good enough to compare, never written back
