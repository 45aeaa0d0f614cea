"""Text -> what FTS5 stores, and a query -> FTS5 expressions. Pure: no disk, no SQL.

FTS5's own tokenizers fail on Chinese: unicode61 makes a whole run one token, trigram needs three
characters and most Chinese words have two. So a run of a script written without spaces is cut into
overlapping pairs before it is stored (阿里云 -> `阿里 里云 云`), and unicode61 sees words. The last
character of a run is stored alone as well, so that one character, asked as a prefix, finds every
card that holds it. Started as a script from inside mcore/, this file would hide the standard
`tokenize`; it is only ever imported.
"""

import re
import unicodedata
from array import array
from functools import cache
from itertools import groupby, pairwise
from operator import add, itemgetter

from mcore.pattern import Characters, Pattern, runs_of
from mcore.record import namedtuple
from mcore.variants import spellings

# Han in all planes, kana, Hangul, Bopomofo, and Thai, Lao, Khmer, Burmese.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3031-\u3035\u3038-\u303c\u3041-\u3096\u3099\u309a\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\u1100-\u11ff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1000-\u103f\u104e-\u108f\u109a-\u109f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
)

# Patterns kept as text are compiled by `re` when first used (and cached there): a large character
# class costs 1 to 2 ms, and most searches need few of them. _BORDER is where Latin is glued to a
# spaced script other than its own (Greek to Georgian, Indic): `nginxमें`. The letters of Vietnamese (`bảo`) and
# the marks of Latin letters in the midst of these are not among them.
_RUN = f"({runs_of(UNSPACED)})"
_UNSPACED = Characters(UNSPACED)
SPACED_FOREIGN = "[\u0370-\u1aaf\u1b00-\u1cff\u1f00-\u1fff]"
_BORDER = f"(?<=[a-z0-9])(?={SPACED_FOREIGN})|(?<={SPACED_FOREIGN})(?=[a-z0-9])"
_FOREIGN_BYTES = bytes(range(0xCD, 0xE2))

# Format characters (zero width, bidi, BOM, soft hyphen, tags) and variation selectors split or
# hide words for unicode61; a NUL may cut text in some SQLite builds; a lone surrogate cannot be bound.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = f"[{_INVISIBLE}]"
_UNBINDABLE = "\x00\ud800-\udfff"
# Signs younger than unicode61's tables (Unicode 6.1: most emoji, some currencies) are letters to it, and would
# make one token with a word beside them.
_YOUNG = (
    "\u058d\u058e\u061d\u20ba-\u20cf\u218a\u218b\u23f4-\u23ff\u2700\u2b4d-\u2bff\u2e3c-\u2e7f"
    "\U0001f000-\U0001f0ff\U0001f300-\U0001faff"
)
_NO_WORD = f"[{_UNBINDABLE}{_YOUNG}]"
_ODD = Characters(f"{_INVISIBLE}{_UNBINDABLE}{_YOUNG}")
# Full-width punctuation, quotes and no-break space only separate words. Spaced out first, they leave
# most Chinese text in NFKC form already, and the check for that is far cheaper than normalizing; the
# commonest by `replace`, which is eight times as quick as a pattern. One space for each, so that places in
# the text stay what they were.
_COMMON_WIDE_SIGNS = "，：（）；？！\u3000"
_WIDE_SIGNS = (
    "[\u00a0\u2018-\u201f\u2026\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01-\uff0c\uff1a-\uff20"
    "\uff3b-\uff3e\uff40\uff5b-\uff65]"
)
_DATA_URI = r"(data:[\w.+-]{1,40}/[\w.+-]{1,60};base64,)[A-Za-z0-9+/=]{200,}"

# Byte -> itself in words and their joints, else a space.
_WORD_BYTES = bytes(b if chr(b).isalnum() and b < 128 or b in b"_-" else 32 for b in range(256))
_MAX_IDENTIFIER = 80  # characters; longer ones are data
_HUMP = Pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_HUMPS, _MAX_NUMBERS = 5, 3  # more cuts (at numbers, too) make a hash, not a name
# Before a token: it is the letters of a word that ends with digits (`sqlite` of `sqlite3`). A usual query holds no
# such word, so `sqlite` finds `sqlite3` as the beginning of a longer word, not whole.
PIECE = "\ue000"
NUMBERED = Pattern(r"([a-z]{2,})([0-9]+)")
_NUMBER_WITHIN = Pattern(r"[0-9][A-Za-z]")
_JOINTS = Pattern(r"[_\-./]+")
# A product with its version, or its ending; apart or glued.
_PRODUCT = Pattern(r"([a-z]{2,30})(?:[-_ ]?v?([0-9]{1,8}(?:\.[0-9]{1,8}){0,3})|[. ]?(js)|\.(net|io))")
_VERSION = Pattern(r"(v)?((?(1)[0-9]+\.)[0-9]+\.[0-9].*)")

