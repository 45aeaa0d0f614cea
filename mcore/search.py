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
A card whose title is the query stands first.
`coverage` (the share of the terms a hit holds) is for showing and never ranks: re-ranking by it was
measured in the original and made results worse (capped P@5 66.7 % -> 55.6 %).
"""

import heapq
import re
import time
from abc import ABC, abstractmethod
from itertools import chain, islice

from mcore import rerank, validity
from mcore import scope as scopes
from mcore.card import revision_of
from mcore.errors import UsageError, warning
from mcore.frontmatter import timestamp
from mcore.fuse import fuse
from mcore.importer import Freshness, stale_warning
from mcore.prepare import utc_now
from mcore.ranking import CANDIDATES, STOP_WORDS, Ranking, is_question, unaccented
from mcore.record import namedtuple
from mcore.render import counted
from mcore.snippet import snippet
from mcore.store import Limits
from mcore.tokenize import MAX_TERMS, is_single, split_query, term_expr, to_query_expr
from mcore.variants import spellings

TIERS = ("all", "all-prefix", "any", "any-prefix")
MAX_LIMIT = 20
DEFAULT_LIMIT = 10
MAX_QUERY_CHARS = 10_000  # more is a document, not a question; a megabyte took seconds and came back as an echo
MAX_VARIANTS, MAX_VARIANT_CHARS = 5, 100
FUSED_POOL = 60  # cards of each query that are fused
MAX_POOL = 200  # cards that offset can reach
ANY_TIME = "any"
OUTDATED = 3
CHAIN = 20  # cards that one card replaced, one by another, which a hit names

Hit = namedtuple(
    "Hit",
    "id path title kind source score matched coverage snippet missing revision scope state valid_from valid_to "
    "replaces replaced_by confidence review_due",
)
Hit.__doc__ = """One card found.

`missing` are the terms of the query that it lacks; `state` is current unless another time was asked
about; `replaces` names the cards that it supersedes, nearest first; `replaced_by` its successor by now.
Times are UTC text or None.
"""
Result = namedtuple(
    "Result",
    "query hits matched searched hidden outdated nearest as_of scope retrieval freshness explained warnings",
)
Result.__doc__ = """The answer to one search.

`matched` is the highest tier of its hits ("" when there is none). `searched` is how many cards were searched,
`hidden` maps a filter to the number of hits it hid, `nearest` names terms the vault does have that
are like the query's unknown ones (when there is no hit). `as_of` is the time asked about, if any,
`scope` the scopes that were searched ([]: all). `outdated` are cards that answer and are not in force,
with their successors; named when nothing in force answers. `explained` is
{} unless it was asked for.
"""
Outdated = namedtuple("Outdated", "path title state replaced_by")
Retrieval = namedtuple("Retrieval", "strategy reason queries pool offset next_offset terms_used terms_dropped")
Retrieval.__doc__ = """How the answer came about.

