"""Takes in what changed: before a search, by an index run, or one card after a capture.

What changed is told by each file's stamp (size, mtime, ctime, inode). A file that changed within
the clock's grain of being read is "racy": its stamp may not tell a later edit, so it is read again
the next time. Windows has no change time, so `index` reads every file there.
"""

import os
import time
from contextlib import closing
from itertools import chain

from mcore.changes import find_changes, look
from mcore.errors import CardError, NotFound, StoreBusy, StoreDamaged, StoreError
from mcore.importer.files import CardFiles
from mcore.importer.ids import assign_ids, moved_paths
from mcore.importer.links import derive_closings
from mcore.importer.report import Freshness, report_of
from mcore.store import BUSY_SECONDS

SEARCH_WAIT_SECONDS = 1.0  # how long a search waits to write what it found changed
REBUILD_ABOVE = 1000  # changed files; more than these and than half the index are built apart
DEAD_SHARE = 0.05  # of the cards; dead rows above it make `index` build anew (they blur BM25's counts)
SMALL_VAULT, DEAD_ROWS = 500, 50  # cards that are built anew in a blink: edits alone clean up there
LOOK_SECONDS = 0.3  # a search's look at the vault has at least so long: 60,000 files
PIECE_SECONDS = 0.25  # of reading go into one transaction of a search's refresh; writing takes about as long


