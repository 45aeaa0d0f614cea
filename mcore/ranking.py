"""Which cards answer a query best: our own BM25 over the postings of the index. No card files.

A query becomes parts, each with a weight; a card's score is the sum of its parts. Adding scores was
better than fusing ranks (RRF) in every trial.

| part | weight | what it asks |
| word | 1 | a Latin word: .3 for the word as it stands, .7 for all words of the vault with its stem |
| near | .15 | longer words that begin with a stem of six letters or more |
| identifier | 1 | its words, sub-words and joined form, each as a word |
| pair | 1 | two adjacent characters of an unspaced script, in both Chinese scripts |
| soft | .1, .3 | English stop words that stand alone; pairs inside Chinese question phrases |
| single | .5 | one character of an unspaced script, as the start of every pair |
| phrase | .3, .5 | two adjacent Latin words, in any of their forms; the second inside an identifier |

FTS5's bm25() is not used: its constants are fixed, every form of a word would have its own rarity,
and it reads every posting list two times. Postings come from fts5vocab (1.1 us an occurrence), the
lengths of cards from FTS5's own table. Lists are read from the shortest on; of a list of more than
LONG_LIST cards only who is on it (.55 us a card); and once the rest says little, the rest is read for
the best cards only.

Gains, nDCG@10 on development halves (200 to 400 queries a set, lists read whole, no cascade): stems
locomo_turn +.020, scifact +.032, cosqa +.029; .7 of them beside the exact word instead of stems alone
locomo_session +.010, cosqa +.008, scifact -.009; phrases locomo_session +.021, ident +.070, cosqa
+.014, scifact -.004; singles memdaily +.009, memorybank +.021, drcd +.010. In this program near words
give locomo_session +.002, cosqa +.001, scifact +.0005. Tried and left out: weight by word length,
words nearby (NEAR), neighbours by trigrams (cosqa -.040), lengths without labels and names
(locomo_turn -.007). Reading less costs drcd .004 and cosqa .004 to .006.
"""

import re
import unicodedata
from collections import defaultdict, namedtuple
from itertools import pairwise
from math import log

from mcore.stem import stem
from mcore.tokenize import identifier_parts, query_pieces, split_word
from mcore.variants import spellings

# k1 and b: chat turns and sessions in English are best with little regard to length, Chinese diary lines with more
# (memdaily_zh .733 with b .75, .722 with .5; locomo_turn .490 and .504).
WORD_K1, WORD_B = 1.1, 0.5
PAIR_K1, PAIR_B = 1.2, 0.75
COLUMN_WEIGHTS = {"title": 4.0, "labels": 2.0, "body": 1.0, "names": 1.0}

STEM_SHARE = 0.7
SINGLE_WEIGHT = 0.5
PHRASE_WEIGHT, NAME_PHRASE_WEIGHT = 0.3, 0.5  # the second inside one identifier
NEAR_WEIGHT = 0.15
MIN_NEAR = 6  # letters of a stem whose longer words are taken as near
SOFT_WORD, SOFT_PAIR = 0.1, 0.3

MIN_STEM = 3  # letters; shorter stems begin too many words
STEM_FORMS = 4  # forms of one word inside a phrase
MAX_PARTS = 400  # rambling questions end with what they ask: cut at 64, memdaily_zh fell from .73 to .67
CANDIDATES = 150  # cards whose length is looked at
READ_BUDGET = 6000  # entries of posting lists that one query may read
SHORT_LIST = 100  # cards; lists up to here are always read whole
# Of a query's rarity: longer lists that together have no more are read for the best cards only.
LITTLE = 0.2
PRESENCE_COST = 0.4  # of an entry of a long list
LONG_LIST = 400  # cards; of longer lists only presence is read, not every occurrence
COMMON_WORD = 1000  # cards; a phrase of two words that are both in more is left out
MAX_WORDS_OF_STEM = 500
MAX_PAIRS_OF_SINGLE = 300  # a character that begins more different pairs says little
SENTENCE_WORDS, SENTENCE_RUN = 4, 6  # words, characters; keyword queries of bench/truth.json have fewer

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
Part.__doc__ = "One thing to look for: `kind` is word, plain, pair, single or phrase (two words with a space)."


def is_question(query):
    """Whether lower tiers fill up for this query: it asks or tells in a sentence.

    It does with a question mark, a question phrase, an English stop word that stands alone, more
    than SENTENCE_WORDS words, or more than SENTENCE_RUN characters without a space in a script that has none.

    nDCG@10, development halves, 400 queries a set, cascade / fill / by this rule: locomo_session
    .784 / .813 / .813, cosqa .430 / .441 / .441, memorybank .730 / .752 / .752, ident .960 / .959 /
    .965. On bench/truth.json noise in keyword answers (group A) is 0 / 68 / 0 %, and the first hit of
    questions (B) is right in 91.7 / 95.8 / 95.8 %.
    """
    if "?" in query or "\uff1f" in query or re.search(_QUESTION_PHRASES, query):
        return True
    words = 0
    for piece, unspaced in query_pieces(query):
        if unspaced and len(piece) > SENTENCE_RUN:
            return True
        words += not unspaced
        if piece.casefold() in SENTENCE_MARKS:
            return True
    return words > SENTENCE_WORDS


