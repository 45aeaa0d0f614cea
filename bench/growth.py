"""How time grows with the number of cards: a table, and a chart in bench/growth.svg.

    python bench/growth.py [--most 100000] [--rows FILE] [--out FILE] [--json]

Synthetic vaults (bench/make_vault.py, seed 1) of 1,000 cards and ten times as many up to --most; 1,000,000
needs 12 GB of disk and half an hour. With --rows the figures are kept in that file, and a number of cards that is in
it is not measured again. CPU time of this machine, medians; the slope counts, not the height.

| line | what |
| index, per card | building the index of a new vault, whole process, divided by the cards |
| search | one query in a warm process, without looking for changed files: titles, identifiers and questions |
| capture | writing and indexing one card in a warm process |
| no change, per card | `index` of an unchanged vault in a warm process, divided by the cards |
"""

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time

from performance import QUERIES, make_vault
from processes import MEMORY, ROOT, run

sys.path.insert(0, ROOT)

from mcore.app import App  # noqa: E402
from mcore.capture import capture  # noqa: E402

OUT = os.path.join(ROOT, "bench", "growth.svg")
SEED = 5
LINES = (
    ("search", "#d62728"),
    ("capture", "#1f77b4"),
    ("index, per card", "#2ca02c"),
    ("no change, per card", "#9467bd"),
)


def measure(cards, scratch):
    """The figures for a vault of that many cards: milliseconds by the names of LINES, and what the build took."""
    vault, home = (os.path.join(scratch, f"{name}-{cards}") for name in ("vault", "home"))
    make_vault(vault, cards)
    built = run([*MEMORY, "--vault", vault, "index"], home)
    os.environ["MEMORY_AGENT_HOME"] = home
    app = App(vault=vault)
    try:
        titles = [row[2] for row in app.store.latest(2000)]
        queries = [*QUERIES, *random.Random(SEED).sample(titles, 25)]
        for query in queries[:5]:
            app.searcher.search(query, sync=False)  # warm
        found = {
            "search": _median([lambda q=q: app.searcher.search(q, sync=False) for q in queries]),
            "capture": _median([lambda n=n: _capture(app, n) for n in range(30)]),
            "index, per card": built.cpu * 1000 / cards,
            "no change, per card": _median([lambda: app.indexer.index(app.store)] * 3) / cards,
        }
    finally:
        app.close()
    size = os.path.getsize(os.path.join(home, "memory.db"))
    return {
        "cards": cards,
        **{name: round(value, 5) for name, value in found.items()},
        "index_wall_seconds": round(built.wall, 1),
        "index_peak_mb": round(built.peak_mb, 1),
        "index_mb": round(size / 1e6, 1),
    }


def _kept(path):
    """cards -> the figures kept in a file; none without one."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as handle:
        return {row["cards"]: row for row in json.load(handle)}


def _keep(path, known):
    with open(path, "w", encoding="utf-8") as handle:
        json.dump([known[cards] for cards in sorted(known)], handle, indent=2)


def _median(calls):
    """The median CPU time of calls, in milliseconds."""
    spent = []
    for call in calls:
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return statistics.median(spent) * 1000


def _capture(app, number):
    title = f"growth {number}: nginx 站点根目录"
    capture(app, title, f"{title} on host ecs-{number} is /srv/www{number}, and the backup runs at night.")


# ---- the chart -----------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 170, 40, 50


def chart(rows):
    """The SVG text: both axes logarithmic, a line for each of LINES."""
    values = [row[name] for row in rows for name, _ in LINES]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(rows[0]["cards"]), max(math.log10(rows[-1]["cards"]), math.log10(rows[0]["cards"]) + 1)

    def x(cards):
        return LEFT + (math.log10(cards) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(ms):
        return HEIGHT - BOTTOM - (math.log10(ms) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">CPU time by number of cards (ms, both axes logarithmic)</text>',
    ]
    for power in range(low, high + 1):
        parts += _grid(LEFT, y(10**power), WIDTH - RIGHT, y(10**power))
        parts.append(f'<text x="{LEFT - 8}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for row in rows:
        parts += _grid(x(row["cards"]), TOP, x(row["cards"]), HEIGHT - BOTTOM)
        parts.append(f'<text x="{x(row["cards"]):.1f}" y="{HEIGHT - 28}" text-anchor="middle">{row["cards"]:,}</text>')
    ends = []
    for name, colour in LINES:
        points = [(x(row["cards"]), y(row[name])) for row in rows]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points]
        ends.append((points[-1][1] + 4, name, colour))
    lowest = 0.0
    for at, name, colour in sorted(ends):
        lowest = max(at, lowest + 15)  # no name over another
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{lowest:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _grid(*ends):
    return ['<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#ddd"/>'.format(*ends)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=100_000, help="cards of the largest vault")
    parser.add_argument("--rows", metavar="FILE", help="figures of earlier runs; new ones are added")
    parser.add_argument("--out", default=OUT, help="where the chart goes")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    known, cards = _kept(args.rows), 1000
    while cards <= args.most:
        if cards not in known:
            with tempfile.TemporaryDirectory() as scratch:
                known[cards] = measure(cards, scratch)
            if args.rows:
                _keep(args.rows, known)
        if not args.json:
            print("  ".join(f"{name} {value:,}" for name, value in known[cards].items()), flush=True)
        cards *= 10
    rows = [known[cards] for cards in sorted(known)]
    with open(args.out, "w", encoding="utf-8", newline="\n") as handle:
        handle.write(chart(rows))
    if args.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
