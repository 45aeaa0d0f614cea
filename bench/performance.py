"""Measures index, capture and search against plain references in the same run: medians of CPU or wall time.

    python bench/performance.py [--cards 10000 | --vault DIR] [--runs 5] [--json]
    python bench/performance.py --save FILE | --baseline FILE     # any ratio over 1.25 times the saved one: exit 1

| line | product | reference |
| index | `memory index` of a new vault | a naive build: read, cut into pairs, one contentless FTS5 table |
| rebuild wall / load cut rows | `memory index --rebuild`, whole process | the same cut rows into the same full text and
cards, best settings, merged |
| rebuild wall / load and lists | the same | that, and the lists of frequent terms made after it |
| no change | `memory index` again | a bare scandir + stat of every file |
| one edited card | `memory index` after one edit | `memory index` without |
| capture | `memory capture` into this vault | the same into a vault of 100 cards |
| search | `memory search` in a vault of 100 cards, in this vault | `python -c "import sqlite3, json"` |
| help | `memory --help` | the same |
| mcp first answer | `memory mcp` up to `initialize` answered and end of input | the same |
| first use | capture and search in one go, wall time | - |
| index size | the index file | the Markdown files |

CPU is user + system time of a process and its children, the peak is the memory of all of them together.
Machines are noisy: the ratios count, for both sides run in turn. A vault that is named is copied first.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from processes import MEMORY, ROOT, run, size_of

QUERIES = ("数据库 备份", "redis timeout", "ecs-prod", "私钥", "how do I restore the backup of the database")
SMALL_CARDS = 100
SETTLE_SECONDS = 2.1  # see RACY_NS of mcore/prepare.py
WORSE = 1.25  # times the saved ratio; less is noise

NAIVE = r"""
import os, re, sqlite3, sys
from operator import add
han = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+")
cut = lambda m: " " + " ".join(map(add, m[0], m[0][1:]) if len(m[0]) > 1 else m[0]) + " "
db = sqlite3.connect(sys.argv[2])
db.execute("CREATE VIRTUAL TABLE f USING fts5(title, body, content='')")
with db:
    for base, _, names in os.walk(sys.argv[1]):
        for name in names:
            if name.endswith(".md"):
                with open(os.path.join(base, name), encoding="utf-8", errors="replace") as handle:
                    db.execute("INSERT INTO f VALUES (?, ?)", (name, han.sub(cut, handle.read().lower())))
"""

# Cuts every card and keeps the rows, as the product would store them.
CUT = r"""
import os, pickle, sys
sys.path.insert(0, sys.argv[1])
from mcore import vault
from mcore.prepare import File, prepare_batches
found = vault.scan(sys.argv[2])
files = [File(rel, vault.file_path(sys.argv[2], rel), None, stamp) for rel, stamp in found.files.items()]
with open(sys.argv[3], "wb") as out:
    for batch in prepare_batches(files, 1 << 24, 1):  # by a helper: so rows are cheapest to load
        pickle.dump([one.row for one in batch if one.row], out, 5)
"""

# Loads those rows; only storing is timed, first without the lists of frequent terms, then with them. The settings are
# the best known: see mcore/store/rebuilding.py.
LOAD = r"""
import pickle, sys, time
sys.path.insert(0, sys.argv[1])
from mcore.store import open_store, rebuilding
store, seconds = open_store(sys.argv[3]), 0.0
rebuilding.begin_loading(store)
with open(sys.argv[2], "rb") as rows, store.writing():
    while True:
        try:
            batch = pickle.load(rows)
        except EOFError:
            break
        started = time.monotonic()
        store.insert(batch)
        seconds += time.monotonic() - started
started = time.monotonic()
rebuilding.merge_loaded(store)
seconds += time.monotonic() - started
started = time.monotonic()
with store.writing():
    store.make_lists()
store.close()
print(seconds, seconds + time.monotonic() - started)
"""

WALK = r"""
import os, sys
def walk(path):
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            walk(entry.path)
        else:
            entry.stat(follow_symlinks=False)
