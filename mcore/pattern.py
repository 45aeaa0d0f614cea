"""Regular expressions and sets of characters that cost nothing until they are used."""

import re
import sys
from bisect import bisect


class Pattern:
    """`re.compile(source, flags)`, put off to the first call of one of its methods.

    Compiling all expressions takes 15 ms of CPU, and a command needs few of them. After the first call a
    method is a plain attribute.
    """

    def __init__(self, source, flags=0):
        self._source = source
        self._flags = flags

    def __getattr__(self, name):
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method


_FEW = 2000  # characters: those of a query, and of some titles


class Characters:
    """A set of characters, given as the ranges of a character class (`a-fx`).

    The first few texts are looked through character by character: `re` takes .3 to 1 ms to compile a class
    that spans Unicode.
    """

    def __init__(self, ranges):
        self._bounds = _bounds(ranges)
        self._search = None
        self._left = _FEW

    def __contains__(self, char):
        return bisect(self._bounds, ord(char)) % 2 == 1

    def any_in(self, text):
        """Whether a text holds one of them."""
        self._left -= len(text)
        if self._left >= 0:
            return any(map(self.__contains__, text))
        if not self._search:
            self._search = re.compile(f"[^{_others(self._bounds)}]").search
        return self._search(text) is not None


def runs_of(ranges):
    """The source of a pattern of one or more of the characters of a class, given as its ranges."""
    return f"[^{_others(_bounds(ranges))}]+"


def _others(bounds):
    """The ranges of all characters outside of some.

    Where few characters are inside, a search for `[^others]` takes half the time of one for `[inside]`: most are
    settled by the first table of the class, and not by all its ranges beyond U+FFFF.
    """
    ends = [0, *bounds, sys.maxunicode + 1]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return "".join([f"\\U{low:08x}-\\U{end - 1:08x}" for low, end in pairs if low < end])


def _bounds(ranges):
    """The code points at which one enters and leaves the ranges, in turn, ascending."""
    pairs, at = [], 0
    while at < len(ranges):
        end = at + 2 if ranges[at + 1 : at + 2] == "-" else at
        pairs.append((ord(ranges[at]), ord(ranges[end]) + 1))
        at = end + 1
    return [bound for pair in sorted(pairs) for bound in pair]
