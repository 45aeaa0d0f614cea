"""The vault -> the index: take in what changed, or build it anew. Source files are only read.

What changed is told by each file's stamp (size, mtime, ctime, inode). A file that changed within
the clock's grain of being read is "racy": its stamp may not tell a later edit, so it is read again
the next time. Windows has no change time, so `index` reads every file there.
"""

import json
import os
import re
import time
from contextlib import closing, contextmanager
from itertools import chain

from mcore import validity, vault
from mcore.card import content_hash
from mcore.cardfile import read_card
from mcore.changes import find_changes, look
from mcore.errors import (
    Cancelled,
    CardError,
    NotFound,
    SetupError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreOutdated,
    warning,
)
from mcore.frontmatter import split
from mcore.prepare import File, helpers_for, list_parts, prepare, prepare_batches, searched_texts
from mcore.record import namedtuple
from mcore.render import counted
from mcore.store import BUSY_SECONDS, Row, is_sane_id, open_store, renew, salvage
from mcore.tokenize import columns

SEARCH_WAIT_SECONDS = 1.0  # how long a search waits to write what it found changed
REBUILD_ABOVE = 1000  # changed files; more than these and than half the index are built apart
DEAD_SHARE = 0.05  # of the cards; dead rows above it make `index` build anew (they blur BM25's counts)
SMALL_VAULT, DEAD_ROWS = 500, 50  # cards that are built anew in a blink: edits alone clean up there
LOOK_SECONDS = 0.3  # a search's look at the vault has at least so long: 60,000 files
PIECE_SECONDS = 0.25  # of reading go into one transaction of a search's refresh; writing takes about as long

Report = namedtuple("Report", "added updated moved removed unchanged total skipped seconds warnings")
Report.__doc__ = "What an index run did: counts of cards, `skipped` files with reasons, wall `seconds`."

Freshness = namedtuple("Freshness", "checked changed stale unreadable unchecked", defaults=(0,))
Freshness.__doc__ = """How true an answer is to the files at the moment it was asked.

`checked` files were looked at (0: no look was taken), `changed` of them were taken in now, `stale`
are known to differ from the index and could not be taken in, `unreadable` card files are in no answer,
`unchecked` cards lie in folders that there was no time to look into.
"""


def stale_warning(files):
    """Says how many changed files an answer lacks."""
    are = "is" if files == 1 else "are"
    return warning("stale", f"{counted(files, 'changed file')} {are} not in this answer yet", "run: memory index")


