"""Power loss at any moment of a capture: what was not synced is gone, and the card is whole or absent.

    python bench/faults/power_loss.py [--captures 50] [--seed 1]

The calls of each capture are noted in their order, until the answer is written. Every beginning of that order is
then replayed on a model of a disk that keeps of a file what was synced, and of a folder either nothing that was not
synced or every name (a disk may write names before data). In each state left behind, the card is whole or absent,
it is there once the answer was begun, all other files are as they were, `index` runs, and a search finds the card
exactly when it is there. What SQLite asks of the disk is not modelled: the index is made again from the cards. Status
1 when one is lost.
"""

import io
import os
import random
import shutil
import sys

from calls import Calls, forked
from harness import Place, Tally, faults_of_output, note, parser, planted

from mcore.card import KIND_FOLDERS
from mcore.vault import TEMP_PREFIX

BODY_CHARS = (40, 3_000, 300_000)
STDOUT = 1
KEPT = ("open", "write", "close", "fsync", "link", "rename", "replace", "unlink", "mkdir")


class Notes(Calls):
    """Keeps every call that changes a file or a folder, and the writing of the answer."""

    def __init__(self):
        super().__init__((), None)

    def install(self):
        super().install()
        calls = self

        class Answer(io.FileIO):
            def write(self, data):
                calls.note("write", (STDOUT, bytes(data)), None)
                return super().write(data)

        sys.stdout = io.TextIOWrapper(io.BufferedWriter(Answer(STDOUT, "w")), "utf-8")

    def note(self, name, arguments, result):
        if name in KEPT:
            self.noted.append((name, arguments, result))


class Disk:
    """A model of the files below one folder: what programs see, and what would be left without power."""

    def __init__(self, root):
        self.root = root
        self.files, self.names, self.folders = [], {}, {root}  # files are [content, synced content]
        for base, _, names in os.walk(root):
            self.folders.add(base)
            for name in names:
                with open(os.path.join(base, name), "rb") as handle:
                    data = handle.read()
                self.names[os.path.join(base, name)] = len(self.files)
                self.files.append([data, data])
        self.safe = {**self.names, **dict.fromkeys(self.folders)}  # path -> file, None for a folder
        self.unsafe = []  # (folder, path, file or None, whether it is there) since that folder was synced
        self.open = {}  # descriptor -> file or path of a folder

    def apply(self, name, arguments, result):
        """One call that was made; those to other places are nothing to this disk."""
        if name == "write":
            file = self.open.get(arguments[0])
            if isinstance(file, int):
                self.files[file][0] += arguments[1]
        elif name == "close":
            self.open.pop(arguments[0], None)
        elif name == "fsync":
            self._sync(self.open.get(arguments[0]))
        elif str(arguments[0]).startswith(self.root):
            getattr(self, "_" + name)(*arguments, result)

    def left(self, every_name):
        """path -> content (None: a folder) after the power went; with `every_name` all names are there."""
        safe = dict(self.safe)
        for _, path, file, there in self.unsafe if every_name else ():
            self._put(safe, path, file, there)
        whole = {path for path in safe if self._has_folders(path, safe)}
        return {path: None if safe[path] is None else self.files[safe[path]][1] for path in sorted(whole)}

    def _has_folders(self, path, safe):
        while path != self.root:
            path = os.path.dirname(path)
            if path not in safe:
                return False
        return True

    @staticmethod
    def _put(names, path, file, there):
        if there:
            names[path] = file
        else:
            names.pop(path, None)

    def _change(self, path, file, there):
        self._put(self.names, path, file, there)
        self.unsafe.append((os.path.dirname(path), path, file, there))

    def _sync(self, what):
        if isinstance(what, int):
            self.files[what][1] = self.files[what][0]
        elif what is not None:
            for folder, path, file, there in self.unsafe:
                if folder == what:
                    self._put(self.safe, path, file, there)
            self.unsafe = [change for change in self.unsafe if change[0] != what]

    def _open(self, path, flags, *rest):
        descriptor = rest[-1]
        if path not in self.names and flags & os.O_CREAT:
            self.files.append([b"", b""])
            self._change(path, len(self.files) - 1, True)
        file = self.names.get(path)
        self.open[descriptor] = path if file is None else file

    def _mkdir(self, path, *_):
        self._change(path, None, True)

    def _link(self, source, target, _):
        self._change(target, self.names[source], True)

    def _rename(self, source, target, _):
        self._change(target, self.names[source], True)
        self._change(source, None, False)

    _replace = _rename

    def _unlink(self, path, _):
        self._change(path, None, False)


def faults_of_capture(place, number, kind, body):
    """Faults of every beginning of one capture; the capture itself is made."""
    before, disk = {path: place.read(path) for path in place.cards()}, Disk(place.vault)
    title = f"card {number % 7}"  # some titles are taken
    run = forked(place, ["capture", "--json", "--kind", kind, "--title", title], Notes(), body)
    yield from faults_of_output(run, (0,))
    if run.code:
        return
    (path,) = set(place.cards()) - set(before)
    card, told = place.read(path), False
    for at, (name, arguments, result) in enumerate(run.noted):
        told = told or name == "write" and arguments[0] == STDOUT
        disk.apply(name, arguments, result)
        for every_name in (False, True):
            left = {os.path.relpath(p, place.vault): data for p, data in disk.left(every_name).items()}
            for fault in faults_of_state(left, before, path, card, told):
                yield f"{fault} after call {at} ({name}), {'every name' if every_name else 'no name'} kept"
    if not told:
        yield "no answer was noted"
    yield from faults_of_vault(place, number, path, left)


def faults_of_state(left, before, path, card, told):
    """What is wrong with the files that are left."""
    if left.get(path) not in (None, card):
        yield f"half a card of {len(left[path])} bytes"
    if told and left.get(path) is None:
        yield "the card was told to be created and is gone"
    for name, data in before.items():
        if left.get(name) != data:
            yield f"{name} is not as it was"
    for name in set(left) - set(before) - {path}:
        if left[name] is not None and TEMP_PREFIX not in name:
            yield f"{name} is left"


def faults_of_vault(place, number, path, left):
    """What `index` and a search make of what is left once the folder was synced."""
    with Place() as other:
        shutil.rmtree(other.vault)
        for name, data in left.items():
            target = os.path.join(other.vault, name)
            if data is None:
                os.makedirs(target, exist_ok=True)
            else:
                with open(target, "wb") as handle:
                    handle.write(data)
        app = other.app()
        try:
            app.indexer.index(app.store)
            found = [hit.path for hit in app.searcher.search(planted(number)).hits]
        finally:
            app.close()
    if found != [path]:
        yield f"found in {found}"


def main(argv=None):
    options = parser(__doc__.splitlines()[0], captures=50, seed=1).parse_args(argv)
    rng, tally, kinds = random.Random(options.seed), Tally(), list(KIND_FOLDERS)
    with Place() as place:
        place.write("own.md", note(0))
        for number in range(1, options.captures + 1):
            kind = kinds[number % len(kinds)]
            body = f"{planted(number)} 第{number}号 " + "z" * rng.choice(BODY_CHARS)
            tally.trial(f"capture {number} ({kind})", faults_of_capture(place, number, kind, body))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
