"""What a plain look through texts finds: the yardstick the search is held against. Pure: no disk, no SQL.

A text holds a query when, both normalized (NFKC, case folded, nothing invisible, white space as one
space), the query stands in it: anywhere in a script written without spaces, as whole words in any
other. No pairs, no postings, no expressions: nothing of how the index works.
"""

import re
import unicodedata

from mcore.record import namedtuple
from mcore.tokenize import SPACED_FOREIGN, UNSPACED, normalize

Drawn = namedtuple("Drawn", "script query start end")
Drawn.__doc__ = "One piece of a text, as it stands there at [start, end), to be asked as a query."

MAX_RUN = 8  # characters drawn from a run without spaces

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_LATIN = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
# Blocks of whole scripts, their marks among them, their punctuation not.
_RUNS = {
    "han": _HAN,
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff",
    "hangul": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "lao": "\u0e81-\u0ecd",
    "khmer": "\u1780-\u17d3",
    "burmese": "\u1000-\u1049\u1050-\u108f",
}
_WORDS = {
    "cyrillic": "\u0400-\u0481\u048a-\u052f",
    "greek": "\u0386\u0388-\u03ff\u1f00-\u1fff",
    "arabic": "\u0621-\u0669\u066e-\u06d3\u06d5-\u06dc\u06ee-\u06ff",
    "hebrew": "\u05b0-\u05bd\u05d0-\u05ea",
    "indic": "\u0900-\u0963\u0966-\u0df3",
    "other": "\u0531-\u0587\u10a0-\u10ff\u1200-\u135a\u0f40-\u0fbc\u1820-\u1877",
}
_WIDE = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f"
_WORD = r"(?<![\w{0}])[{0}]{{2,30}}(?![\w{0}])"  # to `re` a mark is no letter
_TECHNICAL = {
    "latin": rf"(?<!\w)[{_LATIN}]{{2,30}}(?!\w)",
    "identifier": r"(?<!\w)(?=[0-9_.\-/]*[A-Za-z])[A-Za-z0-9]{1,30}(?:[_\-./][A-Za-z0-9]{1,30}){1,4}(?!\w)",
    "number": r"(?<!\w)v?[0-9]{1,12}(?:\.[0-9]{1,8}){0,4}(?!\w)",
    "phrase": r"(?<!\w)[A-Za-z]{2,20}(?: [A-Za-z0-9]{2,20}){1,3}(?!\w)",
}
_GLUED = {
    "glued": rf"(?<=[{UNSPACED}])[A-Za-z0-9](?:[A-Za-z0-9_\-.]{{0,28}}[A-Za-z0-9])?(?=[{UNSPACED}])",
    "mixed": rf"[{UNSPACED}]{{1,3}}[A-Za-z0-9](?:[A-Za-z0-9_\-.]{{0,28}}[A-Za-z0-9])?[{UNSPACED}]{{1,3}}",
    "wide": rf"(?<![A-Za-z0-9{_WIDE}])[{_WIDE}]{{2,12}}(?![A-Za-z0-9{_WIDE}])",
}
SCRIPTS = (*_TECHNICAL, *_RUNS, *_WORDS, *_GLUED)
_RARE = "[\u0370-\u1fff]"


def draw(text, choose):
    """A Drawn of every script that `text` holds, at a place of chance.

    `choose(n)` gives a whole number below n.
    """
    if not text:
        return
    start = choose(len(text))
    for script, pattern in _patterns(text):
        found = pattern.search(text, start) or pattern.search(text)
        if not found:
            continue
        at, end = found.span()
        if script in _RUNS:
            at += choose(end - at)
            end = min(end, at + 1 + choose(MAX_RUN))
        yield Drawn(script, text[at:end], at, end)


def _patterns(text):
    """(script, compiled pattern) for the scripts that a text may hold."""
    rare = not text.isascii() and re.search(_RARE, text)
    for script in SCRIPTS:
        if script in _TECHNICAL:
            yield script, re.compile(_TECHNICAL[script])
        elif text.isascii():
            return
        elif script in _GLUED:
            yield script, re.compile(_GLUED[script])
        elif script in _RUNS:
            if rare or script in ("han", "kana", "hangul"):
                yield script, re.compile(f"[{_RUNS[script]}]+")
        elif rare:
            yield script, re.compile(_WORD.format(_WORDS[script]))


def plain(text):
    """`text` as it is compared: normalized, every white space one space."""
    return " ".join(normalize(text).split())


def holds(text, query):
    """Whether a `plain` text holds a `plain` query."""
    at = text.find(query) if query else -1
    while at >= 0:
        end = at + len(query)
        if _is_edge(text[at - 1 : at] if at else "", query[0]) and _is_edge(text[end : end + 1], query[-1]):
            return True
        at = text.find(query, at + 1)
    return False


def _is_edge(outer, inner):
    """Whether a word may end between two characters of a text."""
    if not _in_word(outer) or not _in_word(inner):
        return True
    if re.match(f"[{UNSPACED}]", outer) or re.match(f"[{UNSPACED}]", inner):
        return True
    # Latin glued to a script of its own kind of spaces (Greek to Mongolian) is a border too.
    return outer.isascii() and _is_foreign(inner) or inner.isascii() and _is_foreign(outer)


def _in_word(char):
    return char.isalnum() or bool(char) and unicodedata.category(char) in ("Mn", "Mc")


def _is_foreign(char):
    return re.match(SPACED_FOREIGN, char) is not None
