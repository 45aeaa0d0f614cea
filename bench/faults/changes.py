"""The commands that write for good, the place each of them begins in, and the law that they keep whatever goes wrong.

The law: every file is what it was before or what it is after the command ran undisturbed, whole; a text that gave way
stands somewhere else (but after a purge); a restored data root is there with all its cards or not at all; beside that
there are only left-overs whose names say so; and once the command has told that it is done, everything is as it is
after it. Times count as equal. The index is not looked at here: it is made again from the cards.
"""

import os
import re
import shutil
from collections import namedtuple
from contextlib import closing

from harness import Place, note, planted

from mcore.backup import RESTORE_MARK, backup
from mcore.capture import capture
from mcore.revise import forget, update
from mcore.vault import TEMP_PREFIX, stamp_of

FACT, FORGOTTEN, LOST = (f"03-Knowledge/{name}.md" for name in ("fact", "forgotten", "lost"))
OLD, NEW = (f"{planted(number)} 第{number}号 the host of the database, port 5432" for number in (1, 2))
NOTES = 4  # of other people, which no command may touch
SETTINGS = '{\n  "mcpServers": {"other": {"command": "/bin/true", "args": []}}\n}\n'
OURS = '{\n  "mcpServers": {"memory": {"command": "/bin/true", "args": ["/old/memory.py", "mcp"]}, "other": {}}\n}\n'

Change = namedtuple("Change", "argv text", defaults=("",))
Change.__doc__ = """One command: its words ({folder} is that of the place, {revision} that of the fact's first text) and
what it reads."""

CHANGES = {
    "capture": Change(["capture", "--title", "new card"], NEW),
    "capture into a new folder": Change(["capture", "--title", "new card", "--kind", "mistake"], NEW),
    "update of a body": Change(["update", FACT, "--body", NEW]),
    "update of a field": Change(["update", FACT, "--tags", "one"]),
    "supersede": Change(["supersede", FACT, "--body", NEW]),
    "retract": Change(["retract", FACT, "--reason", "it never was"]),
    "forget": Change(["forget", FACT]),
    "restore": Change(["restore", FORGOTTEN]),
    "restore of a former text": Change(["restore", FACT, "--revision", "{revision}"]),
    "restore of a deleted card": Change(["restore", LOST]),
    "purge": Change(["purge", FACT, "--yes"]),
    "backup": Change(["backup", "{folder}/archives/new.tar.gz"]),
    "restore of a backup": Change(["restore", "{folder}/archives/old.tar.gz", "--home", "{folder}/restored"]),
    "setup": Change(["setup", "cursor", "--apply"]),
    "setup in a new folder": Change(["setup", "windsurf", "--apply"]),
    "setup taken back": Change(["setup", "gemini", "--remove", "--apply"]),
}
CLIENTS = {".cursor/mcp.json": SETTINGS, ".gemini/settings.json": OURS}

_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z|(?<=-)[0-9]{8}T[0-9]{6}Z")
_LEFT = re.compile(
    rf"(.*/)?({re.escape(TEMP_PREFIX)}[^/]+|\.[^/]+\.[0-9]+-[0-9a-f]{{8}}\.tmp|[^/]+{re.escape(RESTORE_MARK)}.*)"
)
_INDEX = re.compile(r"(.*/)?memory\.db[^/]*")


