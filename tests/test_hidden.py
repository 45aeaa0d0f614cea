"""Characters that no reader sees."""

import pytest

from mcore import hidden


@pytest.mark.parametrize(
    "text",
    [
        "plain ascii\twith a tab\nand lines\r\n",
        "中文，标点。全角　空格",
        "family 👨\u200d👩\u200d👧, heart ❤\ufe0f, keycap 1\ufe0f\u20e3",
        "flag of Scotland \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f ends",
        "नमस्\u200dते and می\u200cخواهم",
        "葛\U000e0100城",
        "form feed \f next page, soft\u00adhyphen",
    ],
)
def test_what_ordinary_text_needs_is_no_finding(text):
    assert hidden.scan(text) == []


@pytest.mark.parametrize(
    "text, kind, span",
    [
        ("a\u202eb", "direction", (1, 2)),
        ("中\u2066文", "direction", (1, 2)),
        ("a\u200fb", "mark", (1, 2)),
        ("pass\u200bword", "invisible", (4, 5)),
        ("pass\u200dword", "invisible", (4, 5)),
        ("x\ufeffy", "invisible", (1, 2)),
        ("hi\U000e0049\U000e0067", "tags", (2, 4)),
        ("\U0001f3f4" + "\U000e0061" * 30, "tags", (1, 31)),
        ("x" + "\ufe01" * 9, "selectors", (1, 10)),
        ("a\x1b[31m", "control", (1, 2)),
        ("中\x9b文", "control", (1, 2)),
        ("a\0b", "control", (1, 2)),
    ],
)
def test_what_hides_reorders_or_controls_is_found(text, kind, span):
    assert hidden.scan(text) == [(kind, *span)]


def test_every_character_of_a_kind_passes_the_quick_look():
    """The first look must not overlook what the kinds look for."""
    import re

    text = "".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0xE1000)))
    for pattern in hidden._KINDS.values():
        for found in re.finditer(pattern, text):
            assert re.search(hidden._CANDIDATE, found[0])


def test_code_points_are_named_each_once():
    assert hidden.names("\u202e\u200b\u202e") == "U+200B, U+202E"
    assert hidden.names("abcdefgh") == "U+0061, U+0062, U+0063, U+0064, U+0065 ..."
