"""The links between the cards of an index: which card closes which, and which links lead nowhere."""

import json

from mcore import validity


def derive_closings(store):
    """Derives which card closes which from the links of all cards, inside a write transaction."""
    closed = validity.closings(_resolved(store)[0])
    store.set_closed({path: (closing.at, closing.path) for path, closing in closed.items()})


def link_faults(store):
    """(rel_path, what is wrong) of links between cards that lead nowhere, or are not heeded because another holds."""
    return validity.link_faults(*_resolved(store))


def _resolved(store):
    """(Link entries between cards that are there, (rel_path, target) of the links that lead nowhere)."""
    rows = store.links()
    links = [(row, target, wrong) for row in rows for target, wrong in json.loads(row.links)]
    wanted = {name for _, target, _ in links for name in (target, f"{target}.md")}
    paths = store.hashes(wanted).keys() if wanted else ()
    strays = any(target not in paths and f"{target}.md" not in paths for _, target, _ in links)
    by_name = validity.named(store.paths()) if strays else {}
    found, broken = [], []
    for row, target, wrong in links:
        path = validity.resolve(target, paths, by_name)
        if path is None:
            broken.append((row.rel_path, target))
        else:
            starts = validity.starts(row.valid_from, row.created, row.mtime_ns / 1e9)
            found.append(validity.Link(row.rel_path, starts, path, wrong))
    return found, broken