MAX_TERMS = 64  # more cannot change ten hits, and 10,000 cost 0.09 s a tier (measured)
MAX_WORD = 200  # characters of one query word; the longest real identifiers have under 100

_COLUMN_END = "\x1f"  # the unit separator: no word holds one

Columns = namedtuple("Columns", "title labels body names")
Columns.__doc__ = "The four FTS5 columns of one card, cut and ready to store."


def normalize(text):
    """`text` as both sides of the search see it: NFKC, no invisible characters, case folded."""
    return _clean(text).casefold()


def _clean(text):
    """NFKC without invisible or unstorable characters; letter case kept."""
    if text.isascii():
        return text.replace("\x00", " ")
    if _ODD.any_in(text):
        text = re.sub(_NO_WORD, " ", re.sub(_HIDDEN, "", text))
    for sign in _COMMON_WIDE_SIGNS:
        text = text.replace(sign, " ")
    text = text.replace("．", ".").replace("\u2010", "-").replace("\u2011", "-")  # printed hyphens join like "-"
    if not unicodedata.is_normalized("NFKC", text):
        lines = re.sub(_WIDE_SIGNS, " ", text).split("\n")  # the few odd lines; nothing composes across a line's end
        text = "\n".join([unicodedata.normalize("NFKC", line) for line in lines])
    return text


def split_bigrams(text):
    """Normalized text cut at script borders, every unspaced run into pairs; words stay whole.

    A run gives its overlapping pairs and its last character alone: `阿里云` -> `阿里 里云 云`.
    """
    return _with_pairs(split_runs(text))


def split_runs(text):
    """Other text and runs of unspaced scripts in turn."""
    return [text] if text.isascii() else re.split(_RUN, text)


def _with_pairs(pieces):
    """The text of `split_runs` pieces with every run in pairs."""
    others = pieces[::2]
    if len(pieces) > 1:
        pieces[1::2] = _pairs(pieces[1::2])
    text = " ".join(pieces)
    return _foreign(text) if _may_be_foreign(text) and re.search(SPACED_FOREIGN, " ".join(others)) else text


def _foreign(text):
    """Folded text with a space where Latin is glued to another spaced script, and without optional marks."""
    return re.sub(_BORDER, " ", without_marks(text))


def without_marks(text):
    """Folded text without the marks that are written or left out as one likes: `Ёлка`, `Αθήνα`, the points of
    Hebrew, the vowels of Arabic. (Those of Latin letters are left out by FTS5.)"""
    return unicodedata.normalize("NFC", text).translate(_optional_marks())  # casefolding took `ῆ` apart


@cache
def _optional_marks():
    """A table for `translate`: Greek letters without accents, ё as е, alif without hamza; points, vowel signs and
    the stretching stroke as nothing."""
    table = {
        code: unicodedata.normalize("NFD", chr(code))[0]
        for block in (range(0x370, 0x400), range(0x1F00, 0x2000))
        for code in block
        if unicodedata.category(chr(code)) == "Ll"
    }
    nothing = (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7, 0x640, *range(0x64B, 0x660), 0x670)
    return table | {0x451: "\u0435"} | dict.fromkeys((0x622, 0x623, 0x625), "\u0627") | dict.fromkeys(nothing)


def _may_be_foreign(text):
    """Whether a text may hold a letter of SPACED_FOREIGN, by the first bytes of its characters: a tenth of the
    time that a pattern takes."""
    if text.isascii():
        return False
    data = text.encode("utf-8", "replace")
    return len(data) > len(data.translate(None, _FOREIGN_BYTES))


def _pairs(runs):
    """Each run as its pairs and its last character: ["阿里云"] -> ["阿里 里云 云 "].

    All runs at once, as numbers: each character, the next one and a space in turn. Making a string of
    every pair took four times as long.
    """
    chars = array("I", "\n".join(["", *runs, ""]).encode("utf-32-le"))
    threes = array("I", b"\0\0\0\0\0\0\0\0 \0\0\0" * (len(chars) - 1))
    threes[0::3], threes[1::3] = chars[:-1], chars[1:]
    # A run comes out as "\nA AB BC C\n ": between line ends, after its first character alone.
    return list(map(_behind_two, threes.tobytes().decode("utf-32-le").split("\n")[1::2]))


_behind_two = itemgetter(slice(2, None))


def identifier_parts(text):
    """The hidden words of a text's identifiers: sub-words, and the form without its joints.

    `getUserName` gives `get user name`; `ecs-prod` gives `ecsprod`; each identifier once, in order.
    What FTS5 cuts out of the text itself (`ecs`, `prod`) is not repeated. As bytes the words are found
    twice as quickly as by a pattern.
    """
    return [form for form in _all_forms(text) if form[0] != PIECE]


def _all_forms(text):
    """The same, and the letters of words that end with digits, each behind PIECE."""
    words = dict.fromkeys(text.encode("ascii", "replace").translate(_WORD_BYTES).split())
    odd = [  # one of six
        word
        for word in words
        if not (word.islower() or word.istitle() or word.isupper() if word.isalpha() else word.isdigit())
    ]
    if len(_word_forms) > _MAX_CACHED:
        _word_forms.clear()
    return list(dict.fromkeys(form for forms in map(_word_forms.__getitem__, odd) if forms for form in forms))


class _WordForms(dict):
    """word (ASCII bytes) -> its further forms. Cached: the same words come again in card after card.

    Data (a megabyte of hex is one word) does not, and would fill the memory.
    """

    def __missing__(self, word):
        if len(word) > _MAX_IDENTIFIER:
            return ()
        forms = self[word] = _forms(word.decode())
        return forms


_word_forms = _WordForms()
_MAX_CACHED = 30_000  # 8 MB


def _forms(word):
    """The joined form and the sub-words of one word, as far as they say something new."""
    joined = word.replace("-", "").replace("_", "")
    is_joined = len(joined) < len(word.strip("-_"))
    has_digits = not joined.isalpha()
    if not has_digits and (joined.islower() or joined.isupper()):
        return (joined.casefold(),) if is_joined else ()
    pieces = [piece for piece in word.replace("-", "_").split("_") if piece]
    forms = [joined.casefold()] if is_joined else []
    # A number at the end is a version or a count (`sqlite3`); before letters it is a border (`list2dict`, `to_3d`).
    numbered = has_digits and _NUMBER_WITHIN.search(word)
    if numbered or not (word.islower() or word.isupper() or joined.isdigit()):
        humps = _HUMP.findall(word)
        if len(pieces) < len(humps) <= len(pieces) + (_MAX_NUMBERS if numbered else _MAX_HUMPS):
            forms.append(" ".join(humps).casefold())
    if has_digits:
        forms += [PIECE + found[1] for found in map(NUMBERED.fullmatch, map(str.casefold, pieces)) if found]
    return tuple(forms)


def without_payloads(text):
    """`text` without what its data: links carry, which no one looks for."""
    return re.sub(_DATA_URI, r"\1", text) if ";base64," in text else text


def columns(title, labels, body):
    """The FTS5 columns of a card from its title, its label text and its body."""
    body = without_payloads(body)
    text = _clean(_COLUMN_END.join(part.replace(_COLUMN_END, " ") for part in (title, labels, body)))
    names = _all_forms(text)
    return Columns(*split_bigrams(text.casefold()).split(_COLUMN_END, 2), " ".join(names))


Term = namedtuple("Term", "text phrases prefixable parts")
Term.__doc__ = """One term of a query.

`phrases` are alternative forms, each a text that FTS5 cuts into adjacent tokens; `prefixable` says
whether its last token may be the start of a longer word; `parts` are the words inside it that an
`any` tier tries when the whole is nowhere.
"""

# Beside white space; signs of other scripts in ranges.
_SEPARATORS = dict.fromkeys(
    [
        *map(ord, "!\"#$%&'()*+,:;<=>?@[\\]^`{|}~\u30fb"), *range(0x20),
        *range(0x2010, 0x2028), *range(0x2030, 0x205F), *range(0x3000, 0x3004), *range(0x3008, 0x3021),
    ],
    " ",
)  # fmt: skip
_TRIM = "-_./"


def split_query(query, limit=MAX_TERMS):
    """The terms of a query in order, each once, and how many were left off beyond `limit`.

    Every sign is text: operators, quotes and wildcards only separate words. `_ - . /` inside a word
    make it one term that is asked as a phrase.
    """
    terms, left_off = {}, 0
    pieces = list(query_pieces(query))
    writings = other_writings(pieces)
    for at, (piece, unspaced) in enumerate(pieces):
        for term in _run_terms(piece) if unspaced else _word_terms(piece, writings[at]):
            if term.text in terms:
                continue
            if len(terms) < limit:
                terms[term.text] = term
            else:
                left_off += 1
    return list(terms.values()), left_off


def query_pieces(query):
    """(piece, whether it is of a script without spaces) of a query, cut at signs and script borders.

    An unspaced piece is folded; a word keeps its case, which tells its sub-words, and its joints.
    """
    for chunk in _clean(query).translate(_SEPARATORS).split():
        for unspaced, run in [(False, chunk)] if chunk.isascii() else groupby(chunk, _UNSPACED.__contains__):
            piece = "".join(run)
            if unspaced:
                yield piece.casefold(), True
            else:
                yield from ((word, False) for word in _whole_words(piece))


def _whole_words(text):
    """The words or identifiers of a text that hold a letter or digit at all."""
    if not text.isascii() and re.search(SPACED_FOREIGN, text):
        text = _foreign(text.casefold())
    for word in text.split():
        word = word.strip(_TRIM)[:MAX_WORD]
        if any(map(str.isalnum, word)):
            yield word


def split_word(word):
    """The tokens of a word or identifier: `Auth.access_ttl` gives `auth access ttl`."""
    return [token for token in _JOINTS.split(word.casefold()) if token]


def _run_terms(run):
    """The pairs of an unspaced run; a single character stands for every card that holds it."""
    if len(run) == 1:
        yield Term(run, tuple(spellings(run)), False, ())
    for pair in map(add, run, run[1:]):
        yield Term(pair, tuple(spellings(pair)), False, ())


def other_writings(pieces):
    """place -> phrases by which the products among the pieces of a query are found, too.

    `Redis 6.2`, `redis-6.2`, `redis v6.2` and `Redis6.2` are one, as are `Node.js`, `node js` and `nodejs`.
    """
    found = {at: _writings(piece) for at, (piece, unspaced) in enumerate(pieces) if not unspaced}
    for at, ((name, _), (end, _)) in enumerate(pairwise(pieces)):
        for phrase in _writings(f"{name} {end}"):
            found[at].append(phrase)
            found[at + 1].append(phrase)
    return found


def _writings(text):
    """A product's name and what follows it as phrases: glued, apart, and as a version; none for other text."""
    product = _PRODUCT.fullmatch(text.casefold())
    if not product:
        return []
    name, version, *endings = product.groups()
    end = version or next(filter(None, endings))
    return [f"{name}{between}{end}".replace(".", " ") for between in (["", " ", " v"] if version else ["", " "])]


def _word_terms(word, writings):
    """The term of a word or identifier, with its other forms, `writings` among them, and its parts."""
    folded = word.casefold()
    tokens = _JOINTS.split(folded)
    phrases = [" ".join(tokens)]
    # `v2.0-rc1` must not be found by `rc 1` alone.
    whole = word.replace(".", "").replace("/", "") == word
    phrases += [
        form for form in identifier_parts(word) if form not in phrases and (whole or not re.search("[0-9]", form))
    ]
    version = _VERSION.fullmatch(folded)
    if version:  # `1.2.3` and `v1.2.3` are one version; `0.9` is any number, and not what `v0.9` asks for
        phrases.append(" ".join(_JOINTS.split(version[2] if version[1] else "v" + folded)))
    phrases += writings
    parts = tuple(dict.fromkeys(t for t in tokens if len(t) > 1)) if len(tokens) > 1 else ()
    # `a*` is nearly every card: the open end needs two characters.
    yield Term(folded, tuple(dict.fromkeys(phrases)), len(tokens[-1]) >= 2, parts)


def _quote(phrase):
    return '"' + phrase.replace('"', '""') + '"'


def is_single(term):
    """Whether a term is one character of an unspaced script (asked as a prefix, yet whole)."""
    return len(term.text) == 1 and term.text in _UNSPACED


def term_expr(term, prefix=False, parts=False):
    """The FTS5 expression of one term; with `prefix` its last token may go on, with `parts` its
    inner words count too."""
    star = prefix and term.prefixable
    forms = [_quote(p) + ("*" if star or is_single(term) else "") for p in term.phrases]
    if star and " " not in term.phrases[0]:
        forms.append(_quote(PIECE + term.phrases[0]))
    if parts:
        forms += [_quote(p) + ("*" if prefix and len(p) > 1 else "") for p in term.parts]
    return forms[0] if len(forms) == 1 else "(" + " OR ".join(forms) + ")"


def others_expr(term):
    """The FTS5 expression of what a word is found by beside itself; None for any other term. (The spellings of a pair
    are that pair.)"""
    return None if term.text[0] in _UNSPACED else " OR ".join(map(_quote, term.phrases[1:])) or None


def to_query_expr(terms, tier):
    """The FTS5 expression that asks `terms` in one of the four tiers, or None when it would only
    repeat the tier above it."""
    prefix = tier in ("all-prefix", "any-prefix")
    if prefix and not any(t.prefixable for t in terms):
        return None
    if tier in ("all", "all-prefix"):
        return " AND ".join(term_expr(t, prefix) for t in terms)
    if len(terms) == 1 and not terms[0].parts:
        return None
    return " OR ".join(term_expr(t, prefix, parts=True) for t in terms)
