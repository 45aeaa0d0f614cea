"""The card files of one vault: made ready for the index, or read again for an answer. They are only read."""

import os
import time
from contextlib import closing

from mcore import vault
from mcore.cardfile import read_card
from mcore.errors import Cancelled, CardError, warning
from mcore.frontmatter import split
from mcore.prepare import File, helpers_for, prepare, prepare_batches, searched_texts
from mcore.tokenize import columns


class CardFiles:
    """The files of the vault that `settings` name."""

    def __init__(self, settings, progress=None, cancelled=None):
        """`progress(done, total)` hears how far long work is; `cancelled()` true stops it."""
        self.settings = settings
        self.root = settings.vault.path
        self.progress = progress
        self.cancelled = cancelled

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

    # ---- made ready for the index ----------------------------------------------------------------

    def prepare_all(self, paths, scan):
        """Lists of Prepared for files in turn, with progress; close the generator to stop early."""
        done, total = 0, len(paths)
        files = (self.file(path, scan) for path in paths)
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

    def prepare_until(self, paths, scan, deadline):
        """The Prepared of the first of some files: one at least, and as many as begin by `deadline` (of
        time.monotonic)."""
        prepared = []
        for path in paths:
            if prepared and time.monotonic() > deadline:
                break
            prepared.append(self.prepare(path, scan))
        return prepared

    def prepare(self, rel_path, scan):
        """One file, read and ready to be stored; a missing row says why there is none."""
        return prepare(self.file(rel_path, scan), self.settings.max_card_bytes)

    def file(self, rel_path, scan):
        """The File of a rel_path, with what the `scan` (it may be None) saw of it."""
        raw = scan.raw_names.get(rel_path) if scan else None
        stamp = scan.files.get(rel_path) if scan else None
        return File(rel_path, vault.file_path(self.root, raw or rel_path), os.fsencode(raw) if raw else None, stamp)