class Indexer:
    """Indexes one vault into one store."""

    def __init__(self, settings, progress=None, cancelled=None, kept=None):
        """`progress(done, total)` hears how far long work is; `cancelled()` true stops it; `kept(look)` may
        answer with the Freshness of a look that was taken a moment ago."""
        self.settings = settings
        self.root = settings.vault.path
        self.progress = progress
        self.cancelled = cancelled
        self.kept = kept

    # ---- incremental -----------------------------------------------------------------------------

    def index(self, store):
        """Takes in everything that changed; the Report. Readers see the old index until the end."""
        started = time.monotonic()
        changes = find_changes(store, self.settings, thorough=True)
        todo = changes.new + changes.changed
        if len(todo) > REBUILD_ABOVE and len(todo) > changes.unchanged:
            whole = None not in changes.scan.folders.values()
            counts = self._build_apart(store, changes.scan if whole else look(self.settings, thorough=True))
        else:
            with closing(self._prepare_all(todo, changes.scan)) as batches:
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
        return self._report(store, skipped, counts, started)

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
            prepared = self._prepare_until(todo[at:], changes.scan, min(deadline, time.monotonic() + PIECE_SECONDS))
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
        if not vault.is_walked(self.root, rel_path, self.settings.ignore):
            raise CardError(f"{rel_path} is not searched", "its folder is on the ignore list of config.json")
        prepared = self._prepare(rel_path, None)
        if prepared.row is None:
            raise CardError(f"cannot index {rel_path}", prepared.reason)
        self._apply(store, [prepared], [], [])
        found = store.hashes([rel_path])
        if rel_path not in found:
            raise NotFound(f"{rel_path} is not in the vault any more")
        return found[rel_path][0]

    # ---- rebuild ---------------------------------------------------------------------------------

    def rebuild(self, db_path, wipe=False):
        """Builds the index from nothing, keeping ids and reading counts; the Report.

        Works on a damaged, older or newer index too: what cannot be opened is set aside. With `wipe`
        the space of the old tables is overwritten.
        """
        started = time.monotonic()
        with self._one_at_a_time(db_path):
            scan = look(self.settings, thorough=True)
            try:
                store = self._usable_store(db_path)
            except StoreBusy:
                raise
            except StoreError:
                return self._replace(db_path, scan, started)
            try:
                if wipe:
                    store.wipe_freed_space()
                return self._rebuild_into(store, scan, started)
            except (StoreDamaged, AttributeError, LookupError, TypeError, ValueError):
                # It opens, and breaks when it is read or dropped, or what it holds makes no sense.
                return self._replace(db_path, scan, started)

    def _rebuild_into(self, store, scan, started):
        from mcore.store.checking import check_pages

        with closing(store):
            check_pages(store)
            counts = self._build_apart(store, scan)
            return self._report(store, scan.skipped, counts, started)

    def _usable_store(self, db_path):
        """The store to rebuild into; an outdated one is emptied but for ids and reading counts."""
        try:
            return open_store(db_path)
        except StoreOutdated:
            cards, _ = salvage(db_path)
            renew(db_path)
            store = open_store(db_path)
            self._restore_salvaged(store, cards, [])
            return store

    def _replace(self, db_path, scan, started):
        """Builds a new index in the place of a damaged file, with what that still gives, and sets it aside.

        The damaged file keeps its name until the new one is whole: a kill on the way loses nothing.
        """
        cards, stats = salvage(db_path)
        beside = f"{db_path}.build-{os.getpid()}"
        _unlink_index(beside)
        try:
            store = open_store(beside)
            self._restore_salvaged(store, cards, stats)
            report = self._rebuild_into(store, scan, started)
            _set_aside(db_path)
            os.replace(beside, db_path)
        except OSError as error:
            raise _no_room_beside(db_path, error) from None
        finally:
            _unlink_index(beside)
        return report

    @staticmethod
    def _restore_salvaged(store, cards, stats):
        """Puts back reading counts, and ids as empty cards that the rebuild then fills."""
        from sqlite3 import IntegrityError

        with store.writing():
            for row in stats:
                store.connection.execute("INSERT OR REPLACE INTO card_stats VALUES (?, ?, ?)", row)
            for rel_path, id, digest in cards:
                empty = Row(
                    id,
                    rel_path,
                    None,
                    "",
                    "",
                    "",
                    "[]",
                    None,
                    None,
                    None,
                    None,
                    0,
                    digest,
                    0,
                    0,
                    0,
                    0,
                    0,
                    "",
                    "",
                )
                try:
                    store.insert([empty])
                except IntegrityError:
                    continue

    @contextmanager
    def _one_at_a_time(self, db_path):
        """Lets one rebuild of an index run at a time; others wait."""
        folder = os.path.dirname(db_path)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            handle = os.name != "nt" and open(db_path + ".lock", "ab", opener=lambda p, f: os.open(p, f, 0o600))
        except OSError as error:
            raise _no_room_beside(db_path, error) from None
        if not handle:
            yield
            return
        import fcntl

        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError:
                pass  # a network file system without locks: two rebuilds at once cost time, and nothing else
            yield

    def _build_apart(self, store, scan):
        """Builds a whole index in a file of its own, then puts it in the store's place at once."""
        from mcore.store import rebuilding

        ids = self._keep_ids(store, scan)
        temp_path = f"{store.path}.build-{os.getpid()}"
        clear_stale_builds(store.path)
        _unlink_index(temp_path)
        try:
            with closing(open_store(temp_path)) as built, _few_collections():
                rebuilding.begin_loading(built)
                with built.writing():
                    built.start_ids_after(self._reserve_ids(store, ids, scan))
                    built.set_vault(os.path.realpath(self.root))
                    with closing(self._prepare_all(scan.files, scan)) as batches:
                        for batch in batches:
                            self._load(built, batch, ids)
                    _derive_closings(built)
                rebuilding.end_loading(built, self._list_share(temp_path, len(scan.files)))
            taken = rebuilding.take_over(store, temp_path, self._late_rows)
            if taken.late:
                with store.writing():
                    _derive_closings(store)
            if taken.moves:
                with store.writing():
                    store.move_stats(taken.moves)
        finally:
            _unlink_index(temp_path)
        return {
            "added": taken.total - taken.kept,
            "updated": taken.updated,
            "moved": len(taken.moves),
            "removed": taken.gone - taken.late,
            "unchanged": taken.kept - len(taken.moves) - taken.updated,
        }

    @staticmethod
    def _list_share(path, count):
        """How the lists of an index of `count` cards are made: by helpers, or (None) here."""
        helpers = helpers_for(count)
        return (lambda jobs: list_parts(jobs, path, helpers)) if helpers else None

    @staticmethod
    def _load(built, batch, ids):
        """Stores a batch of Prepared in a new index; `ids` are those that files have already."""
        rows = [(p.row, ids.get(p.rel_path)) for p in batch if p.row]
        built.insert([row if id is None else Row(id, *row[1:]) for row, id in rows])
        for p in batch:
            if p.row is None:
                built.set_unreadable(p.rel_path, p.reason, p.stamp)

    @staticmethod
    def _reserve_ids(store, ids, scan):
        """The id after which the new cards of a build are numbered; others who add a card meanwhile
        are given ids beyond them, so that no id ever means two cards."""
        with store.writing():
            last = max([store.last_id(), *ids.values()], default=0)
            new = sum(1 for path in scan.files if path not in ids)
            if new:
                store.start_ids_after(last + new)
        return last

    def _late_rows(self, lacking):
        """The rows, with their ids, of cards that others indexed after the build had looked."""
        late = [(path, id) for path, id in lacking if vault.is_walked(self.root, path, self.settings.ignore)]
        prepared = [(self._prepare(path, None).row, id) for path, id in late]
        return [row._replace(id=id) for row, id in prepared if row]

    def _keep_ids(self, store, scan):
        """rel_path -> id for every file that was indexed before, under this name or another."""
        ids, rest = {}, []
        for path, id, stamp in store.each_id():
            if is_sane_id(id):
                if scan.files.get(path) == stamp:
                    ids[path] = id
                else:
                    rest.append(path)
        if rest:
            ids.update(_assign_ids(self._digests(scan, ids), store.hashes(rest), set(rest) - set(scan.files)))
        return ids

    def _digests(self, scan, known):
        """rel_path -> content hash of the files beyond those `known`, as far as they can be read."""
        digests = {}
        for path in scan.files:
            if path not in known:
                try:
                    data, _ = vault.read_bytes(self._file(path, scan).path, self.settings.max_card_bytes)
                except CardError:
                    continue
                digests[path] = content_hash(data)
        return digests

    def vault_warnings(self):
        """Says that there is no vault, which is not the same as an empty one."""
        if vault.is_scannable(self.root):
            return []
        hint = "capture a card, or choose a folder with --vault"
        return [warning("no-vault", f"the vault {self.root} does not exist", hint)]

    # ---- the files behind hits -------------------------------------------------------------------

    def is_there(self, name):
        """Whether a card's file (its name below the vault) still exists, inside the vault."""
        return vault.is_walked(self.root, name, self.settings.ignore)

    def body(self, name):
        """The body of a card as its file has it now; "" when it cannot be read."""
        text = self._text(name)
        return split(text).body if text else ""

    def searchable(self, rel_path, name):
        """What is searched of a card, cut as in the index, as its file has it now; "" when it cannot be read."""
        text = self._text(name)
        return "\n".join(columns(*searched_texts(read_card(rel_path, text)))) if text else ""

    def _text(self, name):
        data = self.bytes_of(name)
        try:
            return "" if data is None else vault.decode(data)[0]
        except CardError:
            return ""

    def bytes_of(self, name):
        """The bytes of a card's file (its name below the vault); None when it cannot be read."""
        try:
            return vault.read_bytes(vault.file_path(self.root, name), self.settings.max_card_bytes)[0]
        except CardError:
            return None

    # ---- the parts -------------------------------------------------------------------------------

    def _prepare_all(self, paths, scan):
        """Lists of Prepared for files in turn, with progress; close the generator to stop early."""
        done, total = 0, len(paths)
        files = (self._file(path, scan) for path in paths)
        with closing(prepare_batches(files, self.settings.max_card_bytes, helpers_for(total))) as batches:
            for batch in batches:
                for _ in batch:
                    if self.cancelled and self.cancelled():
                        raise Cancelled("the index run was cancelled", "", "the old index is whole")
                    if self.progress:
                        self.progress(done, total)
                    done += 1
                yield batch
        if self.progress and total:
            self.progress(total, total)

    def _prepare_until(self, paths, scan, deadline):
        prepared = []
        for path in paths:
            if prepared and time.monotonic() > deadline:
                break
            prepared.append(self._prepare(path, scan))
        return prepared

    def _prepare(self, rel_path, scan):
        """One file, read and ready to be stored; a missing row says why there is none."""
        return prepare(self._file(rel_path, scan), self.settings.max_card_bytes)

    def _file(self, rel_path, scan):
        raw = scan.raw_names.get(rel_path) if scan else None
        stamp = scan.files.get(rel_path) if scan else None
        return File(rel_path, vault.file_path(self.root, raw or rel_path), os.fsencode(raw) if raw else None, stamp)

    def _apply(self, store, prepared, removed, unreadable_gone, wait=BUSY_SECONDS, whole=True):
        """Writes prepared files and removals in one transaction; counts by what happened.

        Everything is decided on what the index holds at that moment: another process may have taken
        in the same files since they were read. When more files are to come (not `whole`), a removed
        card is only taken out if its content has come up under another name: else a later file may
        be the one it moved to, and its id would be lost.
        """
        prepared = list(prepared)
        counts = dict.fromkeys(("added", "updated", "moved", "removed", "unchanged"), 0)
        if not (prepared or removed or unreadable_gone):
            return counts
        with store.writing(wait):
            if store.vault() is None:
                store.set_vault(os.path.realpath(self.root))
            removed = [path for path in removed if not vault.is_walked(self.root, path, self.settings.ignore)]
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
            ids = _assign_ids({p.rel_path: p.row.content_hash for p in fresh}, old, set(removed))
            store.remove([id for id, _ in old.values()])
            old_paths = {id: path for path, (id, _) in old.items()}
            store.insert([p.row._replace(id=ids.get(p.rel_path)) for p in fresh])
            moves = _moves(old_paths, ids)
            if moves:
                store.move_stats(moves)
            store.clear_unreadable([*unreadable_gone, *(p.rel_path for p in readable)])
            for p in failed:
                store.set_unreadable(p.rel_path, p.reason, p.stamp)
            if fresh or old or any(p.row.links for p in same):
                _derive_closings(store)
            counts["moved"] = len(moves)
            counts["updated"] = sum(1 for p in fresh if p.rel_path in ids and p.rel_path not in moves.values())
            counts["added"] = len(fresh) - counts["moved"] - counts["updated"]
            counts["removed"] = len(old) - counts["moved"] - counts["updated"]
        return counts

    def _report(self, store, skipped, counts, started):
        unreadable = store.known_unreadable()
        skipped = sorted([*skipped, *(vault.Skipped(path, reason) for path, (reason, _) in unreadable.items())])
        warnings = [
            warning("not-utf8", f"{path}: {remark}", "save the file as UTF-8") for path, remark in store.remarks()
        ]
        warnings += [
            warning("field", f"{path}: {note}", "mend the field")
            for path, notes in store.life_notes()
            for note in notes.split("\n")
        ]
        warnings += [warning("link", f"{path}: {text}", "mend the link") for path, text in link_faults(store)]
        warnings += self.vault_warnings()
        return Report(
            **counts,
            total=store.total(),
            skipped=skipped,
            seconds=round(time.monotonic() - started, 3),
            warnings=warnings,
        )


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


