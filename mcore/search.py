"""Searcher, hits, and the four tiers.

| tier | meaning |
| all | every term, whole |
| all-prefix | every term, its end open |
| any | any term, whole |
| any-prefix | any term, its end open |

For keywords a lower tier is asked only when the one above found nothing, so that precise answers stay
precise (`cascade`). For a question one weak hit with every term must not end the search: there cards of
all tiers stand in one list by score, each with its own tier (`fill`). Which queries are questions is
`ranking.is_question`. A card that holds only other forms of the words (`ran` for `run`) is any-prefix too.
`coverage` (the share of the terms a hit holds) is for showing and never ranks: re-ranking by it was
measured in the original and made results worse (capped P@5 66.7 % -> 55.6 %).
"""

import re
from abc import ABC, abstractmethod
from collections import namedtuple
from itertools import chain, islice

from mcore.errors import StoreDamaged, warning
from mcore.importer import Freshness
from mcore.ranking import CANDIDATES, STOP_WORDS, Ranking, is_question, unaccented
from mcore.snippet import snippet
from mcore.store import REBUILD
from mcore.tokenize import MAX_TERMS, split_query, term_expr, to_query_expr
from mcore.variants import spellings

TIERS = ("all", "all-prefix", "any", "any-prefix")
MATCH_MODES = ("auto", "cascade", "fill")
MAX_LIMIT = 20
DEFAULT_LIMIT = 10
MAX_QUERY_CHARS = 10_000  # more is a document, not a question; a megabyte took seconds and came back as an echo
SIMILAR_TERMS = 24  # a title and the first words of a body

Hit = namedtuple("Hit", "id path title kind source score matched coverage snippet")
Result = namedtuple("Result", "query hits matched searched hidden nearest freshness explained warnings")
Result.__doc__ = """The answer to one search.

`matched` is the highest tier of its hits ("" when there is none). `searched` is how many cards were searched,
`hidden` maps a filter to the number of hits it hid, `nearest` names terms the vault does have that
are like the query's unknown ones; the last two are filled when there is no hit. `explained` is {} unless it
was asked for.
"""


def telling(terms):
    """The terms that a reader wants to see in a snippet: no stop words, unless there is nothing else."""
    return [term for term in terms if term.text not in STOP_WORDS] or terms


class Searcher(ABC):
    """What the doors need of a search; another implementation can stand in."""

    @abstractmethod
    def search(self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True, match="auto", is_explained=False):
        """The Result for a query: at most `limit` hits, best first; `match` is one of MATCH_MODES."""


