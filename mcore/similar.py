"""Which cards say something like a new one. The cost does not grow with the vault.

Only rare words tell: of each token at most LIST_LIMIT cards are looked at, and a token with more is left
out. Asking for all cards with any of the words, ranked, took 9 ms at 1,000 cards and 190 ms at 100,000.
"""

import re
from math import log

from mcore.tokenize import columns

TOKENS = 32  # of the title and the first words of the body
LIST_LIMIT = 300  # cards; also how rare a word has to be
CANDIDATES = 50  # cards whose length is looked at
K1, B = 1.2, 0.75


def similar(store, title, body, limit, without, limits=None):
    """Up to `limit` other cards that share rare words with a text, nearest first, as Found rows with scores.

    `without` is the rel_path of the card itself, `limits` says which cards may be named (None: any).
    """
    with store.reading():
        total, shared = store.words.rows_in_index(), {}
        for token in _tokens(title, body):
            docs = store.docs_matching(f'"{token}"', limit=LIST_LIMIT + 1)
            if len(docs) <= LIST_LIMIT:
                rarity = log(1 + (total - len(docs) + 0.5) / (len(docs) + 0.5))
                for doc in docs:
                    shared[doc] = shared.get(doc, 0.0) + rarity
        best = sorted(shared, key=lambda doc: (-shared[doc], -doc))[:CANDIDATES]
        lengths, mean = store.words.lengths(best)
        found = store.found(best, limits)
    rows = []
    for doc, row in found.items():
        if row.rel_path != without:
            share = lengths.get(doc, mean) / mean
            rows.append(row._replace(score=shared[doc] * (K1 + 1) / (1 + K1 * (1 - B + B * share))))
    return sorted(rows, key=lambda row: (-row.score, row.rel_path))[:limit]


def _tokens(title, body):
    """The first different words, pairs and identifier parts of a text, as the index has them."""
    cut = columns(title, "", body)
    words = re.findall(r"[^\W_]+", f"{cut.title} {cut.body} {cut.names}")
    return list(dict.fromkeys(word for word in words if len(word) > 1))[:TOKENS]
