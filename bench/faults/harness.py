"""What the fault programs share: a place of their own, commands and servers in processes, the count of losses.

A program tries something many times, and each trial survives or is lost. `Tally` prints every loss and one
line in all; `main` of a program returns its status: 0, or 1 when one trial was lost.
"""

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from contextlib import closing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from mcore.app import App  # noqa: E402

MEMORY = os.path.join(ROOT, "memory.py")
SHOWN_FAULTS = 3  # of one lost trial
SECONDS_FOR_ONE = 120  # a command that takes longer hangs
HANDSHAKE = (
    {
        "jsonrpc": "2.0",
        "id": "hello",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "faults", "version": "0"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)

Ended = namedtuple("Ended", "code out err")
Ended.__doc__ = "How a command ended: its status (negative: the signal that killed it) and both streams as bytes."


class Tally:
    """Counts trials and those lost; a trial is lost when it showed a fault."""

    def __init__(self, name=""):
        self.name, self.tried, self.lost, self.started = name, 0, 0, time.monotonic()

    def trial(self, label, faults):
        """Notes one trial with the faults (texts) that it showed; whether it survived."""
        faults = list(faults)
        self.tried += 1
        self.lost += bool(faults)
        for fault in faults[:SHOWN_FAULTS]:
            print(ascii(f"{label}: {fault}")[1:-1], flush=True)
        return not faults

    def add(self, other):
        self.tried, self.lost = self.tried + other.tried, self.lost + other.lost

    def end(self, more=""):
        """Prints the line in all and gives the program's status."""
        name = f"{self.name}: " if self.name else ""
        counts = f"tried {self.tried}, survived {self.tried - self.lost}, lost {self.lost}"
        print(f"{name}{counts} ({time.monotonic() - self.started:.0f} s){more}", flush=True)
        return 1 if self.lost else 0


def parser(description, **numbers):
    """An argument parser with a whole-number option for each of `numbers`, name -> default."""
    made = argparse.ArgumentParser(description=description)
    for name, default in numbers.items():
        made.add_argument("--" + name.replace("_", "-"), type=int, default=default, metavar="N")
    return made


class Place:
    """A data root and a vault in a folder of their own, removed at the end; use it in a `with`."""

    def __init__(self, below=None):
        """`below` is the folder to be made in (another file system); by default that of temporary files."""
        self.folder = os.path.abspath(tempfile.mkdtemp(prefix="faults-", dir=below))
        self.home = os.path.join(self.folder, "home")
        self.vault = os.path.join(self.home, "vault")
        self.db = os.path.join(self.home, "memory.db")
        self.person = os.path.join(self.folder, "person")  # the home folder of whoever works here
        os.makedirs(self.vault, 0o700)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def environment(self):
        """What a process of this place is started with: no settings of this machine, compiled files kept apart."""
        ours = ("MEMORY_AGENT", "PYTHONDONTWRITEBYTECODE", "XDG_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        cache = os.path.join(tempfile.gettempdir(), f"faults-compiled-{os.getuid() if os.name == 'posix' else ''}")
        return {**kept, "HOME": self.person, "MEMORY_AGENT_HOME": self.home, "PYTHONPYCACHEPREFIX": cache}

    def app(self):
        """An App over this place, in this process; the caller closes it."""
        return App(self.db, self.vault, home=self.home)

    def start(self, *argv, command=(sys.executable, MEMORY), **more):
        """The started process of a command."""
        pipe = subprocess.PIPE
        streams = {"stdin": pipe, "stdout": pipe, "stderr": pipe, **more}
        return subprocess.Popen([*command, *map(str, argv)], env=self.environment, **streams)

    def memory(self, *argv, text="", command=(sys.executable, MEMORY), kill_after=None):
        """Runs a command with `text` on its standard input to its end, or kills it after so many seconds; the Ended."""
        process = self.start(*argv, command=command)
        try:
            out, err = process.communicate(text.encode(), timeout=kill_after or SECONDS_FOR_ONE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            if kill_after is None:
                err += b"killed: it did not end"
        return Ended(process.returncode, out, err)

    def write(self, rel_path, text):
        """Writes a note into the vault, as a person would."""
        path = os.path.join(self.vault, *rel_path.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)

    def read(self, rel_path):
        """The bytes of a file of the vault, or None when it is not there."""
        try:
            with open(os.path.join(self.vault, *rel_path.split("/")), "rb") as handle:
                return handle.read()
        except FileNotFoundError:
            return None

    def cards(self):
        """The rel_path of every card file in the vault, sorted."""
        found = []
        for base, _, names in os.walk(self.vault):
            below = os.path.relpath(base, self.vault).replace(os.sep, "/")
            found += [name if below == "." else f"{below}/{name}" for name in names if name.endswith(".md")]
        return sorted(found)


class Server:
    """A `memory mcp` process. Calls may be sent ahead and their answers read later."""

    def __init__(self, place, command=(sys.executable, MEMORY)):
        self.process = place.start("mcp", command=command, stderr=subprocess.DEVNULL)
        self.sent = 0
        for message in HANDSHAKE:
            self._send(message)
        self._line()

    def send(self, tool, **arguments):
        """Sends one call; its number."""
        self.sent += 1
        params = {"name": tool, "arguments": arguments}
        self._send({"jsonrpc": "2.0", "id": self.sent, "method": "tools/call", "params": params})
        return self.sent

    def answers(self, count=None):
        """(number, whether it is an error, structured content) of the next answers, or of all until the end."""
        while count is None or count > 0:
            message = self._line()
            if message is None:
                return
            result = message.get("result") or {"isError": True, "structuredContent": message}
            yield message["id"], bool(result.get("isError")), result.get("structuredContent") or result
            count = count and count - 1

    def call(self, tool, **arguments):
        """(whether it is an error, structured content) of one call."""
        self.send(tool, **arguments)
        for _, is_error, content in self.answers(1):
            return is_error, content
        raise EOFError("the server ended without an answer")

    def kill(self):
        self.process.kill()

    def close(self):
        """Ends the server and frees its pipes."""
        with self.process:
            self.process.kill()

    def _send(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # killed: what it has not answered was not acknowledged

    def _line(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None


def planted(number):
    """A word that no other text holds, nor begins."""
    return f"planted{number:06}x"


def note(number):
    """A note's text with its own word in it, half Chinese."""
    return f"# Note {number}\n\n{planted(number)} 阿里云服务器 第{number}号 and some words about zebras\n"


def faults_of_output(ended, codes=(0, 1, 2, 3)):
    """What no command may ever do: end with another status, or show a traceback."""
    text = (ended.out + ended.err).decode("utf-8", "replace")
    if "Traceback" in text or "a fault in memory-agent" in text:
        yield "traceback: " + text.strip()[-300:]
    elif ended.code not in codes:
        yield f"status {ended.code}: {text.strip()[-300:]}"


def answer_of(ended):
    """The JSON object on a command's stdout, or None when it is not there whole."""
    try:
        return json.loads(ended.out)
    except ValueError:
        return None


def damage_schema(path):
    """Makes an index useless while its tables can still be read: its version is that of another program."""
    with open(path, "r+b") as handle:
        handle.seek(60)  # user_version, in the header of SQLite's file format
        handle.write((1 << 20).to_bytes(4, "big"))


def faults_of_index(path):
    """What is wrong inside an index: its pages, its full text, cards without full text."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            connection.execute("INSERT INTO cards_fts (cards_fts) VALUES ('integrity-check')")
            found = connection.execute("PRAGMA integrity_check").fetchall()
            sql = "SELECT count(*) FROM cards WHERE doc NOT IN (SELECT id FROM cards_fts_docsize)"
            bare = connection.execute(sql).fetchone()[0]
        except sqlite3.Error as error:
            return [f"the index is damaged: {error}"]
    faults = [] if found == [("ok",)] else [f"integrity_check: {found[:3]}"]
    return faults + ([f"{bare} cards are not in the full text"] if bare else [])
