"""Builds a whole index in a file of its own and has a store take it over. Owns the files that a build leaves."""

import os
import re
import time
from contextlib import closing, contextmanager

from mcore import vault
from mcore.card import content_hash
from mcore.errors import CardError
from mcore.importer.ids import assign_ids
from mcore.importer.links import derive_closings
from mcore.prepare import helpers_for, list_parts
from mcore.store import Row, is_sane_id, open_store, rebuilding


def build_apart(store, files, scan):
    """Builds a whole index in a file of its own, then puts it in the store's place at once."""
    ids = _keep_ids(store, files, scan)
    temp_path = f"{store.path}.build-{os.getpid()}"
    clear_stale_builds(store.path)
    unlink_index(temp_path)
    try:
        with closing(open_store(temp_path)) as built, _few_collections():
            rebuilding.begin_loading(built)
            with built.writing():
                built.start_ids_after(_reserve_ids(store, ids, scan))
                built.set_vault(os.path.realpath(files.root))
                with closing(files.prepare_all(scan.files, scan)) as batches:
                    for batch in batches:
                        _load(built, batch, ids)
                derive_closings(built)
            rebuilding.end_loading(built, _list_share(temp_path, len(scan.files)))
        taken = rebuilding.take_over(store, temp_path, lambda lacking: _late_rows(files, lacking))
        if taken.late:
            with store.writing():
                derive_closings(store)
        if taken.moves:
            with store.writing():
                store.move_stats(taken.moves)
    finally:
        unlink_index(temp_path)
    return {
        "added": taken.total - taken.kept,
        "updated": taken.updated,
        "moved": len(taken.moves),
        "removed": taken.gone - taken.late,
        "unchanged": taken.kept - len(taken.moves) - taken.updated,
    }


def _list_share(path, count):
    """How the lists of an index of `count` cards are made: by helpers, or (None) here."""
    helpers = helpers_for(count)
    return (lambda jobs: list_parts(jobs, path, helpers)) if helpers else None


def _load(built, batch, ids):
    """Stores a batch of Prepared in a new index; `ids` are those that files have already."""
    rows = [(p.row, ids.get(p.rel_path)) for p in batch if p.row]
    built.insert([row if id is None else Row(id, *row[1:]) for row, id in rows])
    for p in batch:
        if p.row is None:
            built.set_unreadable(p.rel_path, p.reason, p.stamp)


def _reserve_ids(store, ids, scan):
    """The id after which the new cards of a build are numbered; others who add a card meanwhile
    are given ids beyond them, so that no id ever means two cards."""
    with store.writing():
        last = max([store.last_id(), *ids.values()], default=0)
        new = sum(1 for path in scan.files if path not in ids)
        if new:
            store.start_ids_after(last + new)
    return last


def _late_rows(files, lacking):
    """The rows, with their ids, of cards that others indexed after the build had looked."""
    late = [(path, id) for path, id in lacking if files.is_there(path)]
    prepared = [(files.prepare(path, None).row, id) for path, id in late]
    return [row._replace(id=id) for row, id in prepared if row]


def _keep_ids(store, files, scan):
    """rel_path -> id for every file that was indexed before, under this name or another."""
    ids, rest = {}, []
    for path, id, stamp in store.each_id():
        if is_sane_id(id):
            if scan.files.get(path) == stamp:
                ids[path] = id
            else:
                rest.append(path)
    if rest:
        ids.update(assign_ids(_digests(files, scan, ids), store.hashes(rest), set(rest) - set(scan.files)))
    return ids


def _digests(files, scan, known):
    """rel_path -> content hash of the files beyond those `known`, as far as they can be read."""
    digests = {}
    for path in scan.files:
        if path not in known:
            try:
                data, _ = vault.read_bytes(files.file(path, scan).path, files.settings.max_card_bytes)
            except CardError:
                continue
            digests[path] = content_hash(data)
    return digests


@contextmanager
def _few_collections():
    """Has Python look for cycles less often: a build makes millions of objects that live and die in batches (5 % of
    its CPU)."""
    import gc

    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def clear_stale_builds(path):
    """Removes what builds left that were killed."""
    for full in stale_builds(path):
        vault.discard(full)


def stale_builds(path):
    """Files beside an index that a killed build left (an hour without a write)."""
    folder, name = os.path.split(path)
    pattern = re.escape(name) + r"(\.build-[0-9]+)+(-wal|-shm|-journal)?"
    return vault.stale_entries(folder, pattern, time.time())


def unlink_index(path):
    """Removes an index that nobody has open, as far as it is there and can be."""
    for side in ("", "-wal", "-shm", "-journal"):
        vault.discard(path + side)
