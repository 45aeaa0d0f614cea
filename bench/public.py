"""Scores search on a retrieval set in BEIR's shape, beside other engines over the same cards.

    python bench/public.py DIR... [--sample N] [--only product,porter] [--json]

DIR holds corpus.jsonl, queries.jsonl and qrels.tsv (or qrels/test.tsv), each possibly gzipped. A row
of the corpus has `_id` or `id`, `title`, `text` and perhaps `vault` (one folder of cards each; a query
is asked in its own). Nothing of such a set belongs into this repository.

Every document becomes a Markdown card in a temporary vault, which the product indexes; queries are
asked with default settings, ten hits. SQLite's own tokenizers always stand beside it; tantivy, bm25s
and Xapian where they are installed (bm25s cuts Chinese with jieba, stems English with PyStemmer).
"""

import argparse
import gzip
import hashlib
import json
import math
import os
import re
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

LIMIT = 10
HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
WORD = re.compile(r"\w+")
METRICS = ("nDCG@10", "R@5", "R@10", "MRR@10", "S@1", "empty")


# ---- a set -----------------------------------------------------------------------------------------


def lines(folder, *names):
    """The lines of the first file of these names that is there, gzipped or not."""
    for name in names:
        for path, opener in ((os.path.join(folder, name), open), (os.path.join(folder, name + ".gz"), gzip.open)):
            if os.path.isfile(path):
                with opener(path, "rt", encoding="utf-8") as handle:
                    return handle.read().splitlines()
    sys.exit(f"public: {folder} has no {names[0]}")


def rows(folder, name):
    """(id, vault, title, text) of a corpus or query file."""
    for row in map(json.loads, lines(folder, name)):
        yield (
            str(row.get("_id", row.get("id"))),
            row.get("vault") or "all",
            row.get("title") or "",
            row.get("text") or "",
        )


def judged(folder):
    """query id -> {document id: grade}, grades above 0."""
    grades = defaultdict(dict)
    for line in lines(folder, "qrels.tsv", os.path.join("qrels", "test.tsv")):
        query, document, grade = line.split("\t")[:3]
        if grade.lstrip("-").isdigit() and int(grade) > 0:
            grades[query][document] = int(grade)
    return grades


# ---- engines: (documents) -> a function (query) -> document ids, best first --------------------------


def product(documents, folder):
    """The product as it is shipped."""
    from mcore.app import App

    vault = os.path.join(folder, "vault")
    os.mkdir(vault)
    for number, (_, title, text) in enumerate(documents):
        with open(os.path.join(vault, f"{number}.md"), "w", encoding="utf-8") as handle:
            handle.write(f"---\ntitle: {json.dumps(title, ensure_ascii=False)}\n---\n\n{text}\n")
    app = App(os.path.join(folder, "memory.db"), vault)
    app.indexer.index(app.store)
    return lambda query: [
        documents[int(hit.path[:-3])][0] for hit in app.searcher.search(query, LIMIT, sync=False).hits
    ]


def fts5(tokenizer, joint):
    """SQLite's FTS5 with one of its own tokenizers, the words of a query joined by `joint`."""

    def build(documents, folder):
        db = sqlite3.connect(":memory:")
        db.execute(f"CREATE VIRTUAL TABLE f USING fts5(title, body, tokenize='{tokenizer}')")
        db.executemany("INSERT INTO f VALUES (?, ?)", [document[1:] for document in documents])

        def ask(query):
            words = list(dict.fromkeys(WORD.findall(query.lower())))
            if tokenizer == "trigram":
                words = list(dict.fromkeys(word[at : at + 3] for word in words for at in range(len(word) - 2)))
            if not words:
                return []
            expr = joint.join(f'"{word}"' for word in words)
            found = db.execute("SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT ?", (expr, LIMIT))
            return [documents[rowid - 1][0] for (rowid,) in found]

        return ask

    return build


def tantivy(documents, folder):
    import tantivy

    chinese = any(HAN.search(title + text) for _, title, text in documents[:50])
    name = "pairs" if chinese else "en_stem"
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", stored=False, tokenizer_name=name)
    schema.add_unsigned_field("at", stored=True)
    index = tantivy.Index(schema.build())
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(2, 2)).filter(tantivy.Filter.lowercase()).build()
    if chinese:
        index.register_tokenizer(name, analyzer)
    writer = index.writer(num_threads=1)
    for at, (_, title, text) in enumerate(documents):
        writer.add_document(tantivy.Document(text=f"{title}\n{text}", at=at))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def ask(query):
        # A word of several pairs would be asked as a phrase, so Chinese is cut before it is parsed.
        words = [
            pair
            for word in WORD.findall(query)
            for pair in ([word[i : i + 2] for i in range(len(word) - 1)] if chinese else [word])
        ]
        parsed, _ = index.parse_query_lenient(" ".join(words), ["text"])
        return [documents[searcher.doc(hit)["at"][0]][0] for _, hit in searcher.search(parsed, LIMIT).hits]

    return ask


