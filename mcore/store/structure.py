"""FTS5's structure record: where its segments stand."""

from mcore import termlists


def on_its_level(structure):
    """FTS5's structure record with its only segment on the level that fits its size; any other as it is.

    `optimize` leaves the segment on level 1, where the small ones of later captures join it; sixteen of
    those (about 200 captures) made FTS5 merge all of them at once: 4 s at 100,000 cards. Had the cards
    come one by one, the segment would stand higher: FTS5 merges level by level, from 64 pages on, four
    segments into one. Record: a cookie of 4 bytes, then numbers of levels, segments and writes, then for
    each level the segments being merged and all segments, and for each of these its id, first and last page.
    """
    numbers = termlists.varints(structure[4:])
    levels, is_one = numbers[0], numbers[1:2] == [1]
    if not is_one or len(numbers) != 6 + 2 * levels or numbers[3 : 3 + 2 * levels] != [0] * (2 * levels - 1) + [1]:
        return structure
    segment, pages = numbers[-3:], numbers[-1] - numbers[-2] + 1
    raised = max(levels, 1 + ((pages // 64).bit_length() + 1) // 2)
    numbers = [raised, 1, numbers[2], *[0] * (2 * raised - 1), 1, *segment]
    return structure[:4] + b"".join(map(_varint, numbers))


def _varint(number):
    """A number below 2^56 in SQLite's variable-length form."""
    block = [number & 0x7F]
    while number := number >> 7:
        block.append(number & 0x7F | 0x80)
    return bytes(reversed(block))