def _derive_closings(store):
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


def _assign_ids(digests, old, removed):
    """rel_path -> the id it keeps, for files with new content or a new name.

    `digests` maps the files' paths to their content hashes, `old` the replaced or removed index rows'
    paths to (id, content_hash), `removed` the old paths that no file has any more. A file with its old
    content keeps its id; any other takes that of a removed card with its content (a move); if its path
    was indexed, that of any old card with its content (a swap), else its own.
    """
    ids = {path: old[path][0] for path, digest in digests.items() if path in old and old[path][1] == digest}
    kept = set(ids)
    moved, replaced = {}, {}  # content -> the ids to give away, last path first; equal files keep their order
    for path in sorted(old, reverse=True):
        if path not in kept:
            id, digest = old[path]
            (moved if path in removed else replaced).setdefault(digest, []).append(id)
    for path in sorted(digests):
        pool = moved.get(digests[path]) or (path in old and replaced.get(digests[path]))
        if pool and path not in kept:
            ids[path] = pool.pop()
    taken = set(ids.values())
    for path in digests:
        if path not in ids and path in old and old[path][0] not in taken:
            ids[path] = old[path][0]
    return ids


def _moves(old_paths, ids):
    """Old rel_path -> new, for the ids whose path changed."""
    return {old_paths[id]: path for path, id in ids.items() if id in old_paths and old_paths[id] != path}