def bm25(documents, folder):
    import logging

    import bm25s
    import jieba
    import Stemmer

    jieba.setLogLevel(logging.ERROR)
    stemmer = Stemmer.Stemmer("english")

    def cut(text):
        words = [word for word in jieba.cut(text.lower()) if WORD.match(word)]
        return stemmer.stemWords(words)

    known = {}
    corpus = [[known.setdefault(word, len(known)) for word in cut(f"{title}\n{text}")] for _, title, text in documents]
    retriever = bm25s.BM25(k1=1.2, b=0.75)
    retriever.index((corpus, known), show_progress=False)

    def ask(query):
        words = [known[word] for word in cut(query) if word in known]
        if not words:
            return []
        scores = retriever.get_scores(words)
        best = sorted(range(len(documents)), key=lambda at: -scores[at])[:LIMIT]
        return [documents[at][0] for at in best if scores[at] > 0]

    return ask


def xapian(documents, folder):
    import xapian

    generator = xapian.TermGenerator()
    generator.set_stemmer(xapian.Stem("en"))
    generator.set_stemming_strategy(xapian.TermGenerator.STEM_ALL)
    generator.set_flags(xapian.TermGenerator.FLAG_CJK_NGRAM)

    def cut(*texts):
        document = xapian.Document()
        generator.set_document(document)
        for text in texts:
            generator.index_text(text)
        return document

    db = xapian.WritableDatabase("", xapian.DB_BACKEND_INMEMORY)
    for _, title, text in documents:
        db.add_document(cut(title, text))

    def ask(query):
        # The query is cut as a document is: the parser asks for all pairs of a Chinese sentence at once.
        enquire = xapian.Enquire(db)
        enquire.set_query(xapian.Query(xapian.Query.OP_OR, [item.term for item in cut(query).termlist()]))
        return [documents[match.docid - 1][0] for match in enquire.get_mset(0, LIMIT)]

    return ask


ENGINES = {
    "product": product,
    "unicode61 AND": fts5("unicode61", " AND "),
    "unicode61 OR": fts5("unicode61", " OR "),
    "porter OR": fts5("porter unicode61", " OR "),
    "trigram OR": fts5("trigram", " OR "),
    "tantivy": tantivy,
    "bm25s": bm25,
    "xapian": xapian,
}


# ---- scoring ---------------------------------------------------------------------------------------


def score(found, grades):
    """The metrics of one answer; gains are grades, every relevant document counts."""
    gains = [grades.get(document, 0) for document in found[:LIMIT]]
    ideal = sorted(grades.values(), reverse=True)[:LIMIT]
    discounted = [sum(gain / math.log2(at + 2) for at, gain in enumerate(some)) for some in (gains, ideal)]
    first = next((at for at, gain in enumerate(gains) if gain), None)
    return {
        "nDCG@10": discounted[0] / discounted[1],
        "R@5": sum(map(bool, gains[:5])) / len(grades),
        "R@10": sum(map(bool, gains)) / len(grades),
        "MRR@10": 0.0 if first is None else 1 / (first + 1),
        "S@1": float(first == 0),
        "empty": float(not found),
    }


def measure(folder, sample, names):
    """Rows (engine, number of queries, metrics, seconds) of one set."""
    vaults, asked, grades = defaultdict(list), defaultdict(list), judged(folder)
    for id, vault, title, text in rows(folder, "corpus.jsonl"):
        vaults[vault].append((id, title, text))
    queries = [row for row in rows(folder, "queries.jsonl") if grades.get(row[0])]
    if sample and len(queries) > sample:  # the same ones each time
        queries = sorted(queries, key=lambda row: hashlib.sha256(row[0].encode()).digest())[:sample]
    for id, vault, _, text in queries:
        asked[vault].append((id, text))
    for name in names:
        started, scores = time.monotonic(), []
        try:
            for vault, some in asked.items():
                with tempfile.TemporaryDirectory() as place:
                    ask = ENGINES[name](vaults[vault], place)
                    scores += [score(ask(text), grades[id]) for id, text in some]
        except ImportError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        means = {metric: round(sum(row[metric] for row in scores) / len(scores), 4) for metric in METRICS}
        yield name, len(scores), means, round(time.monotonic() - started, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dirs", nargs="+", metavar="DIR")
    parser.add_argument("--sample", type=int, default=0, help="queries a set, the same each time; 0 = all")
    parser.add_argument("--only", help="engines, comma between: " + ", ".join(ENGINES))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    names = [name.strip() for name in args.only.split(",")] if args.only else list(ENGINES)
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        parser.error(f"no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    report = {}
    for folder in args.dirs:
        title = os.path.basename(os.path.normpath(folder))
        if not args.json:
            print(
                f"\n{title}\n\n| engine | queries | {' | '.join(METRICS)} | seconds |\n|"
                + " --- |" * (len(METRICS) + 3)
            )
        report[title] = {}
        for name, count, means, seconds in measure(folder, args.sample, names):
            report[title][name] = {"queries": count, "seconds": seconds, **means}
            if not args.json:
                print(
                    f"| {name} | {count} | {' | '.join(f'{means[m]:.3f}' for m in METRICS)} | {seconds} |", flush=True
                )
    if args.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