class Stage:
    """A Place in which each change can be tried again and again from the same beginning; use it in a `with`."""

    def __init__(self, below=None):
        self.place = Place(below)
        self.template = self.place.folder + "-template"
        self.expected = {}  # name of a change -> tree after it

    def __enter__(self):
        place = self.place
        for number in range(NOTES):
            place.write(f"notes/{number}.md", note(number))
        with closing(place.app()) as app:
            self.revision = capture(app, "fact", OLD).revision
            update(app, FACT, {"tags": ["two"]})
            for path in (FORGOTTEN, LOST):
                capture(app, path[13:-3], f"{path} {OLD}")
            forget(app, FORGOTTEN)
            update(app, LOST, {}, f"{LOST} {OLD} and more")
            os.unlink(os.path.join(place.vault, LOST))
            os.mkdir(os.path.join(place.folder, "archives"))
            backup(app, os.path.join(place.folder, "archives", "old.tar.gz"))
            app.indexer.index(app.store)
        for path, text in CLIENTS.items():
            target = os.path.join(place.person, path)
            os.makedirs(os.path.dirname(target))
            with open(target, "w", encoding="utf-8") as handle:
                handle.write(text)
        shutil.copytree(place.folder, self.template)
        self.before = self.tree()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.template, ignore_errors=True)
        self.place.__exit__()

    def reset(self):
        """Puts everything back to the beginning."""
        shutil.rmtree(self.place.folder)
        shutil.copytree(self.template, self.place.folder)

    def put(self, tree):
        """Puts a tree in place of all that is there, an empty index with it."""
        shutil.rmtree(self.place.folder)
        os.makedirs(self.place.vault)
        for path, data in tree.items():
            target = os.path.join(self.place.folder, path)
            if data is None:
                os.makedirs(target, exist_ok=True)
            elif not _INDEX.fullmatch(path):
                with open(target, "wb") as handle:
                    handle.write(data)

    def argv(self, name):
        """The words of a change."""
        return [word.format(folder=self.place.folder, revision=self.revision) for word in CHANGES[name].argv]

    def tree(self):
        """path below the place -> content, None for a folder; without indexes."""
        found, top = {}, self.place.folder
        for base, folders, names in os.walk(top):
            for name in folders + names:
                path = os.path.join(base, name)
                rel = os.path.relpath(path, top).replace(os.sep, "/")
                if not _INDEX.fullmatch(rel):
                    found[rel] = self._content(path) if stamp_of(path) else None
        return found

    @staticmethod
    def _content(path):
        with open(path, "rb") as handle:
            return handle.read()

    def after(self, name):
        """The tree after a change that nothing disturbs; made once. Leaves the place as it is then."""
        if name not in self.expected:
            self.reset()
            ended = self.place.memory(*self.argv(name), "--json", text=CHANGES[name].text)
            if ended.code:
                raise AssertionError(f"{name} ended with {ended.code}: {ended.out + ended.err}")
            self.expected[name] = self.tree()
        return self.expected[name]

    def faults(self, name, now, told, after=None):
        """Where a tree breaks the law for a change; `told`: its answer was complete."""
        before, after = without_times(self.before), without_times(after or self.after(name))
        now = without_times(now)
        for path in before.keys() | after.keys():
            states = [tree.get(path, "") for tree in (now, before, after)]
            if not _same(path, states[0], states[1:]):
                yield f"{path} is neither as before nor as after: {_shown(states[0])}"
            elif told and not _same(path, states[0], states[2:]):
                yield f"{path} is not as the answer tells: {_shown(states[0])}"
        for path in now.keys() - before.keys() - after.keys():
            if not _LEFT.fullmatch(path) and now[path] is not None:
                yield f"{path} is left: {_shown(now[path])}"
        if name != "purge":
            kept = set(now.values())
            gone = [path for path, data in before.items() if data is not None and data not in kept]
            yield from (f"the text of {path} is gone" for path in gone)
        restored = [path for path, data in after.items() if path.startswith("restored/") and data is not None]
        there = [path for path in restored if path in now]
        if there and len(there) < len(restored):
            yield f"{len(there)} of {len(restored)} files are restored"

    def faults_of_index(self):
        """What is wrong once the vault is indexed."""
        vault = [path.removeprefix("home/vault/") for path, data in self.tree().items() if data is not None]
        cards = [path for path in vault if path.endswith(".md") and path.startswith(("03-", "08-", "notes/"))]
        with closing(self.place.app()) as app:
            total = app.indexer.index(app.store).total
            found = [hit.path for hit in app.searcher.search(planted(NOTES - 1)).hits]
        if total != len(cards):
            yield f"{total} cards of {len(cards)} after the next index"
        if found != [f"notes/{NOTES - 1}.md"]:
            yield f"a note was found in {found}"


def without_times(tree):
    """A tree in which every time is the same one, in names and in contents (but of archives)."""
    plain = {}
    for path, data in tree.items():
        path = _TIME.sub(b"TIME", path.encode()).decode()
        path = re.sub("-[0-9a-f]{16}\\.md$", "-REVISION.md", path)  # of a text with a time in it
        plain[path] = _TIME.sub(b"TIME", data) if data is not None and not path.endswith(".gz") else data
    return plain


def _same(path, now, states):
    """Whether a content is one of some states ("": no such file); an archive need only be one (it holds times)."""
    if path.endswith("new.tar.gz") and now not in ("", None):
        return _is_archive(now) and any(state != "" for state in states)
    return now in states


def _is_archive(data):
    import tempfile

    from mcore import archive
    from mcore.errors import ArchiveError

    with tempfile.TemporaryFile() as handle:
        handle.write(data)
        handle.seek(0)
        try:
            return bool(archive.read(handle))
        except ArchiveError:
            return False


def _shown(state):
    return {"": "not there", None: "a folder"}.get(state) or f"{len(state)} bytes {state[:60]!r}"