class FtsSearcher(Searcher):
    """The four tiers over an FTS5 index that is brought up to date first."""

    def __init__(self, store, indexer):
        self.store = store
        self.indexer = indexer

    def search(self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True, match="auto", is_explained=False):
        limit = max(1, min(MAX_LIMIT, limit))
        kind = kind.casefold() if kind else None
        source = source or None
        if sync:
            freshness = self.indexer.refresh(self.store)
        else:
            freshness = Freshness(0, 0, 0, self.store.count_unreadable())
        asked, query = query, query[:MAX_QUERY_CHARS]
        terms, left_off = split_query(query)
        warnings = _query_warnings(asked, terms, left_off, freshness)
        with self.store.reading():
            look = _Look(self.store, self.indexer, query, terms, limit, kind, source)
            found = look.fill() if match == "fill" or match == "auto" and is_question(query) else look.cascade()
            hits, gone = self._hits(found, terms, look.names), look.gone
            searched = self.store.total()
            if not hits and self.store.dead_rows() < 0:
                raise StoreDamaged(
                    f"cannot use the index {self.store.path}", "cards are missing from its full text", REBUILD
                )
            hidden = {} if hits else self._hidden(terms, kind, source)
            nearest = [] if hits or not terms else self._nearest(terms, query)
            explained = {}
            if is_explained:
                from mcore.explain import explain

                explained = explain(self.store, look.ranking, terms, query, hits, look.docs)
        if not searched:
            warnings += self.indexer.vault_warnings()
        if gone and not sync:
            freshness = freshness._replace(stale=freshness.stale + len(gone))
        matched = min((hit.matched for hit in hits), key=TIERS.index, default="")
        return Result(query, hits, matched, searched, hidden, nearest, freshness, explained, warnings)

    def similar(self, text, limit, without):
        """Up to `limit` other cards that share terms with `text`, nearest first, as Found rows."""
        terms, _ = split_query(text, SIMILAR_TERMS)
        if not terms:
            return []
        with self.store.reading():
            found = self.store.match(" OR ".join(map(term_expr, terms)), limit + 1)
        return [card for card in found if card.rel_path != without][:limit]

    def _hits(self, found, terms, names):
        """Hits of (row, tier, coverage) triples, with the place that answers."""
        shown = telling(terms)
        return [
            Hit(
                row.id,
                row.rel_path,
                row.title,
                row.kind,
                row.source,
                round(row.score, 4),
                tier,
                coverage,
                snippet(self.indexer.body(row.rel_path, names[row.id]), shown),
            )
            for row, tier, coverage in found
        ]

    def _hidden(self, terms, kind, source):
        """For each filter in force: how many hits there are without it; for two that only hide together,
        without both."""
        hidden = {}
        for name, value, rest in (
            ("kind", kind, (None, source)),
            ("source", source, (kind, None)),
            ("kind_and_source", kind and source, (None, None)),
        ):
            if value is None or hidden and name == "kind_and_source":
                continue
            for tier in TIERS:
                expr = to_query_expr(terms, tier) if terms else None
                n = self.store.count_matches(expr, *rest) if expr else 0
                if n:
                    hidden[name] = n
                    break
        return hidden

    def _nearest(self, terms, query):
        """Words of the vault that are like the query's words that it does not have."""
        from mcore.explain import NEAREST, nearest_words

        found = nearest_words(self.store, terms, query)
        return list(dict.fromkeys(word for words in found.values() for word in words))[:NEAREST]


class _Look:
    """One query being answered. A deleted card is never returned: `gone` gathers the ids of those met."""

    def __init__(self, store, indexer, query, terms, limit, kind, source):
        self.store, self.indexer = store, indexer
        self.query, self.terms, self.limit = query, terms, limit
        self.filters = (kind, source)
        self.ranking = Ranking(store)
        self.best = None  # doc -> score of the best cards for any term, once they were looked for
        self.docs = {}  # id -> doc of the cards that were ranked
        self.rows = {}  # id -> row of the cards whose files are there
        self.names = {}  # id -> the file's name as the system has it
        self.texts = {}  # id -> what is searched of a card, for those that were looked into
        self.gone = set()

    def cascade(self):
        """(row, tier, coverage) triples of the highest tier that finds anything."""
        for tier in TIERS:
            expr = to_query_expr(self.terms, tier) if self.terms else None
            found = self._tier(expr, tier) if expr else []
            if found and tier.startswith("all"):
                return [(row, tier, 1.0) for row in found]
            if found:
                shares = self._shares([row.id for row in found], self._whole(found), tier == "any-prefix")
                return [(row, tier, shares[row.id]) for row in found]
        found = self._present(self._rows(self._inexact())) if self.terms else []
        return self._labelled(found) if found else []

    def _inexact(self):
        """doc -> score of cards that hold another form of a term; a word inside one is not enough."""
        scores, texts = self._scores(None), {term.text for term in self.terms}
        accounts = self.ranking.account(scores.keys())
        held = {doc for doc, told in accounts.items() for feature, *_ in told if feature.part.text in texts}
        return {doc: scores[doc] for doc in held}

    def _tier(self, expr, tier):
        """The best cards that an expression finds. Tiers with open ends are ranked by FTS5: what it
        counts there is how often any longer word begins so."""
        if tier.endswith("prefix"):
            return self._present(self._matched(expr, ())) if self._may_begin(tier) else []
        scores = self._scores(None)
        held = self._holding(tier, scores.keys())
        if len(held) < self.limit and not self.ranking.is_complete:
            held = ()
        rows = self._rows({doc: scores[doc] for doc in held})
        if held and self.ranking.is_complete:
            return self._present(rows)
        return self._present(chain(rows, self._rest(expr, held)))

    def _rest(self, expr, held):
        """Rows of all cards that an expression finds but those `held`: first as ranked, then as FTS5 has them."""
        docs = set(self.store.docs_matching(expr))
        if docs:
            yield from self._rows({doc: score for doc, score in self._scores(docs).items() if doc not in held})
        if len(self.docs) < len(docs):
            yield from self._matched(expr, list(self.docs))

    def _holding(self, tier, docs):
        """Which of `docs` hold every term whole, or any term or part of one."""
        held = [self._docs_with(term.text, term_expr(term), docs) for term in self.terms]
        if tier == "all":
            return set.intersection(*held)
        parts = {part for term in self.terms for part in term.parts}
        return set().union(*held, *(self._docs_with(part, f'"{part}"', docs) for part in parts))

    def _docs_with(self, text, expr, docs):
        """Which of `docs` hold a text of the query, as the ranking has seen it or by asking FTS5 with `expr`."""
        held = self.ranking.holders(text, docs)
        return set(self.store.docs_matching(expr, list(docs))) if held is None else held

    def _may_begin(self, tier):
        """Whether the vault has words that begin with each term (with any, in the lower tier) at all."""
        has = (self.store.has_words(term.phrases[0].split(" ")[0]) for term in self.terms)
        return all(has) if tier == "all-prefix" else True

    def fill(self):
        """(row, tier, coverage) triples of the best cards of all tiers, by score; loose matches fill up below."""
        if not self.terms:
            return []
        scores = self._scores(None)
        found = self._present(chain(self._rows(scores), self._loose(min(scores.values(), default=float("inf")))))
        return self._labelled(found) if found else []

    def _loose(self, lowest):
        """Rows that only FTS5 finds, with open ends; none stands above the `lowest` of the others."""
        expr = to_query_expr(self.terms, "any-prefix") or " OR ".join(map(term_expr, self.terms))
        for row in self._matched(expr, list(self.docs)):
            yield row._replace(score=min(row.score, lowest))

    def _labelled(self, found):
        """(row, tier, coverage) of rows from any tier: which one each belongs to by the terms it holds."""
        ids, whole = [row.id for row in found], self._whole(found)
        tiers = dict.fromkeys(ids, "any-prefix")
        lacking = {id: [t for t, held in zip(self.terms, whole, strict=True) if id not in held] for id in ids}
        tiers.update((id, "all") for id in ids if not lacking[id])
        tiers.update((id, "all-prefix") for id in self._begun(lacking))
        exact, loose = self._shares(ids, whole, False), None
        for id in ids:
            if tiers[id] == "any-prefix" and exact[id]:
                tiers[id] = "any"
        if "any-prefix" in tiers.values():
            loose = self._shares(ids, whole, True)
        shares = {"any": exact, "any-prefix": loose}
        return [
            (row, tiers[row.id], shares[tiers[row.id]][row.id] if tiers[row.id] in shares else 1.0) for row in found
        ]

    def _begun(self, lacking):
        """The ids whose cards hold the beginning of every term they lack; `lacking` is id -> terms."""
        ids = {id for id, terms in lacking.items() if terms and all(term.prefixable for term in terms)}
        return {id for id in ids if all(self._begins(term, id) for term in lacking[id])}

    def _begins(self, term, id, forms=()):
        """Whether a card holds the beginning of a term, or one of some words whole.

        Read in the card: FTS5 would merge the lists of all words that begin so (100 ms for `with*`).
        """
        starts = (r"[\W_]+".join(map(re.escape, unaccented(phrase).split())) for phrase in term.phrases)
        asked = "|".join([*starts, *(re.escape(form) + r"(?![^\W_])" for form in forms)])
        return re.search(rf"(?<![^\W_])(?:{asked})", self._text(id)) is not None

    def _text(self, id):
        """What is searched of a card whose file is there."""
        if id not in self.texts:
            row = self.rows[id]
            self.texts[id] = self.indexer.searchable(row.rel_path, self.names[id])
        return self.texts[id]

    def _whole(self, found):
        """For each term the ids of those rows that hold it whole."""
        ids = [row.id for row in found]
        return [self._holders(term.text, term_expr(term), ids) for term in self.terms]

    def _holders(self, text, expr, ids):
        """Which of `ids` hold a text of the query."""
        if any(id not in self.docs for id in ids):
            return self.store.matching_ids(expr, ids)
        ids_of = {self.docs[id]: id for id in ids}
        if expr.endswith('"*') and len(text) == 1 and self.ranking.holders(text, ids_of.keys()) is None:
            return {id for id in ids if any(char in self._text(id) for char in spellings(text))}
        return {ids_of[doc] for doc in self._docs_with(text, expr, ids_of.keys())}

    def _shares(self, ids, whole, prefix):
        """id -> share of the terms it holds; a compound term found in parts counts in part, and with
        `prefix` open ends and other forms of a word count."""
        held = dict.fromkeys(ids, 0.0)
        for term, exact in zip(self.terms, whole, strict=True):
            holders = set(exact)
            if prefix and term.prefixable:
                forms = self.ranking.forms.get(term.text, ())
                holders.update(id for id in ids if id not in holders and self._begins(term, id, forms))
            for id in holders:
                held[id] += 1
            for part in term.parts:
                expr = '"' + part + '"'
                some = self.store.matching_ids(expr + "*", ids) if prefix else self._holders(part, expr, ids)
                for id in some - holders:
                    held[id] += 1 / len(term.parts)
        return {id: round(min(1.0, n / len(self.terms)), 4) for id, n in held.items()}

    def _scores(self, docs):
        """doc -> score of the best cards (of `docs`, if given) that pass the filters, if there are filters."""
        if docs is None:
            if self.best is None:
                self.best = self._passing(None)
            return self.best
        return self._passing(docs)

    def _passing(self, docs):
        scores = self.ranking.scores(self.query, docs)
        if any(self.filters):
            found = self.store.found(list(scores), *self.filters)
            if len(found) < self.limit and len(scores) >= CANDIDATES:
                # Few of the best cards pass: ranked anew among all that do.
                passing = self.store.docs_of(*self.filters)
                return self.ranking.scores(self.query, passing if docs is None else docs & passing)
            return {doc: scores[doc] for doc in found}
        return scores

    def _rows(self, scores):
        """Rows of doc -> score, best first; those of equal score by path. Asked for as they are reached."""
        docs = sorted(scores, key=lambda doc: -scores[doc])
        while docs:
            end = min(len(docs), 2 * self.limit)
            while end < len(docs) and scores[docs[end]] == scores[docs[end - 1]]:
                end += 1
            found = self.store.found(docs[:end])
            for doc, row in sorted(found.items(), key=lambda item: (-scores[item[0]], item[1].rel_path)):
                self.docs[row.id] = doc
                yield row._replace(score=scores[doc])
            docs = docs[end:]

    def _matched(self, expr, known):
        """Rows that FTS5 finds and ranks, beyond those with `known` ids; asked for when they are reached."""
        known, want, done = set(known), self.limit, False
        while not done:
            rows = self.store.match(expr, len(known) + want, *self.filters)
            done = len(rows) < len(known) + want
            yield from (row for row in rows if row.id not in known)
            known |= {row.id for row in rows}
            want += MAX_LIMIT

    def _present(self, rows):
        """The first rows whose files are still there."""
        there, rows = [], iter(rows)
        while some := list(islice(rows, self.limit - len(there))):
            self.names.update(self.store.real_names([row.id for row in some]))
            for row in some:
                if self.indexer.is_there(self.names[row.id]):
                    there.append(row)
                    self.rows[row.id] = row
                else:
                    self.gone.add(row.id)
            if len(there) == self.limit:
                break
        return there


def _query_warnings(query, terms, left_off, freshness):
    warnings = []
    if len(query) > MAX_QUERY_CHARS:
        warnings.append(
            warning("query-cut", f"only the first {MAX_QUERY_CHARS} characters were used", "ask for less at once")
        )
    if not terms:
        warnings.append(
            warning("no-terms", "the query holds no letter, digit or character to look for", "name a thing")
        )
    if left_off:
        warnings.append(
            warning(
                "query-cut",
                f"the first {MAX_TERMS} terms told which tier a card is in; {left_off} more were at most ranked by",
                "ask for less at once",
            )
        )
    if freshness.stale:
        warnings.append(
            warning("stale", f"{freshness.stale} changed files are not in this answer yet", "run: memory index")
        )
    if freshness.unreadable:
        warnings.append(
            warning(
                "unreadable", f"{freshness.unreadable} card files could not be read", "memory index --json names them"
            )
        )
    return warnings
