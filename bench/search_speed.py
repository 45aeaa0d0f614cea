"""Measures search in a warm process beside plain FTS5 and beside the same ranking without short cuts.

    python bench/search_speed.py VAULT [--db FILE] [--queries 200] [--seed 1] [--whole 50] [--json]

The queries are drawn from the cards with a fixed seed, in equal shares: one to three keywords, an identifier,
two Chinese characters, keywords of both scripts, and a question in a sentence of the card. Each is asked of

| column | what |
| product | `searcher.search(query, sync=False)`: ranking, snippets, whether the files are there |
| FTS5 | the same terms joined by OR, `ORDER BY rank LIMIT 10`, on the product's own table |
| whole | the product's ranking with every list read to its end (the first `--whole` queries of each sort) |

in turn. Times are CPU milliseconds of this process; `overlap` is the share of the ten cards that the ranking without
short cuts gives, `first` how often both have the same first card.
"""

import argparse
import json
import os
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from mcore.app import App  # noqa: E402
from mcore.ranking import Ranking  # noqa: E402
from mcore.tokenize import split_query, term_expr  # noqa: E402

SORTS = ("keywords", "identifier", "two characters", "mixed", "question")
LIMIT = 10
_WORD = re.compile(r"(?<![\w.-])[A-Za-z]{4,20}(?![\w.-])")
_NAME = re.compile(r"(?<![\w./-])[A-Za-z]+(?:[_.-][A-Za-z0-9]+|[A-Z][a-z0-9]+)+(?![\w./-])")
_HAN = re.compile("[\u4e00-\u9fff]{2,}")
_SENTENCE = re.compile(r"[^。！？!?；;\n|#`]{12,120}")


# ---- queries -------------------------------------------------------------------------------------


def drawn(vault, paths, count, seed):
    """(sort, query) pairs, `count` in all, from cards chosen by `seed`."""
    rng, queries = random.Random(seed), []
    while len(queries) < count:
        sort = SORTS[len(queries) % len(SORTS)]
        with open(os.path.join(vault, rng.choice(paths)), encoding="utf-8", errors="replace") as handle:
            body = handle.read().split("\n---\n", 1)[-1]
        query = _query(rng, sort, body)
        if query:
            queries.append((sort, query))
    return queries


def _query(rng, sort, body):
    """A query of one sort out of a card's body; "" when it holds none."""
    words, names, runs = _WORD.findall(body), _NAME.findall(body), _HAN.findall(body)
    if sort == "keywords":
        some = [*words, *(_piece(rng, run, 2, 4) for run in runs)]
        return " ".join(rng.sample(some, min(len(some), rng.randint(1, 3))))
    if sort == "identifier":
        return rng.choice(names) if names else ""
    if sort == "two characters":
        return _piece(rng, rng.choice(runs), 2, 2) if runs else ""
    if sort == "mixed":
        return f"{rng.choice(words)} {_piece(rng, rng.choice(runs), 2, 4)}" if words and runs else ""
    sentences = _SENTENCE.findall(body)
    return rng.choice(sentences).strip() + "?" if sentences else ""


def _piece(rng, run, least, most):
    at = rng.randrange(len(run) - 1)
    return run[at : at + rng.randint(least, most)]


# ---- what is compared ----------------------------------------------------------------------------


def plain(connection, query):
    """The ten cards of a plain FTS5 search for any of the terms."""
    expr = " OR ".join(map(term_expr, split_query(query)[0]))
    sql = "SELECT rowid FROM cards_fts WHERE cards_fts MATCH ? ORDER BY rank LIMIT ?"
    return connection.execute(sql, (expr, LIMIT)).fetchall()


def best(store, query, is_whole):
    """The rel_paths of the ten best cards for any term, with or without short cuts."""
    with store.reading():
        scores = Ranking(store, is_whole).scores(query)
        docs = sorted(scores, key=lambda doc: -scores[doc])[: 10 * LIMIT]
        rows = [row._replace(score=scores[doc]) for doc, row in store.found(docs).items()]
    return [row.rel_path for row in sorted(rows, key=lambda row: (-row.score, row.rel_path))[:LIMIT]]


def timed(function, *args, **more):
    started = time.process_time()
    result = function(*args, **more)
    return 1000 * (time.process_time() - started), result


def measure(app, queries, whole):
    """Rows {sort, product, plain, overlap, first}, one a query; the last two for the first `whole` of a sort."""
    rows, asked = [], dict.fromkeys(SORTS, 0)
    searcher = app.searcher
    searcher.search("warm", sync=False)
    with closing(sqlite3.connect(app.store.path)) as connection:
        for sort, query in queries:
            ours, found = timed(searcher.search, query, LIMIT, sync=False)
            theirs, _ = timed(plain, connection, query)
            row = {"sort": sort, "query": query, "product": ours, "plain": theirs, "hits": len(found.hits)}
            asked[sort] += 1
            if asked[sort] <= whole:
                quick, full = (best(app.store, query, is_whole) for is_whole in (False, True))
                if full:
                    row["overlap"] = len(set(quick) & set(full)) / len(full)
                    row["first"] = float(quick[:1] == full[:1])
            rows.append(row)
    return rows


def summary(name, rows):
    times, theirs = sorted(row["product"] for row in rows), sorted(row["plain"] for row in rows)
    at = min(len(rows) - 1, int(0.95 * len(rows)))
    line = {
        "sort": name, "queries": len(rows), "p50_ms": statistics.median(times), "p95_ms": times[at],
        "max_ms": times[-1], "plain_p50_ms": statistics.median(theirs), "plain_p95_ms": theirs[at],
        "p95_ratio": times[at] / max(theirs[at], 1e-6),
    }  # fmt: skip
    for key in ("overlap", "first"):
        values = [row[key] for row in rows if key in row]
        line[key] = statistics.mean(values) if values else None
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in line.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vault")
    parser.add_argument("--db", help="an index of the vault that is there already; else one is made")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", type=int, default=50, help="queries of each sort compared with the whole ranking")
    parser.add_argument("--slowest", type=int, default=0, help="print so many of the slowest queries")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    vault = os.path.abspath(args.vault)
    with tempfile.TemporaryDirectory() as scratch:
        app = App(args.db or os.path.join(scratch, "memory.db"), vault)
        if not args.db:
            app.indexer.index(app.store)
        rows = measure(app, drawn(vault, app.store.paths(), args.queries, args.seed), args.whole)
        app.close()
    lines = [summary(sort, [row for row in rows if row["sort"] == sort]) for sort in SORTS] + [summary("all", rows)]
    if args.json:
        print(json.dumps(lines, indent=1))
        return
    print("| " + " | ".join(lines[0]) + " |\n|" + " --- |" * len(lines[0]))
    for line in lines:
        print("| " + " | ".join(str(value) for value in line.values()) + " |")
    for row in sorted(rows, key=lambda row: -row["product"])[: args.slowest]:
        print(f"{row['product']:8.1f} ms  plain {row['plain']:8.1f} ms  {row['sort']}: {row['query']}")


if __name__ == "__main__":
    main()