`strategy` is cascade, fill or fused; `reason` matched, relaxed_match (only some terms), no_lexical_match,
empty_scope (no card passes the filters) or offset_beyond_pool. `queries` has one Asked each; `pool` counts
the cards that could be paged through; `terms_dropped` are those that no hit holds.
"""
Asked = namedtuple("Asked", "query matched hits")
_Ask = namedtuple("_Ask", "query terms match filters")
_Query = namedtuple("_Query", "text terms look found")


def telling(terms):
    """The terms that a reader wants to see in a snippet: no stop words, unless there is nothing else."""
    return [term for term in terms if term.text not in STOP_WORDS] or terms


class Searcher(ABC):
    """What the doors need of a search; another implementation can stand in."""

    @abstractmethod
    def search(
        self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True, match="auto", scope=None,
        scope_only=False, as_of=None, variants=(), offset=0, is_explained=False,
    ):  # fmt: skip
        """The Result for a query: at most `limit` hits, best first, from `offset` on.

        `match` is auto, cascade or fill. Cards of `scope` (default global; "all" for every one) answer, and
        global ones unless `scope_only`; those in force `as_of` a time (default now; "any" for all).
        `variants` are other wordings, fused with the query by rank.
        """


class FtsSearcher(Searcher):
    """The four tiers over an FTS5 index that is brought up to date first."""

    def __init__(self, store, indexer):
        self.store = store
        self.indexer = indexer

    def search(
        self, query, limit=DEFAULT_LIMIT, kind=None, source=None, sync=True, match="auto", scope=None,
        scope_only=False, as_of=None, variants=(), offset=0, is_explained=False,
    ):  # fmt: skip
        limit, offset = max(1, min(MAX_LIMIT, limit)), max(0, offset)
        kind = kind.casefold() if kind else None
        source = source or None
        if sync:
            freshness = self.indexer.refresh(self.store)
        else:
            freshness = Freshness(0, 0, 0, self.store.count_unreadable())
        asked, query = query, query[:MAX_QUERY_CHARS]
        terms, left_off = split_query(query)
        warnings = _query_warnings(asked, terms, left_off, freshness)
        limits, notes = self.limits(scope, scope_only, as_of)
        variants, more = _usable_variants(query, variants)
        warnings += notes + more
        ask = _Ask(query, terms, match, (kind, source, limits))
        # A deeper pool would fuse to another order, and a later page repeat cards of an earlier one.
        pool = FUSED_POOL if variants else min(MAX_POOL, offset + limit)
        with self.store.reading():
            passing, outside = self._passing(kind, source, limits)
            queries = [self._asked(text, match, pool, ask.filters, passing) for text in [query, *variants]]
            found, query_of = _merged(queries)
            found = found[:MAX_POOL]
            hits = self._hits(found[offset : offset + limit], query_of, queries, limits)
            searched = self.store.total() - outside.forgotten
            if len(hits) < 2:
                warnings += self._confirm_warnings(ask, hits)
            matched = min((hit.matched for hit in hits), key=TIERS.index, default="")
            hidden, outdated, nearest = self._beside(ask, queries[0].look, found, matched, outside)
            retrieval = self._retrieval(ask, queries, found, hits, offset, limit)
            explained = {}
            if is_explained:
                from mcore.explain import explain

                look = queries[0].look
                explained = explain(self.store, look.ranking, terms, query, hits, look.docs, look.gains)
        if not searched:
            warnings += self.indexer.vault_warnings()
        gone = set().union(*(q.look.gone for q in queries))
        if gone:  # deleted, or out of reach, since they were looked at
            if not freshness.stale:
                warnings.append(stale_warning(len(gone)))
            freshness = freshness._replace(stale=max(freshness.stale, len(gone)))
        at = None if not as_of else ANY_TIME if limits.at is None else utc_now(limits.at)
        return Result(query, hits, matched, searched, hidden, outdated, nearest, at, list(limits.scopes or ()),
                      retrieval, freshness, explained, warnings)  # fmt: skip

    def every(self, query):
        """The rel_paths of all cards that hold every term of a query: the first tier without a limit, in any
        scope and at any time."""
        terms, _ = split_query(query[:MAX_QUERY_CHARS])
        if not terms:
            return set()
        with self.store.reading():
            return self._within(self.store.docs_matching(to_query_expr(terms, "all")), scopes.ALL, ANY_TIME)

    def searchable(self, scope=None, as_of=None):
        """The rel_paths of all cards that a search can find; `scope` and `as_of` as `search` takes them."""
        with self.store.reading():
            return self._within(self.store.docs().values(), scope, as_of)

    def _within(self, docs, scope, as_of):
        limits, _ = self.limits(scope, as_of=as_of)
        return {row.rel_path for row in self.store.found(list(docs), limits).values()}

    # ---- which cards may answer ------------------------------------------------------------------

    def limits(self, scope=None, scope_only=False, as_of=None):
        """(Limits, warnings) from a call's words. Raises UsageError for what is no scope or no time."""
        ranges = self.indexer.settings.scopes
        at = _time(as_of)
        if not scope:
            return Limits(at, (scopes.GLOBAL,), ranges), []
        name = scopes.normalized(scope)
        if name is None or name != scopes.GLOBAL and not self.store.has_scope(name, ranges):
            known = self.store.scopes(ranges)
            name = scopes.asked(scope, known)
            near = scopes.nearest(scope, known) or list(filter(None, [name is None and scopes.meant(scope)]))
            hint = "did you mean " + ", ".join(near) + "?" if near else "memory stats lists the scopes"
            if name is None:
                raise UsageError(f"{scope[:60]!r} is no scope: it is {scopes.FORMS}, or all", "", hint)
            if name == scopes.ALL:
                return Limits(at, None, ranges), []
            if name not in known:
                return _limits_of(at, name, scope_only, ranges), [
                    warning("unknown-scope", f"no card has the scope {name}", hint)
                ]
        return _limits_of(at, name, scope_only, ranges), []

    def _passing(self, kind, source, limits):
        """(the docs that pass, as something that knows what is in it, None for all; the Outside of the limits)."""
        if limits.scopes is not None and scopes.GLOBAL not in limits.scopes:  # then plain global cards are outside too
            wider = self.store.outside(limits._replace(scopes=(*limits.scopes, scopes.GLOBAL)))
            return self.store.docs_of(kind, source, limits), wider
        outside = self.store.outside(limits)
        if kind is not None or source is not None:
            return self.store.docs_of(kind, source, limits), outside
        return _AllBut(outside.docs) if outside.docs else None, outside

    def _asked(self, text, match, pool, filters, passing):
        """One wording, answered."""
        terms, _ = split_query(text)
        look = _Look(self.store, self.indexer, text, terms, pool, filters, passing)
        fills = match == "fill" or match == "auto" and is_question(text)
        return _Query(text, terms, look, look.fill() if fills else look.cascade())

    def _confirm_warnings(self, ask, hits):
        """Says when an answer is empty by the index alone."""
        from mcore.confirm import confirm, is_doubtful

        doubtful = is_doubtful(self.store, self.indexer, ask.terms, hits)
        left = confirm(self.store, self.indexer, ask.terms, ask.filters, hits) if doubtful else 0
        if not left:
            return []
        said = f"there was no time to read {left} cards' files and confirm that the index misses none"
        return [warning("unconfirmed", said, "if you know that it is there, run: memory index --rebuild")]

    def _beside(self, ask, look, found, matched, outside):
        """(hidden, outdated, nearest): what stands beside the hits, or in their place."""
        hidden = {} if found else self._hidden(ask)
        hidden |= self._out_of_view(ask, look, matched, outside)
        outdated = self._outdated(ask) if not found and "validity" in hidden else []
        nearest = [] if found or not ask.terms else self._nearest(ask)
        return hidden, outdated, nearest

    def _outdated(self, ask):
        """The best OUTDATED cards that answer without being in force."""
        kind, source, limits = ask.filters
        wider = limits._replace(at=None)
        passing, _ = self._passing(kind, source, wider)
        asked = self._asked(ask.query, ask.match, OUTDATED, (kind, source, wider), passing)
        lives = self.store.lives([row.id for row, _, _ in asked.found])
        return [
            Outdated(
                row.rel_path,
                row.title,
                validity.state(limits.at, life.mark, life.valid_from, life.valid_to, life.closed_at),
                life.closed_by,
            )
            for row, life in ((row, lives[row.id]) for row, _, _ in asked.found)
        ]

    def _retrieval(self, ask, queries, found, hits, offset, limit):
        asked = [
            Asked(q.text, min((tier for _, tier, _ in q.found), key=TIERS.index, default=""), len(q.found))
            for q in queries
        ]
        strategy = "fused" if len(queries) > 1 else "fill" if queries[0].look.filled else "cascade"
        if hits:
            reason = "matched" if any(hit.matched.startswith("all") for hit in hits) else "relaxed_match"
        elif found:
            reason = "offset_beyond_pool"
        else:
            reason = "no_lexical_match" if self.store.has_passing(*ask.filters) else "empty_scope"
        terms = [term.text for term in ask.terms]
        lacked = [term for term in terms if all(term in hit.missing for hit in hits)] if hits or not found else []
        more = offset + limit if hits and len(found) >= offset + limit < MAX_POOL else None
        return Retrieval(strategy, reason, asked, len(found), offset, more,
                         [term for term in terms if term not in lacked], lacked)  # fmt: skip

    def _out_of_view(self, ask, look, matched, outside):
        """How many hits the scope hides, and how many are not in force (superseded, expired, to come).

        Beside hits only cards that hold every term are counted, and of those the ones that would rank among
        the best: looser and lower ones are many and say little.
        """
        kind, source, _ = ask.filters
        groups = {"scope": outside.elsewhere, "validity": outside.not_in_force}
        if not ask.terms or not any(groups.values()):
            return {}
        if matched and matched != "all-prefix":
            groups = {name: some & look.seen.keys() for name, some in groups.items()}
            if not any(groups.values()):
                return {}
        if kind is not None or source is not None:
            docs = self.store.docs_of(kind, source)
            groups = {name: some & docs for name, some in groups.items()}
        if matched and matched != "all-prefix":
            held = look.holding("all", set().union(*groups.values()), without_singles=True)
            return {name: len(some & held) for name, some in groups.items() if some & held}
        for tier in (matched,) if matched else TIERS:
            expr = to_query_expr(ask.terms, tier)
            found = set(self.store.docs_matching(expr)) if expr else set()
            hidden = {name: len(some & found) for name, some in groups.items()}
            if any(hidden.values()):
                return {name: n for name, n in hidden.items() if n}
        return {}

    def _hits(self, found, query_of, queries, limits):
        """Hits of (row, tier, coverage) triples, with the place that answers."""
        lives = self.store.lives([row.id for row, _, _ in found], limits.ranges)
        replaced = self._replaced([row.rel_path for row, _, _ in found])
        now = time.time()
        at = now if limits.at is None else limits.at
        hits = []
        for row, tier, coverage in found:
            life, query = lives[row.id], queries[query_of[row.id]]
            closed = life.closed_at is not None and life.closed_at <= now
            hits.append(
                Hit(
                    row.id,
                    row.rel_path,
                    row.title,
                    row.kind,
                    row.source,
                    round(row.score, 4),
                    tier,
                    coverage,
                    snippet(self.indexer.body(query.look.names[row.id]), telling(query.terms)),
                    query.look.missing(row.id) if tier.startswith("any") else [],
                    revision_of(life.content_hash),
                    life.scope,
                    validity.state(at, life.mark, life.valid_from, life.valid_to, life.closed_at),
                    _utc(life.valid_from),
                    _utc(_end(life)),
                    replaced.get(row.rel_path, []),
                    life.closed_by if closed else None,
                    life.confidence,
                    life.review_by is not None and life.review_by <= now,
                )
            )
        return hits

    def _replaced(self, paths):
        """path -> the cards it replaced, nearest first, along the chain."""
        chains, tips = {}, {path: path for path in paths}
        for _ in range(CHAIN):
            if not tips:
                break
            found = self.store.closed_by(list(tips))
            for old, by in found:
                chains.setdefault(tips[by], []).append(old)
            tips = {old: tips[by] for old, by in found}
        return chains

    def _hidden(self, ask):
        """For each filter in force: how many hits there are without it; for two that only hide together,
        without both."""
        kind, source, limits = ask.filters
        hidden = {}
        for name, value, rest in (
            ("kind", kind, (None, source)),
            ("source", source, (kind, None)),
            ("kind_and_source", kind and source, (None, None)),
        ):
            if value is None or hidden and name == "kind_and_source":
                continue
            for tier in TIERS:
                expr = to_query_expr(ask.terms, tier) if ask.terms else None
                n = self.store.count_matches(expr, *rest, limits) if expr else 0
                if n:
                    hidden[name] = n
                    break
        return hidden

    def _nearest(self, ask):
        """Words of the cards that may answer which are like the query's words that the vault does not have."""
        from mcore.explain import NEAREST, nearest_words

        found = nearest_words(self.store, ask.terms, ask.query)
        near = list(dict.fromkeys(word for words in found.values() for word in words))
        limits = ask.filters[-1]
        # Words of cards that are gone or forgotten stay in the vocabulary for a while.
        return [word for word in near[: 2 * NEAREST] if self.store.count_matches(f'"{word}"', limits=limits)][:NEAREST]


