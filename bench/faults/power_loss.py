"""Power loss at any moment of a command that writes: what was not synced is gone, and no card is half or lost.

    python bench/faults/power_loss.py [--captures 50] [--changes 3] [--seed 1] [--only purge,backup]

The calls of each command are noted in their order, until the answer is written. Every beginning of that order is
then replayed on a model of a disk that keeps of a file what was synced, and of a folder the names it had when it was
synced, or all names (a disk may write names before data, and one folder before another: every mixture is tried). In
each state left behind the law of `changes` holds: every file is as before or as after, whole, a text that gave way
stands somewhere else, and what was told is there once the answer was begun. At the end `index` runs over what is
left, and a search finds the cards that are there. Every command that writes is made `--changes` times, each time in
a place of its own, and then `--captures` captures into one vault. What SQLite asks of the disk is not modelled: the
index is made again from the cards. Status 1 when one is lost.
"""

import io
import itertools
import os
import random
import sys

from calls import Calls, forked
from changes import CHANGES, Stage
from harness import Place, Tally, faults_of_output, note, parser, planted

from mcore.card import KIND_FOLDERS
from mcore.vault import TEMP_PREFIX

BODY_CHARS = (40, 3_000, 300_000)
STDOUT = 1
MOST_DIRTY = 5  # folders whose names are mixed; of more only all or none
KEPT = "open write close fsync link rename replace unlink mkdir rmdir sync".split()


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


class File:
    """What programs read, and what was synced of it."""

    def __init__(self, content=b"", synced=b""):
        self.content, self.synced = content, synced


class Folder:
    """Names that programs see, and those that were synced; name -> File or Folder."""

    def __init__(self):
        self.names, self.synced = {}, {}


class Disk:
    """A model of everything below one folder: what programs see, and what would be left without power."""

    def __init__(self, root):
        self.root, self.top, self.open = root, self._read(root), {}  # descriptor -> File or Folder

    def _read(self, path):
        folder = Folder()
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                folder.names[entry.name] = self._read(entry.path)
            else:
                with open(entry.path, "rb") as handle:
                    data = handle.read()
                folder.names[entry.name] = File(data, data)
        folder.synced = dict(folder.names)
        return folder

    def apply(self, name, arguments, result):
        """One call that was made; those to other places are nothing to this disk."""
        if name == "write":
            file = self.open.get(arguments[0])
            if isinstance(file, File):
                file.content += arguments[1]
        elif name == "close":
            self.open.pop(arguments[0], None)
        elif name == "fsync":
            self._sync(self.open.get(arguments[0]))
        elif name == "sync":
            for what in self._everything(self.top):
                self._sync(what)
        elif name == "open" and arguments[0] == self.root:
            self.open[result] = self.top
        elif str(arguments[0]).startswith(self.root + os.sep):
            getattr(self, "_" + name)(*arguments, result)

    def _everything(self, folder):
        yield folder
        for what in folder.names.values():
            yield from self._everything(what) if isinstance(what, Folder) else (what,)

    @staticmethod
    def _sync(what):
        if isinstance(what, File):
            what.synced = what.content
        elif what is not None:
            what.synced = dict(what.names)

    def _at(self, path):
        """(the Folder that holds a path, its name in there)."""
        *above, name = os.path.relpath(path, self.root).split(os.sep)
        folder = self.top
        for part in above:
            folder = folder.names[part]
        return folder, name

    def states(self):
        """What may be left, each as path -> content (None: a folder): every mixture of folders whose names were
        written though they were not synced."""
        dirty = [what for what in self._everything(self.top) if isinstance(what, Folder) and what.names != what.synced]
        some = itertools.product((False, True), repeat=len(dirty)) if len(dirty) <= MOST_DIRTY else None
        for written in some or ([False] * len(dirty), [True] * len(dirty)):
            yield dict(self._left(self.top, "", set(map(id, itertools.compress(dirty, written)))))

    def _left(self, folder, prefix, written):
        for name, what in (folder.names if id(folder) in written else folder.synced).items():
            if isinstance(what, Folder):
                yield prefix + name, None
                yield from self._left(what, f"{prefix}{name}/", written)
            else:
                yield prefix + name, what.synced

    def _open(self, path, flags, *rest):
        folder, name = self._at(path)
        if name not in folder.names:
            folder.names[name] = File()
        what = folder.names[name]
        if flags & os.O_TRUNC and isinstance(what, File):
            what.content = what.synced = b""
        self.open[rest[-1]] = what

    def _mkdir(self, path, *_):
        folder, name = self._at(path)
        folder.names[name] = Folder()

    def _link(self, source, target, _):
        (here, name), (there, other) = self._at(source), self._at(target)
        there.names[other] = here.names[name]

    def _rename(self, source, target, _):
        self._link(source, target, None)
        self._unlink(source)

    _replace = _rename

    def _unlink(self, path, *_):
        folder, name = self._at(path)
        folder.names.pop(name, None)

    _rmdir = _unlink


