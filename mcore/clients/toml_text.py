"""Edits TOML as text, without a TOML library (Python 3.10 has none). Pure: no files.

The reader understands the whole of TOML 1.0 well enough to know where each statement begins and
ends and what it defines; it is strict about syntax and lenient about dates. New entries become
`[table]` sections; what can only be said inside an inline table `{ ... }` is refused with a hint,
because such a table cannot be extended from outside and rewriting it would lose its layout.
"""

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
    look_up,
    newline_of,
    quoted,
    settled,
)
from mcore.record import namedtuple

MAX_DEPTH = 100

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_REST = re.compile(r"[ \t]*(?:#[^\r\n]*)?(\r?\n|\Z)")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_OTHER = re.compile(r"[^\s,\]}#]+(?: [0-9][0-9:.Zz+-]*)?")
_NUMBER = re.compile(
    r"[+-]?(?:inf|nan|0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*(?:\.[0-9_]+)?(?:[eE][+-]?[0-9_]+)?)"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9:.]+(?:[Zz]|[+-][0-9:]+)?)?|[0-9]{2}:[0-9]{2}(?::[0-9.]+)?"
)
_ESCAPE = re.compile(r'\\(?:(["\\bfnrte])|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([ \t]*\r?\n\s*))')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "e": "\x1b", '"': '"', "\\": "\\"}
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
_CONTROL_ML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_Statement = namedtuple("_Statement", "kind path start end value span")
_Statement.__doc__ = """A `table`, `item` ([[...]]) or `pair`, with its whole path (items by number).

`start` and `end` bound its lines, the line end included. A pair has the `value` it sets and that
value's `span` in the text.
"""

INLINE_HINT = "turn it into a [section] of its own, or add the lines of --print by hand"