class Indexer:
    """Indexes one vault into one store."""

    def __init__(self, settings, progress=None, cancelled=None, kept=None):
        """`progress(done, total)` hears how far long work is; `cancelled()` true stops it; `kept(look)` may
        answer with the Freshness of a look that was taken a moment ago."""
        self.settings = settings
        self.kept = kept
        self.files = CardFiles(settings, progress, cancelled)

    def index(self, store):
        """Takes in everything that changed; the Report. Readers see the old index until the end."""
        started = time.monotonic()
        changes = find_changes(store, self.settings, thorough=True)
        todo = changes.new + changes.changed
        if len(todo) > REBUILD_ABOVE and len(todo) > changes.unchanged:
            whole = None not in changes.scan.folders.values()
            counts = self._build_apart(store, changes.scan if whole else look(self.settings, thorough=True))
        else:
            with closing(self.files.prepare_all(todo, changes.scan)) as batches:
                prepared = list(chain.from_iterable(batches))
            counts = self._apply(store, prepared, changes.removed, changes.unreadable_gone)
            counts["unchanged"] += changes.unchanged
        if not 0 <= store.dead_rows() <= DEAD_SHARE * store.total():
            self._build_apart(store, look(self.settings, thorough=True))
        elif store.lists_due():
            with store.writing():
                store.make_lists()
        skipped, is_changed = changes.scan.skipped, bool(todo or changes.removed)
        del changes, todo  # .3 GB of a million files
        if is_changed:
            find_changes(store, self.settings, thorough=False)  # so that the next look need not compare card by card
        return report_of(store, self.files, skipped, counts, started)

    def refresh(self, store, seconds=None):
        """Takes in what changed before a search, within a budget of `seconds`; the Freshness.

        Never waits long for another writer and never starts a rebuild: what does not fit stays stale
        and is counted. Without `seconds` (the configured budget) a look `kept` from a moment ago may do.
        """
        if self.kept and seconds is None:
            return self.kept(lambda: self._refresh(store))
        return self._refresh(store, seconds)

    def _refresh(self, store, seconds=None):
        budget = self.settings.sync_seconds if seconds is None else seconds
        deadline = time.monotonic() + max(budget, LOOK_SECONDS)
        changes = find_changes(store, self.settings, thorough=False, deadline=deadline)
        todo = changes.new + changes.changed
        checked = changes.scan.checked
        if not todo and not changes.removed and not changes.unreadable_gone:
            return Freshness(checked, 0, 0, store.count_unreadable() + changes.blocked, changes.late)
        deadline = time.monotonic() + budget
        wait = min(SEARCH_WAIT_SECONDS, max(budget, 0.05))
        changed, moved, at = 0, 0, 0
        while True:
            until = min(deadline, time.monotonic() + PIECE_SECONDS)
            prepared = self.files.prepare_until(todo[at:], changes.scan, until)
            at += len(prepared)
            whole = at == len(todo)
            try:
                gone = changes.unreadable_gone if whole else []
                counts = self._apply(store, prepared, changes.removed, gone, wait, whole)
            except StoreError as error:  # in use, or its disk is full or read only: the answer says what it lacks
                if not isinstance(error, StoreBusy) and (isinstance(error, StoreDamaged) or not store.total()):
                    raise
                at -= self._differing(store, prepared)
                whole = False
                break
            moved += counts["moved"]
            changed += counts["added"] + counts["updated"] + counts["moved"] + counts["removed"]
            if whole or time.monotonic() > deadline:
                break
        if changed and store.total() <= SMALL_VAULT and store.dead_rows() > max(DEAD_ROWS, store.total()):
            self._build_apart(store, look(self.settings, thorough=False))
        stale = len(todo) - at + (0 if whole else max(0, len(changes.removed) - moved))
        return Freshness(checked, changed, stale, store.count_unreadable() + changes.blocked, changes.late)

    @staticmethod
    def _differing(store, prepared):
        """How many prepared files hold something else than the index has of them."""
        indexed = store.hashes([p.rel_path for p in prepared])
        return sum(1 for p in prepared if not p.row or indexed.get(p.rel_path, (0, b""))[1] != p.row.content_hash)

    def index_one(self, store, rel_path):
        """Takes in one card file (after a capture) and returns its id. Never a full pass."""
        if not self.files.is_there(rel_path):
            raise CardError(f"{rel_path} is not searched", "its folder is on the ignore list of config.json")
        prepared = self.files.prepare(rel_path, None)
        if prepared.row is None:
            raise CardError(f"cannot index {rel_path}", prepared.reason)
        self._apply(store, [prepared], [], [])
        found = store.hashes([rel_path])
        if rel_path not in found:
            raise NotFound(f"{rel_path} is not in the vault any more")
        return found[rel_path][0]

    def rebuild(self, db_path, wipe=False):
        """Builds the index at `db_path` from nothing, as `mcore.importer.rebuild` says; the Report."""
        from mcore.importer.rebuild import rebuild

        return rebuild(self.files, db_path, wipe)

    def _build_apart(self, store, scan):
        from mcore.importer.build import build_apart

        return build_apart(store, self.files, scan)

    def _apply(self, store, prepared, removed, unreadable_gone, wait=BUSY_SECONDS, whole=True):
        """Writes prepared files and removals in one transaction; counts by what happened.

        Everything is decided on what the index holds at that moment: another process may have taken
        in the same files since they were read. When more files are to come (not `whole`), a removed
        card is only taken out if its content has come up under another name: else a later file may
        be the one it moved to, and its id would be lost.
        """
        counts = dict.fromkeys(("added", "updated", "moved", "removed", "unchanged"), 0)
        if not (prepared or removed or unreadable_gone):
            return counts
        with store.writing(wait):
            if store.vault() is None:
                store.set_vault(os.path.realpath(self.files.root))
            removed = [path for path in removed if not self.files.is_there(path)]
            readable = [p for p in prepared if p.row]
            failed = [p for p in prepared if not p.row]
            before = store.hashes([p.rel_path for p in prepared] + removed)
            if not whole:
                here = {p.row.content_hash for p in readable}
                removed = [path for path in removed if path in before and before[path][1] in here]
                before = {path: before[path] for path in [*(p.rel_path for p in prepared), *removed] if path in before}
            same = [p for p in readable if before.get(p.rel_path, (0, b""))[1] == p.row.content_hash]
            for p in same:
                store.restamp(p.rel_path, p.stamp, p.row.racy)
            counts["unchanged"] = len(same)
            done = {p.rel_path for p in same}
            fresh = [p for p in readable if p.rel_path not in done]
            old = {path: entry for path, entry in before.items() if path not in done}
            ids = assign_ids({p.rel_path: p.row.content_hash for p in fresh}, old, set(removed))
            store.remove([id for id, _ in old.values()])
            store.insert([p.row._replace(id=ids.get(p.rel_path)) for p in fresh])
            moves = moved_paths(ids, old)
            if moves:
                store.move_stats(moves)
            store.clear_unreadable([*unreadable_gone, *(p.rel_path for p in readable)])
            for p in failed:
                store.set_unreadable(p.rel_path, p.reason, p.stamp)
            if fresh or old or any(p.row.links for p in same):
                derive_closings(store)
            counts["moved"] = len(moves)
            counts["updated"] = len(ids) - len(moves)
            counts["added"] = len(fresh) - len(ids)
            counts["removed"] = len(old) - len(ids)
        return counts
