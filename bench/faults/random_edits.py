"""Random edits of a vault: after each sequence the index taken in step by step equals one built anew.

    python bench/faults/random_edits.py [--sequences 1000] [--edits 50] [--seed 1]

Between the edits the index is brought up to date now and then, as a search or as `memory index` does it.
A sequence survives when its index knows the same cards as a fresh one (path, title, kind, tags, content),
finds every word ever planted in exactly the files that hold it now, and kept the id of every card whose
text stayed one of a kind at its name or under a new one. Prints one line for each loss and one in all;
status 1 when one is lost.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from mcore.app import App  # noqa: E402

FOLDERS = ("", "02-Projects", "08-Mistakes", "deep/er", ".claude/memory", "随笔")
NAMES = ("a.md", "b.md", "c.mdx", "README.md", "n\nl.md", "会议.md", "cafe\u0301.md", "UP.MD")
BINARY = b"\xff\xfe\xfd\x00binary\x00"


class Vault:
    """A folder of notes and a source of random edits to it; remembers every word it planted."""

    def __init__(self, root, rng):
        self.root, self.rng = root, rng
        self.words, self.moved = [], 0
        os.makedirs(root)

    # ---- the edits -------------------------------------------------------------------------------

    def write(self):
        """A new note, or other text in an old one."""
        self._put(self._any_path(), self._text())

    def same_size(self):
        """Other text of the same size, with the old times put back: what a clock cannot tell."""
        path = self._note()
        if path:
            info, old = os.stat(path), open_bytes(path)
            if old != BINARY:
                self._put(path, self._text(len(old)))
                os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def restore_older(self):
        """Other text that comes with an old date, as from a backup."""
        path = self._note()
        if path:
            self._put(path, self._text())
            os.utime(path, (1_000_000_000, self.rng.choice((-86400, 1_000_000_000, 7_258_118_400))))

    def move(self):
        path = self._note()
        if path:
            self._make_way(target := self._any_path())
            if os.path.exists(path):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(path, target)

    def move_and_edit(self):
        path = self._note()
        if path:
            self._put(path, self._text())
            self.move()

    def move_folder(self):
        folder = os.path.join(self.root, self.rng.choice(FOLDERS[1:]).split("/")[0])
        if os.path.isdir(folder):
            self.moved += 1
            os.rename(folder, os.path.join(self.root, f"moved{self.moved}"))

    def swap(self):
        one, other = self._note(), self._note()
        if one and one != other:
            spare = os.path.join(self.root, "spare")
            os.rename(one, spare)
            os.rename(other, one)
            os.rename(spare, other)

    def copy(self):
        path = self._note()
        if path:
            data = open_bytes(path)
            self._put(self._any_path(), data)

    def delete(self):
        path = self._note()
        if path:
            os.unlink(path)

    def touch(self):
        path = self._note()
        if path:
            os.utime(path)

    def become_folder(self):
        """A folder that has a note's name, with a note inside."""
        path = self._note()
        if path:
            os.unlink(path)
            self._put(os.path.join(path, "inner.md"), self._text())

    def become_link(self):
        """A link out of the vault in a note's place; what it leads to must never be found."""
        path = self._note()
        if path:
            outside = f"{self.root}-outside"
            self._put(outside, b"outsideword")
            os.unlink(path)
            os.symlink(outside, path)

    def become_binary(self):
        path = self._note()
        if path:
            self._put(path, BINARY)

    EDITS = (
        write,
        write,
        write,
        same_size,
        same_size,
        restore_older,
        move,
        move,
        move_and_edit,
        move_folder,
        swap,
        swap,
        copy,
        delete,
        touch,
        become_folder,
        become_link,
        become_binary,
    )

    def edit(self):
        """One random edit; its name."""
        chosen = self.rng.choice(self.EDITS)
        chosen(self)
        return chosen.__name__

    # ---- the truth -------------------------------------------------------------------------------

    def texts(self):
        """rel_path -> text of every note that is there and readable."""
        found = {}
        for path in self._notes():
            data = open_bytes(path)
            if data != BINARY:
                found[os.path.relpath(path, self.root).replace(os.sep, "/")] = data.decode()
        return found

    # ---- the parts -------------------------------------------------------------------------------

    def _notes(self):
        found = []
        for folder, _, names in os.walk(self.root):
            paths = [os.path.join(folder, name) for name in names]
            found += [path for path in paths if not os.path.islink(path)]
        return sorted(found)

    def _note(self):
        notes = self._notes()
        return self.rng.choice(notes) if notes else None

    def _any_path(self):
        return os.path.join(self.root, *self.rng.choice(FOLDERS).split("/"), self.rng.choice(NAMES))

    def _text(self, size=0):
        """A note with a word of its own, exactly `size` bytes long if that is enough for it."""
        word = f"planted{len(self.words):05}x"
        self.words.append(word)
        head = self.rng.choice(("", f"# Title {word}\n", f"---\ntags: [t{word}]\nkind: tool\n---\n", "云服务器\n"))
        text = head + word + "\n"
        if size and len(text.encode()) > size:
            text = word + "\n"
        return text.encode() + b"." * (size - len(text.encode()))

    def _put(self, path, data):
        self._make_way(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as handle:
            handle.write(data)

    def _make_way(self, path):
        """Frees a path and what leads to it: a folder or link there goes, so does a note on the way."""
        below = os.path.relpath(path, self.root).split(os.sep)
        for depth in range(1, len(below)):
            on_the_way = os.path.join(self.root, *below[:depth])
            if os.path.islink(on_the_way) or os.path.isfile(on_the_way):
                os.unlink(on_the_way)
        if os.path.islink(path):
            os.unlink(path)
        elif os.path.isdir(path):
            shutil.rmtree(path)


def open_bytes(path):
    with open(path, "rb") as handle:
        return handle.read()


def run_sequence(folder, seed, edits):
    """The faults (texts) that one sequence of edits showed; [] when it survived."""
    rng = random.Random(seed)
    vault = Vault(os.path.join(folder, "vault"), rng)
    app = App(os.path.join(folder, "step.db"), vault.root)
    done, faults = [], []
    try:
        for _ in range(edits):
            done.append(vault.edit())
            if rng.random() < 0.4:
                done.append(how := rng.choice(("search", "index")))
                faults += take_in(app, how)
        faults += take_in(app, rng.choice(("search", "index")))
        faults += differences(app, vault, os.path.join(folder, "fresh.db"))
    except Exception as fault:
        faults.append(f"{type(fault).__name__}: {fault}")
    finally:
        app.close()
    return [f"seed {seed}: {fault} (after {' '.join(done[-12:])})" for fault in faults]


def take_in(app, how):
    """Brings the index up to date; faults when an id was lost."""
    before = cards(app.store)
    if how == "index":
        app.indexer.index(app.store)
    else:
        freshness = app.indexer.refresh(app.store, seconds=600)
        if freshness.stale:
            return [f"a search left {freshness.stale} files stale"]
    return lost_ids(before, cards(app.store))


def cards(store):
    """rel_path -> (id, content_hash) of every card in an index."""
    return store.hashes(store.paths())


def lost_ids(before, after):
    """Faults for texts that are one of a kind before and after, whose card has another id now."""
    faults = []
    kinds = Counter(digest for _, digest in before.values()), Counter(digest for _, digest in after.values())
    now = {digest: (path, id) for path, (id, digest) in after.items()}
    for path, (id, digest) in before.items():
        new_path, new_id = now.get(digest, (None, id))
        alone = kinds[0][digest] == kinds[1][digest] == 1
        if alone and new_id != id and (path == new_path or path not in after):
            faults.append(f"the id of {path!r} changed on its way to {new_path!r}")
    return faults


def differences(app, vault, fresh_db):
    """What an index taken in step by step has otherwise than a fresh one, and than the files say."""
    faults = []
    fresh = App(fresh_db, vault.root)
    try:
        fresh.indexer.index(fresh.store)
        for what, sql in (
            ("cards", "SELECT rel_path, title, kind, source, tags, length, content_hash FROM cards ORDER BY 1"),
            ("unreadable files", "SELECT rel_path, reason FROM unreadable ORDER BY 1"),
        ):
            old, new = app.store.query(sql), fresh.store.query(sql)
            if old != new:
                faults.append(f"{what} differ: {set(old) ^ set(new)}")
    finally:
        fresh.close()
    texts = vault.texts()
    for word in [*vault.words, "outsideword"]:
        due = sorted(path for path, text in texts.items() if word in text)
        result = app.searcher.search(word, limit=20, sync=False)
        found = sorted(hit.path for hit in result.hits)
        if found != due or (due and result.matched != "all"):
            faults.append(f"{word} is in {due} and was found in {found}")
    return faults


def main(argv=None):
    parser = argparse.ArgumentParser(description="Random edits: tried, survived, lost.")
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="of the first sequence")
    options = parser.parse_args(argv)
    lost, started = 0, time.monotonic()
    for seed in range(options.seed, options.seed + options.sequences):
        folder = tempfile.mkdtemp(prefix="edits-")
        os.environ["MEMORY_AGENT_HOME"] = os.path.join(folder, "home")
        try:
            faults = run_sequence(folder, seed, options.edits)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        lost += bool(faults)
        for fault in faults[:3]:
            print(ascii(fault), flush=True)
    tried = options.sequences
    print(f"tried {tried}, survived {tried - lost}, lost {lost} ({time.monotonic() - started:.0f} s)")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
