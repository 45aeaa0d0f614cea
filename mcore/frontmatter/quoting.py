"""Quoted text of YAML and TOML, both ways: `'...'` and `"..."` with escapes and folded breaks."""

import re

from mcore.pattern import Pattern

SINGLE = Pattern(r"'[^']*(?:''[^']*)*'")
DOUBLE = Pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

_ESCAPE = Pattern(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SURROGATE = Pattern("[\ud800-\udfff]")
# YAML 1.2, section 5.7; TOML's escapes are a part of them.
_MEANING = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028",
    "P": "\u2029",
}  # fmt: skip
# What some reader would refuse, fold, or take for a line end: controls, NEL, LS, PS, BOM, non-characters.
_UNSAFE = Pattern('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Unreadable(Exception):
    """Text that the format would refuse; the caller keeps it as it is written."""


def quote(text):
    """`text` between double quotes on one line, the same to YAML 1.1, YAML 1.2, TOML and JSON readers.

    A lone surrogate, which no UTF-8 file can hold, becomes U+FFFD.
    """
    return '"' + _UNSAFE.sub(_escape, _SURROGATE.sub("\ufffd", text)) + '"'


def _escape(found):
    char = found.group()
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def unquote(quoted):
    """The text that `quoted`, with its quotes, stands for; raises Unreadable at an unknown escape.

    A break in it is folded as YAML does: one is a space, n blank lines are n breaks.
    """
    inner = quoted[1:-1]
    is_double = quoted[0] == '"'
    if "\n" in inner:
        return _fold(inner.split("\n"), is_double)
    return unescape(inner) if is_double else inner.replace("''", "'")


def unescape(text):
    """`text` with its backslash escapes carried out; raises Unreadable at an unknown one."""
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_meaning, text)
    if _SURROGATE.search(text):  # JSON writes one character as two escapes; half of one is none
        text = whole_characters(text)
    return text


def whole_characters(text):
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _meaning(found):
    digits = found.group(1) or found.group(2) or found.group(3)
    if digits:
        code = int(digits, 16)
        if code > 0x10FFFF:
            raise Unreadable
        return chr(code)
    if found.group(4) not in _MEANING:
        raise Unreadable
    return _MEANING[found.group(4)]


def _fold(lines, is_double):
    decode = unescape if is_double else lambda line: line.replace("''", "'")
    last = len(lines) - 1
    out = []
    blanks = 0
    is_joined = False  # the line before ended in a backslash: its break is no space
    for number, raw in enumerate(lines):
        line = raw.lstrip(" \t") if number else raw
        is_cut = False
        if number < last:
            line, is_cut = _trim_break(line, is_double)
        if not line and not is_cut and 0 < number < last:
            blanks += 1
            continue
        if number:
            out.append("\n" * blanks or ("" if is_joined else " "))
        out.append(decode(line))
        blanks, is_joined = 0, is_cut
    return "".join(out)


def _trim_break(line, is_double):
    """(line without the spaces before its break, whether a backslash swallows the break)."""
    trimmed = line.rstrip(" \t")
    slashes = len(trimmed) - len(trimmed.rstrip("\\")) if is_double else 0
    if slashes % 2 == 0:
        return trimmed, False
    if len(trimmed) < len(line):  # the backslash escapes a space, which stays
        return line[: len(trimmed) + 1], False
    return trimmed[:-1], True
