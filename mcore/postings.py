"""Which cards hold a term and how often, as one compact blob a term. Pure: no SQL, no disk.

FTS5 can be asked for the cards of any term, but that takes .2 us a card, and 1 us with counts, so a question
with twenty frequent words took tenths of a second at 100,000 cards. The terms that many cards hold
therefore have a list of their own beside FTS5, made from FTS5 once it is loaded.

A blob is one letter and the rest:

| letter | a list of | then |
| B, H | few of the cards | how many steps (4 bytes); the steps from doc to doc, 1 or 2 bytes each; the counts, zlib |
| V | many (one in DENSE or more) | zlib of a count for every doc from 0 on, 0 where the card lacks the term |

Counts stop at 255. A step too wide for its bytes is cut into pieces; the docs between have the count 0.
"""

import sys
import zlib
from array import array
from bisect import bisect_right
from itertools import accumulate, compress
from math import log2
from operator import sub

from mcore.record import namedtuple

DENSE = 16
FAR_APART = 8  # entries of a list for each card looked for: from here on they are looked up one by one
WIDE = 100  # docs a step on average; beyond it steps are written in 2 bytes
LENGTH_STEPS = 15  # codes for each doubling of a card's length: 4.7 % apart, 255 is 130,000 tokens
_LEVEL = 1  # of zlib: 6 took three times as long for a few bytes in a hundred

Few = namedtuple("Few", "docs counts")
Few.__doc__ = """A list as docs in ascending order and their counts; a count of 0 is no card."""


class DamagedList(ValueError):
    """What the index holds is no list of cards."""


def pack(docs, counts, last):
    """The blob of a list: `docs` ascending from 1, their `counts`, in an index of docs up to `last`."""
    counts = list(counts)
    try:
        counts = bytes(counts)
    except ValueError:
        counts = bytes(min(count, 255) for count in counts)
    if len(docs) * DENSE >= last:
        every = bytearray(last + 1)
        for doc, count in zip(docs, counts, strict=True):
            every[doc] = count
        return b"V" + zlib.compress(every, _LEVEL)
    code, top = ("H", 0xFFFF) if last > WIDE * len(docs) else ("B", 0xFF)
    steps = [docs[0], *map(sub, docs[1:], docs)]
    if max(steps) > top:
        steps, counts = _cut(steps, counts, top)
    written = _little(array(code, steps)).tobytes()
    return code.encode() + len(steps).to_bytes(4, "little") + written + zlib.compress(counts, _LEVEL)


def _cut(steps, counts, top):
    """The same list with steps of at most `top`."""
    some, held = [], bytearray()
    for step, count in zip(steps, counts, strict=True):
        while step > top:
            some.append(top)
            held.append(0)
            step -= top
        some.append(step)
        held.append(count)
    return some, bytes(held)


def _little(numbers):
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def unpack(blob):
    """The list in a blob: a Few, or for a long one the count of every doc as bytes.

    Raises DamagedList for what is none.
    """
    try:
        if blob[:1] == b"V":
            return zlib.decompress(blob[1:])
        steps = array(blob[:1].decode())
        end = 5 + steps.itemsize * int.from_bytes(blob[1:5], "little")
        steps.frombytes(blob[5:end])
        counts = zlib.decompress(blob[end:])
    except (zlib.error, ValueError, TypeError, AttributeError) as error:
        raise DamagedList(f"a list of cards: {error}") from None
    if len(steps) != len(counts):
        raise DamagedList("a list of cards has more cards than counts, or fewer")
    return Few(list(accumulate(_little(steps))), counts)


def each(unpacked):
    """(doc, count) of every card on a list, and of none beyond but with the count 0."""
    if isinstance(unpacked, Few):
        return zip(*unpacked, strict=True)
    return zip(compress(range(len(unpacked)), unpacked), unpacked.replace(b"\0", b""), strict=True)


def among(unpacked, docs):
    """(doc, count) of those `docs` (a set or the keys of a dict) that are on a list."""
    if not isinstance(unpacked, Few):
        end = len(unpacked)
        return [(doc, count) for doc in docs if doc < end and (count := unpacked[doc])]
    if len(docs) * FAR_APART > len(unpacked.docs):
        return [(doc, count) for doc, count in zip(*unpacked, strict=True) if doc in docs and count]
    found, listed = [], unpacked.docs
    for doc in docs:
        at = bisect_right(listed, doc) - 1
        if at >= 0 and listed[at] == doc and unpacked.counts[at]:
            found.append((doc, unpacked.counts[at]))
    return found


def length_code(tokens):
    """The length of a card in tokens as one byte, in steps of equal ratio."""
    return min(255, int(LENGTH_STEPS * log2(tokens + 1)))


def length_of(code):
    """The length in the middle of those that share a code."""
    return 2 ** ((code + 0.5) / LENGTH_STEPS) - 1