def clear_stale_builds(path):
    """Removes what builds left that were killed."""
    for full in stale_builds(path):
        try:
            os.unlink(full)
        except OSError:
            continue


def stale_builds(path):
    """Files beside an index that a killed build left (an hour without a write)."""
    folder, name = os.path.split(path)
    stale = []
    for entry in vault.names_in(folder):
        full = os.path.join(folder, entry)
        if re.fullmatch(re.escape(name) + r"(\.build-[0-9]+)+(-wal|-shm|-journal)?", entry):
            try:
                if time.time() - os.stat(full).st_mtime > 3600:
                    stale.append(full)
            except OSError:
                continue
    return stale


def _no_room_beside(path, error):
    """The SetupError for an OSError that came when files were made or moved beside an index."""
    return SetupError(
        f"cannot write beside the index {path}",
        error.strerror or str(error),
        "check the folder's permissions, or choose another place with --db or MEMORY_AGENT_HOME",
    )


def _set_aside(path):
    """Moves a damaged index to a free name beside it; the file itself keeps its name too until another takes it."""
    aside, number = f"{path}.damaged", 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{path}.damaged-{number}"
    for side in ("-wal", "-shm", "-journal", ""):
        try:
            if side or os.name == "nt":
                os.rename(path + side, aside + side)
            else:
                os.link(path, aside)
        except FileNotFoundError:
            continue
        except OSError:  # a file system without hard links
            os.rename(path + side, aside + side)


def _unlink_index(path):
    for side in ("", "-wal", "-shm", "-journal"):
        try:
            os.unlink(path + side)
        except OSError:
            continue
