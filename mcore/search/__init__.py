"""Searching: a call in words, an answer of hits, and everything that is worth saying beside them.

`searcher` answers a call: wordings fused, hits, what was left out and why. `look` answers one wording (the four
tiers), `limits` says which cards may answer, `answer` names what is asked for and given.
"""

from mcore.search.answer import ANY_TIME, MAX_LIMIT, TIERS, Hit, Searcher
from mcore.search.searcher import FUSED_POOL, MAX_POOL, MAX_VARIANTS, FtsSearcher, telling

__all__ = [
    "ANY_TIME", "FUSED_POOL", "MAX_LIMIT", "MAX_POOL", "MAX_VARIANTS", "TIERS", "FtsSearcher", "Hit", "Searcher",
    "telling",
]  # fmt: skip
