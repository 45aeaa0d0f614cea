"""mcore.readtext: pages put together are the text, and every cut is said."""

import pytest

from mcore.readtext import DEFAULT_CHARS, page

TEXT = "0123456789"


@pytest.mark.parametrize(
    "offset, max_chars, text, next_offset",
    [
        (0, 4, "0123", 4),
        (4, 4, "4567", 8),
        (8, 4, "89", None),
        (0, 10, TEXT, None),
        (0, 9, "012345678", 9),
        (0, 0, TEXT, None),
        (3, 0, "3456789", None),
        (0, -5, TEXT, None),
        (-3, 2, "01", 2),
        (10, 4, "", None),
        (10**20, 4, "", None),
        (0, 10**20, TEXT, None),
    ],
)
def test_a_page_says_where_the_next_begins(offset, max_chars, text, next_offset):
    part = page(TEXT, offset, max_chars)
    assert (part.text, part.next_offset, part.has_more) == (text, next_offset, next_offset is not None)
    assert (part.length, part.returned, part.offset) == (len(TEXT), len(text), max(0, offset))


@pytest.mark.parametrize("max_chars", [1, 2, 7, 1000, DEFAULT_CHARS])
def test_pages_put_together_are_the_text(max_chars):
    text = "字𠮷e\u0301👨\u200d👩\n" * 250
    parts, offset = [], 0
    while offset is not None:
        part = page(text, offset, max_chars)
        parts.append(part.text)
        offset = part.next_offset
    assert "".join(parts) == text


def test_an_empty_text_has_one_empty_page():
    assert page("") == ("", 0, 0, 0, False, None)
