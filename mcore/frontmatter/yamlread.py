"""The YAML people write above a note -> a dict, line by line, with repairs instead of errors.

Owns the subset found in real vaults: flat and nested maps, lists (dash indented or not, lists of
maps, lists in lists), bracketed values, plain and quoted text over several lines, `|` and `>`,
comments. Where PyYAML accepts a block the shape is the same. Anchors, aliases, tags, merges and
`?` keys stay text: 0 of 60,630 real blocks used one. Must not know files, cards or TOML.

A line that does not parse costs its own key the typed value and nothing else. Work is linear in
the length of the block, and nesting stops at MAX_DEPTH.
"""

from mcore.frontmatter.quoting import DOUBLE, SINGLE, Unreadable, unquote
from mcore.frontmatter.yamlflow import MAX_DEPTH, NOT_PLAIN, FlowReader, join_folded, scalar
from mcore.pattern import Pattern

MAX_WARNINGS = 100
_JUDGED_LINES = 400  # lines at the margin looked at to tell keys from prose
_TAB = 4  # columns of a tab in an indent; YAML forbids it, people write it

_LINE_END = Pattern(r"\r\n?")
_COLON = Pattern(r":(?=[ \t]|$)")
_QUOTED_COLON = Pattern(r"[ \t]*:(?=[ \t]|$)")
_COMMENT = Pattern(r"(?:^|[ \t])#")
_REST = Pattern(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_BLOCK = Pattern(r"[|>](?:([+-])?([1-9])?|([1-9])([+-]))(?:[ \t]+#.*|[ \t]*)$")
# `key:value` without a space and `键：值` with a full-width colon: keys only where nothing else fits.
_GLUED = Pattern(r"([A-Za-z_][\w-]{0,40}):(?!//)(?=\S)|([^\W\d][\w -]{0,20})：")
_FIELD_NAME = Pattern(r"[a-z_][\w.-]*")
# A first word that is Markdown rather than a key, when a block is judged from outside.
_MARKDOWN = Pattern(r"[*>|`]|\+ |!\[|<[A-Za-z/!]|\d+[.)] |\[[^\]]*\]\(")


def read(block, first_line=1):
    """(fields, warnings) of a block; `first_line` is the number of its first line in the file.

    Plain text is str as written, except true/false in any case (bool) and null, ~ or nothing
    (None). Lists hold no None. A warning is (line number, message). Never raises.
    """
    reader = _Reader(block, first_line)
    return reader.document(), reader.warnings


def is_mapping(block):
    """Whether a fenced block can be read as keys at all; prose between two rules can not.

    An empty block and one of comments only are maps without keys, and one that starts with a
    lower-case word and a colon is always a map. Otherwise keys must outnumber the other lines at
    the margin, or come first with no more lines left over than there are keys (quoted text may go
    on at the margin).
    """
    reader = _Reader(block, 1)
    if not reader.skip() or reader.whole() is not None:
        return True
    margin = reader.indent[reader.i]
    first = reader.margin_key()
    if first and _FIELD_NAME.fullmatch(first):
        return True
    keys = others = 0
    while reader.skip() and keys + others < _JUDGED_LINES:
        is_deeper = reader.indent[reader.i] > margin or (keys and _is_dash(reader.content()))
        if not is_deeper and reader.content()[0] not in "]}":
            is_key = reader.margin_key() is not None
            keys, others = keys + is_key, others + (not is_key)
        reader.i += 1
    if keys > others or first is None:
        return keys > others
    reader = _Reader(block, 1)
    reader.document()
    return reader.left_over <= keys


def _is_dash(content):
    return content[0] == "-" and content[1:2] in ("", " ", "\t")


def _cut_comment(text):
    """(text before a trailing ` #`, whether there was one)."""
    found = _COMMENT.search(text) if "#" in text else None
    if found:
        return text[: found.start()].rstrip(" \t"), True
    return text.rstrip(" \t"), False


class _Reader:
    """One block: its lines, where the content of each starts, and the line being read.

    `indent[i]` is the column of line i's content and `offset[i]` its place in the line. Both move
    right when `- ` is read, so that the rest of a dash line is a line like any other.
    """

    def __init__(self, block, first_line):
        text = _LINE_END.sub("\n", block) if "\r" in block else block
        self.lines = text.split("\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.flow = FlowReader(text, self.warn)
        self.first_line = first_line
        self.warnings = []
        self.left_over = 0  # lines at the margin or deeper that were no key, item or text
        self.i = 0
        self.starts, self.offset, self.indent = [], [], []
        position = 0
        for line in self.lines:
            lead = len(line) - len(line.lstrip(" \t"))
            self.starts.append(position)
            self.offset.append(lead)
            self.indent.append(len(line[:lead].expandtabs(_TAB)) if "\t" in line[:lead] else lead)
            position += len(line) + 1

    def warn(self, message):
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append((self.first_line + self.i, message))

    # Lines

    def content(self):
        return self.lines[self.i][self.offset[self.i] :]

    def is_blank(self, i):
        return self.offset[i] >= len(self.lines[i])

    def skip(self):
        """Moves past blank and comment lines; False at the end of the block."""
        while self.i < len(self.lines):
            if not self.is_blank(self.i) and self.lines[self.i][self.offset[self.i]] != "#":
                return True
            self.i += 1
        return False

    def take(self, is_end):
        """The current line and those after it until `is_end(content)`, comments left out, folded."""
        pieces = [(0, self.content().rstrip(" \t"))]
        blanks = 0
        self.i += 1
        while self.i < len(self.lines):
            content = self.content()
            if not content:
                blanks += 1
            elif content[0] != "#":
                if is_end(content):
                    break
                pieces.append((blanks, content.rstrip(" \t")))
                blanks = 0
            self.i += 1
        return join_folded(pieces)

    def key(self, content, is_loose=False):
        """(key, offset of what follows its colon), or None when the line has no key.

        `is_loose` also takes keys that start with a character YAML keeps for other things; it is
        for lines that must be keys because they stand in a map.
        """
        first = content[0]
        if first in "\"'":
            found = (DOUBLE if first == '"' else SINGLE).match(content)
            colon = _QUOTED_COLON.match(content, found.end()) if found else None
            if colon:
                try:
                    return unquote(found.group()), colon.end()
                except Unreadable:
                    pass
        if first in NOT_PLAIN and not is_loose:
            return None
        colon = _COLON.search(content)
        if not colon:
            return None
        name = content[: colon.start()].rstrip(" \t")
        if "#" in name and _COMMENT.search(name):
            return None
        return name, colon.end()

    def margin_key(self):
        """The key of the current line, None for Markdown and text."""
        content = self.content()
        found = None if _is_dash(content) or _MARKDOWN.match(content) else self.key(content, is_loose=True)
        return found and found[0]

    # Lists and maps

    def document(self):
        if not self.skip():
            return {}
        whole = self.whole()
        return self.mapping(self.indent[self.i], 0, is_root=True) if whole is None else whole

    def whole(self):
        """The map of a block that is one `{...}`, or None."""
        if self.content()[0] != "{":
            return None
        try:
            value, end = self.flow.read(self.starts[self.i] + self.offset[self.i])
        except Unreadable:
            return None
        return value if self.flow.gap(end) == len(self.flow.text) else None

    def node(self, parent, depth):
        """The list, map or scalar that starts with the current line's content, right of column `parent`."""
        if depth > MAX_DEPTH:
            return self.too_deep(parent)
        content = self.content()
        if _is_dash(content):
            return self.sequence(self.indent[self.i], depth)
        if self.key(content):
            return self.mapping(self.indent[self.i], depth)
        return self.inline(self.offset[self.i], parent)

    def below(self, column, depth, is_key):
        """The value on the lines under a key or dash; a key's list may stand at the key's own column."""
        if not self.skip():
            return None
        if self.indent[self.i] > column:
            return self.node(column, depth + 1)
        if self.indent[self.i] < column:
            return None
        if is_key and _is_dash(self.content()):
            return self.node(column - 1, depth + 1)
        header = _BLOCK.match(self.content())
        return self.block_text(header, column) if header else None

    def too_deep(self, parent):
        self.warn(f"nested deeper than {MAX_DEPTH} levels, kept as text")
        return self.take(lambda content: self.indent[self.i] <= parent)

    def mapping(self, column, depth, is_root=False):
        """The map whose keys stand at `column`; the root map takes every key down to the last line."""
        out = {}
        key = None
        while self.skip():
            m = self.indent[self.i]
            if m < column:
                if not is_root:
                    break
                column = m
            content = self.content()
            if _is_dash(content):
                self.stray_list(out, key, m, depth)
                continue
            found = self.key(content, is_loose=True) or self.glued_key(content, m == column)
            if not found:
                self.stray_text(out, key, column)
                continue
            key, at = found
            if key in out:
                self.warn(f"duplicate key {key!r}, the last one counts")
            out[key] = self.entry(at, m, depth)
        return out

    def glued_key(self, content, is_at_margin):
        found = _GLUED.match(content) if is_at_margin else None
        if not found:
            return None
        self.warn("no space after the colon, read as a key all the same")
        return (found.group(1) or found.group(2)).rstrip(), found.end()

    def entry(self, at, column, depth):
        """The value of the key at `column`, whose colon ends at offset `at` of the content."""
        line = self.lines[self.i]
        rest = line[self.offset[self.i] + at :].lstrip(" \t")
        if rest and rest[0] != "#":
            return self.inline(len(line) - len(rest), column)
        if rest:
            self.warn("what follows the # is a comment")
        self.i += 1
        return self.below(column, depth, is_key=True)

    def sequence(self, column, depth):
        """The list whose dashes stand at `column`."""
        items = []
        while self.skip():
            m = self.indent[self.i]
            content = self.content()
            if m < column or (m == column and not _is_dash(content)):
                break
            if m > column:
                self.stray_item(items, column, depth)
                continue
            rest = content[1:].lstrip(" \t")
            if not rest or rest[0] == "#":
                self.i += 1
                value = self.below(column, depth, is_key=False)
            else:
                self.offset[self.i] += len(content) - len(rest)
                self.indent[self.i] += len(content) - len(rest)
                value = self.node(column, depth + 1)
            if value is not None:
                items.append(value)
        return items

    # Repairs: lines that fit nowhere go to the value before them, so that no text is lost

    def stray_list(self, out, key, column, depth):
        self.warn("list item under a key that has a value")
        found = self.node(column - 1, depth + 1)
        items = found if isinstance(found, list) else [found]
        if key is None or isinstance(out[key], dict):
            return
        value = out[key]
        if isinstance(value, list):
            value.extend(items)
        else:
            out[key] = items if value is None else [value, *items]

    def stray_text(self, out, key, column):
        self.warn("line without a key, read as more of the value before it")

        def is_end(content):
            m = self.indent[self.i]
            return (
                m < column
                or _is_dash(content)
                or self.key(content, is_loose=True)
                or (m == column and _GLUED.match(content))
            )

        start = self.i
        text = self.take(is_end)
        self.left_over += self.i - start
        value = out.get(key)
        if isinstance(value, list):
            value.append(text)
        elif isinstance(value, str):
            out[key] = value + ("" if value.endswith("\n") else " ") + text
        elif value is None and key is not None:
            out[key] = text

    def stray_item(self, items, column, depth):
        self.warn("line without a dash at the list's column, read as an item")
        if _is_dash(self.content()):
            found = self.node(column, depth + 1)
            items.extend(found if isinstance(found, list) else [found])
        else:
            items.append(self.take(lambda content: self.indent[self.i] <= column or _is_dash(content)))

    # Scalars

    def inline(self, at, parent):
        """The value that starts at offset `at` of the current line, of a key or dash at column `parent`."""
        first = self.lines[self.i][at]
        if first in "\"'[{":
            start = self.starts[self.i] + at
            try:
                value, end = self.flow.read(start)
            except Unreadable:
                return self.as_written(at, parent)
            if not _REST.match(self.flow.text, end):
                self.flow.charge(start)
                return self.as_written(at, parent)
            self.i += self.flow.text.count("\n", start, end) + 1
            return value
        header = _BLOCK.match(self.lines[self.i], at) if first in "|>" else None
        if header:
            return self.block_text(header, parent)
        text, is_done = _cut_comment(self.lines[self.i][at:])
        if first in NOT_PLAIN or _COLON.search(text):
            return self.as_written(at, parent)
        return self.plain(text, is_done, parent)

    def as_written(self, at, parent):
        self.warn("not valid YAML, the rest of the line is the value")
        return self.plain(self.lines[self.i][at:].rstrip(" \t"), False, parent)

    def plain(self, text, is_done, parent):
        """Plain text and its deeper lines; a comment, in or between the lines, ends it."""
        pieces = [(0, text)]
        blanks = 0
        self.i += 1
        for i in range(self.i, len(self.lines)):
            if is_done:
                break
            if self.is_blank(i):
                blanks += 1
                continue
            line, offset = self.lines[i], self.offset[i]
            if self.indent[i] <= parent or line[offset] == "#" or self.is_tabbed_entry(line, offset):
                break
            text, is_done = _cut_comment(line[offset:])
            if _COLON.search(text):
                self.warn("a key indented under a text, read as more of the text")
            pieces.append((blanks, text))
            blanks = 0
            self.i = i + 1
        return scalar(join_folded(pieces))

    def is_tabbed_entry(self, line, offset):
        """Whether a tab, which YAML forbids here, indents a list item or key: no text goes on there."""
        if "\t" not in line[:offset]:
            return False
        return _is_dash(line[offset:]) or bool(self.key(line[offset:]))

    def block_text(self, header, parent):
        """The text of `|` (as written) or `>` (folded) with its chomping and indent digit."""
        chomp = header.group(1) or header.group(4)
        digit = header.group(2) or header.group(3)
        self.i += 1
        lines = self.block_lines(parent, parent + int(digit) if digit else None)
        trailing = len(lines)
        while lines and not lines[-1]:
            lines.pop()
        trailing -= len(lines)
        text = _fold_block(lines) if header.group()[0] == ">" else "\n".join(lines)
        if chomp == "+":
            return text + "\n" * (trailing + bool(lines))
        return text + "\n" if lines and not chomp else text

    def block_lines(self, parent, indent):
        """The lines of a block text without their indent, which the first of them sets if None."""
        lines = []
        while self.i < len(self.lines):
            line, m = self.lines[self.i], self.indent[self.i]
            if self.is_blank(self.i) and (indent is None or m <= indent):
                lines.append("")
            else:
                if indent is None:
                    indent = m
                if m < indent or m <= parent:
                    break
                is_spaces = not line[:indent].strip(" ")
                text = line[indent:] if is_spaces else " " * (m - indent) + line[self.offset[self.i] :]
                lines.append(text)
            self.i += 1
        return lines


def _fold_block(lines):
    """`>`: a break between two lines that start with text is a space; indented lines keep theirs."""
    out = []
    blanks = 0
    before = None
    for line in lines:
        if not line:
            blanks += 1
            continue
        if before is not None:
            is_kept = before[0] in " \t" or line[0] in " \t"
            out.append("\n" * (blanks + is_kept) or " ")
        else:
            out.append("\n" * blanks)
        out.append(line)
        before, blanks = line, 0
    return "".join(out)
