"""The searcher: a call in words, its wordings answered and fused, and what is worth saying beside the hits."""

import time
from itertools import islice

from mcore import scope as scopes
from mcore import validity
from mcore.card import revision_of
from mcore.errors import warning
from mcore.fuse import fuse
from mcore.importer import Freshness, stale_warning
from mcore.prepare import utc_now
from mcore.ranking import STOP_WORDS, is_question
from mcore.record import namedtuple
from mcore.render import counted
from mcore.search.answer import (
    ANY_TIME,
    DEFAULT_LIMIT,
    MAX_LIMIT,
    TIERS,
    Asked,
    Hit,
    Outdated,
    Result,
    Retrieval,
    Searcher,
)
from mcore.search.limits import limits_of, passing_docs
from mcore.search.look import Look
from mcore.snippet import snippet
from mcore.tokenize import MAX_TERMS, split_query, term_expr, to_query_expr

MAX_QUERY_CHARS = 10_000  # more is a document, not a question; a megabyte took seconds and came back as an echo
MAX_VARIANTS, MAX_VARIANT_CHARS = 5, 100
FUSED_POOL = 60  # cards of each query that are fused
MAX_POOL = 200  # cards that offset can reach
FEW_HITS = 3  # so many are looked into, whether they hold what was asked
OUTDATED = 3
CHAIN = 20  # cards that one card replaced, one by another, which a hit names

_Ask = namedtuple("_Ask", "query terms match filters")
_Query = namedtuple("_Query", "text terms look found")


