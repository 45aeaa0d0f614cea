"""The place in a card that answers a query, as the note has it, and where in it the words stand. Pure."""

import re
from collections import namedtuple

from mcore.tokenize import is_single, normalize

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
    folded, offsets = _folded(text)
    places = []
    for number, term in enumerate(terms):
        for count, found in enumerate(_pattern(term).finditer(folded)):
            if count >= _PLACES:
                break
            if offsets is None:
                places.append(_Place(found.start(), found.end(), number))
            else:
                places.append(_Place(offsets[found.start()], offsets[found.end() - 1] + 1, number))
    return places


def _folded(text):
    """The normalized text, and for each of its characters the offset in `text` (None: the same)."""
    folded = normalize(text)
    if len(folded) == len(text):
        return folded, None
    pieces, offsets = [], []
    for offset, char in enumerate(text):
        piece = normalize(char)
        pieces.append(piece)
        offsets += [offset] * len(piece)
    return "".join(pieces), offsets


def _pattern(term):
    """What a term looks like in normalized text: its words with any joint between them, from a
    word's start (the end may go on, as a prefix does)."""
    if is_single(term) or not term.prefixable and len(term.phrases) == 1 and not term.parts and len(term.text) == 2:
        return re.compile(re.escape(term.text))
    forms = [r"[\W_]{0,3}".join(map(re.escape, phrase.split())) for phrase in (*term.phrases, *term.parts)]
    return re.compile(r"(?<![^\W_])(?:" + "|".join(forms) + ")") if _is_ascii_word(term) else re.compile("|".join(forms))


def _is_ascii_word(term):
    """Whether a word border in front makes sense (Latin glued to Chinese has none that \\W knows)."""
    return False if not term.text.isascii() else True


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
