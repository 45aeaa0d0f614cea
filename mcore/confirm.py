"""Whether an empty answer is true: the cards' files are read, plainly, for what was asked.

A flipped byte inside a word of the full text is no damage that SQLite notices: the card is missed and
nothing looks wrong (1 search in 740 over indexes with one byte flipped). The files are the truth, so they
have the last word before "nothing found" is said. It costs .5 s of CPU at 10,000 cards of 2 KB, so it is
kept for answers that are odd: nothing found, though the second record of the index's words (`vocabulary`)
knows one of those asked for. One flipped byte cannot take a word out of both.

Tried and left out: FTS5's own integrity-check (.5 s, and of a contentless table it does not tell whether
the words are right); a checksum of every block of the full text, kept by triggers (.06 s to check, but a
trigger there makes FTS5 write from within its own write, until SQLite 3.40 has used up its stack); the
same text cut as for the index (1.2 s, most of it for the normal form).

First each text is only searched for the query's rarest part as characters. Both sides are folded more
coarsely than the index does it (compatibility forms, letter case, accents, joints of identifiers), so what
the index should find is always among what is left, and that is then cut and asked as the index would be.
"""

import re
import time
import unicodedata
from functools import lru_cache

from mcore.card import content_hash
from mcore.cardfile import read_card
from mcore.errors import CardError, StoreDamaged
from mcore.pattern import Pattern
from mcore.record import namedtuple
from mcore.render import scrub
from mcore.store import REBUILD, holds
from mcore.store.checking import check_rows
from mcore.tokenize import columns, normalize, to_query_expr
from mcore.vault import decode

LOOSEST_FIRST = ("any-prefix", "any", "all-prefix", "all")  # each holds those after it; some only repeat another
SECONDS = 0.8  # for reading; what is left then is said, not confirmed

# Characters that stand for no letter but themselves and hide none: ASCII, common Han, Chinese and
# general punctuation, arrows, lines and most pictures; and scripts that do not matter to a query in Latin and Han.
_PLAIN = (
    "\x00-\x7f\u4e00-\u9fff\u2010-\u2027\u2030-\u205e\u2190-\u245f\u2500-\u2a73\u2b00-\u2bff"
    "\u3000-\u3003\u3008-\u3029\u3030\uff01-\uff0c\uff0e\uff0f\uff1a-\uff20\U0001f300-\U0001faff"
)
_OTHER_SCRIPTS = "\u3041-\u3096\u30a1-\u30fe\uac00-\ud7a3"
_ODD = Pattern(f"[^{_PLAIN}]")
_STRETCH = "\u0640"  # of Arabic
_ODD_BESIDE_LATIN_AND_HAN = Pattern(f"[^{_PLAIN}{_OTHER_SCRIPTS}]")


def is_doubtful(store, files, terms, hits):
    """Whether an answer should be confirmed: there is no hit, or one of them does not hold what was asked."""
    if not hits:
        return True
    names = store.real_names([hit.id for hit in hits])
    told = [(hit, _read(files, names[hit.id])) for hit in hits if hit.matched == "all"]
    return any(file and not _holds_every(terms, f"{hit.path}\n{file.text}") for hit, file in told)


def _holds_every(terms, text):
    """Whether a text has, anywhere in it, every token of one of each term's forms."""
    text = fold(text, _ODD)
    return all(any(all(token in text for token in re.split(r"\W+", fold(form))) for form in t.phrases) for t in terms)


