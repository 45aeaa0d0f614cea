"""The place in a card that answers a query, as the note has it, and where in it the words stand. Pure."""

import re
from collections import namedtuple

from mcore.tokenize import normalize

SNIPPET_CHARS = 160
_LEAD = 40  # characters before the first match
_PLACES = 50  # occurrences of a term that are looked at; the best window is nearly always among them
_LONG_TEXT = 400_000  # characters searched for the best place; beyond them the start is shown

_Place = namedtuple("_Place", "start end term")


def snippet(body, terms, width=SNIPPET_CHARS):
    """The stretch of `body` of about `width` characters that holds most of the terms, on one line.

    Without any match (the words stand in the title or the tags) it is the start of the body. "…"
    stands where text was cut off.
    """
    text = body[:_LONG_TEXT]
    places = _places(text, terms)
    start = _best_start(places, width) if places else _first_text(text)
    start = _line_start(text, start)
    end = min(len(text), start + width)
    part = text[start:end]
    shown = " ".join(part.split())
    if start > 0 and text[:start].strip():
        shown = "…" + shown
    if text[end:].strip() or len(body) > len(text):
        shown += "…"
    return shown


def mark(text, terms, before="**", after="**"):
    """`text` with every word that answers a term set between `before` and `after`."""
    spans = []
    for place in sorted(_places(text, terms)):
        if spans and place.start <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], place.end)
        else:
            spans.append([place.start, place.end])
    out, at = [], 0
    for start, end in spans:
        out += [text[at:start], before, text[start:end], after]
        at = end
    return "".join([*out, text[at:]])


def _places(text, terms):
    """Where in `text` the terms stand, as offsets into `text` itself."""
    folded = normalize(text)
    patterns = [_pattern(term) for term in terms]
    if len(folded) == len(text):
        return _places_in(folded, patterns, lambda offset: offset)
    places, start = [], 0
    for line in text.splitlines(keepends=True):
        folded = normalize(line)
        if any(pattern.search(folded) for pattern in patterns):
            offsets = _offsets(line)
            places += [
                _Place(start + p.start, start + p.end, p.term)
                for p in _places_in("".join(map(normalize, line)), patterns, offsets.__getitem__)
            ]
        start += len(line)
    return places


def _places_in(folded, patterns, offset):
    """The places in a normalized text; `offset` maps its characters to those of the text itself."""
    places = []
    for number, pattern in enumerate(patterns):
        for count, found in enumerate(pattern.finditer(folded)):
            if count >= _PLACES:
                break
            places.append(_Place(offset(found.start()), offset(found.end() - 1) + 1, number))
    return places


def _offsets(line):
    """For each character of a line, normalized one by one: the offset it comes from."""
    return [offset for offset, char in enumerate(line) for _ in normalize(char)]


def _pattern(term):
    """What a term looks like in normalized text: its words with any joint between them, from a
    word's start (the end may go on, as a prefix does)."""
    forms = [r"[\W_]{0,3}".join(map(re.escape, phrase.split())) for phrase in (*term.phrases, *term.parts)]
    joined = "|".join(forms)
    # Latin glued to Chinese has no border that \w knows, so the border is "no Latin letter in front".
    return re.compile(f"(?<![a-z0-9])(?:{joined})" if term.text.isascii() else joined)


def _best_start(places, width):
    """The start of the window of `width` characters with the most different terms, earliest first."""
    places = sorted(places)
    best, best_start = 0, places[0].start
    for index, first in enumerate(places):
        terms = set()
        for place in places[index : index + 200]:
            if place.end > first.start + width - _LEAD:
                break
            terms.add(place.term)
        if len(terms) > best:
            best, best_start = len(terms), first.start
    return max(0, best_start - _LEAD)


def _line_start(text, start):
    """`start`, moved to the next line or word start unless that would lose the lead."""
    if start <= 0:
        return 0
    line = text.rfind("\n", start, start + _LEAD)
    if line >= 0:
        return line + 1
    space = text.find(" ", start, start + _LEAD // 2)
    return space + 1 if space >= 0 else start


def _first_text(text):
    """The offset of the first character that is not white space."""
    return len(text) - len(text.lstrip())
