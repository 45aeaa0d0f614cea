"""A result -> plain dict -> JSON text. The dict is `--json` and MCP's `structuredContent` alike."""

import json

from mcore.pattern import Pattern

_LONE = Pattern("[\ud800-\udfff]")


def plain(value):
    """`value` with every result tuple turned into a dict, recursively.

    Result classes are named tuples (they cost a fraction of a dataclass at start); anything with
    `_asdict` becomes a dict, other sequences become lists, scalars stay.
    """
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, dict):
        return {scrub(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return scrub(value)
    return value


def scrub(text):
    """`text` without lone surrogates, which no UTF-8 stream may carry (U+FFFD in their place).

    Undecodable bytes of a file name arrive as surrogate escapes; a JSON escape of one makes some
    MCP clients drop the whole line.
    """
    try:
        text.encode()  # many times quicker than looking for them
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", text)
    return text


# C0 without tab and newline, DEL, C1, and what reorders or hides text on a screen.
_TERMINAL = Pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def for_terminal(text):
    """`text` that cannot drive a terminal: control and direction characters become U+FFFD.

    For people's eyes only; JSON and files keep the text as it is.
    """
    if all(map(str.isprintable, text.split("\n"))):
        return text
    return _TERMINAL.sub("\ufffd", scrub(text).replace("\r\n", "\n"))


_BREAKS = Pattern("[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def in_line(text):
    """`text` that stays on its line: a file name with a line break cannot forge another line of an answer."""
    if text.isprintable():
        return text
    return _BREAKS.sub("\ufffd", text)


def counted(n, thing):
    """`1 card`, `2 cards`."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def note_lines(notes):
    """A line for each of a result's `warnings`, as people read it."""
    return [in_line(f"note: {note.message}" + (f" ({note.hint})" if note.hint else "")) for note in notes]


def to_json(value):
    """One JSON text for a result, UTF-8 safe, keys in the order the result has them.

    What could drive a terminal is escaped: the same value, harmless when a person looks at it.
    """
    text = json.dumps(plain(value), ensure_ascii=False, indent=2)
    return _TERMINAL.sub(lambda char: f"\\u{ord(char[0]):04x}", text)