class _Reader:
    """One pass over a text: `statements` in order, and the `document` they define."""

    def __init__(self, text):
        self.text = text
        self.at = body_start(text)
        self.document = {}
        self.statements = []
        self.section = ()
        self.seen = set()
        while True:
            start = self.at
            gap = _GAP.match(text, start).end()
            if gap >= len(text):
                return
            self.at = gap
            start = max(text.rfind("\n", 0, gap) + 1, body_start(text))
            self.statement(start)

    def fault(self, reason, at=None):
        return ConfigFault(line_at(self.text, self.at if at is None else at), reason)

    def statement(self, start):
        if self.text.startswith("[", self.at):
            return self.header(start)
        keys = self.keys("=")
        self.at = _BLANK.match(self.text, self.at + 1).end()
        begin = self.at
        value = self.value(0)
        span = (begin, self.at)
        path, table = self.descend(self.section, keys[:-1])
        if keys[-1] in table:
            raise self.fault(f"{'.'.join(keys)} is defined twice", begin)
        table[keys[-1]] = value
        self.finish("pair", path + keys[-1:], start, value, span)

    def header(self, start):
        double = self.text.startswith("[[", self.at)
        self.at = _BLANK.match(self.text, self.at + 1 + double).end()
        close = "]]" if double else "]"
        keys = self.keys(close)
        self.at += len(close)
        path, table = self.descend((), keys[:-1])
        path += keys[-1:]
        if double:
            items = table.setdefault(keys[-1], [])
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise self.fault(f"{'.'.join(keys)} is no array of tables")
            items.append({})
            path += (len(items) - 1,)
        else:
            if path in self.seen or not isinstance(table.setdefault(keys[-1], {}), dict):
                raise self.fault(f"the table {'.'.join(keys)} is defined twice")
            self.seen.add(path)
        self.section = path
        self.finish("item" if double else "table", path, start)

    def finish(self, kind, path, start, value=None, span=None):
        rest = _REST.match(self.text, self.at)
        if not rest:
            raise self.fault("the line should end here")
        self.at = rest.end()
        self.statements.append(_Statement(kind, path, start, self.at, value, span))

    def descend(self, path, keys):
        """Path and table that `keys` reach from `path`, tables made if missing; the last item of a list."""
        table = look_up(self.document, path)
        for key in keys:
            path += (key,)
            table = table.setdefault(key, {})
            if isinstance(table, list) and table:
                path += (len(table) - 1,)
                table = table[-1]
            if not isinstance(table, dict):
                raise self.fault(f"{key!r} is a value, not a table")
        return path, table

    def keys(self, end):
        """The dotted key here, as a tuple, up to the sign `end`."""
        keys = ()
        while True:
            if self.text.startswith(('"""', "'''"), self.at):
                raise self.fault("a key cannot be a multi-line string")
            if self.text.startswith(('"', "'"), self.at):
                keys += (self.string(),)
            else:
                found = _BARE.match(self.text, self.at)
                if not found:
                    there = self.text[self.at : self.at + 1].strip()
                    raise self.fault(f"a key is expected, not {there!r}" if there else "a key is expected")
                keys += (found.group(),)
                self.at = found.end()
            self.at = _BLANK.match(self.text, self.at).end()
            if self.text.startswith(end, self.at):
                return keys
            if not self.text.startswith(".", self.at):
                raise self.fault(f"{end!r} is expected behind {'.'.join(keys)}")
            self.at = _BLANK.match(self.text, self.at + 1).end()

    def value(self, depth):
        if depth > MAX_DEPTH:
            raise self.fault(f"nested deeper than {MAX_DEPTH} levels")
        first = self.text[self.at : self.at + 1]
        if first and first in "\"'":
            return self.string()
        if first == "[":
            return self.array(depth)
        if first == "{":
            return self.inline(depth)
        found = _OTHER.match(self.text, self.at)
        word = found.group() if found else ""
        if word in ("true", "false"):
            self.at = found.end()
            return word == "true"
        if not _NUMBER.fullmatch(word):
            word = word.split(" ")[0]
            if not _NUMBER.fullmatch(word):
                raise self.fault(f"{word[:30]!r} is no value" if word else "a value is missing")
        self.at += len(word)
        return Raw(word)

    def array(self, depth):
        items, more = [], True
        self.at = _GAP.match(self.text, self.at + 1).end()
        while not self.text.startswith("]", self.at):
            if not more:
                raise self.fault("a comma or ] is expected")
            items.append(self.value(depth + 1))
            self.at = _GAP.match(self.text, self.at).end()
            more = self.text.startswith(",", self.at)
            if more:
                self.at = _GAP.match(self.text, self.at + 1).end()
        self.at += 1
        return items

    def inline(self, depth):
        table, more = {}, True
        self.at = _GAP.match(self.text, self.at + 1).end()
        while not self.text.startswith("}", self.at):
            if not more:
                raise self.fault("a comma or } is expected")
            *lead, last = self.keys("=")
            self.at = _BLANK.match(self.text, self.at + 1).end()
            place = table
            for key in lead:
                place = place.setdefault(key, {})
            if not isinstance(place, dict) or last in place:
                raise self.fault(f"{last!r} is defined twice")
            place[last] = self.value(depth + 1)
            self.at = _GAP.match(self.text, self.at).end()
            more = self.text.startswith(",", self.at)
            if more:
                self.at = _GAP.match(self.text, self.at + 1).end()
        self.at += 1
        return table

    def string(self):
        """The string here, of any of the four kinds."""
        text, start, sign = self.text, self.at, self.text[self.at]
        triple = text.startswith(sign * 3, start)
        end = start = start + (3 if triple else 1)
        close, escapes = sign * 3 if triple else sign, sign == '"'
        while not text.startswith(close, end):
            if end >= len(text) or (not triple and text[end] == "\n"):
                raise self.fault("a string is not closed")
            end += 2 if escapes and text[end] == "\\" else 1
        stop = end
        if triple:  # up to two more quotes may stand before the closing three
            while stop - end < 2 and text.startswith(sign, stop + 3):
                stop += 1
        body = text[start:stop]
        if (_CONTROL_ML if triple else _CONTROL).search(body):
            raise self.fault("a string holds a control character")
        self.at = stop + len(close)
        if triple:
            body = re.sub(r"\A\r?\n", "", body)
        return self.unescaped(body) if escapes else body

    def unescaped(self, body):
        parts, done = [], 0
        while True:
            slash = body.find("\\", done)
            if slash < 0:
                return "".join(parts) + body[done:]
            found = _ESCAPE.match(body, slash)
            if not found:
                raise self.fault(f"{body[slash : slash + 2]!r} is no escape")
            short, *codes, _ = found.groups()
            number = int(next((code for code in codes if code), "20"), 16)
            if number > 0x10FFFF:
                raise self.fault(f"{found.group()!r} is no character")
            code = chr(number) if any(codes) else ""
            parts += [body[done:slash], _ESCAPED[short] if short else code]
            done = found.end()


# An edit reads the same text several times.
_parsed = lru_cache(maxsize=3)(_Reader)


def read(text):
    """The document as plain values (numbers and dates as Raw); an empty text gives {}.

    Raises ConfigFault with line and reason for anything that is not TOML.
    """
    return settled(_parsed(text).document)


def put(text, path, value):
    """`text` with `value` at `path`: a pair changed or added, a section or [[item]] added.

    Raises ConfigFault when the text does not read, or the place lies in an inline table or array.
    """
    reader = _parsed(text)
    for statement in reader.statements:
        if statement.kind != "pair" or statement.path != path[: len(statement.path)]:
            continue
        if statement.path == path:
            if statement.value == settled(value):
                return text
            return checked(text, [Splice(*statement.span, _inline(value))], leaves)
        if statement.path == path[:-1] and isinstance(statement.value, dict) and not isinstance(value, dict):
            whole = {**statement.value, path[-1]: value}
            return checked(text, [Splice(*statement.span, _inline(whole))], leaves)
        name = ".".join(str(step) for step in statement.path)
        raise ConfigFault(
            line_at(text, statement.start), f"{name} is written inline and cannot be extended", INLINE_HINT
        )
    if isinstance(value, dict):
        return _add_section(text, reader, path, value)
    return _add_pair(text, reader, path, value)


