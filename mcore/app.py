"""Opens paths, index and searcher once, each on first use; every operation is handed this.

Work modules are imported inside the properties: `memory --help` and the first answer of the MCP
server must not pay for SQLite.
"""

import os

from mcore import paths
from mcore.errors import SetupError

MOVED_SAMPLE = 200  # cards looked for when an index's vault is gone
LOOKS = 3  # at an index that others write to


class App:
    """What one caller works with. Belongs to one thread; cheap until something is asked of it."""

    def __init__(self, db=None, vault=None, client="cli", home=None, wait=None):
        """`db`, `vault` and `home` are the flags of the command line; `client` is who captures; `wait`
        is how many seconds to wait for a locked index (None: as long as is reasonable)."""
        self._flags = (db, vault, home)
        self._wait = wait
        self.client = client
        self.progress = None
        self.cancelled = None
        self.kept = None  # of a server: what a look found a moment ago (see Indexer)
        self._settings = self._store = self._opened = None

    @property
    def settings(self):
        """The Settings in force; reads the environment and config.json once."""
        if self._settings is None:
            try:
                self._settings = paths.resolve(*self._flags)
            except FileNotFoundError:  # nothing but the current folder is asked for
                raise SetupError(
                    "a relative path cannot be used here",
                    "the current folder was deleted",
                    "go to a folder that exists",
                ) from None
        return self._settings

    def leave_config_aside(self):
        """Works on as if there were no config.json: for looking around when it is broken."""
        self._settings = paths.resolve(*self._flags, config={})

    @property
    def indexer(self):
        from mcore.importer import Indexer

        return Indexer(self.settings, self.progress, self.cancelled, self.kept)

    @property
    def searcher(self):
        from mcore.search import FtsSearcher

        return FtsSearcher(self.store, self.indexer)

    @property
    def store(self):
        """The open index of the vault in force; opened anew when its file was replaced meanwhile."""
        if self._store is not None and _file_identity(self._store) != self._opened:
            self.close()
        if self._store is None:
            self._store = self._open_own()
            self._opened = _file_identity(self._store)
        return self._store

    def freshness(self, sync=True):
        """Brings the index up to date within the budget, and says how true it is."""
        from mcore.importer import Freshness

        if sync:
            return self.indexer.refresh(self.store)
        return Freshness(0, 0, 0, self.store.count_unreadable())

    @property
    def db_path(self):
        """The index in force. When the default one belongs to another vault, this vault has its own."""
        return self.index_path(self._wait)

    def index_path(self, wait):
        """As `db_path`, waiting at most `wait` seconds for an index that is locked (None: as long as is reasonable)."""
        path = self.settings.db.path
        if self.settings.db.origin != "default" or self._other_owner(path, wait) is None:
            return path
        return self.own_path()

    def rebuild_path(self):
        """Where a rebuild goes: an index named by the caller may be taken over from another vault."""
        self.close()
        return self.db_path

    def close(self):
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open_own(self):
        """Opens the index after making sure that it belongs to this vault."""
        from mcore.errors import StoreOutdated

        path = self.settings.db.path
        try:
            store = self._opened_at(path)
            owner = self._claim(store)
            if owner == self.real_vault():
                return store
            store.close()
        except StoreOutdated:
            owner = self._other_owner(path, self._wait)
            if owner is None:
                return self._renewed_at(path)
        if self.settings.db.origin == "default":
            return self._renewed_at(self.own_path())
        raise SetupError(
            f"the index {path} belongs to another vault",
            f"it was made for {owner}",
            "choose another file with --db, or run: memory index --rebuild",
        )

    def _renewed_at(self, path):
        """The index at `path`; one that an older program made is built anew first (by who has the time)."""
        from mcore.errors import StoreOutdated

        try:
            return self._opened_at(path)
        except StoreOutdated:
            if self._wait is not None:
                raise
        try:
            self.indexer.rebuild(path)
        except SetupError as error:
            why = ", ".join(filter(None, [error.message, error.why]))
            raise SetupError(
                f"cannot use the index {path}",
                f"it was made in an older form and cannot be built anew: {why}",
                error.hint,
            ) from error
        return self._opened_at(path)

    def _opened_at(self, path):
        from mcore.store import BUSY_SECONDS, open_store

        return open_store(path, BUSY_SECONDS if self._wait is None else self._wait)

    def own_path(self):
        """The index of a vault that came second: named after the vault, beside the default one."""
        import hashlib

        name = hashlib.blake2b(os.fsencode(self.real_vault()), digest_size=4).hexdigest()
        return os.path.join(os.path.dirname(self.settings.db.path), f"memory-{name}.db")

    def _claim(self, store):
        """The vault an index belongs to; one that belongs to none, or has moved here, is taken."""
        owner = store.vault()
        if owner == self.real_vault() or not self._is_free(store, owner):
            return owner
        with store.writing():
            if store.vault() == owner:
                store.set_vault(self.real_vault())
            return store.vault()

    def _is_free(self, store, owner):
        """Whether an index may become this vault's: it has none, or its vault is gone and most of its
        cards are here, so that the folder was moved. A vault that is only away (a drive that is not
        mounted) keeps its index: reading counts have no second source."""
        if owner is None:
            return True
        if os.path.isdir(owner) or os.path.isfile(self.own_path()):
            return False
        from itertools import islice

        from mcore.vault import file_path, stamp_of

        some = list(islice(store.each_stamp(), MOVED_SAMPLE))
        found = [(stamp_of(file_path(self.real_vault(), path)), stamp) for path, stamp, _ in some]
        same = sum(new is not None and new[:2] == old[:2] for new, old in found)  # size and time of change
        return same * 2 > len(some)

    def _other_owner(self, path, wait):
        """The vault that keeps this one from using the index at `path`; None for none, or when it cannot be told.

        The age of the index does not matter: what an older program made has reading counts to lose too.
        """
        try:
            if not os.path.isfile(path) or not os.path.getsize(path):
                return None
        except OSError:
            return None  # opening it will tell what is wrong
        from mcore.errors import StoreBusy, StoreError
        from mcore.store import BUSY_SECONDS, looking

        wait = (BUSY_SECONDS if wait is None else wait) / LOOKS
        for _ in range(LOOKS):
            try:
                with looking(path, wait, any_age=True) as store:
                    owner = store and store.vault()
                    ours = store is None or owner == self.real_vault() or self._is_free(store, owner)
                    return None if ours else owner
            except StoreBusy:  # written to while it was looked at
                continue
            except StoreError:
                break
        return None

    def real_vault(self):
        return os.path.realpath(self.settings.vault.path)


def _file_identity(store):
    """What tells the file that a store has open from another; a frozen store sees no later state of it either."""
    try:
        info = os.stat(store.path)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_mtime_ns if store.frozen else None