def parts(query):
    """The parts of a query, each once."""
    found, words = {}, []
    for piece, unspaced in query_pieces(query):
        if len(found) + len(words) > MAX_PARTS:
            break
        if unspaced:
            for part in _run_parts(piece[:MAX_PARTS]):
                found.setdefault(part[:2], part)
        else:
            words += [(word, soft, piece) for word, soft in _words(piece)]
    if not found and all(soft for _, soft, _ in words):
        words = [(word, False, piece) for word, _, piece in words]  # nothing but stop words: then they are asked
    for word, soft, _ in words:
        part = Part("plain", word, SOFT_WORD) if soft else Part("word", word, 1.0)
        found.setdefault(part[:2], part)
    for (left, soft, piece), (right, soft_too, next_piece) in pairwise(words):
        if not (soft and soft_too):
            weight = NAME_PHRASE_WEIGHT if piece is next_piece else PHRASE_WEIGHT
            found.setdefault(("phrase", left, right), Part("phrase", f"{left} {right}", weight))
    return list(found.values())


def _run_parts(run):
    """The pairs and single characters of a run; those inside a question phrase weigh less or not at all."""
    if len(run) == 1:
        yield Part("single", run, 1.0)
        return
    said = [piece for piece in re.split(_QUESTION_PHRASES, run) if piece]
    telling = {piece[at : at + 2] for piece in said for at in range(len(piece) - 1)}
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        yield Part("pair", pair, 1.0 if pair in telling else SOFT_PAIR)
    for char in "".join(said):
        yield Part("single", char, SINGLE_WEIGHT)


def _words(piece):
    """(word, soft) for the words, sub-words and joined forms of a piece without white space."""
    words, tokens = [], split_word(piece if piece.isascii() else _unaccented(piece))
    forms = identifier_parts(piece)
    for token in (*tokens, *" ".join(forms).split()):
        if token not in words:
            words.append(token)
    alone = len(tokens) == 1 and not forms
    return [(word, alone and word in STOP_WORDS) for word in words]


def _unaccented(word):
    """`word` without the accents of its Latin letters, as FTS5 stores it."""
    if max(word) < "\u0250":
        word = "".join(char for char in unicodedata.normalize("NFD", word) if char < "\u0300")
    return word


