"""A page of a long text, and where the next one begins. Pure.

`memory show` and `memory_get` cut text here and nowhere else.
"""

from mcore.record import namedtuple

DEFAULT_CHARS = 20_000

Page = namedtuple("Page", "text offset length returned has_more next_offset")
Page.__doc__ = "`length` is the whole text's, `returned` this page's; all in characters."


def page(text, offset=0, max_chars=DEFAULT_CHARS):
    """The part of `text` that starts at `offset`, and where the next part starts.

    `offset` and `max_chars` count characters; 0 for `max_chars` means all of it.
    `Page.next_offset` is None on the last page; an `offset` past the end gives an empty page.
    """
    offset = max(0, offset)
    end = len(text) if max_chars <= 0 else offset + max_chars
    part = text[offset:end]
    reached = offset + len(part)
    more = bool(part) and reached < len(text)
    return Page(part, offset, len(text), len(part), more, reached if more else None)
