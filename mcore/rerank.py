"""A closer look at the best cards of a question: what the index does not count is read in their texts. Pure.

| gain | weight | what it asks |
| partial | .4 | a Latin word counts in part, by the share of its trigrams that stand anywhere in the card: |
|         |    | `methyltransferase` in a card with `methylation`, `p16ink4a` in one with `p16(INK4a)`; |
|         |    | a word of three letters only where a word begins |
| lead | .03 | a word begins so in the first lines of the card, where it says what it is about |
| feedback | .2 | five pairs of an unspaced script that the three best cards hold and few of the others do |
|         |     | (pseudo-relevance feedback), by how often a card holds them |

Only DEPTH cards are looked at, so the cost is the same at any size of the vault; rarities of pairs are those
among these cards.

Gains, nDCG@10 on development halves: partial scifact +.005, cosqa +.005, locomo_turn +.011, locomo_session +.003;
short words only where a word begins scifact +.001, cosqa +.001; lead scifact +.002, locomo_turn +.001; feedback
memdaily +.007 (800 queries), memorybank +.002, drcd +.002, cmrc +.0005. Tried and left out: a table of the
trigrams' own rarities in the vault (scifact +.003, cosqa -.006), feedback by words (cosqa -.008, scifact -.007),
the best sentence of a card (0 to +.001), rarity of trigrams among the cards looked at (0), neighbours in a window of
2 to 40 words (-.002 to +.001), the share of the words held (-.002), the longest common part of two words (-.004),
logarithmic and divergence-from-randomness counts in place of BM25's (-.010 to 0).
"""

from collections import Counter
from itertools import islice
from math import log
from operator import add

from mcore.record import namedtuple
from mcore.snippet import fold
from mcore.tokenize import split_runs

DEPTH = 30  # cards; with 50 locomo_turn gains .003 more, the other sets nothing
CHARS, FEEDBACK_CHARS = 4_000, 1_500  # of a card; the second for feedback, where more gains nothing
LEAD_CHARS = 500  # 400 to 600 are as good; with 300 scifact gains nothing, with 800 locomo_session loses
PARTIAL, LEAD, FEEDBACK = 0.4, 0.03, 0.2
EXAMPLES, FEEDBACK_PAIRS = 3, 5

Gain = namedtuple("Gain", "doc kind text count score")
Gain.__doc__ = """What a closer look adds to a card's score.

`text` is a word of the query or a pair of the best cards; `count` how many of the word's trigrams the card holds
that no weightier word of the query has claimed, or how often it holds the pair (1 for a lead).
"""


def shown(title, body):
    """What is looked at of a card, as the index compares it."""
    return fold(f"{title}\n{body[:CHARS]}")


def partial_words(weights, texts):
    """The Gains of words found in part or whole, those with the most weight a letter first: `weights` is word ->
    weight, `texts` doc -> text as `shown` gives it."""
    gains, claimed = [], set()
    for word, weight in sorted(weights.items(), key=lambda item: -item[1] / len(item[0])):
        trigrams = {word[at : at + 3] for at in range(len(word) - 2)}
        asked = trigrams - claimed
        claimed |= asked
        for doc, text in texts.items() if asked else ():
            if held := sum(trigram in text for trigram in asked) if len(word) > 3 else int(_begins(word, text)):
                gains.append(Gain(doc, "partial", word, held, PARTIAL * weight * held / len(trigrams)))
    return gains


def _begins(word, text):
    """Whether a word stands at the start of one in a text. One of three letters stands inside many others."""
    at = text.find(word)
    while at > 0 and text[at - 1].isalnum() and text[at - 1] < "\u2e80":
        at = text.find(word, at + 1)
    return at >= 0


def lead_words(weights, texts):
    """The Gains of words that stand near the start of a card; arguments as of `partial_words`."""
    starts = {doc: text[:LEAD_CHARS] for doc, text in texts.items()}
    return [
        Gain(doc, "lead", word, 1, LEAD * weight)
        for word, weight in weights.items()
        for doc, start in starts.items()
        if _begins(word, start)
    ]


def feedback(scores, texts, asked):
    """The Gains of pairs that mark the best cards: `scores` is doc -> score, `texts` doc -> text, the best first,
    `asked` the pairs that the query has itself."""
    texts = {doc: text[:FEEDBACK_CHARS] for doc, text in texts.items()}
    examples = {doc: _pairs(text) for doc, text in islice(texts.items(), EXAMPLES)}
    pairs = set().union(*examples.values()) - asked
    held = {doc: pairs & set(map(add, text, text[1:])) for doc, text in texts.items()}
    sizes = Counter(pair for some in held.values() for pair in some)
    marks = Counter()
    for doc, counts in examples.items():
        for pair in held[doc]:
            if sizes[pair] > 1:
                marks[pair] += scores[doc] * _share(counts[pair]) * _rarity(sizes[pair], len(texts))
    gains = []
    for pair, _ in sorted(marks.items(), key=lambda item: (-item[1], item[0]))[:FEEDBACK_PAIRS]:
        for doc, text in texts.items():
            if pair in held[doc]:
                count = text.count(pair)
                score = FEEDBACK * _rarity(sizes[pair], len(texts)) * _share(count)
                gains.append(Gain(doc, "feedback", pair, count, score))
    return gains


def _pairs(text):
    """pair -> how often it stands in the runs of a text."""
    return Counter(pair for run in split_runs(text)[1::2] for pair in map(add, run, run[1:]))


def _rarity(n, total):
    """The inverse document frequency of what n of `total` cards hold, as Lucene has it."""
    return log(1 + (total - n + 0.5) / (n + 0.5))


def _share(count):
    """BM25's share of a count with k1 = 1.2, whatever the length."""
    return count * 2.2 / (count + 1.2)
