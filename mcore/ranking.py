"""Which cards answer a query best: our own BM25 over the postings of the index. No card files.

A query becomes parts, each with a weight; a card's score is the sum of its parts. Adding scores was
better than fusing ranks (RRF) in every trial.

| part | weight | what it asks |
| word | 1, 1.5 | a Latin word: .2 for it as it stands, .8 for all words of the vault with its stem or that of its |
|      |        | British or American spelling; 1.5 with digits, whose other number (`e2fs`: `e2f`) counts so too |
| identifier | 1, .2, .3 | its words and sub-words, each as a word; .2 for the joined form, .3 for single letters |
| numbered | .7 | the letters and the number of a word that ends with one (`egr2`: `egr`, `2`) |
| product | 1 | the other way to write a name and what follows it (`redis 6.2`: `redis6.2`) |
| pair | 1 | two adjacent characters of an unspaced script, in both Chinese scripts |
| soft | .06, .5 | English stop words that stand alone; pairs inside Chinese question phrases |
| single | .5 | one character of an unspaced script, as the start of every pair; less in long queries |
| phrase | .2, .5 | two adjacent Latin words, in any of their forms; the second inside an identifier |

FTS5's bm25() is not used: its constants are fixed, every form of a word would have its own rarity,
and it reads every posting list two times. Frequent terms have lists of their own (`postings`); FTS5
is asked for the others, where the cards are few, and for phrases.

Lists are read from the shortest on. Once a card that none of them holds could hardly come among the best
any more, or READ_BUDGET entries were read, further lists are only looked into for the cards that can
still win (as MaxScore does), and these become fewer with each list. At 100,000 cards 200 queries of five
sorts gave the same ten cards as without these short cuts in 99.8 %, the same first card always.

Gains, nDCG@10 on development halves (200 to 400 queries a set, lists read whole, no cascade): stems
locomo_turn +.020, scifact +.032, cosqa +.029; .7 of them beside the exact word instead of stems alone
locomo_session +.010, cosqa +.008, scifact -.009; phrases locomo_session +.021, ident +.070, cosqa
+.014, scifact -.004; singles memdaily +.009, memorybank +.021, drcd +.010; words cut at numbers (`list2dict`)
ident +.016 of 925 queries; joined forms at .3 scifact +.005, ident +.004; numbered words scifact +.010;
Lucene's rarity locomo_turn +.007, locomo_session +.006, cosqa +.003, scifact -.003; forms of a word counted
once locomo_session +.004; singles by the length of the query memdaily +.006; names (`mda5`, `klf4`) at 1.5
scifact +.006, their plurals scifact +.001; British and American spellings scifact +.0006, locomo_turn +.0003;
words with hyphens as any neighbours scifact +.002; b .65 instead of .6 cosqa +.003; .06 instead of .1 for stop
words cosqa +.003.
Tried and left out: abbreviations by what the cards say they stand for (scifact +.001, -.002 the other way round),
longer words that begin with the stem (session +.002, scifact +.002, a walk of all their lists), weight by word
length, words nearby (NEAR), a bonus for each word held at all (BM25+, 0), Lucene's rarity for pairs (memdaily -.001,
bench/truth.json B first 95.8 to 94.4 %), neighbours by trigrams (cosqa -.040), lengths without labels and names
(locomo_turn -.007), counts for rare terms only (0 to +.002).
"""

import re
import unicodedata
from functools import lru_cache
from itertools import islice, pairwise
from math import log, prod

from mcore.postings import DamagedList, among, each, length_of
from mcore.record import namedtuple
from mcore.spelling import other_spellings
from mcore.stem import stem
from mcore.termlists import FIELD_WEIGHTS, SINGLES_UP_TO
from mcore.tokenize import NUMBERED, PIECE, identifier_parts, other_writings, query_pieces, split_word
from mcore.variants import spellings

