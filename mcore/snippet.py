"""The place in a card that answers a query, as the note has it, and where in it the words stand. Pure."""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from mcore.pattern import Characters
from mcore.record import namedtuple
from mcore.tokenize import normalize, without_marks

SNIPPET_CHARS = 160
_LEAD = 40  # characters before the first match
_PLACES = 50  # occurrences of a term that are looked at; the best window is nearly always among them
_LONG_TEXT = 400_000  # characters searched at a time for the best place
_LONGEST_TEXT = 4_000_000  # characters searched at all (0.1 s a million); without a place the start is shown

_PIECE, _OVERLAP = 2000, 200  # characters; a query word has at most 200
_LATIN_END, _SPACED_END = "\u0250", "\u0e00"  # Latin ends; the first script without spaces begins
_ACCENTS = "[\u0300-\u036f]+"
_LATIN_ACCENTS = f"(?<![\u0370-\u1dff]){_ACCENTS}"  # not of `й`, which is no `и`
_ACCENTED = Characters("\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff")

_MARKED = Characters("\u0370-\u03ff\u0451\u0591-\u05c7\u0622-\u0625\u0640-\u065f\u0670\u1f00-\u1fff")

_Place = namedtuple("_Place", "start end term")


def snippet(body, terms, width=SNIPPET_CHARS):
    """The stretch of `body` of about `width` characters that holds most of the terms, on one line.

    Without any match (the words stand in the title or the tags) it is the start of the body. "…"
    stands where text was cut off.
    """
    text, at = body[:_LONG_TEXT], 0
    places = _places(text, terms)
    while not places and at + len(text) < min(len(body), _LONGEST_TEXT):
        at += _LONG_TEXT - _OVERLAP
        text = body[at : at + _LONG_TEXT]
        places = _places(text, terms)
    if at and not places:
        text, at = body[:_LONG_TEXT], 0
    start = _best_start(places, width) if places else _first_text(text)
    start = _line_start(text, start)
    end = min(len(text), start + width)
    part = text[start:end]
    shown = " ".join(part.split())
    if at or text[:start].strip():
        shown = "…" + shown
    if text[end:].strip() or len(body) > at + len(text):
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
    folded = text.casefold()
    if len(folded) == len(text) and not re.search(_ACCENTS, text):  # most text is found without folding it
        places = _search(text, folded, _patterns(terms, folded))
        if places or text.isascii() and "\0" not in text:
            return places or _search(text, folded, _joint_patterns(terms))
    folded = fold(text)
    places = _search(text, folded, _patterns(terms, folded))
    return places or _search(text, folded, _joint_patterns(terms))


def _patterns(terms, folded):
    """The patterns of those terms that have a first word in a folded text; most terms of a question have not."""
    return [_pattern(term) for term in terms if any(start in folded for start in _starts(term))]


def _joint_patterns(terms):
    """The patterns by which `ecsprod` finds a card by the hidden form of its `ecs-prod`."""
    return [_joint_pattern(term) for term in terms if term.text.isascii() and len(term.text) > 2]


def _search(text, folded, patterns):
    """The places of patterns in a text, given as it is and folded."""
    if not patterns:
        return []
    if len(folded) == len(text):  # each character keeps its place
        return _places_in(text, folded, patterns, range(len(text)), range(1, len(text) + 1))
    if not any(pattern.search(folded) for pattern in patterns):
        return []
    places = []
    for start, piece in _pieces(text):
        folded = fold(piece)
        if not any(pattern.search(folded) for pattern in patterns):
            continue
        starts, ends = range(len(piece)), range(1, len(piece) + 1)
        if len(folded) != len(piece):
            folded, starts, ends = _aligned(piece)
        found = _places_in(piece, folded, patterns, starts, ends)
        places += [_Place(start + p.start, start + p.end, p.term) for p in found]
        if len(places) > _PLACES * len(patterns):
            break
    return places


def _places_in(text, folded, patterns, starts, ends):
    """The places in a folded text; `starts` and `ends` map its characters to those of `text`."""
    places = []
    for number, pattern in enumerate(patterns):
        count = 0
        for found in pattern.finditer(folded):
            start = starts[found.start()]
            if not _begins_word(text, start, folded, found.start()):
                continue
            places.append(_Place(start, ends[found.end() - 1], number))
            count += 1
            if count >= _PLACES:
                break
    return places


def _begins_word(text, start, folded, at):
    """Whether a match is no mere inside of a word: `user` counts in `getUserName`, not in `superuser`.

    Words have borders in scripts with spaces only, and one where Latin meets another script.
    """
    if at == 0 or not (_in_word(folded[at - 1]) and _in_word(folded[at])):
        return True
    if (folded[at - 1] < _LATIN_END) != (folded[at] < _LATIN_END):
        return True
    return text[start].isupper() and (not text[start - 1].isupper() or text[start + 1 : start + 2].islower())


def _in_word(char):
    return char < _SPACED_END and (char.isalnum() or unicodedata.category(char)[0] == "M")


def _pieces(text):
    """(offset, piece) for every line; a long line in overlapping pieces, so that work stays in bounds."""
    at = 0
    for line in text.splitlines(keepends=True):
        for start in range(0, max(1, len(line) - _OVERLAP), _PIECE - _OVERLAP):
            yield at + start, line[start : start + _PIECE]
        at += len(line)


def fold(text):
    """`text` as the index compares it: normalized, letters without accents and optional marks."""
    text = normalize(text)
    if not text.isascii() and _ACCENTED.any_in(text):
        text = unicodedata.normalize("NFC", re.sub(_LATIN_ACCENTS, "", unicodedata.normalize("NFD", text)))
    if not text.isascii() and _MARKED.any_in(text):
        text = without_marks(text)
    return text


def _aligned(piece):
    """(folded, starts, ends) of a piece: for each folded character the span it comes from.

    Folded cluster by cluster (a letter with its marks, the parts of a Hangul syllable), which gives
    what folding the whole gives.
    """
    borders = [at for at, char in enumerate(piece) if not at or not _joins_left(char)] + [len(piece)]
    folded, starts, ends = [], [], []
    for start, end in pairwise(borders):
        cluster = fold(piece[start:end])
        folded.append(cluster)
        starts += [start] * len(cluster)
        ends += [end] * len(cluster)
    return "".join(folded), starts, ends


@lru_cache(maxsize=4096)
def _joins_left(char):
    """Whether a character may melt into the one before it."""
    first = normalize(char)[:1]
    return not first or unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=256)
def _starts(term):
    """The first word of each form of a term, folded."""
    return tuple(fold(phrase).split(" ", 1)[0] for phrase in (*term.phrases, *term.parts))


@lru_cache(maxsize=256)
def _pattern(term):
    """What a term looks like in folded text: its words with any joint between them; the end may go
    on, as a prefix does."""
    return re.compile(
        "|".join(r"[\W_]{0,3}".join(map(re.escape, fold(phrase).split())) for phrase in (*term.phrases, *term.parts))
    )


@lru_cache(maxsize=256)
def _joint_pattern(term):
    """A term that may be spelt with joints inside."""
    return re.compile(r"[_\-]?".join(map(re.escape, term.text)))


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
