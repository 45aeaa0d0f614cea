"""What a search is asked, and what its answer consists of."""

from abc import ABC, abstractmethod

from mcore.record import namedtuple

TIERS = ("all", "all-prefix", "any", "any-prefix")
MAX_LIMIT = 20
DEFAULT_LIMIT = 10
ANY_TIME = "any"

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
