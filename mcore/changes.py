"""What differs between the files of a vault and its index, told by stamps alone. Reads no content.

A folder whose cards were all found as the index has them is settled: the digest of its listing is kept.
The next look lists and stats every file again, but compares card by card only where the digest is another.
"""

import os
from collections import Counter

from mcore import vault
from mcore.errors import SetupError, StoreError
from mcore.record import namedtuple

CHANGE_TIME_IS_TRUE = os.name == "posix"
COMPARED_APART = 20  # folders; of more than these every stamp is read
DELETED_BY_HAND = 10  # cards
SETTLE_WAIT_SECONDS = 0.05

Changes = namedtuple("Changes", "new changed removed unreadable_gone unchanged blocked late scan")
Changes.__doc__ = """rel_paths of `new`, `changed` and `removed` cards, and of unreadable files that are gone.

`unchanged` counts cards, `blocked` those below folders that cannot be looked into (an unknown folder counts as
one), `late` those below folders there was no time for. `scan` has the files of folders that are not settled.
"""


AWAY_CURE = (
    "bring the folder back (a drive not mounted?), or name its new place with --vault; was it emptied on purpose: "
    "memory index --rebuild"
)


def find_changes(store, settings, thorough, deadline=None):
    """The Changes of a vault against its index; `thorough` looks again at what cannot be read and names what is
    left out. Raises SetupError when the vault is away."""
    version, folders, unreadable = store.version(), store.folders(), store.known_unreadable()
    every = thorough and not CHANGE_TIME_IS_TRUE
    known = {} if every else dict(folders)
    if thorough:  # what stood in the way of a file (a limit, a right) leaves no mark on it
        for path in unreadable:
            known.pop(folder_of(path), None)
    scan = look(settings, thorough, known, deadline)
    found = _Comparison(scan, every)
    found.take_rows(_rows(store, folders, scan))
    found.take_files({} if thorough else unreadable)
    found.take_unreadable(unreadable)
    if found.removed and not scan.checked and is_away(settings.vault.path, len(found.removed)):
        raise SetupError(
            f"the vault {settings.vault.path} is not there, or there is nothing in it",
            f"its index knows {len(found.removed)} cards",
            AWAY_CURE,
        )
    _settle(store, found.settled(), found.gone(folders), version)
    late = sum(map(store.count_below, scan.late))
    return Changes(
        found.new,
        found.changed,
        found.removed,
        found.unreadable_gone,
        store.total() - len(found.changed) - len(found.removed) - found.blocked - late,
        max(found.blocked, len(scan.unread)),
        late,
        scan,
    )


def is_away(root, cards):
    """Whether it is likelier that a vault is not there (a drive that is not mounted leaves an empty folder) than
    that somebody deleted every card and whatever else was in it."""
    return vault.is_bare(root) and (cards > DELETED_BY_HAND or not vault.is_scannable(root))


def look(settings, thorough, known=None, deadline=None):
    """The Scan of the vault; of one that is not there, an empty one."""
    if not vault.is_scannable(settings.vault.path):
        return vault.Scan({}, [], {}, [], {}, 0, ())
    return vault.scan(settings.vault.path, settings.ignore, thorough, known, deadline)


def folder_of(rel_path):
    """The folder of a card: "" or with "/" at its end."""
    return rel_path[: rel_path.rfind("/") + 1]


def _rows(store, folders, scan):
    """(rel_path, stamp, racy) of the indexed cards that may differ: those of folders that are not settled and
    that there was time for."""
    clean = {folder for folder, digest in scan.folders.items() if digest is None}
    dirty = (folders.keys() | scan.folders.keys()) - clean
    if clean and len(dirty) <= COMPARED_APART:
        for folder in dirty:
            if not folder.startswith(scan.late):
                yield from store.each_stamp(folder)
        return
    for row in store.each_stamp():
        if folder_of(row[0]) not in clean and not row[0].startswith(scan.late):
            yield row


class _Comparison:
    """Indexed cards and files of the folders that are not settled, held against each other."""

    def __init__(self, scan, every):
        self.scan, self.every = scan, every
        self.new, self.changed, self.removed, self.unreadable_gone, self.blocked = [], [], [], [], 0
        self._unseen = dict(scan.files)
        self._same = Counter()  # folder -> files that are as the index has them
        self._open = set()  # folders where something is to be done
        self._unread = set(scan.unread)
        self._closed = tuple(path for path in scan.unread if path.endswith("/") or not path)

    def take_rows(self, rows):
        files, unseen, same = self.scan.files, self._unseen, self._same
        for path, stamp, racy in rows:
            folder = folder_of(path)
            if unseen.pop(path, None) is None:
                if self._is_hidden(path):
                    self.blocked += 1
                else:
                    self.removed.append(path)
            elif racy or self.every or files[path] != stamp:
                self.changed.append(path)
            else:
                same[folder] += 1
                continue
            self._open.add(folder)

    def take_files(self, unreadable):
        """The files without a card; those that are `unreadable` with the stamp they had are left alone."""
        for path, stamp in self._unseen.items():
            if path in unreadable and unreadable[path][1] == stamp:
                self._same[folder_of(path)] += 1
            else:
                self.new.append(path)
                self._open.add(folder_of(path))
        self.new.sort(key=lambda path: -self.scan.files[path].mtime_ns)

    def take_unreadable(self, unreadable):
        for path in unreadable:
            folder = folder_of(path)
            settled = self.scan.folders.get(folder, 0) is None or path.startswith(self.scan.late)
            if not (path in self.scan.files or settled or self._is_hidden(path)):
                self.unreadable_gone.append(path)
                self._open.add(folder)

    def settled(self):
        """(folder, digest, files) of the folders in which nothing is to be done and that were not known so."""
        return [
            (folder, digest, self._same[folder])
            for folder, digest in self.scan.folders.items()
            if digest and folder not in self._open
        ]

    def gone(self, folders):
        """Those of `folders` that are in the vault no more and had no card left."""
        known = self.scan.folders
        return [
            folder
            for folder in folders
            if not (folder in known or folder in self._open or self._is_hidden(folder))
            and not folder.startswith(self.scan.late)
        ]

    def _is_hidden(self, path):
        """Whether nothing is known of a file: it, or a folder above it, could not be looked at."""
        return path.startswith(self._closed) or path in self._unread


def _settle(store, listings, gone, version):
    if listings or gone:
        try:
            store.settle(listings, gone, version, SETTLE_WAIT_SECONDS)
        except StoreError:
            pass  # in use, full or read only: the next look compares again