# k1 and b: chat turns and sessions in English are best with little regard to length, Chinese diary lines with more
# (memdaily_zh .733 with b .75, .722 with .5; locomo_turn .490 and .504).
WORD_K1, WORD_B = 1.4, 0.65
PAIR_K1, PAIR_B = 1.2, 0.75
STEM_SHARE = 0.8
SINGLE_WEIGHT, LONG_RUN = 0.5, 20  # in queries of more unspaced characters single ones weigh less
PHRASE_WEIGHT, NAME_PHRASE_WEIGHT = 0.2, 0.5  # the second inside one identifier
SOFT_WORD, SOFT_PAIR = 0.06, 0.5
JOINED_WEIGHT, LETTER_WEIGHT, NUMBERED_WEIGHT = 0.2, 0.3, 0.7
NAME_WEIGHT = 1.5  # of a word of letters and digits

MIN_STEM = 3  # letters; shorter stems begin too many words
STEM_FORMS = 4  # forms of one word inside a phrase
MAX_PARTS = 400  # rambling questions end with what they ask: cut at 64, memdaily_zh fell from .73 to .67
CANDIDATES = 300  # cards that a ranking gives
RUNNERS_UP = 1000  # cards that are looked at further once READ_BUDGET is spent
READ_BUDGET = 15_000  # entries of lists that one query reads for any card; what is left is read for the best ones
SHORT_LIST = 500  # cards; up to here it costs more to ask whether a list must be read than to read it
PLACES = 20  # the most hits an answer has
MOST_GAIN, USUAL_GAIN = 2.2, 1.0  # what a feature of weight 1 adds to a card that holds it
COMMON_WORD = 1000  # cards; a phrase of two words that are both in more is left out
SENTENCE_WORDS, SENTENCE_RUN = 4, 6  # words, characters; keyword queries of bench/truth.json have fewer
STATED_WORDS = 3  # words from which on a full stop at the end makes a sentence

STOP_WORDS = frozenset(
    "a an the this that these those some any such same other own more most each both all no not nor "
    "only too very just so i me my we us our you your he him his she her hers it its they them their "
    "who whom whose which what when where why how am is are was were be been being do does did doing "
    "done has have had having can could may might must shall should will would and or but if then "
    "than because as while until of at by for with about into through during before after above "
    "below to from up down in out on off over under again once here there also between s t".split()
)
# Error messages hold these too (`no such column`), so they do not tell a sentence.
SENTENCE_MARKS = STOP_WORDS - frozenset("no not such is are was on off up down out too s t".split())
_QUESTION_PHRASES = (
    "请问|什么时候|是什么|为什么|什么样|什么|怎么样|怎么办|怎么|怎样|如何|哪一个|哪一|哪些|哪个|哪里|哪儿|哪几|哪|多少|多久|几个|几次|"
    "是否|是不是|有没有|能不能|要不要|可不可以|吗|呢|"
    "請問|什麼時候|是什麼|為什麼|什麼樣|什麼|怎麼樣|怎麼辦|怎麼|怎樣|哪一個|哪個|哪裡|哪裏|哪兒|哪幾|幾個|幾次|有沒有|嗎|"
    "何时|何時|何处|何處|谁|誰"
)

Part = namedtuple("Part", "kind text weight")
Feature = namedtuple("Feature", "part text weight is_pair size tokens counts")
Feature.__doc__ = """What is counted in cards: the sum of some tokens, or `counts` (doc -> count) as they are.

`weight` holds its rarity, `size` is how many cards have it (a card with two of the tokens counts twice),
`text` the term of the query that it answers for, if it does, `part` what it was made of.
"""
Part.__doc__ = "One thing to look for: `kind` is word, plain, pair, single or phrase (two words with a space)."


def is_question(query):
    """Whether lower tiers fill up for this query: it asks or tells in a sentence.

    It does with a question mark, a question phrase, an English stop word that stands alone, more
    than SENTENCE_WORDS words (STATED_WORDS with a full stop at the end), or more than SENTENCE_RUN characters
    without a space in a script that has none.

    nDCG@10, development halves, 400 queries a set, cascade / fill / by this rule: locomo_session
    .784 / .813 / .813, cosqa .430 / .441 / .441, memorybank .730 / .752 / .752, ident .960 / .959 /
    .965. On bench/truth.json noise in keyword answers (group A) is 0 / 68 / 0 %, and the first hit of
    questions (B) is right in 91.7 / 95.8 / 95.8 %.
    """
    if "?" in query or "\uff1f" in query or _asks(query):
        return True
    words = 0
    for piece, unspaced in query_pieces(query):
        if unspaced and len(piece) > SENTENCE_RUN:
            return True
        words += not unspaced
        if piece.casefold() in SENTENCE_MARKS:
            return True
    return words > SENTENCE_WORDS or words >= STATED_WORDS and query.rstrip().endswith(".")


def _asks(text):
    return any(phrase in text for phrase in _QUESTION_PHRASES.split("|"))


def parts(query):
    """The parts of a query, each once."""
    found, words, pieces = {}, [], list(query_pieces(query))
    writings = other_writings(pieces).values()
    length = sum(len(piece) for piece, unspaced in pieces if unspaced)
    single = SINGLE_WEIGHT * min(1.0, LONG_RUN / max(1, length))
    for piece, unspaced in pieces:
        if len(found) + len(words) > MAX_PARTS:
            break
        if unspaced:
            for part in _run_parts(piece[:MAX_PARTS], single):
                found.setdefault(part[:2], part)
        else:
            words += [(word, weight, piece) for word, weight in _words(piece).items()]
    if not found and all(weight == SOFT_WORD for _, weight, _ in words):
        words = [(word, 1.0, piece) for word, _, piece in words]  # nothing but stop words: then they are asked
    for word, weight, _ in words:
        part = Part("plain" if weight == SOFT_WORD else "word", word, weight)
        found.setdefault(part[:2], part)
    for (left, weight, piece), (right, next_weight, next_piece) in pairwise(words):
        if not weight == next_weight == SOFT_WORD:
            weight = NAME_PHRASE_WEIGHT if piece is next_piece and not _is_compound(piece) else PHRASE_WEIGHT
            found.setdefault(("phrase", left, right), Part("phrase", f"{left} {right}", weight))
    for left, *right in dict.fromkeys(tuple(phrase.split()[:2]) for some in writings for phrase in some):
        if left.rstrip("0123456789") in STOP_WORDS or left.isalpha() and right and right[0].isdigit():
            continue  # `in 2024`; `egr 2` comes below, in parts
        part = Part("phrase", f"{left} {right[0]}", 1.0) if right else Part("word", left, 1.0)
        found.setdefault((part.kind, *part.text.split()), part)
    for numbered in filter(None, [NUMBERED.fullmatch(word) for word, *_ in words]):
        for kind, text in zip(("word", "plain"), numbered.groups(), strict=True):
            found.setdefault((kind, text), Part(kind, text, NUMBERED_WEIGHT))
    return list(found.values())


def _run_parts(run, single):
    """The pairs of a run and its characters, which weigh `single`; less or not at all inside a question phrase."""
    if len(run) == 1:
        yield Part("single", run, 1.0)
        return
    said = [piece for piece in re.split(_QUESTION_PHRASES, run) if piece] if _asks(run) else [run]
    telling = {piece[at : at + 2] for piece in said for at in range(len(piece) - 1)}
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        yield Part("pair", pair, 1.0 if pair in telling else SOFT_PAIR)
    for char in "".join(said):
        yield Part("single", char, single)


def _words(piece):
    """word -> weight for the words, sub-words and joined forms of a piece without white space."""
    tokens = split_word(piece if piece.isascii() else unaccented(piece))
    forms = identifier_parts(piece)
    if len(tokens) == 1 and not forms and tokens[0] in STOP_WORDS:
        return {tokens[0]: SOFT_WORD}
    words = {word: NAME_WEIGHT if _is_mixed(word) else 1.0 for word in tokens}
    for form in forms:
        pieces = form.split()
        for word in pieces:
            words.setdefault(word, 1.0 if len(pieces) > 1 else JOINED_WEIGHT)
    return {word: min(weight, LETTER_WEIGHT) if len(word) == 1 else weight for word, weight in words.items()}


def _is_compound(piece):
    """Whether a piece is of words with hyphens between (`double-strand`), as any sentence has them."""
    return "-" in piece and piece.replace("-", "").strip(".,;:!?()").isalpha()


def _roots(word):
    """The stems of a word's spellings that are long enough."""
    return [root for root in map(stem, (word, *other_spellings(word))) if len(root) >= MIN_STEM]


