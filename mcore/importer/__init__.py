"""The vault -> the index: take in what changed, or build it anew. Source files are only read.

`indexer` takes in changes, `rebuild` begins from nothing; both put large work through `build`, which makes a whole
index apart. `files` are the cards to be read, `ids` says which card keeps which id, `links` which closes which,
`report` what is told of it.
"""

from mcore.importer.build import clear_stale_builds, stale_builds
from mcore.importer.indexer import Indexer
from mcore.importer.links import link_faults
from mcore.importer.report import Freshness, Report, stale_warning

__all__ = [
    "Freshness", "Indexer", "Report", "clear_stale_builds", "link_faults", "stale_builds", "stale_warning",
]  # fmt: skip
