"""The same queries by memory-agent and by what people use instead, side by side: found or not, CPU, memory.

    python bench/peers.py [--queries 20] [--vault DIR] [--json]

Without --vault: bench/vault and its truth; found means that an acceptable card is among the first ten
results. With --vault: titles of cards drawn from it (fixed seed); found means that card. Whatever is not
installed is left out. `grep` and `rg` look for the text of the query (-F, any case); `grep, each word` for
files that hold every word. humona and qmd index a copy of the vault first, with a home of their own;
that work is counted apart. A program that needs less memory than this one (16 MB) is shown with that.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile

from processes import MEMORY, ROOT, run

sys.path.insert(0, ROOT)

from mcore.cardfile import read_card  # noqa: E402

FIRST = 10
SEED = 5


class Memory:
    """memory-agent itself."""

    name = "memory-agent"

    def prepare(self, vault, home):
        return [run([*MEMORY, "--vault", vault, "index"], home)]

    def ask(self, query, vault, home):
        ran = run([*MEMORY, "--vault", vault, "search", query, "--json"], home)
        return [ran], [hit["path"] for hit in json.loads(ran.out)["hits"]]


class Grep:
    """One call of grep or rg that lists the files with the query's text."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def prepare(self, vault, home):
        return []

    def ask(self, query, vault, home):
        ran = run([*self.command, "-e", query, vault], home, expected=(0, 1, 2))
        return [ran], [os.path.relpath(line, vault) for line in ran.out.splitlines()]


class GrepWords(Grep):
    """grep for the first word, then for each further word among the files found."""

    def ask(self, query, vault, home):
        runs, files = [], [vault]
        for word in query.split():
            runs.append(run([*self.command, "-e", word, *files], home, expected=(0, 1, 2)))
            files = runs[-1].out.splitlines()[:1000]  # what a command line takes
            if not files:
                break
        return runs, [os.path.relpath(file, vault) for file in files]


class Humona:
    """humona: a vault of its own, into which the notes are copied."""

    name = "humona"

    def prepare(self, vault, home):
        self.folder = os.path.join(home, "humona")
        os.makedirs(self.folder)
        commands = (["git", "init", "-q"], ["humona", "init"], ["humona", "ingest", vault, "--name", "v"])
        return [run(command, home, expected=(), folder=self.folder) for command in commands]

    def ask(self, query, vault, home):
        command = ["humona", "search", query, "-t", "knowledge"]
        ran = run(command, home, expected=(), folder=self.folder)
        return [ran], _named(ran.out, vault)


class Qmd:
    """qmd: an index over the notes where they are, keyword search only."""

    name = "qmd"

    def prepare(self, vault, home):
        return [self._run(["qmd", "collection", "add", vault, "--name", "v"], home)]

    def ask(self, query, vault, home):
        ran = self._run(["qmd", "search", query, "-n", str(FIRST), "--json"], home)
        return [ran], _named(ran.out, vault)

    @staticmethod
    def _run(command, home):
        return run(command, home, expected=(), XDG_CACHE_HOME=home, XDG_CONFIG_HOME=home)


def _named(text, vault):
    """The notes whose file names stand in an answer, in its order."""
    places = {}
    for base, _, names in os.walk(vault):
        for name in names:
            at = text.casefold().find(name.removesuffix(".md").casefold())
            if at >= 0:
                places[os.path.relpath(os.path.join(base, name), vault)] = at
    return sorted(places, key=places.get)


def installed():
    peers = [Memory(), Grep("grep -rliF", ["grep", "-rliF"]), GrepWords("grep, each word", ["grep", "-rliF"])]
    found = [peer for peer in peers if peer.name == "memory-agent" or shutil.which("grep")]
    if shutil.which("rg"):
        found.append(Grep("rg -liF", ["rg", "-liF"]))
    return found + [peer for peer in (Humona(), Qmd()) if shutil.which(peer.name)]


def judged_queries(count):
    """(query, acceptable paths) from the bench's truth, spread over its groups."""
    with open(os.path.join(ROOT, "bench", "truth.json"), encoding="utf-8") as handle:
        queries = [(q["query"], set(q["acceptable"])) for q in json.load(handle)["queries"] if q["acceptable"]]
    return random.Random(SEED).sample(queries, min(count, len(queries)))


def drawn_queries(vault, count):
    """(title, its path) of cards of a vault."""
    paths = sorted(
        os.path.join(base, name) for base, _, names in os.walk(vault) for name in names if name.endswith(".md")
    )
    queries = []
    for path in random.Random(SEED).sample(paths, min(count, len(paths))):
        rel_path = os.path.relpath(path, vault)
        with open(path, encoding="utf-8", errors="replace") as handle:
            queries.append((read_card(rel_path, handle.read()).title[:80], {rel_path}))
    return queries


def measure(vault, queries, scratch):
    """A row for each program that is installed."""
    rows = []
    for peer in installed():
        home = os.path.join(scratch, peer.name.split()[0] + str(len(rows)))
        os.makedirs(home)
        before = peer.prepare(vault, home)
        found, cpu, wall, peak, answers = 0, [], [], 0, []
        for query, acceptable in queries:
            runs, paths = peer.ask(query, vault, home)
            answers.append(len(paths))
            found += bool(acceptable & set(paths[:FIRST]))
            cpu.append(sum(ran.cpu for ran in runs))
            wall.append(sum(ran.wall for ran in runs))
            peak = max(peak, *(ran.peak_mb for ran in runs))
        rows.append(
            {
                "name": peer.name,
                "found": found,
                "queries": len(queries),
                "answers": round(statistics.mean(answers), 1),
                "cpu_seconds": round(statistics.median(cpu), 4),
                "wall_seconds": round(statistics.median(wall), 4),
                "peak_mb": round(peak, 1),
                "index_cpu_seconds": round(sum(ran.cpu for ran in before), 2),
                "index_peak_mb": round(max((ran.peak_mb for ran in before), default=0), 1),
            }
        )
    return rows


def show(rows):
    print(
        f"{'':18}{'found':>9}{'answers':>9}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'index CPU s':>13}{'index MB':>10}"
    )
    for row in rows:
        found = f"{row['found']}/{row['queries']}"
        print(
            f"{row['name']:18}{found:>9}{row['answers']:>9}{row['cpu_seconds']:>9}{row['wall_seconds']:>9}"
            f"{row['peak_mb']:>9}{row['index_cpu_seconds']:>13}{row['index_peak_mb']:>10}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--vault", help="ask for cards of this vault instead of bench/vault; it is only read")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    vault = os.path.abspath(args.vault or os.path.join(ROOT, "bench", "vault"))
    queries = drawn_queries(vault, args.queries) if args.vault else judged_queries(args.queries)
    with tempfile.TemporaryDirectory() as scratch:
        rows = measure(vault, queries, scratch)
    print(json.dumps(rows, ensure_ascii=False, indent=2)) if args.json else show(rows)


if __name__ == "__main__":
    main()