def _other_number(name):
    """The plural of a name of letters and digits (`e2f`: `e2fs`), or its singular."""
    return name[:-1] if name[-1] == "s" and _is_mixed(name[:-1]) else name + "s"


def _is_mixed(word):
    """Whether a word holds letters and digits."""
    return not word.isalpha() and any(map(str.isalpha, word)) and any(map(str.isdecimal, word))


def unaccented(word):
    """`word` without the accents of its Latin letters and without what casefolding leaves of other accents (`ΐ`),
    as FTS5 stores it."""
    letters = (unicodedata.normalize("NFD", char)[0] if _is_latin(char) else char for char in word)
    return "".join(char for char in letters if not "\u0300" <= char < "\u0370")


def _is_latin(char):
    return char < "\u0250" or "\u1e00" <= char < "\u1f00"


class Ranking:
    """Scores the cards of one store for one query.

    `is_whole` asks for the same ranking without short cuts: every list read to its end, no card left
    aside. It is what the short cuts are measured against.
    """

    def __init__(self, store, is_whole=False):
        self.store = store
        self.is_whole = is_whole
        self.total, self.mean, self.codes = store.words.measures()
        self.is_complete = True  # every card with anything that was asked for got a score
        self.forms = {}  # word -> its forms in this vault
        self.asked = []  # the parts of the query
        self.features = []
        self._loose = {}  # token without a list -> {doc: count}
        self._lists = {}  # token with a list -> (unpacked list, {doc: count} of the rows since)

    def scores(self, query, allowed=None):
        """doc -> score of the best cards, CANDIDATES at most; `allowed` limits them to a set of docs.

        Raises DamagedList where the index contradicts itself.
        """
        asked = self.asked = parts(query)
        tokens = self._tokens_of(asked)
        every = [token for _, some in tokens for token in some]
        every += [word for part in asked if part.kind == "phrase" for word in part.text.split()]
        sizes = self.store.words.sizes(set(every))
        rest = dict.fromkeys(token for token in every if token not in sizes)
        self._loose = self._read_loose(rest)
        sizes.update((token, len(counts)) for token, counts in self._loose.items())
        self.features = [feature for part, some in tokens for feature in self._features_of(part, some, sizes)]
        self.features += filter(None, [self._phrase(part, sizes) for part in asked if part.kind == "phrase"])
        try:
            return self._sum(sorted(self.features, key=lambda feature: feature.size), allowed)
        except IndexError:
            raise DamagedList("a card has no length") from None

    def holders(self, text, docs):
        """Which of `docs` hold a token or pair of the query whole; None when the ranking did not look."""
        for feature in self.features:
            if feature.text == text:
                return {doc for doc, _ in self._among(feature, docs)}
        return None

    def word_weights(self):
        """word -> weight times rarity, for the words of the query that are no stop words; without regard to other
        forms."""
        sizes = {}
        for feature in self.features:
            text = feature.part.text
            sizes[text] = min(feature.size, sizes.get(text, feature.size))
        words = [part for part in self.asked if part.kind == "word"]
        return {part.text: part.weight * self._rarity(sizes.get(part.text, 0)) for part in words}

    # ---- what is looked for ----------------------------------------------------------------------

    def _tokens_of(self, asked):
        """(part, tokens) for all parts but phrases; "x*" stands for the tokens that begin with x."""
        words = [part.text for part in asked if part.kind == "word"]
        self._find_forms(words)
        found = []
        for part in asked:
            if part.kind == "pair":
                found.append((part, spellings(part.text)))
            elif part.kind == "single":
                found.append((part, [char + "*" for char in spellings(part.text)]))
            elif part.kind != "phrase":
                found.append((part, self.forms.get(part.text, [part.text])))
        return found

    def _find_forms(self, words):
        """Notes for each word what other words of the vault have its stem, in British or American spelling, or are
        its other number; itself first."""
        roots = {word: _roots(word) for word in words if word.isascii() and word.isalpha()}
        known = self.store.words.of_stems({root for some in roots.values() for root in some})
        for word in words:
            same = [form for root in roots.get(word, ()) for form in (root, *known.get(root, ()))]
            number = _other_number(word) if _is_mixed(word) else word
            self.forms[word] = list(dict.fromkeys([word, *same, number, PIECE + word]))

    def _read_loose(self, tokens):
        """token -> {doc: count} for the tokens without a list."""
        loose = self.store.words.counted([token for token in tokens if token[-1] != "*"])
        for token in tokens:
            if token[-1] == "*":
                if self.total <= SINGLES_UP_TO or len(tokens) == 1:
                    loose[token] = self.store.words.counted_start(token[:-1])
                else:
                    self.is_complete = False
        return loose

    def _features_of(self, part, tokens, sizes):
        """The Features of a part: one, or for a word with other forms one as it stands and one for all of them."""
        held = [token for token in tokens if sizes.get(token)]
        if not held:
            return
        text = part.text if part.kind != "single" or part.weight == 1.0 else None
        is_pair = part.kind in ("pair", "single")
        shares = [(1.0, text, held)]
        if part.kind == "word" and held != [part.text]:
            shares = [(STEM_SHARE, None, held)]
            if part.text in held:
                shares.append((1.0 - STEM_SHARE, text, [part.text]))
        for share, name, some in shares:
            size, counts = sum(map(sizes.__getitem__, some)), None
            held_by = size
            if len(some) > 1 and size <= SHORT_LIST:
                counts = _added([entries for token in some for entries in self._entries(token)])
                counts = {doc: count for doc, count in counts.items() if count}
                held_by = len(counts)
            elif len(some) > 1:
                held_by = self._together(map(sizes.__getitem__, some))
            yield Feature(part, name, part.weight * share * self._rarity(held_by, is_pair), is_pair, size, some, counts)

    def _phrase(self, part, sizes):
        """The Feature of two adjacent words; None when nothing holds it or both words are common."""
        left, right = (
            [form for form in self.forms.get(word, [word]) if sizes.get(form)][:STEM_FORMS]
            for word in part.text.split()
        )
        if not left or not right:
            return None
        if min(sum(map(sizes.get, left)), sum(map(sizes.get, right))) > COMMON_WORD:
            return None
        expr = " OR ".join(f'"{a} {b}"' for a in left for b in right)
        counts = dict.fromkeys(self.store.docs_matching(expr), 1)
        if not counts:
            return None
        counts.update(dict.fromkeys(self.store.docs_matching(f"title : ({expr})"), FIELD_WEIGHTS["title"]))
        return Feature(part, None, part.weight * self._rarity(len(counts)), False, len(counts), [], counts)

    def _rarity(self, n, is_pair=False):
        """The inverse document frequency of what n cards hold: for pairs as FTS5 has it, 0 from half of the cards on;
        for words as Lucene has it, above 0 for all."""
        odds = (self.total - n + 0.5) / (n + 0.5)
        return log(max(odds, 1.000001)) if is_pair else log(1 + max(odds, 0.000001))

    def _together(self, sizes):
        """How many cards hold one of several tokens at least, as if each were spread without regard to the others."""
        return self.total * (1 - prod(1 - min(1.0, size / self.total) for size in sizes))

    # ---- reading lists ---------------------------------------------------------------------------

    def _list(self, token):
        if token not in self._lists:
            unpacked, since = self.store.words.read_list(token)
            self._lists[token] = unpacked, dict(since)
        return self._lists[token]

    def _each(self, feature):
        """(doc, count) of every card with a feature."""
        if feature.counts is not None:
            return feature.counts.items()
        several = [some for token in feature.tokens for some in self._entries(token) if some]
        return several[0] if len(several) == 1 else _added(several).items()

    def _entries(self, token):
        """The (doc, count) of every card with a token, in one or two parts."""
        if token in self._loose:
            return [self._loose[token].items()]
        unpacked, since = self._list(token)
        return [each(unpacked), since.items()]

    def _among(self, feature, docs):
        """(doc, count) of the cards among `docs` with a feature."""
        if feature.counts is not None:
            return _both(feature.counts, docs)
        several = []
        for token in feature.tokens:
            if token in self._loose:
                several.append(_both(self._loose[token], docs))
            else:
                unpacked, since = self._list(token)
                several += [among(unpacked, docs), _both(since, docs)]
        several = [some for some in several if some]
        return several[0] if len(several) == 1 else _added(several).items()

    def account(self, docs):
        """doc -> [(feature, count, what it added to the score)], the most first."""
        accounts = {doc: [] for doc in docs}
        for feature in self.features:
            gain = self._gain(feature)
            for doc, count in self._among(feature, docs):
                accounts[doc].append((feature, count, feature.weight * gain[count][self.codes[doc]]))
        return {doc: sorted(entries, key=lambda entry: -entry[2]) for doc, entries in accounts.items()}

    def _gain(self, feature):
        return _gains(PAIR_K1, PAIR_B, self.mean) if feature.is_pair else _gains(WORD_K1, WORD_B, self.mean)

    # ---- adding up -------------------------------------------------------------------------------

    def _sum(self, features, allowed):
        """doc -> score. Features come the rarest first; once what is left cannot bring a new card to the
        top, or there is much to read, only the cards that are best by then are looked at."""
        scores, read = {}, 0
        is_open, codes = allowed is None, self.codes
        if allowed is not None:
            scores = dict.fromkeys(allowed, 0.0)
        for at, feature in enumerate(features):
            if scores and not self.is_whole and (feature.size > SHORT_LIST or not is_open):
                if is_open and read + feature.size > READ_BUDGET and len(scores) >= PLACES:
                    is_open, scores = False, _best(scores, RUNNERS_UP)
                if len(scores) > PLACES:
                    least = _nth(scores.values(), PLACES) - _most(features[at:])
                    is_open &= least <= 0
                    if not is_open:
                        scores = {doc: score for doc, score in scores.items() if score >= least}
            weight, gain = feature.weight, self._gain(feature)
            if is_open and not scores:
                scores = {doc: weight * gain[count][codes[doc]] for doc, count in self._each(feature)}
                read += feature.size
            elif is_open:
                get = scores.get
                for doc, count in self._each(feature):
                    scores[doc] = get(doc, 0.0) + weight * gain[count][codes[doc]]
                read += feature.size
            else:
                for doc, count in self._among(feature, scores.keys()):
                    scores[doc] += weight * gain[count][codes[doc]]
        self.is_complete &= is_open and len(scores) <= CANDIDATES
        return scores if self.is_whole else _best(scores, CANDIDATES)


