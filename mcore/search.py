"""Searcher, hits, and the four tiers.

| tier | meaning |
| all | every term, whole |
| all-prefix | every term, its end open |
| any | any term, whole |
| any-prefix | any term, its end open |

A lower tier is asked only when the one above found nothing, so that precise answers stay precise.
`coverage` (the share of the terms a hit holds) is for showing and never ranks: re-ranking by it was
measured in the original and made results worse (capped P@5 66.7 % -> 55.6 %).
"""

from abc import ABC, abstractmethod
from collections import namedtuple

from mcore.errors import StoreDamaged, warning
from mcore.importer import Freshness
from mcore.snippet import snippet
from mcore.store import REBUILD
from mcore.tokenize import MAX_TERMS, split_query, term_expr, to_query_expr

TIERS = ("all", "all-prefix", "any", "any-prefix")
MAX_LIMIT = 20
DEFAULT_LIMIT = 10
MAX_QUERY_CHARS = 10_000  # more is a document, not a question; a megabyte took seconds and came back as an echo
SIMILAR_TERMS = 24  # a title and the first words of a body

Hit = namedtuple("Hit", "id path title kind source score matched coverage snippet")
Result = namedtuple("Result", "query hits matched searched hidden nearest freshness warnings")
Result.__doc__ = """The answer to one search.

`matched` is the tier that answered ("" when none did). `searched` is how many cards were searched,
`hidden` maps a filter to the number of hits it hid, `nearest` names terms the vault does have that
are like the query's unknown ones; the last two are filled when there is no hit.
"""


class Searcher(ABC):
    """What the doors need of a search; another implementation can stand in."""

    @abstractmethod
    def search(self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True):
        """The Result for a query: at most `limit` hits, best first."""


class FtsSearcher(Searcher):
    """The four tiers over an FTS5 index that is brought up to date first."""

    def __init__(self, store, indexer):
        self.store = store
        self.indexer = indexer

    def search(self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True):
        limit = max(1, min(MAX_LIMIT, limit))
        kind = kind.casefold() if kind else None
        source = source or None
        if sync:
            freshness = self.indexer.refresh(self.store)
        else:
            freshness = Freshness(0, 0, 0, self.store.count_unreadable())
        terms, left_off = split_query(query[:MAX_QUERY_CHARS])
        warnings = _query_warnings(query, terms, left_off, freshness)
        with self.store.reading():
            found, tier, gone = self._first_tier(terms, limit, kind, source)
            hits = self._hits(found, tier, terms)
            searched = self.store.total()
            if not hits and self.store.dead_rows() < 0:
                raise StoreDamaged(f"cannot use the index {self.store.path}", "cards are missing from its full text", REBUILD)
            hidden = {} if hits else self._hidden(terms, kind, source)
            nearest = [] if hits or not terms else self._nearest(terms)
        if not searched:
            warnings += self.indexer.vault_warnings()
        if gone and not sync:
            freshness = freshness._replace(stale=freshness.stale + len(gone))
        return Result(query[:MAX_QUERY_CHARS], hits, tier if hits else "", searched, hidden, nearest, freshness, warnings)

    def similar(self, text, limit, without):
        """Up to `limit` other cards that share terms with `text`, nearest first, as Found rows."""
        terms, _ = split_query(text, SIMILAR_TERMS)
        if not terms:
            return []
        with self.store.reading():
            found = self.store.match(" OR ".join(map(term_expr, terms)), limit + 1)
        return [card for card in found if card.rel_path != without][:limit]

    def _first_tier(self, terms, limit, kind, source):
        """(found, tier, ids of hits whose file is gone) of the highest tier that finds anything."""
        gone = set()
        for tier in TIERS:
            expr = to_query_expr(terms, tier) if terms else None
            if expr is None:
                continue
            found, missing = self._present(expr, limit, kind, source)
            gone |= missing
            if found:
                return found, tier, gone
        return [], "", gone

    def _present(self, expr, limit, kind, source):
        """The best hits whose files are still there: a deleted card is never returned."""
        want = limit
        while True:
            rows = self.store.match(expr, want, kind, source)
            real_names = self.store.real_names([row.id for row in rows])
            there = [row for row in rows if self.indexer.is_there(real_names[row.id])]
            if len(there) >= limit or len(rows) < want:
                return there[:limit], {row.id for row in rows} - {row.id for row in there}
            want += 2 * (len(rows) - len(there)) + MAX_LIMIT

    def _hits(self, found, tier, terms):
        coverage = self._coverage(found, tier, terms)
        names = self.store.real_names([row.id for row in found])
        return [
            Hit(
                row.id, row.rel_path, row.title, row.kind, row.source, round(row.score, 4), tier,
                coverage[row.id], snippet(self.indexer.body(row.rel_path, names[row.id]), terms),
            )
            for row in found
        ]

    def _coverage(self, found, tier, terms):
        """id -> share of the terms the card holds; a compound term found in parts counts in part."""
        if not tier.startswith("any") or not found:
            return {row.id: 1.0 for row in found}
        prefix = tier == "any-prefix"
        ids = [row.id for row in found]
        held = dict.fromkeys(ids, 0.0)
        for term in terms:
            whole = self.store.matching_ids(term_expr(term, prefix), ids)
            for id in whole:
                held[id] += 1
            for part in term.parts:
                some = self.store.matching_ids('"' + part + '"' + ("*" if prefix else ""), ids)
                for id in some - whole:
                    held[id] += 1 / len(term.parts)
        return {id: round(min(1.0, n / len(terms)), 4) for id, n in held.items()}

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


def _query_warnings(query, terms, left_off, freshness):
    warnings = []
    if len(query) > MAX_QUERY_CHARS:
        warnings.append(warning("query-cut", f"only the first {MAX_QUERY_CHARS} characters were used", "ask for less at once"))
    if not terms:
        warnings.append(warning("no-terms", "the query holds no letter, digit or character to look for", "name a thing"))
    if left_off:
        warnings.append(
            warning("query-cut", f"only the first {MAX_TERMS} terms were used, {left_off} were left off", "ask for less at once")
        )
    if freshness.stale:
        warnings.append(
            warning("stale", f"{freshness.stale} changed files are not in this answer yet", "run: memory index")
        )
    if freshness.unreadable:
        warnings.append(
            warning("unreadable", f"{freshness.unreadable} card files could not be read", "memory index --json names them")
        )
    return warnings