def drop(text, path):
    """`text` without everything that defines `path`: its sections, their sub-tables, its pairs."""
    reader = _parsed(text)
    spans = []
    for place, statement in enumerate(reader.statements):
        if statement.path[: len(path)] == path:
            start, end = statement.start, statement.end
            if statement.kind != "pair":
                end = _section_end(reader, place)
                start = _over_blank_line(text, start)
            if spans and start <= spans[-1][1]:
                start, end = spans[-1][0], max(end, spans.pop()[1])
            spans.append((start, end))
        elif statement.kind == "pair" and statement.path == path[: len(statement.path)]:
            if look_up(reader.document, path) is not None:
                name = ".".join(str(step) for step in statement.path)
                raise ConfigFault(line_at(text, statement.start), f"{name} is written inline", INLINE_HINT)
    if spans and spans[-1][1] == len(text) and not text.endswith("\n") and spans[-1][0] > body_start(text):
        start, end = spans.pop()
        spans.append((start - (2 if text.endswith("\r\n", 0, start) else 1), end))
    return checked(text, [Splice(start, end, "") for start, end in spans], leaves)


def is_last(text, path):
    """Always true: a TOML table has no brackets that could be left behind empty."""
    return True


def leaves(text):
    """Every pair and header in order, for the check after an edit."""
    found = []
    for statement in _parsed(text).statements:
        path = tuple("[]" if isinstance(step, int) else step for step in statement.path)
        start, stop = statement.span or (statement.start, statement.start)
        found.append(Leaf(path, text[start:stop], start))
    return found


def snippet(value):
    """`value` (a nest of tables) as the text of a new file."""
    lines = []
    for key, table in value.items():
        _walk_down((key,), table, lines)
    return "\n".join(lines)


def _walk_down(path, value, lines):
    """Lines for `value`, a header for each table that has pairs of its own."""
    if isinstance(value, list):
        for item in value:
            lines += ([""] if lines else []) + _section((*path, 0), item)
    elif any(not isinstance(item, (dict, list)) for item in value.values()):
        lines += ([""] if lines else []) + _section(path, value)
    else:
        for key, item in value.items():
            _walk_down((*path, key), item, lines)


def _add_section(text, reader, path, value):
    """`text` with a `[path]` or `[[path]]` section behind the last one of the same family."""
    block = _section(path, value)
    family = [place for place, statement in enumerate(reader.statements) if statement.path[:1] == path[:1]]
    close = [place for place in family if reader.statements[place].path[: len(path) - 1] == path[:-1]]
    at = len(text)
    if close or family:
        place = (close or family)[-1]
        while place + 1 < len(reader.statements) and reader.statements[place + 1].kind == "pair":
            place += 1
        at = _over_comments(text, reader.statements[place].end)
    newline = newline_of(text)
    lead = ""
    if at > body_start(text):
        lead = newline if text.endswith("\n", 0, at) else newline * 2
    end = "" if at == len(text) and lead and not text.endswith("\n") else newline
    return checked(text, [Splice(at, at, lead + newline.join(block) + end)], leaves)


def _add_pair(text, reader, path, value):
    """`text` with one more pair at the end of the section that holds its table."""
    for place, statement in enumerate(reader.statements):
        if statement.path == path[:-1] and statement.kind != "pair":
            end = _section_end(reader, place)
            newline = newline_of(text)
            line = f"{_key(path[-1])} = {_inline(value)}"
            line = line + newline if text.endswith("\n", 0, end) else newline + line
            return checked(text, [Splice(end, end, line)], leaves)
    name = ".".join(str(step) for step in path)
    raise ConfigFault(0, f"there is no section to put {name} into", "add the lines of --print by hand")


def _section(path, value):
    """The lines of a section: header, pairs, then the sections below it."""
    name = ".".join(_key(step) for step in path if isinstance(step, str))
    lines = [f"[[{name}]]" if isinstance(path[-1], int) else f"[{name}]"]
    below = []
    for key, item in value.items():
        if isinstance(item, dict):
            below += _section((*path, key), item)
        elif isinstance(item, list) and item and all(isinstance(each, dict) for each in item):
            for each in item:
                below += _section((*path, key, 0), each)
        else:
            lines.append(f"{_key(key)} = {_inline(item)}")
    return lines + below


def _section_end(reader, place):
    """The offset behind the last pair that belongs to the header at `place`."""
    while place + 1 < len(reader.statements) and reader.statements[place + 1].kind == "pair":
        place += 1
    return reader.statements[place].end


def _over_blank_line(text, start):
    """`start`, or the start of the empty line above it."""
    above = text.rfind("\n", 0, max(start - 1, 0)) + 1
    above = max(above, body_start(text))
    return above if start > above and not text[above:start].strip() else start


def _over_comments(text, at):
    """`at`, or the end of the comment lines that follow it and do not stand over a header."""
    end = at
    while True:
        stop = text.find("\n", end) + 1 or len(text)
        line = text[end:stop].strip()
        if not line.startswith("#"):
            return at if line else end
        end = stop


def _key(key):
    return key if _BARE.fullmatch(key) else quoted(key)


def _inline(value):
    """`value` on one line."""
    value = settled(value)
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {_inline(item)}" for key, item in value.items())
        return "{ " + pairs + " }" if pairs else "{}"
    return quoted(value)
