"""Kills changes of cards at random moments: every card is its old or its new self, and no text is lost.

    python bench/faults/lifecycle_kills.py [--kills 500] [--changes 500] [--seed 1]

First one card lives through `--kills` rounds. Each starts an update, supersede, forget or restore as a process of its
own and kills it (SIGKILL) after a random part of the time such a change takes. Then the card's file must hold its
former text or the wanted one, whole; a former text that gave way must stand in the history; each card that superseded
another must be whole; no card may have two successors; and a search must answer. Then every command that writes
(`changes`: backup, its restore and set-up among them) is killed in turn, `--changes` times in all, each time from the
same beginning: the law of `changes` must hold, and the same command afterwards must do what was left to do. Prints
one line for each loss and one in all; status 1 when one is lost.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time

from calls import Calls, forked
from changes import CHANGES, Stage
from harness import Tally, answer_of, faults_of_index, faults_of_output, parser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = [sys.executable, os.path.join(ROOT, "memory.py")]


def memory(home, *argv):
    """The JSON answer of a command that is left to end."""
    ran = subprocess.run([*PROGRAM, *argv, "--json"], env=env_of(home), capture_output=True)
    return json.loads(ran.stdout)


def env_of(home):
    return {**os.environ, "MEMORY_AGENT_HOME": home}


def read(path):
    with open(path, "rb") as handle:
        return handle.read()


class Cards:
    """A vault whose cards are changed by processes that may die; knows the present card of a chain."""

    def __init__(self, home, rng):
        self.home, self.rng, self.number = home, rng, 0
        self.vault = os.path.join(home, "vault")
        self.card = memory(home, "capture", "--title", "fact", "--body", self.body())["path"]

    def body(self):
        self.number += 1
        return f"the fact says number{self.number} " + "and more words " * self.rng.randrange(1, 200)

    def round(self, seconds):
        """One change, killed after a part of `seconds`; the losses it led to, as texts."""
        path = os.path.join(self.vault, self.card)
        before, body = read(path), self.body()
        word = self.rng.choice(("update", "update", "supersede", "forget", "restore"))
        argv = [word, self.card] + (["--body", body] if word in ("update", "supersede") else [])
        process = subprocess.Popen([*PROGRAM, *argv], env=env_of(self.home),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(self.rng.random() * seconds)
        process.kill()
        process.wait()
        return list(self.losses(word, body, path, before))

    def losses(self, word, body, path, before):
        now = read(path)
        if now != before:
            if word == "supersede":
                yield "a superseded card was changed"
            elif before not in self.history():
                yield f"{word}: the former text is gone"
            if not now.startswith(b"---\n") or word == "update" and body.strip().encode() not in now:
                yield f"{word}: the card is half written"
        memory(self.home, "restore", self.card)
        shown = memory(self.home, "show", self.card)
        if "error" in shown:
            yield f"{word}: {shown['error']}"
            return
        followers = [name for name in self.names() if f"supersedes: [{self.card}]".encode() in read(name)]
        if len(followers) > 1:
            yield "two successors"
        if followers:
            if body.strip().encode() not in read(followers[0]):
                yield "the successor is half written"
            self.card = os.path.relpath(followers[0], self.vault).replace(os.sep, "/")
            memory(self.home, "restore", self.card)
        hits = memory(self.home, "search", "fact", "-n", "20").get("hits", [])
        if [hit["path"] for hit in hits] != [self.card]:
            yield f"{word}: search gives {[hit['path'] for hit in hits]}, not {self.card}"

    def names(self):
        folder = os.path.join(self.vault, "03-Knowledge")
        return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".md")]

    def history(self):
        folder = os.path.join(self.vault, ".history", self.card)
        return [read(os.path.join(folder, name)) for name in os.listdir(folder)] if os.path.isdir(folder) else []


def changes(count, rng):
    """The Tally of kills of every change in turn."""
    tally = Tally("changes")
    with Stage() as stage:
        usual = {}
        for name in CHANGES:
            started = time.monotonic()
            stage.after(name)
            usual[name] = time.monotonic() - started
        for number in range(count):
            name = list(CHANGES)[number % len(CHANGES)]
            tally.trial(f"kill {number} of {name}", faults_of_change(stage, name, rng.uniform(0, 1.2 * usual[name])))
    return tally


def faults_of_change(stage, name, kill_after):
    """What is wrong after a change was killed, and after the same command was left to end."""
    stage.reset()
    argv = [*stage.argv(name), "--json"]
    ended = stage.place.memory(*argv, text=CHANGES[name].text, kill_after=kill_after)
    yield from faults_of_output(ended, (0, -9))
    yield from stage.faults(name, stage.tree(), answer_of(ended) is not None)
    again = forked(stage.place, argv, Calls((), None), CHANGES[name].text)
    yield from faults_of_output(again)
    yield from (f"{fault}, after the same command again" for fault in stage.faults(name, stage.tree(), True))
    yield from stage.faults_of_index()
    yield from faults_of_index(stage.place.db)


def main(argv=None):
    options = parser(__doc__.splitlines()[0], kills=500, changes=500, seed=1).parse_args(argv)
    rng, tally = random.Random(options.seed), Tally("one card")
    with tempfile.TemporaryDirectory() as home:
        cards = Cards(home, rng)
        started = time.monotonic()
        memory(home, "update", cards.card, "--body", cards.body())
        seconds = 1.2 * (time.monotonic() - started)
        for number in range(options.kills):
            tally.trial(f"kill {number}", (loss[:300] for loss in cards.round(seconds)))
    tally.end()
    others = changes(options.changes, rng) if options.changes else Tally("changes")
    others.end()
    tally.add(others)
    tally.name = ""
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
