"""YAML's bracketed values: `[a, "b"]`, `{a: 1}`, nested and over several lines; JSON is a part of it."""

from mcore.frontmatter.quoting import DOUBLE, SINGLE, Unreadable, unquote
from mcore.pattern import Pattern

MAX_DEPTH = 64  # deepest nesting read; what lies below becomes text (real blocks: at most 6)
# Characters that start something else than plain text: YAML 1.2, section 7.3.3.
NOT_PLAIN = frozenset("&*!|>%@`\"'#,[]{}")
_BUDGET = 50_000  # characters read in vain before values must close on their own line; longest block: 3,032

_GAP = Pattern(r"(?:[ \t\n]+|#[^\n]*)*")
_WORD = r"(?:[^ \t\n,\[\]{}:]|:(?![ \t\n,\[\]{}]))+"
_WORDS = Pattern(rf"{_WORD}(?:[ \t]+(?!#){_WORD})*")
_FOLD = Pattern(r"[ \t]*(\n[ \t\n]*)")


def scalar(text):
    """The value of plain text: bool for true/false, None for null, ~ and nothing, else the text."""
    if len(text) < 6:
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        lower = text.lower()
        if lower in ("true", "false"):
            return lower == "true"
    return text


def join_folded(pieces):
    """The text of (blank lines before, piece) pairs: one break is a space, n blank lines are n breaks."""
    out = []
    for blanks, piece in pieces:
        if out:
            out.append("\n" * blanks or " ")
        out.append(piece)
    return "".join(out)


class FlowReader:
    """Reads quoted and bracketed values at positions of one block's text.

    Each method returns where the value ends, or raises Unreadable. A value that does not close
    costs time for nothing, so its length comes off a budget; once that is spent, values must
    close on their own line, and the whole block stays linear.
    """

    def __init__(self, text, warn):
        self.text = text
        self.warn = warn
        self.budget = _BUDGET
        self.reach = 0

    def read(self, start):
        """(value, end) of what starts with a quote or bracket at `start`."""
        try:
            return self.quoted(start) if self.text[start] in "\"'" else self.collection(start, 1)
        except Unreadable:
            self.charge(start)
            raise

    def charge(self, start):
        self.budget -= max(0, self.reach - start)

    def quoted(self, start):
        pattern = DOUBLE if self.text[start] == '"' else SINGLE
        limit = len(self.text) if self.budget > 0 else self.line_end(start)
        found = pattern.match(self.text, start, limit)
        self.reach = found.end() if found else limit
        if not found:
            raise Unreadable
        return unquote(found.group()), found.end()

    def line_end(self, at):
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def collection(self, opening, depth):
        if depth > MAX_DEPTH:
            raise Unreadable
        is_map = self.text[opening] == "{"
        close = "}" if is_map else "]"
        out = {} if is_map else []
        at = self.gap(opening + 1)
        while self.peek(at) != close:
            start = at
            key, value, end = self.item(start, depth)
            at = self.gap(end)
            is_pair = self.peek(at) == ":"
            if is_pair and "\n" in self.text[start:end] or key is None and (is_pair or is_map):
                raise Unreadable  # a key is text, and one line of it
            if is_pair:
                value, at = self.value(at, close, depth)
            if is_map:
                if key in out:
                    self.warn(f"duplicate key {key!r}, the last one counts")
                out[key] = value if is_pair else None
            elif is_pair:
                out.append({key: value})
            elif value is not None:
                out.append(value)
            if self.peek(at) == ",":
                at = self.gap(at + 1)
            elif self.peek(at) != close:
                raise Unreadable
        return out, at + 1

    def peek(self, at):
        return self.text[at : at + 1]

    def gap(self, at):
        """The position after spaces, breaks and comments."""
        end = _GAP.match(self.text, at).end()
        self.reach = end
        if self.budget <= 0 and "\n" in self.text[at:end]:
            raise Unreadable
        return end

    def value(self, colon, close, depth):
        at = self.gap(colon + 1)
        if self.peek(at) in ("", ",", close):
            return None, at
        _, value, end = self.item(at, depth)
        return value, self.gap(end)

    def item(self, at, depth):
        """(its text, its value, end); the text is None for a collection."""
        first = self.peek(at)
        if first in ("[", "{"):
            return (None, *self.collection(at, depth + 1))
        if first in ('"', "'"):
            value, end = self.quoted(at)
            return value, value, end
        if not first or first in NOT_PLAIN or (first in "-?:" and self.peek(at + 1) in ("", " ", "\t", "\n")):
            raise Unreadable
        return self.plain(at)

    def plain(self, at):
        pieces = []
        blanks = 0
        while True:
            found = _WORDS.match(self.text, at)
            if not found:
                raise Unreadable
            pieces.append((blanks, found.group()))
            end = self.reach = found.end()
            fold = _FOLD.match(self.text, end)
            at = fold.end() if fold else end
            if not fold or self.budget <= 0 or self.peek(at) in ("", "#") or not _WORDS.match(self.text, at):
                break
            blanks = fold.group(1).count("\n") - 1
        text = join_folded(pieces)
        return text, scalar(text), end