def confirm(store, files, terms, filters, hits):
    """How many cards could not be looked at in time before "nothing found" is said; 0: it is confirmed.

    `filters` are the kind, source and limits that were asked for; a doubtful answer may have a few hits. Raises
    StoreDamaged when a card whose file is what was indexed answers, and the index does not have it, or when a
    hit is one that does not answer. Cards that the index does find are somebody else's choice to leave out (a
    filter, a deleted file).
    """
    expr = next(filter(None, (to_query_expr(terms, tier) for tier in LOOSEST_FIRST))) if terms else None
    docs = store.docs_matching(expr) if expr else []
    if not docs and terms and not store.words.knows_any(_words(terms)):
        return 0
    filtered = any(filters[:2])
    found = set(store.found(docs))
    if found and not hits and not filtered:
        return 0  # cards that a scope or a date leaves out: the index knows the words
    check_rows(store)
    if not terms:
        return 0
    needles, known = _Needles(terms), store.known_files()
    whole = to_query_expr(terms, "all")
    paths = {hit.path for hit in hits if hit.matched == "all"}
    for row in known:
        if row.rel_path in paths and _is_wrong(row, files, whole):
            why = f"{row.rel_path} was found, and does not hold what was asked for"
            raise StoreDamaged(f"cannot use the index {store.path}", why, REBUILD)
    # Of cards that a filter leaves out the files say whether the index knows their kind and source.
    passing = found if found and not hits else store.docs_of(*filters) | found
    rows = [row for row in known if row.doc in passing]
    deadline = time.monotonic() + SECONDS
    for at, row in enumerate(rows):
        if time.monotonic() > deadline:
            return len(rows) - at
        if row.doc in found:
            if not filtered or _says_the_same(row, files):
                continue
        elif not _is_missed(row, files, needles, expr):
            continue
        why = f"{row.rel_path} holds what was asked for, and is missing or wrong in the index"
        raise StoreDamaged(f"cannot use the index {store.path}", why, REBUILD)
    return 0


def _words(terms):
    return " ".join(form for term in terms for form in (*term.phrases, *term.parts))


def _is_missed(row, files, needles, expr):
    """Whether a card's file answers an expression, which the index denies."""
    file = _read(files, row.name)
    if file is None:
        return False
    likely = needles.are_in(f"{row.rel_path}\n{file.text}")
    if not likely and not _is_encoded(file.text):
        return False
    card = read_card(row.rel_path, file.text)
    if card.life.forgotten or not likely and not needles.are_in(f"{card.title}\n{card.labels}"):
        return False
    if content_hash(file.data) != row.content_hash:
        return False  # changed since; it was not taken in, and the answer says so
    return holds(columns(card.title, card.labels, card.body), expr)


def _is_wrong(row, files, expr):
    """Whether a card that was found does not answer an expression, as far as its file is what was indexed."""
    file = _read(files, row.name)
    if file is None or content_hash(file.data) != row.content_hash:
        return False
    card = read_card(row.rel_path, file.text)
    return not holds(columns(card.title, card.labels, card.body), expr)


def _says_the_same(row, files):
    """Whether kind and source in the index are those in the file, as far as the file is what was indexed."""
    file = _read(files, row.name)
    if file is None or content_hash(file.data) != row.content_hash:
        return True
    card = read_card(row.rel_path, file.text)
    return [scrub(text).replace("\0", " ") for text in (card.kind, card.source)] == [row.kind, row.source]


_File = namedtuple("_File", "data text")


def _read(files, name):
    """The bytes and the text of a card's file; None when it cannot be read as one (any more)."""
    data = files.bytes_of(name)
    try:
        return None if data is None else _File(data, decode(data)[0].replace("\0", " "))
    except CardError:
        return None


def _is_encoded(text):
    """Whether the frontmatter may hold a word that is not there as characters (`"\\u4e2d"`)."""
    return text.startswith("---") and "\\" in text[: text.find("\n---", 3) + 1]


class _Needles:
    """What a text must hold to answer a query at all: for each form of each term the longest token, folded."""

    def __init__(self, terms):
        forms = [fold(form) for term in terms for form in (*term.phrases, *term.parts)]
        self.words = {max(re.split(r"\W+", form), key=len) for form in forms}
        latin_or_han = all(re.fullmatch("[\x00-\x7f\u4e00-\u9fff]*", word) for word in self.words)
        self.odd = _ODD_BESIDE_LATIN_AND_HAN if latin_or_han else _ODD

    def are_in(self, text):
        """Whether one of them is in a text."""
        text = fold(text, self.odd)
        return any(word in text for word in self.words)


def fold(text, odd=_ODD):
    """`text` made so coarse that whatever the index takes as equal is equal here."""
    if not text.isascii():
        for char in set(odd.findall(text)):
            text = text.replace(char, _folded(char))
    return text.lower().replace("-", "").replace("_", "")


@lru_cache(maxsize=1 << 16)
def _folded(char):
    """A character's base letters; accents and invisible characters are nothing."""
    letters = unicodedata.normalize("NFKD", normalize(char))
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Mn" and letter != _STRETCH)
