"""One wording, answered: the four tiers.

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
from itertools import chain, islice

from mcore import rerank
from mcore.ranking import CANDIDATES, Ranking, unaccented
from mcore.search.answer import MAX_LIMIT, TIERS
from mcore.tokenize import is_single, others_expr, term_expr, to_query_expr
from mcore.variants import spellings


class Look:
    """One query being answered. A deleted card is never returned: `gone` gathers the ids of those met."""

    def __init__(self, store, files, query, terms, limit, filters, passing):
        """`filters` are the arguments of the store's questions, `passing` the docs that they let pass, or None."""
        self.store, self.files = store, files
        self.query, self.terms, self.limit = query, terms, limit
        self.filters, self.passing = filters, passing
        self.filled = False
        self.holders = {}  # (term, whether its end is open) -> ids of the hits that hold it, where shares were counted
        self.ranking = Ranking(store)
        self.best = None  # doc -> score of the best cards for any term, once they were looked for
        self.seen = {}  # the same, with those that may not answer
        self.gains = []  # what a closer look added
        self.titled = {}  # doc -> what its score gained because its title is the query
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
        scores = self._scores(None)
        return {doc: scores[doc] for doc in self._formed(scores.keys())}

    def formed(self):
        """The docs of the best cards that hold a term in some form, those that may not answer among them; to fill up,
        those with any part of the query."""
        return set(self.seen) if self.filled else self._formed(self.seen.keys())

    def _formed(self, docs):
        texts, accounts = {term.text for term in self.terms}, self.ranking.account(docs)
        return {doc for doc, told in accounts.items() for feature, *_ in told if feature.part.text in texts}

    def _tier(self, expr, tier):
        """The best cards that an expression finds. Tiers with open ends are ranked by FTS5: what it
        counts there is how often any longer word begins so."""
        if tier.endswith("prefix"):
            return self._present(self._matched(expr, ())) if self._may_begin(tier) else []
        scores = self._scores(None)
        held = self.holding(tier, scores.keys())
        is_complete = self.ranking.is_complete and not any(map(others_expr, self.terms))
        rows = self._rows({doc: scores[doc] for doc in held})
        if held and is_complete:
            return self._present(rows)
        return self._present(chain(rows, self._rest(expr, held)))

    def _rest(self, expr, held):
        """Rows of all cards that an expression finds but those `held`: first as ranked, then as FTS5 has them.

        They stand behind the held ones on any page: ranked among them, a page that needs them would move the others.
        """
        docs = self.store.docs_matching(expr)
        docs = {doc for doc in docs if self.passing is None or doc in self.passing}
        if docs - held:
            yield from self._rows(self._scores(docs - held))
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
                    held &= self._docs_with(term.text, term_expr(term), held, others_expr(term))
            return held
        held = [self._docs_with(term.text, term_expr(term), docs, others_expr(term)) for term in self.terms]
        parts = {part for term in self.terms for part in term.parts}
        return set().union(*held, *(self._docs_with(part, f'"{part}"', docs) for part in parts))

    def _docs_with(self, text, expr, docs, others=None):
        """Which of `docs` hold a text of the query, as the ranking has seen it or by asking FTS5 with `expr`; those
        that the ranking has not seen are asked for `others`, its other forms."""
        held = self.ranking.holders(text, docs)
        if held is None:
            return set(self.store.docs_matching(expr, list(docs)))
        lacking = set(docs) - held if others else ()
        return held.union(self.store.docs_matching(others, list(lacking))) if lacking else held

    def _may_begin(self, tier):
        """Whether the vault has words that begin with each term (with any, in the lower tier) at all."""
        has = (any(self.store.has_words(form.split(" ")[0]) for form in term.phrases) for term in self.terms)
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
            doc: rerank.shown(rows[doc].title, self.files.body(names[rows[doc].id])) for doc in best if doc in rows
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
        exprs = (to_query_expr(self.terms, tier) for tier in ("any-prefix", "all-prefix", "any", "all"))
        expr = next(filter(None, exprs))  # of one word the last tier only repeats the second
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
            self.texts[id] = self.files.searchable(row.rel_path, self.names[id])
        return self.texts[id]

    def _whole(self, found):
        """For each term the ids of those rows that hold it whole."""
        ids = [row.id for row in found]
        return [self._holders(term.text, term_expr(term), ids, others_expr(term)) for term in self.terms]

    def _holders(self, text, expr, ids, others=None):
        """Which of `ids` hold a text of the query; arguments as of `_docs_with`."""
        if any(id not in self.docs for id in ids):
            return self.store.matching_ids(expr, ids)
        ids_of = {self.docs[id]: id for id in ids}
        if expr.endswith('"*') and len(text) == 1 and self.ranking.holders(text, ids_of.keys()) is None:
            return {id for id in ids if any(char in self._text(id) for char in spellings(text))}
        return {ids_of[doc] for doc in self._docs_with(text, expr, ids_of.keys(), others)}

    def _shares(self, ids, whole, prefix):
        """id -> share of the terms it holds; a compound term found in parts counts in part, and with
        `prefix` open ends and other forms of a word count."""
        held = dict.fromkeys(ids, 0.0)
        for term, exact in zip(self.terms, whole, strict=True):
            holders = set(exact)
            if prefix and term.prefixable:
                forms = self.ranking.forms.get(term.text, ())
                holders.update(id for id in ids if id not in holders and self._begins(term, id, forms))
            self.holders.setdefault((term.text, prefix), set()).update(holders)
            for id in holders:
                held[id] += 1
            tokens = len(term.phrases[0].split())  # short ones are no parts: `20` is half of `2.20`
            for part in term.parts:
                expr = '"' + part + '"'
                some = self.store.matching_ids(expr + "*", ids) if prefix else self._holders(part, expr, ids)
                for id in some - holders:
                    held[id] += 1 / tokens
        return {id: round(min(1.0, n / len(self.terms)), 4) for id, n in held.items()}

    def missing(self, id, tier):
        """The terms that a hit of a tier does not hold: whole, or in an open tier by its beginning or another form."""
        if tier.startswith("all"):
            return []
        prefix = tier == "any-prefix"
        return [term.text for term in self.terms if id not in self.holders.get((term.text, prefix), ())]

    def _scores(self, docs):
        """doc -> score of the best cards (of `docs`, if given) that may answer."""
        if docs is None:
            if self.best is None:
                self.best = self._titled(self._passing_scores())
            return self.best
        if self.passing is not None:
            docs = {doc for doc in docs if doc in self.passing}
        scores = self.ranking.scores(self.query, docs)
        return {doc: score + self.titled.get(doc, 0.0) for doc, score in scores.items()}

    def _passing_scores(self):
        scores = self.seen = self.ranking.scores(self.query)
        if self.passing is None:
            return scores
        kept = {doc: score for doc, score in scores.items() if doc in self.passing}
        # Few of the best cards pass. How many are wanted does not matter: each page is of the same list.
        if len(kept) < rerank.DEPTH and len(scores) >= CANDIDATES:
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
        self.titled = dict.fromkeys(docs, most)
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
                if self.files.is_there(self.names[row.id]):
                    there.append(row)
                    self.rows[row.id] = row
                else:
                    self.gone.add(row.id)
            if len(there) == self.limit:
                break
        return there