class _Look:
    """One query being answered. A deleted card is never returned: `gone` gathers the ids of those met."""

    def __init__(self, store, indexer, query, terms, limit, filters, passing):
        """`filters` are the arguments of the store's questions, `passing` the docs that they let pass, or None."""
        self.store, self.indexer = store, indexer
        self.query, self.terms, self.limit = query, terms, limit
        self.filters, self.passing = filters, passing
        self.filled = False
        self.holders = {}  # term -> ids of the hits that hold it, where shares were counted
        self.ranking = Ranking(store)
        self.best = None  # doc -> score of the best cards for any term, once they were looked for
        self.seen = {}  # the same, with those that may not answer
        self.gains = []  # what a closer look added
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
        held = self.holding(tier, scores.keys())
        if len(held) < self.limit and not self.ranking.is_complete:
            held = ()
        rows = self._rows({doc: scores[doc] for doc in held})
        if held and self.ranking.is_complete:
            return self._present(rows)
        return self._present(chain(rows, self._rest(expr, held)))

    def _rest(self, expr, held):
        """Rows of all cards that an expression finds but those `held`: first as ranked, then as FTS5 has them."""
        docs = self.store.docs_matching(expr)
        docs = {doc for doc in docs if self.passing is None or doc in self.passing}
        if docs:
            yield from self._rows({doc: score for doc, score in self._scores(docs).items() if doc not in held})
        if len(self.docs) < len(docs):
            yield from self._matched(expr, list(self.docs))

    def holding(self, tier, docs, without_singles=False):
        """Which of `docs` hold every term whole, or any term or part of one.

        `without_singles` does not ask for single characters of an unspaced script beside other terms (0.2 s for
        a common one).
        """
        if tier == "all":
            held, longer = set(docs), [term for term in self.terms if not (without_singles and is_single(term))]
            for term in longer or self.terms:
                if held:
                    held &= self._docs_with(term.text, term_expr(term), held)
            return held
        held = [self._docs_with(term.text, term_expr(term), docs) for term in self.terms]
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
        self.filled = True
        if not self.terms:
            return []
        scores = self._reranked(self._scores(None))
        found = self._present(chain(self._rows(scores), self._loose(min(scores.values(), default=float("inf")))))
        return self._labelled(found) if found else []

    def _reranked(self, scores):
        """doc -> score after a closer look at the best cards."""
        weights = self.ranking.word_weights()
        pairs = {part.text for part in self.ranking.asked if part.kind == "pair"}
        if not scores or not weights and not pairs:
            return scores
        best = heapq.nlargest(rerank.DEPTH, scores, key=lambda doc: (scores[doc], -doc))
        rows = self.store.found(best)
        names = self.store.real_names([row.id for row in rows.values()])
        texts = {
            doc: rerank.shown(rows[doc].title, self.indexer.body(names[rows[doc].id])) for doc in best if doc in rows
        }
        gains = rerank.partial_words(weights, texts) + rerank.lead_words(weights, texts)
        gains += rerank.feedback(scores, texts, pairs) if pairs else []
        scores = dict(scores)
        for gain in gains:
            scores[gain.doc] += gain.score
        self.gains += gains
        return scores

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
            self.holders.setdefault(term.text, set()).update(holders)
            for id in holders:
                held[id] += 1
            for part in term.parts:
                expr = '"' + part + '"'
                some = self.store.matching_ids(expr + "*", ids) if prefix else self._holders(part, expr, ids)
                for id in some - holders:
                    held[id] += 1 / len(term.parts)
        return {id: round(min(1.0, n / len(self.terms)), 4) for id, n in held.items()}

    def missing(self, id):
        """The terms that a loose hit does not hold."""
        return [term.text for term in self.terms if id not in self.holders.get(term.text, ())]

    def _scores(self, docs):
        """doc -> score of the best cards (of `docs`, if given) that may answer."""
        if docs is None:
            if self.best is None:
                self.best = self._titled(self._passing_scores())
            return self.best
        if self.passing is not None:
            docs = {doc for doc in docs if doc in self.passing}
        return self.ranking.scores(self.query, docs)

    def _passing_scores(self):
        scores = self.seen = self.ranking.scores(self.query)
        if self.passing is None:
            return scores
        kept = {doc: score for doc, score in scores.items() if doc in self.passing}
        # Few of the best cards pass. How many are wanted does not matter: each page is of the same list.
        if len(kept) < max(self.limit, rerank.DEPTH) and len(scores) >= CANDIDATES:
            scores = self.ranking.scores(self.query, self.store.docs_of(*self.filters))
            return {doc: score for doc, score in scores.items() if score > 0}
        return kept

    def _titled(self, scores):
        """`scores` with the cards whose title is the query in front of all others."""
        title = " ".join(self.query.split())
        docs = [doc for doc in self.store.titled(title) if self.passing is None or doc in self.passing]
        if not docs or not scores:
            return scores
        scores = {**self.ranking.scores(self.query, set(docs)), **scores} if set(docs) - scores.keys() else scores
        most = max(scores.values())
        self.gains += [rerank.Gain(doc, "title", title, 1, most) for doc in docs]
        return scores | {doc: scores[doc] + most for doc in docs}

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