def telling(terms):
    """The terms that a reader wants to see in a snippet: no stop words, unless there is nothing else."""
    return [term for term in terms if term.text not in STOP_WORDS] or terms


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
            passing, outside = passing_docs(self.store, kind, source, limits)
            queries = [self._asked(text, match, pool, ask.filters, passing) for text in [query, *variants]]
            found, told_by = _merged(queries)
            found = found[:MAX_POOL]
            hits = self._hits(found[offset : offset + limit], told_by, queries, limits)
            searched = self.store.total() - outside.forgotten
            if not hits or len(hits) <= FEW_HITS and not variants:  # hits of a variant need not hold the query
                warnings += self._confirm_warnings(ask, hits)
            matched = min((hit.matched for hit in hits), key=TIERS.index, default="")
            hidden, outdated, nearest = self._beside(ask, queries, found, outside)
            retrieval = self._retrieval(ask, queries, found, hits, offset, limit)
            explained = {}
            if is_explained:
                from mcore.explain import explain

                look = queries[0].look
                explained = explain(self.store, look.ranking, terms, query, hits, look.docs, look.gains)
        if not searched:
            warnings += self.indexer.files.vault_warnings()
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

    def limits(self, scope=None, scope_only=False, as_of=None):
        """(Limits, warnings) from a call's words. Raises UsageError for what is no scope or no time."""
        return limits_of(self.store, self.indexer.settings.scopes, scope, scope_only, as_of)

    def _asked(self, text, match, pool, filters, passing):
        """One wording, answered."""
        terms, _ = split_query(text)
        look = Look(self.store, self.indexer.files, text, terms, pool, filters, passing)
        fills = match == "fill" or match == "auto" and is_question(text)
        return _Query(text, terms, look, look.fill() if fills else look.cascade())

    def _confirm_warnings(self, ask, hits):
        """Says when an answer is empty by the index alone."""
        from mcore.confirm import confirm, is_doubtful

        doubtful = is_doubtful(self.store, self.indexer.files, ask.terms, hits)
        left = confirm(self.store, self.indexer.files, ask.terms, ask.filters, hits) if doubtful else 0
        if not left:
            return []
        said = f"there was no time to read {left} cards' files and confirm that the index misses none"
        return [warning("unconfirmed", said, "if you know that it is there, run: memory index --rebuild")]

    def _beside(self, ask, queries, found, outside):
        """(hidden, outdated, nearest): what stands beside the hits, or in their place."""
        if found:
            best = min((tier for _, tier, _ in found), key=TIERS.index)
            return self._out_of_view(ask, queries[0].look, best, outside), [], []
        hidden = self._hidden(ask, queries, outside)
        outdated = self._outdated(ask, queries) if "validity" in hidden else []
        return hidden, outdated, self._nearest(ask) if ask.terms else []

    def _outdated(self, ask, queries):
        """The best OUTDATED cards that answer, of the first wording that finds any, without being in force."""
        kind, source, limits = ask.filters
        wider = limits._replace(at=None)
        passing, _ = passing_docs(self.store, kind, source, wider)
        filters = (kind, source, wider)
        asked = (self._asked(query.text, ask.match, OUTDATED, filters, passing).found for query in queries)
        found = next(filter(None, asked), [])
        lives = self.store.lives([row.id for row, _, _ in found])
        return [
            Outdated(
                row.rel_path,
                row.title,
                validity.state(limits.at, life.mark, life.valid_from, life.valid_to, life.closed_at),
                life.closed_by,
            )
            for row, life in ((row, lives[row.id]) for row, _, _ in found)
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
        lacked = self._lacked(ask.terms, queries[0], hits) if hits or not found else []
        more = offset + limit if hits and len(found) >= offset + limit < MAX_POOL else None
        return Retrieval(strategy, reason, asked, len(found), offset, more,
                         [term for term in terms if term not in lacked], lacked)  # fmt: skip

    def _lacked(self, terms, query, hits):
        """The texts of those terms of the query that no hit holds; a hit of another wording is asked for them."""
        tiers = {row.id: tier for row, tier, _ in query.found}
        missing = [query.look.missing(hit.id, tiers[hit.id]) for hit in hits if hit.id in tiers]
        lacked = [term for term in terms if all(term.text in some for some in missing)]
        others = [hit.id for hit in hits if hit.id not in tiers]
        return [term.text for term in lacked if not (others and self.store.matching_ids(term_expr(term), others))]

    def _out_of_view(self, ask, look, matched, outside):
        """How many hits the scope hides beside those found, and how many are not in force (superseded, expired, to
        come).

        Only cards that hold every term are counted, and of those the ones that would rank among the best: looser
        and lower ones are many and say little.
        """
        kind, source, _ = ask.filters
        groups = {"scope": outside.elsewhere, "validity": outside.not_in_force}
        if matched != "all-prefix":
            groups = {name: some & look.seen.keys() for name, some in groups.items()}
        if not ask.terms or not any(groups.values()):
            return {}
        if kind is not None or source is not None:
            docs = self.store.docs_of(kind, source)
            groups = {name: some & docs for name, some in groups.items()}
        if matched != "all-prefix":
            held = look.holding("all", set().union(*groups.values()), without_singles=True)
        else:
            expr = to_query_expr(ask.terms, matched)
            held = set(self.store.docs_matching(expr)) if expr else set()
        return {name: len(some & held) for name, some in groups.items() if some & held}

    def _hits(self, found, told_by, queries, limits):
        """Hits of (row, tier, coverage) triples, with the place that answers."""
        lives = self.store.lives([row.id for row, _, _ in found], limits.ranges)
        replaced = self._replaced([row.rel_path for row, _, _ in found])
        now = time.time()
        at = now if limits.at is None else limits.at
        hits = []
        for row, tier, coverage in found:
            life, shown_by, counted_by = lives[row.id], *(queries[number] for number in told_by[row.id])
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
                    snippet(self.indexer.files.body(shown_by.look.names[row.id]), telling(shown_by.terms)),
                    counted_by.look.missing(row.id, tier),
                    revision_of(life.content_hash),
                    life.scope,
                    validity.state(at, life.mark, life.valid_from, life.valid_to, life.closed_at),
                    _utc(life.valid_from),
                    _utc(validity.end(life.valid_to, life.closed_at)),
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

    def _hidden(self, ask, queries, outside):
        """For each filter in force, where nothing was found: how many hits there are without it; for kind and
        source that only hide together, without both."""
        kind, source, limits = ask.filters
        is_narrow = limits.scopes is not None and scopes.GLOBAL not in limits.scopes
        without = {
            "kind": kind is not None and (None, source, limits),
            "source": source is not None and (kind, None, limits),
            "scope": (is_narrow or outside.elsewhere) and (kind, source, limits._replace(scopes=None)),
            "validity": outside.not_in_force and (kind, source, limits._replace(at=None)),
        }
        hidden = {name: self._count(queries, filters) for name, filters in without.items() if filters}
        if kind is not None and source is not None and not hidden["kind"] and not hidden["source"]:
            hidden["kind_and_source"] = self._count(queries, (None, None, limits))
        return {name: n for name, n in hidden.items() if n}

    def _count(self, queries, filters):
        """How many cards within some filters answer the wordings, each in its highest tier."""
        counts = {}
        for query in queries:
            exprs = filter(None, (to_query_expr(query.terms, tier) for tier in TIERS)) if query.terms else ()
            told = ((expr, self.store.count_matches(expr, *filters)) for expr in exprs)
            counts.update(islice(((expr, n) for expr, n in told if n), 1))
        if len(counts) > 1:
            return self.store.count_matches(" OR ".join(f"({expr})" for expr in counts), *filters)
        if counts:
            return next(iter(counts.values()))
        formed = set().union(*(query.look.formed() for query in queries))
        return len(formed & self.store.docs_of(*filters)) if formed else 0

    def _nearest(self, ask):
        """Words of the cards that may answer which are like the query's words that the vault does not have."""
        from mcore.explain import NEAREST, nearest_words

        found = nearest_words(self.store, ask.terms, ask.query)
        near = list(dict.fromkeys(word for words in found.values() for word in words))
        limits = ask.filters[-1]
        # Words of cards that are gone or forgotten stay in the vocabulary for a while.
        return [word for word in near[: 2 * NEAREST] if self.store.count_matches(f'"{word}"', limits=limits)][:NEAREST]


def _utc(seconds):
    return None if seconds is None else utc_now(seconds) or None


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
    """(the triples of all queries in one list, id -> the numbers of two queries: the one that has it highest, whose
    words show it best, and the one by which its tier and coverage are told)."""
    if len(queries) == 1:
        found = queries[0].found
        return found, {row.id: (0, 0) for row, _, _ in found}
    triples = [{row.id: (row, tier, coverage) for row, tier, coverage in q.found} for q in queries]
    merged, told_by = [], {}
    for id, score, number in fuse([[row.id for row, _, _ in q.found] for q in queries]):
        best = min(
            (at for at, some in enumerate(triples) if id in some),
            key=lambda at: (TIERS.index(triples[at][id][1]), -triples[at][id][2]),
        )
        row, tier, coverage = triples[best][id]
        merged.append((row._replace(score=score), tier, coverage))
        told_by[id] = (number, best)
    return merged, told_by


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
