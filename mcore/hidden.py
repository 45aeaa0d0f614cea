"""Characters in a text that no reader sees: they hide words, reorder them, or drive a terminal. Pure.

Text from elsewhere can carry orders to a model in characters that people are not shown: Unicode
tags, runs of variation selectors, direction overrides. What ordinary text needs is no finding: the
joiners inside emoji and Indic words, one selector behind its character, the tags of a flag.
"""

import re

from mcore.record import namedtuple

Hidden = namedtuple("Hidden", "kind start end")
Hidden.__doc__ = """One place: `kind` is direction, mark, invisible, tags, selectors or control; its span."""

_KINDS = {
    "direction": "[\u202a-\u202e\u2066-\u2069]",
    "mark": "[\u061c\u200e\u200f]",
    # A flag such as Scotland's is U+1F3F4, five or six tags and the closing one.
    "tags": "(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]+|(?<=\U0001f3f4)[\U000e0000-\U000e007f]{8,}",
    "selectors": "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}",
    "invisible": (
        "[\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u3164\ufeff\uffa0\ufff9-\ufffb]"
        "|(?<=[A-Za-z0-9])[\u200c\u200d](?=[A-Za-z0-9])"
    ),
    "control": "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]",
}
# Those that ordinary text has little use for.
GRAVE = ("direction", "tags", "selectors")

_CONTROL = _KINDS["control"]
# Most text holds none, and one class is looked for far quicker than the alternatives.
_CANDIDATE = (
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2069\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_ANY = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items())


def scan(text):
    """Every Hidden of `text`, in order."""
    if text.isascii():
        return [Hidden("control", found.start(), found.end()) for found in re.finditer(_CONTROL, text)]
    if not re.search(_CANDIDATE, text):
        return []
    return [Hidden(found.lastgroup, found.start(), found.end()) for found in re.finditer(_ANY, text)]


def names(chars):
    """The code points of some characters, such as `U+200B, U+202E`; at most five."""
    points = [f"U+{point:04X}" for point in sorted(set(map(ord, chars)))]
    return ", ".join(points[:5]) + (" ..." if len(points) > 5 else "")
