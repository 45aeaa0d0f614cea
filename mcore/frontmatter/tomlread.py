"""The TOML between `+++` lines -> a dict; small, and it never refuses a block.

Reads strings of all four kinds, true/false, arrays over several lines, `[table]`, `[[tables]]`,
dotted and quoted keys, inline tables and comments. Numbers and dates keep their written text, as
everywhere in frontmatter. (Python 3.10 has no tomllib, which also raises and types.) A value that
does not parse becomes the text of the rest of its line.
"""

import re

from mcore.frontmatter.quoting import DOUBLE, Unreadable, unescape
from mcore.frontmatter.yamlflow import MAX_DEPTH
from mcore.pattern import Pattern

MAX_WARNINGS = 100

_LINE_END = Pattern(r"\r\n?")
_SPACE = Pattern(r"[ \t]*")
_GAP = Pattern(r"(?:[ \t\n]+|#[^\n]*)*")
_REST = Pattern(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_LINE = Pattern(r"[^\n]*")
_BARE = Pattern(r"[\w-]+")
_LITERAL = Pattern(r"'([^'\n]*)'")
_LONG = Pattern(r'"""([^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{0,2})"""(?!")', re.DOTALL)
_LONG_LITERAL = Pattern(r"'''([^']*(?:'(?!'')[^']*)*'{0,2})'''(?!')")
_ESCAPE_OR_BREAK = Pattern(r"\\(?:[ \t]*\n[ \t\n]*|.)")
_COMMENT = Pattern(r"[ \t]*#")
_ATOM = Pattern(r"[-+\w.:]+(?: \d\d:[-+\w.:]+)?")  # a number, a date, a date and a time
_ENTRY = Pattern(r"(?:^|\n)[ \t]*(?:\[|[^\s#=][^=\n]*=)")
_COLON_KEY = Pattern(r"([\w-]+):[ \t]+")


def read(block, first_line=1):
    """(fields, warnings) of a block; `first_line` is the number of its first line in the file.

    Values are str, bool, list and dict. A warning is (line number, message). Never raises.
    """
    reader = _Reader(block, first_line)
    reader.run()
    return reader.root, reader.warnings


def is_mapping(block):
    """Whether any line is a table header or has a `=`, or there are comments only."""
    text = block.replace("\r", "\n")
    return bool(_ENTRY.search(text)) or _GAP.match(text).end() == len(text)


class _Reader:
    def __init__(self, block, first_line):
        self.text = _LINE_END.sub("\n", block) if "\r" in block else block
        self.first_line = first_line
        self.line, self.counted = first_line, 0
        self.warnings = []
        self.root = {}
        self.table, self.depth = self.root, 0

    def warn(self, message, at):
        """Notes a repair at a position; positions only ever grow, so lines are counted once."""
        if len(self.warnings) < MAX_WARNINGS:
            self.line += self.text.count("\n", self.counted, at)
            self.counted = max(self.counted, at)
            self.warnings.append((self.line, message))

    def run(self):
        at = _GAP.match(self.text).end()
        while at < len(self.text):
            at = self.header(at) if self.text[at] == "[" else self.entry(at)
            at = _GAP.match(self.text, at).end()

    # Lines

    def header(self, at):
        line = _LINE.match(self.text, at).group()
        is_list = line.startswith("[[")
        path, end = self.path(at + 1 + is_list)
        close = "]]" if is_list else "]"
        if not path or not self.text.startswith(close, end) or not _REST.match(self.text, end + len(close)):
            self.warn("not a table name of TOML", at)
            path = [line.partition("#")[0].strip(" \t[]")]
        self.depth = len(path)
        table = self.descend(self.root, path[:-1], at)
        last = table.get(path[-1])
        if is_list:
            rows = last if isinstance(last, list) else table.setdefault(path[-1], [])
            if not isinstance(rows, list):
                self.warn(f"duplicate key {path[-1]!r}, the last one counts", at)
                rows = table[path[-1]] = []
            rows.append({})
            self.table = rows[-1]
        else:
            self.table = self.descend(table, path[-1:], at)
        return at + len(line)

    def descend(self, table, path, at):
        """The table at `path` below `table`, made where it is missing; of a list the last row."""
        for name in path:
            found = table.get(name)
            if isinstance(found, list) and found and isinstance(found[-1], dict):
                found = found[-1]
            elif not isinstance(found, dict):
                if name in table:
                    self.warn(f"duplicate key {name!r}, the last one counts", at)
                found = table[name] = {}
            table = found
        return table

    def entry(self, at):
        path, end = self.path(at)
        if path and len(path) + self.depth <= MAX_DEPTH and self.text.startswith("=", end):
            start = _SPACE.match(self.text, end + 1).end()
        else:
            path, start = self.odd_key(at)
            if path is None:
                self.warn("line without a key and =", at)
                return start
        line_end = _LINE.match(self.text, start).end()
        try:
            value, end = self.value(start, self.depth + len(path))
            if not _REST.match(self.text, end):
                raise Unreadable
        except Unreadable:
            self.warn("not valid TOML, the rest of the line is the value", at)
            value, end = self.text[start:line_end].rstrip(" \t"), line_end
        self.put(self.table, path, value, at)
        return end

    def odd_key(self, at):
        """(path, where the value starts) of a line whose key TOML refuses; without a key (None, line end)."""
        line = _LINE.match(self.text, at).group()
        colon = _COLON_KEY.match(line)
        if colon:
            self.warn("a colon in place of =", at)
            return [colon.group(1)], at + colon.end()
        name, equals, _ = line.partition("=")
        if not equals:
            return None, at + len(line)
        self.warn("not a key of TOML", at)
        return [name.strip(" \t")], _SPACE.match(self.text, at + len(name) + 1).end()

    def put(self, table, path, value, at):
        table = self.descend(table, path[:-1], at)
        if path[-1] in table:
            self.warn(f"duplicate key {path[-1]!r}, the last one counts", at)
        table[path[-1]] = value

    def path(self, at):
        """(the parts of a dotted key, the position after it); no parts when it is none, or too deep."""
        parts = []
        while True:
            at = _SPACE.match(self.text, at).end()
            try:
                part, at = self.name(at)
            except Unreadable:
                return [], at
            parts.append(part)
            at = _SPACE.match(self.text, at).end()
            if not self.text.startswith(".", at):
                return parts if len(parts) <= MAX_DEPTH else [], at
            at += 1

    def name(self, at):
        if self.text.startswith(('"', "'"), at):
            return self.short_text(at, self.text[at])
        found = _BARE.match(self.text, at)
        if not found:
            raise Unreadable
        return found.group(), found.end()

    # Values: each returns (value, end) or raises Unreadable

    def value(self, at, depth):
        first = self.text[at : at + 1]
        if first and first in "\"'":
            if self.text.startswith(first * 3, at):
                return self.long_text(at, first)
            return self.short_text(at, first)
        if first == "[":
            return self.array(at, depth)
        if first == "{":
            return self.inline_table(at, depth)
        found = _ATOM.match(self.text, at)
        if not found:
            raise Unreadable
        text = found.group()
        lower = text.lower()
        return (lower == "true" if lower in ("true", "false") else text), found.end()

    def short_text(self, at, first):
        found = (DOUBLE if first == '"' else _LITERAL).match(self.text, at, _LINE.match(self.text, at).end())
        if not found:
            raise Unreadable
        inner = found.group()[1:-1]
        return (unescape(inner) if first == '"' else inner), found.end()

    def long_text(self, at, first):
        found = (_LONG if first == '"' else _LONG_LITERAL).match(self.text, at)
        if not found:
            raise Unreadable
        inner = found.group(1)
        inner = inner[1:] if inner.startswith("\n") else inner
        if first == '"':
            inner = _ESCAPE_OR_BREAK.sub(lambda hit: "" if "\n" in hit.group() else hit.group(), inner)
            inner = unescape(inner)
        return inner, found.end()

    def array(self, at, depth):
        if depth > MAX_DEPTH:
            raise Unreadable
        items = []
        at = _GAP.match(self.text, at + 1).end()
        while not self.text.startswith("]", at):
            value, at = self.value(at, depth + 1)
            items.append(value)
            at = self.after_comma(at, "]")
        return items, at + 1

    def inline_table(self, at, depth):
        if depth > MAX_DEPTH:
            raise Unreadable
        table = {}
        at = _GAP.match(self.text, at + 1).end()
        while not self.text.startswith("}", at):
            path, end = self.path(at)
            if not path or not self.text.startswith("=", end):
                raise Unreadable
            value, end = self.value(_SPACE.match(self.text, end + 1).end(), depth + len(path))
            self.put(table, path, value, at)
            at = self.after_comma(end, "}")
        return table, at + 1

    def after_comma(self, at, close):
        at = _GAP.match(self.text, at).end()
        if self.text.startswith(",", at):
            return _GAP.match(self.text, at + 1).end()
        if not self.text.startswith(close, at):
            raise Unreadable
        return at
