"""Opens paths, index and searcher once, each on first use; every operation is handed this.

Work modules are imported inside the properties: `memory --help` and the first answer of the MCP
server must not pay for SQLite.
"""

import os

from mcore import paths
from mcore.errors import SetupError


class App:
    """What one caller works with. Belongs to one thread; cheap until something is asked of it."""

    def __init__(self, db=None, vault=None, client="cli"):
        """`db` and `vault` are the flags of the command line; `client` is who captures."""
        self._flags = (db, vault)
        self.client = client
        self.progress = None
        self.cancelled = None
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

    @property
    def indexer(self):
        from mcore.importer import Indexer

        return Indexer(self.settings, self.progress, self.cancelled)

    @property
    def searcher(self):
        from mcore.search import FtsSearcher

        return FtsSearcher(self.store, self.indexer)

    @property
    def store(self):
        """The open index of the vault in force; opened anew when its file was replaced meanwhile."""
        if self._store is not None and _file_identity(self._store.path) != self._opened:
            self.close()
        if self._store is None:
            self._store = self._open_own()
            self._opened = _file_identity(self._store.path)
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
        path = self.settings.db.path
        if self.settings.db.origin != "default":
            return path
        owner = self._owner(path)
        if owner in (None, self._real_vault()):
            return path
        # Its own index counts also while the other vault is away (a drive that is not mounted).
        own = self._own_path()
        return own if os.path.isdir(owner) or os.path.isfile(own) else path

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
        from mcore.store import open_store

        path, default = self.settings.db.path, self.settings.db.origin == "default"
        store = open_store(path)
        if default and store.vault() not in (None, self._real_vault()) and os.path.isfile(self._own_path()):
            store.close()
            return open_store(self._own_path())
        owner = self._claim(store)
        if owner == self._real_vault():
            return store
        store.close()
        if default:
            return open_store(self._own_path())
        raise SetupError(
            f"the index {path} belongs to another vault",
            f"it was made for {owner}",
            "choose another file with --db, or run: memory index --rebuild",
        )

    def _own_path(self):
        """The index of a vault that came second: named after the vault, beside the default one."""
        import hashlib

        name = hashlib.blake2b(os.fsencode(self._real_vault()), digest_size=4).hexdigest()
        return os.path.join(os.path.dirname(self.settings.db.path), f"memory-{name}.db")

    def _claim(self, store):
        """The vault an index belongs to; one that belongs to none, or to one that is gone, is taken."""
        owner = store.vault()
        if owner == self._real_vault() or owner is not None and os.path.isdir(owner):
            return owner
        with store.writing():
            if store.vault() == owner:
                store.set_vault(self._real_vault())
            return store.vault()

    @staticmethod
    def _owner(path):
        """The vault that an index was made for, or None when it has none or cannot be read."""
        if not os.path.isfile(path) or not os.path.getsize(path):
            return None
        from contextlib import closing

        from mcore.errors import StoreError
        from mcore.store import open_store

        try:
            with closing(open_store(path)) as store:
                return store.vault()
        except StoreError:
            return None

    def _real_vault(self):
        return os.path.realpath(self.settings.vault.path)


def _file_identity(path):
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino
