"""The vault -> the index: take in what changed, or build it anew. Source files are only read.

`indexer` takes in changes, `rebuild` begins from nothing; both put large work through `build`, which makes a whole
index apart. These two are loaded when they are needed: a search starts without them. `files` are the cards to be
read, `ids` says which card keeps which id, `links` which closes which, `report` what is told of it.
"""

from mcore.importer.indexer import Indexer
from mcore.importer.links import link_faults
from mcore.importer.report import Freshness, Report, stale_warning

__all__ = ["Freshness", "Indexer", "Report", "link_faults", "stale_warning"]