def _most(features):
    """What some features add to a card at most: all of the heaviest one, of the others what is usual."""
    weights = [feature.weight for feature in features]
    return MOST_GAIN * max(weights) + USUAL_GAIN * (sum(weights) - max(weights))


class _Gains(dict):
    """count -> for every length code what BM25 makes of it, for a weight of 1: 0 to k1 + 1."""

    def __init__(self, k1, b, mean):
        super().__init__()
        self.k1 = k1
        self.norms = [k1 * (1 - b + b * length_of(code) / mean) for code in range(256)]

    def __missing__(self, count):
        gain = self[count] = [count * (self.k1 + 1) / (count + norm) for norm in self.norms]
        return gain


@lru_cache(maxsize=4)
def _gains(k1, b, mean):
    return _Gains(k1, b, mean)


def _best(scores, n):
    """The `n` best of doc -> score."""
    if len(scores) <= n:
        return scores
    least = _nth(scores.values(), n)
    return dict(islice(((doc, score) for doc, score in scores.items() if score >= least), 2 * n))


def _nth(values, n):
    """The value in place `n` from above. A sample tells which ones need not be sorted: three in four at least."""
    values = list(values)
    if len(values) > 8 * n:
        sample = sorted(values[:: len(values) // (4 * n)])
        least = sample[-8]
        above = [value for value in values if value >= least]
        values = above if n <= len(above) else values
    values.sort(reverse=True)
    return values[min(n, len(values)) - 1]


def _both(counts, docs):
    """(doc, count) for the docs in both; Python walks the smaller side."""
    return [(doc, counts[doc]) for doc in counts.keys() & docs]


def _added(several):
    """doc -> sum of its counts over several lists of (doc, count)."""
    counts = dict(several[0]) if several else {}
    get = counts.get
    for some in several[1:]:
        for doc, count in some:
            counts[doc] = get(doc, 0) + count
    return counts
