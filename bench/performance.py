"""Measures index and search against plain references in the same run: CPU time and medians.

    python bench/performance.py [--cards 10000 | --vault DIR] [--runs 5] [--json]

| line | product | reference |
| index | `memory index` of a new vault | a naive build: read, cut into pairs, one contentless FTS5 table |
| no change | `memory index` again | a bare scandir + stat of every file |
| search | `memory search`, whole process | `python -c "import sqlite3, json"` |
| help | `memory --help` | the same |
| mcp first answer | `memory mcp` up to `initialize` answered and end of input | the same |
| first use | capture and search in one go, wall time | - |

CPU is user + system time of the whole process; figures are medians. Machines are noisy: the ratios
count, for both sides run in turn.
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEMORY = [sys.executable, os.path.join(ROOT, "memory.py")]
QUERIES = ("数据库 备份", "redis timeout", "ecs-prod", "私钥", "how do I restore the backup of the database")

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


def run(command, home):
    """(CPU seconds, wall seconds, peak MB) of one process that is given one MCP line to read.

    Byte code is cached as on any ordinary machine, whatever the environment says.
    """
    started = time.monotonic()
    env = {**os.environ, "MEMORY_AGENT_HOME": home}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env
    )
    try:
        process.stdin.write(INITIALIZE.encode() + b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass
    _, status, usage = os.wait4(process.pid, 0)
    error = process.stderr.read().decode()
    process.stderr.close()
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{command} failed: {error}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1024


def pair(name, product, reference, runs, before_product=None, before_reference=None):
    """One row: product and reference in turn, `runs` times; `before_*` prepare each run."""
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(run(product(), before_product() if before_product else None))
        theirs.append(run(reference(), before_reference() if before_reference else None))
    cpu, reference_cpu = (statistics.median(r[0] for r in rows) for rows in (ours, theirs))
    return {
        "name": name,
        "cpu_seconds": round(cpu, 4),
        "reference_cpu_seconds": round(reference_cpu, 4),
        "ratio": round(statistics.median(a[0] / b[0] for a, b in zip(ours, theirs, strict=True)), 3),
        "wall_seconds": round(statistics.median(r[1] for r in ours), 3),
        "peak_mb": round(max(r[2] for r in ours), 1),
    }


def measure(vault, runs, scratch):
    home = os.path.join(scratch, "home")

    def fresh():
        shutil.rmtree(home, ignore_errors=True)
        return home

    def no_database():
        path = os.path.join(scratch, "naive.db")
        if os.path.exists(path):
            os.unlink(path)
        return home

    def ours(*words):
        return lambda: [*MEMORY, "--vault", vault, *words]

    def bare(code, *args):
        return lambda: [sys.executable, "-c", code, *args]

    base = bare("import sqlite3, json")
    naive = bare(NAIVE, vault, os.path.join(scratch, "naive.db"))
    rows = [pair("index", ours("index"), naive, max(3, runs // 2), fresh, no_database)]
    rows.append(pair("no change", ours("index"), bare(WALK, vault), runs, lambda: home, lambda: home))
    for query in QUERIES:
        rows.append(pair(f"search {query}", ours("search", query), base, runs, lambda: home, lambda: home))
    rows.append(pair("help", lambda: [*MEMORY, "--help"], base, runs, lambda: home, lambda: home))
    rows.append(pair("mcp first answer", lambda: [*MEMORY, "mcp"], base, runs, lambda: home, lambda: home))
    started = time.monotonic()
    new = os.path.join(scratch, "new")
    run([*MEMORY, "capture", "--title", "first card", "--body", "a card that a newcomer writes first"], new)
    run([*MEMORY, "search", "newcomer"], new)
    rows.append({"name": "first use", "wall_seconds": round(time.monotonic() - started, 3)})
    size = os.path.getsize(os.path.join(home, "memory.db"))
    text = sum(os.path.getsize(os.path.join(b, n)) for b, _, names in os.walk(vault) for n in names)
    rows.append({"name": "index size / Markdown size", "ratio": round(size / text, 3)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--vault", help="measure this vault instead of a synthetic one")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        vault = args.vault
        if vault is None:
            vault = os.path.join(scratch, "vault")
            maker = os.path.join(ROOT, "bench", "make_vault.py")
            subprocess.run([sys.executable, maker, vault, "--cards", str(args.cards)], check=True)
        rows = measure(os.path.abspath(vault), args.runs, scratch)
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    print(f"{'':36}{'CPU s':>9}{'reference':>11}{'ratio':>8}{'wall s':>9}{'peak MB':>9}")
    for row in rows:
        cells = [row.get(k, "") for k in ("cpu_seconds", "reference_cpu_seconds", "ratio", "wall_seconds", "peak_mb")]
        print(f"{row['name'][:34]:36}{cells[0]:>9}{cells[1]:>11}{cells[2]:>8}{cells[3]:>9}{cells[4]:>9}")


if __name__ == "__main__":
    main()