def replayed(disk, run):
    """(a word on the moment, whether the answer was begun, what may be left) after every call, before the first one
    too."""
    told = False
    for left in disk.states():
        yield "before any call", told, left
    for at, (name, arguments, result) in enumerate(run.noted):
        told = told or name == "write" and arguments[0] == STDOUT
        disk.apply(name, arguments, result)
        for left in disk.states():
            yield f"after call {at} ({name})", told, left


def faults_of_change(stage, name):
    """Faults of every beginning of one change; the change itself is made."""
    stage.reset()
    disk = Disk(stage.place.folder)
    run = forked(stage.place, [*stage.argv(name), "--json"], Notes(), CHANGES[name].text)
    yield from faults_of_output(run, (0,))
    if run.code:
        return
    after, seen = stage.tree(), set()
    for moment, told, left in replayed(disk, run):
        state = (told, tuple(sorted(left.items(), key=str)))
        if state not in seen:
            seen.add(state)
            yield from (f"{fault}, {moment}" for fault in stage.faults(name, without_index(left), told, after))
    if not told:
        yield "no answer was noted"
    stage.put(left)
    yield from stage.faults_of_index()


def without_index(left):
    return {path: data for path, data in left.items() if "memory.db" not in path and not path.startswith("tmp")}


def faults_of_capture(place, number, kind, body):
    """Faults of every beginning of one capture; the capture itself is made."""
    before, disk = {path: place.read(path) for path in place.cards()}, Disk(place.vault)
    title = f"card {number % 7}"  # some titles are taken
    run = forked(place, ["capture", "--json", "--kind", kind, "--title", title], Notes(), body)
    yield from faults_of_output(run, (0,))
    if run.code:
        return
    (path,) = set(place.cards()) - set(before)
    card = place.read(path)
    for moment, told, left in replayed(disk, run):
        yield from (f"{fault}, {moment}" for fault in faults_of_state(left, before, path, card, told))
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
    options = parser(__doc__.splitlines()[0], captures=50, changes=3, seed=1)
    options.add_argument("--only", metavar="NAMES", help="changes, with commas")
    options = options.parse_args(argv)
    rng, in_all, kinds = random.Random(options.seed), Tally(), list(KIND_FOLDERS)
    for name in options.only.split(",") if options.only else CHANGES:
        tally = Tally(name)
        with Stage() as stage:
            for _ in range(options.changes):
                tally.trial(name, faults_of_change(stage, name))
        in_all.add(tally)
    with Place() as place:
        place.write("own.md", note(0))
        for number in range(1, options.captures + 1):
            kind = kinds[number % len(kinds)]
            body = f"{planted(number)} 第{number}号 " + "z" * rng.choice(BODY_CHARS)
            in_all.trial(f"capture {number} ({kind})", faults_of_capture(place, number, kind, body))
    return in_all.end()


if __name__ == "__main__":
    sys.exit(main())