class _AllBut:
    """Every doc except some."""

    def __init__(self, docs):
        self._docs = docs

    def __contains__(self, doc):
        return doc not in self._docs


def _limits_of(at, scope, scope_only, ranges):
    return Limits(at, (scope,) if scope_only or scope == scopes.GLOBAL else (scope, scopes.GLOBAL), ranges)


def _time(as_of):
    """The time meant by `as_of`, in seconds; None for any time."""
    if not as_of or as_of == "now":
        return time.time()
    if as_of == ANY_TIME:
        return None
    seconds = timestamp(as_of)
    if seconds is None:
        raise UsageError(f"as_of {as_of[:60]!r} is no date", hint="such as 2026-12-01, 2026-12-01T08:30:00Z, or any")
    return seconds


def _utc(seconds):
    return None if seconds is None else utc_now(seconds) or None


def _end(life):
    """When a card ceases to hold: by its own words or when a newer one closes it, whichever comes first."""
    ends = [end for end in (life.valid_to, life.closed_at) if end is not None]
    return min(ends, default=None)


def _usable_variants(query, variants):
    """(other wordings that are worth asking, warnings): at most MAX_VARIANTS, each once, cut to MAX_VARIANT_CHARS."""
    wordings = [" ".join(text.split()) for text in variants]
    wordings = [text for text in dict.fromkeys(wordings) if text and text != query]
    warnings = []
    if len(wordings) > MAX_VARIANTS or any(len(text) > MAX_VARIANT_CHARS for text in wordings):
        text = f"at most {MAX_VARIANTS} variants of {MAX_VARIANT_CHARS} characters are used"
        warnings.append(warning("variants-cut", text, "give fewer or shorter ones"))
    return [text[:MAX_VARIANT_CHARS] for text in wordings[:MAX_VARIANTS]], warnings


def _merged(queries):
    """(the triples of all queries in one list, id -> number of the query whose words show it best)."""
    if len(queries) == 1:
        found = queries[0].found
        return found, dict.fromkeys((row.id for row, _, _ in found), 0)
    triples = [{row.id: (row, tier, coverage) for row, tier, coverage in q.found} for q in queries]
    merged, query_of = [], {}
    for id, score, number in fuse([[row.id for row, _, _ in q.found] for q in queries]):
        row, tier, coverage = min(
            (some[id] for some in triples if id in some), key=lambda triple: (TIERS.index(triple[1]), -triple[2])
        )
        merged.append((row._replace(score=score), tier, coverage))
        query_of[id] = number
    return merged, query_of


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
        warnings.append(stale_warning(freshness.stale))
    if freshness.unchecked:
        warnings.append(
            warning(
                "stale", f"{freshness.unchecked} cards were not looked at again for lack of time", "run: memory index"
            )
        )
    if freshness.unreadable:
        message = f"{counted(freshness.unreadable, 'card file')} could not be read"
        warnings.append(warning("unreadable", message, "memory index --json names them"))
    return warnings
