"""How the hits of a query got their score, and what the vault has instead of words it does not know."""

from collections import Counter

from mcore.nearest import nearest
from mcore.record import namedtuple
from mcore.render import counted
from mcore.termlists import FIELD_WEIGHTS
from mcore.tokenize import is_single, query_pieces, term_expr

NEAREST = 5  # words offered

Explained = namedtuple("Explained", "terms hits")
ExplainedTerm = namedtuple("ExplainedTerm", "text cards nearest")
ExplainedHit = namedtuple("ExplainedHit", "path title matched score coverage holds parts")
ExplainedPart = namedtuple("ExplainedPart", "kind text tokens cards count fields score")
ExplainedPart.__doc__ = """What one part of the query added to a hit's score.

`tokens` are what was counted for it (other forms of a word among them), `cards` how many cards have it, `count` how
often this one has it (the title counts as four, labels as two), `fields` where. Of what a closer look added
(`rerank`: partial, lead, feedback) and a title that is the query there are no tokens and fields, and `cards` counts
the best cards only.
"""


def explain(store, ranking, terms, query, hits, docs, gains):
    """The Explained of an answer; `docs` is id -> doc of the hits that the ranking scored, `gains` what a closer
    look added to them.

    A hit without parts was found and scored by FTS5 alone, by the open end of a term.
    """
    cards = {term.text: store.count_matches(term_expr(term)) for term in terms}
    unknown = [term for term in terms if not cards[term.text]]
    near = nearest_words(store, unknown, query)
    held = {term.text: store.matching_ids(term_expr(term), [hit.id for hit in hits]) for term in terms} if hits else {}
    accounts = ranking.account({docs[hit.id] for hit in hits if hit.id in docs})
    looks = Counter((gain.kind, gain.text) for gain in gains)
    fields, added = {}, {}
    for doc, kind, text, count, score in gains:
        part = ExplainedPart(kind, text, [], looks[kind, text], count, [], round(score, 4))
        added.setdefault(doc, []).append(part)
    return Explained(
        [ExplainedTerm(term.text, cards[term.text], near.get(term.text, [])) for term in terms],
        [
            ExplainedHit(
                hit.path, hit.title, hit.matched, hit.score, hit.coverage,
                [term.text for term in terms if hit.id in held[term.text]],
                sorted(
                    [_part(store, docs[hit.id], *entry, fields) for entry in accounts.get(docs.get(hit.id), [])]
                    + added.get(docs.get(hit.id), []),
                    key=lambda part: -part.score,
                ),
            )
            for hit in hits
        ],
    )  # fmt: skip


def _part(store, doc, feature, count, score, fields):
    """The ExplainedPart of a feature in one card; `fields` remembers what FTS5 was asked."""
    tokens = tuple(feature.tokens)
    for name in FIELD_WEIGHTS if tokens else ():
        if (name, tokens) not in fields:
            any_of = " OR ".join(f'"{token[:-1]}"*' if token[-1] == "*" else f'"{token}"' for token in tokens)
            fields[name, tokens] = set(store.docs_matching(f"{name} : ({any_of})"))
    where = [name for name in FIELD_WEIGHTS if doc in fields.get((name, tokens), ())]
    part = feature.part
    return ExplainedPart(part.kind, part.text, list(tokens), feature.size, count, where, round(score, 4))


def lines(explained):
    """An Explained as text, a line a term, a hit and a part."""
    text = []
    for term in explained.terms:
        like = f"; the vault has: {', '.join(term.nearest)}" if term.nearest else ""
        text.append(f"{term.text}: in {counted(term.cards, 'card')}{like}")
    for number, hit in enumerate(explained.hits, 1):
        text.append(f"{number}. {hit.title}  {hit.path}")
        text.append(f"   {hit.matched}  score {hit.score}  coverage {hit.coverage:.0%}  holds: {', '.join(hit.holds)}")
        for part in hit.parts:
            others = [token for token in part.tokens if token != part.text]
            forms = f" ({' '.join(others)})" if others and part.kind != "single" else ""
            where = f" in {', '.join(part.fields)}" if part.fields else ""
            name = f"{part.kind} {part.text}{forms}"
            told = counted(part.count, "trigram") if part.kind == "partial" else f"{part.count}{where}"
            text.append(f"   {part.score:8.4f}  {name}: {told}; {counted(part.cards, 'card')} with it")
    return text


# ---- words that the vault does not have ------------------------------------------------------------


def nearest_words(store, terms, query):
    """text of a term -> words of the vault that it may have been meant for, for the terms that have any."""
    found = {}
    for term in terms:
        word = term.phrases[0].split()[-1]
        if len(word) > 2 and word.isascii():
            starts = dict.fromkeys((word[0], word[1]))  # a slip in the first letter leaves the second
            words = [other for start in starts for other in store.words.starting(start)]
            near = [] if word in words else nearest(word, words, NEAREST)
            if near:
                found[term.text] = near
    unknown = {term.text for term in terms if not is_single(term)}
    for run, is_unspaced in query_pieces(query) if unknown else ():
        for pair, words in _mended(store, run, unknown) if is_unspaced else ():
            found.setdefault(pair, []).extend(word for word in words if word not in found.get(pair, []))
    return found


def _mended(store, run, unknown):
    """(unknown pair, the run's three characters around a wrong one as the vault has them), for every such place."""
    for at in range(1, len(run) - 1):
        left, right = run[at - 1 : at + 1], run[at : at + 2]
        if left in unknown and right in unknown:
            inner = [pair[1] for pair in store.words.starting(run[at - 1]) if len(pair) == 2]
            ends = store.words.held([char + run[at + 1] for char in inner])
            words = [run[at - 1] + pair for pair in ends][:NEAREST]
            if words:
                yield left, words
                yield right, words