walk(sys.argv[1])
"""

INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench"}},
    }
)


class Bench:
    """One vault being measured; what is written goes to `scratch`."""

    def __init__(self, vault, runs, scratch):
        self.vault, self.runs, self.scratch = vault, runs, scratch
        self.home = os.path.join(scratch, "home")
        self.rows = []

    def ours(self, *words, vault=None, home=None):
        return run([*MEMORY, "--vault", vault or self.vault, *words], home or self.home)

    def python(self, code, *args):
        return run([sys.executable, "-c", code, *args], self.home)

    def pair(self, name, product, reference, runs=None, cost="cpu"):
        """Adds a row: product and reference in turn; each gives a Ran, or the seconds themselves."""
        ours, theirs = [], []
        for _ in range(runs or self.runs):
            ours.append(product())
            theirs.append(reference())
        self.add(name, ours, theirs, cost)

    def add(self, name, ours, theirs, cost):
        """A row of what product and reference took, run by run."""
        spent, reference_spent = ([getattr(r, cost, r) for r in side] for side in (ours, theirs))
        self.rows.append(
            {
                "name": name,
                "cost": cost,
                "seconds": round(statistics.median(spent), 4),
                "reference_seconds": round(statistics.median(reference_spent), 4),
                "ratio": round(statistics.median(a / b for a, b in zip(spent, reference_spent, strict=True)), 3),
                "wall_seconds": round(statistics.median(r.wall for r in ours), 3),
                "peak_mb": round(max(r.peak_mb for r in ours), 1),
            }
        )

    def measure(self):
        """All rows, one after another."""
        self._building()
        self._changes()
        self._processes()
        self._first_use()
        size = os.path.getsize(os.path.join(self.home, "memory.db"))
        self.rows.append({"name": "index size / Markdown size", "ratio": round(size / size_of(self.vault), 3)})
        return self.rows

    def _building(self):
        few = max(1, self.runs // 2)
        naive, cut = (os.path.join(self.scratch, name) for name in ("naive.db", "rows.pickle"))

        def new():
            shutil.rmtree(self.home, ignore_errors=True)
            return self.ours("index")

        def plain():
            _unlink(naive)
            return self.python(NAIVE, self.vault, naive)

        def load():
            path = os.path.join(self.scratch, "load.db")
            _unlink(path)
            return tuple(map(float, self.python(LOAD, ROOT, cut, path).out.split()))

        self.pair("index", new, plain, few)
        self.python(CUT, ROOT, self.vault, cut)
        both = [(self.ours("index", "--rebuild"), load()) for _ in range(few)]
        _unlink(cut)
        ours, loads = zip(*both, strict=True)
        for at, name in enumerate(("rebuild wall / load cut rows", "rebuild wall / load and lists")):
            self.add(name, ours, [seconds[at] for seconds in loads], "wall")

    def _changes(self):
        def edit():
            path = next(
                os.path.join(base, name)
                for base, _, names in os.walk(self.vault)
                for name in sorted(names)
                if name.endswith(".md")
            )
            with open(path, "a", encoding="utf-8") as handle:
                handle.write(f"\nedited at {time.time()}\n")
            return self.ours("index")

        def capture(vault, home):
            title = f"bench card {time.time()}"
            return self.ours("capture", "--title", title, "--body", title + " 数据库 备份", vault=vault, home=home)

        self._settle(self.vault, self.home)
        self.pair("no change", lambda: self.ours("index"), lambda: self.python(WALK, self.vault))
        self.pair("one edited card", edit, lambda: self.ours("index"))
        small, small_home = self.small = [os.path.join(self.scratch, name) for name in ("small", "small-home")]
        make_vault(small, SMALL_CARDS)
        self.ours("index", vault=small, home=small_home)
        self.pair("capture", lambda: capture(self.vault, self.home), lambda: capture(small, small_home))
        self._settle(self.vault, self.home)
        self._settle(small, small_home)

    def _settle(self, vault, home):
        """Indexes once the clock can tell a later edit of every file: until then files are read again."""
        time.sleep(SETTLE_SECONDS)
        self.ours("index", vault=vault, home=home)

    def _processes(self):
        def base():
            return self.python("import sqlite3, json")

        def search(query, vault=None, home=None):
            return self.ours("search", query, vault=vault, home=home)

        for name, places in (("small vault, ", self.small), ("", ())):
            for query in QUERIES:
                self.pair(f"{name}search {query}", lambda q=query, p=places: search(q, *p), base)
        self.pair("help", lambda: run([*MEMORY, "--help"], self.home), base)
        self.pair("mcp first answer", lambda: run([*MEMORY, "mcp"], self.home, INITIALIZE + "\n"), base)

    def _first_use(self):
        started = time.monotonic()
        new = os.path.join(self.scratch, "new")
        run([*MEMORY, "capture", "--title", "first card", "--body", "a card that a newcomer writes first"], new)
        run([*MEMORY, "search", "newcomer"], new)
        self.rows.append({"name": "first use", "wall_seconds": round(time.monotonic() - started, 3)})


def _unlink(path):
    for side in ("", "-wal", "-shm"):
        if os.path.exists(path + side):
            os.unlink(path + side)


def make_vault(path, cards):
    maker = os.path.join(ROOT, "bench", "make_vault.py")
    subprocess.run([sys.executable, maker, path, "--cards", str(cards)], check=True)


def worse(rows, base):
    """What became worse, a line each: ratios over WORSE times those of a saved measurement."""
    return [
        f"{row['name']}: {base[row['name']]} -> {row['ratio']}"
        for row in rows
        if "ratio" in row and row["name"] in base and row["ratio"] > WORSE * base[row["name"]]
    ]


def show(rows):
    print(f"{'':40}{'seconds':>9}{'reference':>11}{'ratio':>8}{'wall s':>9}{'peak MB':>9}")
    for row in rows:
        cells = [row.get(k, "") for k in ("seconds", "reference_seconds", "ratio", "wall_seconds", "peak_mb")]
        print(f"{row['name'][:38]:40}{cells[0]:>9}{cells[1]:>11}{cells[2]:>8}{cells[3]:>9}{cells[4]:>9}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--vault", help="measure a copy of this vault instead of a synthetic one")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", metavar="FILE", help="keep the ratios")
    parser.add_argument("--baseline", metavar="FILE", help="compare with kept ratios")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        vault = os.path.join(scratch, "vault")
        if args.vault:
            shutil.copytree(args.vault, vault)
        else:
            make_vault(vault, args.cards)
        rows = Bench(vault, args.runs, scratch).measure()
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        show(rows)
    ratios = {row["name"]: row["ratio"] for row in rows if "ratio" in row}
    if args.save:
        with open(args.save, "w", encoding="utf-8") as handle:
            json.dump(ratios, handle, ensure_ascii=False, indent=2)
    if args.baseline:
        with open(args.baseline, encoding="utf-8") as handle:
            lines = worse(rows, json.load(handle))
        print(
            "\n".join(["worse than the baseline:", *lines]) if lines else "no worse than the baseline", file=sys.stderr
        )
        sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
