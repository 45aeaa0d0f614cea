"""Many writers at once: processes that capture the same titles, then servers and a CLI that do everything.

    python bench/faults/writers.py [--processes 64] [--titles 100] [--rounds 10] [--servers 4] [--seconds 600]
                                   [--below FOLDER] [--limit 2]

First every process captures every title with a text of its own, and one title with a text that is the same
everywhere: no card may be lost, doubled or overwritten. Then servers and a command line capture, search and
rebuild for so many seconds: no error may be shown, no card that was told to be created may be missing from an
answer, the index must be whole at the end, and 99 of 100 captures and searches must take less than `--limit`
seconds. Both parts run below the folder of temporary files and, where there is one, in memory (/dev/shm). Status 1
when one is lost.
"""

import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter

from harness import (
    ROOT,
    Place,
    Server,
    Tally,
    answer_of,
    faults_of_index,
    faults_of_output,
    note,
    parser,
    planted,
)

IN_MEMORY = "/dev/shm"
NOTES = 300  # in the vault when servers and command line begin
SHARED = "said by all in the very same words"

# Waits for the starting line, then captures every title; prints the statuses as one JSON list.
WRITER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from mcore.app import App
from mcore.capture import capture
app = App()
sys.stdin.buffer.read(1)
results = [capture(app, title, body) for title, body in json.loads(sys.argv[2])]
print(json.dumps([[r.status, r.path, r.indexed] for r in results]))
"""


def same_titles(place, processes, titles, label, tally):
    """One round in which every process captures every title; each title is one trial."""
    started = []
    for number in range(processes):
        cards = [(f"title {title}", body_of(number, title)) for title in range(titles)] + [("shared", SHARED * 2)]
        command = (sys.executable, "-c", WRITER, ROOT, json.dumps(cards))
        started.append(place.start(command=command))
    for process in started:
        process.stdin.write(b"x")
        process.stdin.close()
    answers = [json.loads(process.stdout.read() or b"[]") for process in started]
    errors = [process.stderr.read().decode() for process in started]
    for process in started:
        process.wait()
        process.stdout.close()
        process.stderr.close()
    cards = place.cards()
    bodies = Counter(place.read(path).rpartition(b"---\n\n")[2].decode() for path in cards)
    for title in range(titles):
        tally.trial(f"{label}, title {title}", faults_of_title(answers, bodies, processes, title))
    faults = [error[-300:] for error in errors if error]
    if bodies[SHARED * 2 + "\n"] != 1:
        faults.append(f"{bodies[SHARED * 2 + chr(10)]} cards of the same text")
    if len(cards) != processes * titles + 1:
        faults.append(f"{len(cards)} cards")
    tally.trial(f"{label}, all", [*faults, *faults_of_index(place.db)])


def faults_of_title(answers, bodies, processes, title):
    for number in range(processes):
        status = answers[number][title] if len(answers[number]) > title else None
        if not status or status[0] != "created" or not status[2]:
            yield f"process {number} was told {status}"
        if bodies[body_of(number, title) + "\n"] != 1:
            yield f"the card of process {number} is there {bodies[body_of(number, title) + chr(10)]} times"


def body_of(process, title):
    return f"process{process}x says of title{title}x what no other says"


class Mixed:
    """Servers and a command line at work on one vault; every call is one trial."""

    def __init__(self, place, tally, seconds, label):
        self.place, self.tally, self.label = place, tally, label
        self.until = time.monotonic() + seconds
        self.lock, self.next, self.known, self.waits = threading.Lock(), NOTES, list(range(NOTES)), []

    def run(self, servers):
        for number in range(NOTES):
            self.place.write(f"{number}.md", note(number))
        self.place.memory("index")
        workers = [threading.Thread(target=self.serve, args=(seed,)) for seed in range(servers)]
        workers.append(threading.Thread(target=self.command))
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.tally.trial(f"{self.label}, the index at the end", faults_of_index(self.place.db))
        return sorted(self.waits)[len(self.waits) * 99 // 100] if self.waits else 0.0

    def serve(self, seed):
        rng, server = random.Random(seed), Server(self.place)
        try:
            while time.monotonic() < self.until:
                self.step(rng, server.call)
        except Exception as fault:
            self.note("a server", [f"{type(fault).__name__}: {fault}"], 0)
        finally:
            server.close()

    def command(self):
        rng = random.Random(99)
        while time.monotonic() < self.until:
            self.step(rng, self.run_command)

    def run_command(self, tool, **given):
        words = {
            "memory_capture": ["capture", "--title", given.get("title"), "--body", given.get("body")],
            "memory_search": ["search", given.get("query")],
            "memory_reindex": ["index", "--rebuild"],
        }[tool]
        ended = self.place.memory(*words, "--json")
        faults = list(faults_of_output(ended, (0, 1)))
        return bool(faults), answer_of(ended) if not faults else faults

    def step(self, rng, call):
        """One random call and what was wrong with its answer."""
        started, what = time.monotonic(), rng.choice(("capture", "search", "search", "search", "rebuild"))
        if what == "capture":
            with self.lock:
                number, self.next = self.next, self.next + 1
            is_error, answer = call("memory_capture", title=f"card {number}", body=note(number))
            faults = [] if not is_error and answer["status"] == "created" and answer["indexed"] else [answer]
            if not is_error and answer["status"] == "created":
                with self.lock:
                    self.known.append(number)
        elif what == "search":
            with self.lock:
                number = rng.choice(self.known[-50:] if rng.random() < 0.5 else self.known)
            is_error, answer = call("memory_search", query=planted(number))
            faults = [] if not is_error and len(answer["hits"]) == 1 else [f"{planted(number)}: {answer}"]
        elif rng.random() < 0.2:
            is_error, answer = call("memory_reindex", rebuild=True)
            faults = [answer] if is_error else []
        else:
            return
        self.note(what, map(str, faults), time.monotonic() - started)

    def note(self, what, faults, seconds):
        with self.lock:
            if what != "rebuild":
                self.waits.append(seconds)
            self.tally.trial(f"{self.label}, {what}", faults)


def main(argv=None):
    options = parser(__doc__.splitlines()[0], processes=64, titles=100, rounds=10, servers=4, seconds=600)
    options.add_argument("--below", action="append", help="a folder to work in; may be given several times")
    options.add_argument(
        "--limit", type=float, default=2.0, metavar="SECONDS", help="for 99 of 100 captures and searches"
    )
    options = options.parse_args(argv)
    folders = options.below or [tempfile.gettempdir(), *([IN_MEMORY] if os.path.isdir(IN_MEMORY) else [])]
    in_all = Tally()
    for folder in folders:
        titles = Tally(f"same titles below {folder}")
        for number in range(options.rounds):
            with Place(folder) as place:
                same_titles(place, options.processes, options.titles, f"round {number}", titles)
        titles.end()
        mixed = Tally(f"everything at once below {folder}")
        with Place(folder) as place:
            most = Mixed(place, mixed, options.seconds, folder).run(options.servers)
        mixed.trial("waiting", [f"one capture or search in 100 took over {most:.2f} s"] if most > options.limit else [])
        mixed.end(f"; 99 of 100 captures and searches took up to {most:.2f} s")
        in_all.add(titles)
        in_all.add(mixed)
    return in_all.end()


if __name__ == "__main__":
    sys.exit(main())