class Ranking:
    """Scores the cards of one store for one query."""

    def __init__(self, store):
        self.store = store
        self.total = store.rows_in_index()
        self._forget()

    def _forget(self):
        self.forms = {}  # word -> its forms in this vault
        self.held = {}  # token or pair -> the docs that hold it, for those that were read
        self.near = {}  # word -> longer words that begin with its stem
        self.lists = []  # (weight x rarity, pair-like, doc -> frequency)

    def scores(self, query, allowed=None):
        """doc -> score of the best cards (about CANDIDATES of them); `allowed` limits them to a set of docs."""
        self._forget()
        asked = parts(query)
        if isinstance(allowed, set) and any(part.kind != "single" for part in asked):
            # In the `all` tier every card holds their pairs.
            asked = [part for part in asked if part.kind != "single" or part.weight == 1.0]
        sizes = self.store.frequencies(_tokens(asked))
        lists = [entry for part in asked for entry in self._lists_of(part, sizes)]
        self._read(sorted(lists, key=lambda entry: entry[0]), allowed)
        for part in asked:
            if part.kind == "phrase":
                self._read_phrase(part, sizes)
        return self._sum(allowed)

    # ---- reading posting lists -------------------------------------------------------------------

    def _lists_of(self, part, sizes):
        """(length, part, tokens) for the posting lists of a part, as far as the index has its tokens."""
        if part.kind == "phrase":
            return []
        if part.kind == "pair":
            entries = [(part, [form for form in spellings(part.text) if form in sizes])]
        elif part.kind == "single":
            entries = [(part, [pair for char in spellings(part.text) for pair in self._pairs_of(char, sizes)])]
        else:
            entries = [(part, [part.text] if part.text in sizes else [])]
            if part.kind == "word":
                forms = self._forms(part.text, sizes)
                if forms != entries[0][1]:
                    entries = [
                        (part._replace(weight=part.weight * (1 - STEM_SHARE)), entries[0][1]),
                        (part._replace(weight=part.weight * STEM_SHARE), forms),
                    ]
                entries.append((part._replace(weight=part.weight * NEAR_WEIGHT), self.near.get(part.text, [])))
        return [(sum(sizes[form] for form in forms), part, forms) for part, forms in entries if forms]

    def _read(self, lists, allowed):
        """Takes in posting lists, the shortest first, until they are too much to read; one at least.

        Once the rest says little, it is read only for the cards that look best by then.
        """
        mass = [part.weight * self._rarity(size) for size, part, _ in lists]
        rest, budget, among = sum(mass), READ_BUDGET, None
        little = rest * LITTLE
        for (size, part, forms), said in zip(lists, mass, strict=True):
            budget -= size if size <= LONG_LIST else size * PRESENCE_COST
            if self.lists and budget < 0:
                break
            if among is None and self.lists and size > SHORT_LIST and rest < little:
                among = self._candidates(allowed)
            rest -= said
            if among:
                start = f'"{part.text}"*' if part.kind == "single" else _any_of(forms)
                self._add_presence(part, start, among, size)
                continue
            frequency = (
                self._add_presence(part, _any_of(forms))
                if size > LONG_LIST
                else self._add(part, self.store.occurrences(forms))
            )
            if part.kind == "pair" or forms == [part.text]:
                self.held[part.text] = frequency

    def _forms(self, word, sizes):
        """The words of the vault with the stem of `word`, itself first."""
        if word not in self.forms:
            self.forms[word] = self._find_forms(word, sizes)
        return self.forms[word]

    def _find_forms(self, word, sizes):
        forms = [word] if word in sizes else []
        if not (word.isascii() and word.isalpha()):
            return forms
        root = stem(word)
        start = root[:-1] if root[-1] == "i" else root
        if len(start) < MIN_STEM:
            return forms
        near = self.near[word] = []
        for other, size in self.store.vocabulary_sizes(start, MAX_WORDS_OF_STEM):
            if other == word:
                continue
            sizes[other] = size
            if len(other) <= len(root) + 7 and stem(other) == root:
                forms.append(other)
            elif len(start) >= MIN_NEAR:
                near.append(other)
        return forms

    def _pairs_of(self, char, sizes):
        """The tokens that begin with a character; none when there are too many."""
        found = self.store.vocabulary_sizes(char, MAX_PAIRS_OF_SINGLE + 1)
        if len(found) > MAX_PAIRS_OF_SINGLE:
            return []
        sizes.update(found)
        return [token for token, _ in found]

    def _read_phrase(self, part, sizes):
        left, right = (self._forms(word, sizes)[:STEM_FORMS] for word in part.text.split())
        if not left or not right or min(sum(map(sizes.get, left)), sum(map(sizes.get, right))) > COMMON_WORD:
            return
        self._add_presence(part, _any_of(f"{a} {b}" for a in left for b in right))

    def _add_presence(self, part, expr, among=None, size=None):
        """Takes in an expression as if each card that matches held it once, in the title or elsewhere.

        With `among` only those docs are looked at, and `size` says how many cards hold it in all.
        """
        docs = self.store.docs_matching(expr, among)
        if not docs:
            return {}
        frequency = dict.fromkeys(docs, 1.0)
        titles = self.store.docs_matching(f"title : ({expr})", among)
        frequency.update(dict.fromkeys(titles, COLUMN_WEIGHTS["title"]))
        self._weigh(part, frequency, size)
        return frequency

    def _add(self, part, rows):
        frequency = defaultdict(float)
        for doc, column in rows:
            frequency[doc] += COLUMN_WEIGHTS[column]
        self._weigh(part, frequency)
        return frequency

    def _weigh(self, part, frequency, size=None):
        rarity = self._rarity(size or len(frequency))
        self.lists.append((part.weight * rarity, part.kind in ("pair", "single"), frequency))

    def _rarity(self, n):
        """The inverse document frequency of what n cards hold, as FTS5 has it."""
        return max(log((self.total - n + 0.5) / (n + 0.5)), 1e-6) if n < self.total / 2 else 1e-6

    # ---- adding up -------------------------------------------------------------------------------

    def _candidates(self, allowed):
        """The docs with the best sums so far, at most CANDIDATES; the lengths of cards are left aside."""
        rough = defaultdict(float)
        for weight, _, frequency in self.lists:
            for doc, count in frequency.items():
                rough[doc] += weight * count / (count + 1.0)
        docs = list(rough) if allowed is None else [doc for doc in rough if doc in allowed]
        if len(docs) > CANDIDATES:
            docs = sorted(docs, key=rough.__getitem__, reverse=True)[:CANDIDATES]
        return docs

    def _sum(self, allowed):
        docs = self._candidates(allowed)
        lengths, mean = self.store.lengths(docs)
        scores = {}
        for doc in docs:
            share, score = lengths.get(doc, mean) / mean, 0.0
            word, pair = WORD_K1 * (1 - WORD_B + WORD_B * share), PAIR_K1 * (1 - PAIR_B + PAIR_B * share)
            for weight, is_pair, frequency in self.lists:
                count = frequency.get(doc)
                if count:
                    score += (
                        weight * count * (PAIR_K1 + 1) / (count + pair)
                        if is_pair
                        else (weight * count * (WORD_K1 + 1) / (count + word))
                    )
            scores[doc] = score
        return scores


def _any_of(tokens):
    return " OR ".join(f'"{token}"' for token in tokens)


def _tokens(asked):
    """Every token whose number of cards is wanted at once."""
    tokens = {}
    for part in asked:
        if part.kind in ("pair", "word", "plain"):
            tokens.update(dict.fromkeys(spellings(part.text) if part.kind == "pair" else [part.text]))
    return list(tokens)
