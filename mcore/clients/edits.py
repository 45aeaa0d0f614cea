"""What the three text editors share: faults, line ends, quoting, splices and the check after them.

Pure text. An editor reads a configuration text into a tree that knows offsets, turns a wish ("put
this value at that path") into splices, and gives back the text with the splices made. It never
writes a document anew, so comments, order and spacing of everything else stay byte for byte.
A path is a tuple: a string names a map's key, a number a list's item (the list's length: a new one).
"""

import json
import re

from mcore.record import namedtuple

Raw = namedtuple("Raw", "text")
Raw.__doc__ = "A number or a date, kept as it is written: nobody here calculates with it."

Leaf = namedtuple("Leaf", "path text start")
Leaf.__doc__ = "A scalar of a document: where it hangs (list items as '[]'), how it is written, its offset."

Splice = namedtuple("Splice", "start stop text")
Splice.__doc__ = "Put `text` in the place of the characters from `start` up to `stop`."

# Valid inside double quotes for JSON, TOML and YAML only when escaped: DEL and C1 controls (TOML,
# YAML), the two Unicode line ends (YAML breaks the line there), BOM and non-characters.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


class ConfigFault(Exception):
    """This text cannot be edited safely: line number (0: unknown), the reason, and what to do."""

    def __init__(self, line, reason, hint=""):
        super().__init__(reason)
        self.line = line
        self.reason = reason
        self.hint = hint


def line_at(text, offset):
    """The number, from 1, of the line that holds `offset`."""
    return text.count("\n", 0, offset) + 1


def newline_of(text):
    """The line end that this text uses most; LF for a text of one line."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def body_start(text):
    """0, or 1 behind a byte order mark."""
    return 1 if text.startswith("\ufeff") else 0


def quoted(text):
    """`text` in double quotes, in the escapes that JSON, TOML and YAML have in common."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))


def settled(value):
    """`value` with its numbers as Raw, so that it compares with what a reader gives."""
    if isinstance(value, dict):
        return {key: settled(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, Raw):
        return [settled(item) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Raw(str(value))
    return value


def look_up(document, path):
    """The value at `path` of a document as read, or None when there is none."""
    for step in path:
        if isinstance(step, str):
            document = document.get(step) if isinstance(document, dict) else None
        elif isinstance(document, list) and step < len(document):
            document = document[step]
        else:
            return None
    return document


def nested(path, value):
    """`value` wrapped in the maps and one-item lists that `path` walks through."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def spliced(text, splices):
    """`text` with all `splices` made; they may not overlap. Two at one place keep their order."""
    parts, done = [], 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.stop)):
        parts += [text[done : splice.start], splice.text]
        done = splice.stop
    return "".join(parts) + text[done:]


def checked(text, splices, leaves):
    """`spliced`, after a second reading has shown that every scalar outside the splices is the same.

    `leaves(text)` reads a text strictly and lists its scalars. Raises ConfigFault when the result
    does not read or anything else has changed: better no edit than a damaged file.
    """
    after = spliced(text, splices)
    old, new, shift = [], [], 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.stop)):
        old.append((splice.start, splice.stop))
        new.append((splice.start + shift, splice.start + shift + len(splice.text)))
        shift += len(splice.text) - (splice.stop - splice.start)
    try:
        kept = _outside(leaves(after), new)
    except ConfigFault as fault:
        raise ConfigFault(fault.line, f"the edit would not read back ({fault.reason})", BY_HAND) from fault
    if _outside(leaves(text), old) != kept:
        raise ConfigFault(0, "the edit would change other entries", BY_HAND)
    return after


BY_HAND = "edit the file by hand; --print shows what belongs in it"


def _outside(leaves, spans):
    """Path and text of the leaves that start in none of the `spans`."""
    return [(leaf.path, leaf.text) for leaf in leaves if not any(start <= leaf.start < stop for start, stop in spans)]
