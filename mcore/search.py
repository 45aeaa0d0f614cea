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

from abc import ABC, abstractmethod
from collections import namedtuple
from itertools import chain

from mcore.errors import StoreDamaged, warning
from mcore.importer import Freshness
from mcore.ranking import Ranking, is_question
from mcore.snippet import snippet
from mcore.store import REBUILD
from mcore.tokenize import MAX_TERMS, split_query, term_expr, to_query_expr

TIERS = ("all", "all-prefix", "any", "any-prefix")
MATCH_MODES = ("auto", "cascade", "fill")
MAX_LIMIT = 20
DEFAULT_LIMIT = 10
MAX_QUERY_CHARS = 10_000  # more is a document, not a question; a megabyte took seconds and came back as an echo

Hit = namedtuple("Hit", "id path title kind source score matched coverage snippet")
Result = namedtuple("Result", "query hits matched searched hidden nearest freshness warnings")
Result.__doc__ = """The answer to one search.

`matched` is the highest tier of its hits ("" when there is none). `searched` is how many cards were searched,
`hidden` maps a filter to the number of hits it hid, `nearest` names terms the vault does have that
are like the query's unknown ones; the last two are filled when there is no hit.
"""


class Searcher(ABC):
    """What the doors need of a search; another implementation can stand in."""

    @abstractmethod
    def search(self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True, match="auto"):
        """The Result for a query: at most `limit` hits, best first; `match` is one of MATCH_MODES."""


class FtsSearcher(Searcher):
    """The four tiers over an FTS5 index that is brought up to date first."""

    def __init__(self, store, indexer):
        self.store = store
        self.indexer = indexer

    def search(self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True, match="auto"):
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
            hits, gone = self._hits(found, terms), look.gone
            searched = self.store.total()
            if not hits and self.store.dead_rows() < 0:
                raise StoreDamaged(
                    f"cannot use the index {self.store.path}", "cards are missing from its full text", REBUILD
                )
            hidden = {} if hits else self._hidden(terms, kind, source)
            nearest = [] if hits or not terms else self._nearest(terms)
        if not searched:
            warnings += self.indexer.vault_warnings()
        if gone and not sync:
            freshness = freshness._replace(stale=freshness.stale + len(gone))
        matched = min((hit.matched for hit in hits), key=TIERS.index, default="")
        return Result(query, hits, matched, searched, hidden, nearest, freshness, warnings)

    def _hits(self, found, terms):
        """Hits of (row, tier, coverage) triples, with the place that answers."""
        names = self.store.real_names([row.id for row, _, _ in found])
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
                snippet(self.indexer.body(row.rel_path, names[row.id]), terms),
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

    def _nearest(self, terms):
        """Words of the vault that are like the query's words that it does not have."""
        import difflib

        near = {}
        for term in terms:
            word = term.phrases[0].split()[-1]
            if len(word) < 3 or not word.isascii():
                continue
            words = self.store.vocabulary(word[:2])
            if word in words:
                continue
            for close in difflib.get_close_matches(word, words, 3, 0.7):
                near[close] = None
        return list(near)[:5]


class _Look:
    """One query being answered. A deleted card is never returned: `gone` gathers the ids of those met."""

    def __init__(self, store, indexer, query, terms, limit, kind, source):
        self.store, self.indexer = store, indexer
        self.query, self.terms, self.limit = query, terms, limit
        self.filters = (kind, source)
        self.ranking = Ranking(store)
        self.docs = {}  # id -> doc of the cards that were ranked
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
        return []

    def _tier(self, expr, tier):
        """The best cards that an expression finds. Tiers with open ends are ranked by FTS5: what it
        counts there is how often any longer word begins so."""
        if tier.endswith("prefix"):
            return self._present(self._matched(expr, ()))
        docs = set(self.store.docs_matching(expr))
        if not docs:
            return []
        rows = self._ranked(docs)
        return self._present(chain(rows, self._matched(expr, [row.id for row in rows])))

    def fill(self):
        """(row, tier, coverage) triples of the best cards of all tiers, by score; loose matches fill up below."""
        if not self.terms:
            return []
        expr = to_query_expr(self.terms, "any-prefix") or " OR ".join(map(term_expr, self.terms))
        rows = self._ranked(None)
        lowest = rows[-1].score if rows else float("inf")
        loose = (row._replace(score=min(row.score, lowest)) for row in self._matched(expr, [row.id for row in rows]))
        found = self._present(chain(rows, loose))
        return self._labelled(found) if found else []

    def _labelled(self, found):
        """(row, tier, coverage) of rows from any tier: which one each belongs to by the terms it holds."""
        ids, whole = [row.id for row in found], self._whole(found)
        tiers = dict.fromkeys(ids, "any-prefix")
        for id in ids:
            lacking = [term for term, held in zip(self.terms, whole, strict=True) if id not in held]
            if not lacking:
                tiers[id] = "all"
            elif all(term.prefixable and self.store.matching_ids(term_expr(term, True), [id]) for term in lacking):
                tiers[id] = "all-prefix"
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

    def _whole(self, found):
        """For each term the ids of those rows that hold it whole."""
        ids = [row.id for row in found]
        known = all(id in self.docs for id in ids)
        whole = []
        for term in self.terms:
            docs = self.ranking.held.get(term.text) if known else None
            if docs is None:
                whole.append(self.store.matching_ids(term_expr(term), ids))
            else:
                whole.append({id for id in ids if self.docs[id] in docs})
        return whole

    def _shares(self, ids, whole, prefix):
        """id -> share of the terms it holds; a compound term found in parts counts in part, and with
        `prefix` open ends and other forms of a word count."""
        held = dict.fromkeys(ids, 0.0)
        for term, exact in zip(self.terms, whole, strict=True):
            holders = set(exact)
            if prefix and term.prefixable:
                forms = self.ranking.forms.get(term.text, ())
                expr = " OR ".join([term_expr(term, True), *(f'"{form}"' for form in forms)])
                holders |= self.store.matching_ids(expr, ids)
            for id in holders:
                held[id] += 1
            for part in term.parts:
                some = self.store.matching_ids('"' + part + '"' + ("*" if prefix else ""), ids)
                for id in some - holders:
                    held[id] += 1 / len(term.parts)
        return {id: round(min(1.0, n / len(self.terms)), 4) for id, n in held.items()}

    def _ranked(self, docs):
        """Rows of the cards (of `docs`, if given) that the ranking scores, best first."""
        if any(self.filters):
            passing = self.store.docs_of(*self.filters)
            docs = passing if docs is None else docs & passing
        scores = self.ranking.scores(self.query, docs)
        rows = []
        for doc, row in self.store.found(list(scores)).items():
            self.docs[row.id] = doc
            rows.append(row._replace(score=scores[doc]))
        return sorted(rows, key=lambda row: (-row.score, row.rel_path))

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
        there = []
        for row in rows:
            name = self.store.real_names([row.id])[row.id]
            if not self.indexer.is_there(name):
                self.gone.add(row.id)
                continue
            there.append(row)
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
                f"only the first {MAX_TERMS} terms were used, {left_off} were left off",
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
