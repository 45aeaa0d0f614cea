"""Measures the search on a truth file, keeps and compares measurements, drafts a truth file.

Truth names cards by rel_path, never by id (a rebuild may number anew). It names local cards, so its
place is the data root; the form is that of `bench/truth.json`.
"""

import json
import os
import re

from mcore import vault
from mcore.cardfile import read_card
from mcore.errors import CardError, SetupError, UsageError, warning
from mcore.quality import LONG, METRICS, Outcome, compare, score, summarize
from mcore.record import namedtuple
from mcore.render import plain

MAX_BYTES = 64 << 20  # ours, 282 queries, has 38 kB, its measurement 0.2 MB

Query = namedtuple("Query", "group query acceptable kind source")
Measured = namedtuple("Measured", "truth vault cards metrics results comparison saved warnings")
Drafted = namedtuple("Drafted", "status truth queries warnings")
Drafted.__doc__ = """`status` is "drafted", or "conflict" when the file was there: it is left as it is."""

_TRUTH_HINT = (
    'memory bench --init drafts one from your vault; its form: {"queries": [{"group": "A", "query": "words", '
    '"acceptable": ["03-Knowledge/card.md"]}]}'
)
_BASELINE_HINT = "memory bench --save FILE writes one"


def measure(app, truth=None, baseline=None, save=None):
    """The Measured of every query of a truth file (default: the data root's), default settings, limit 10.

    The index is brought up to date first, without a time limit. Raises SetupError for a missing or broken
    truth file or baseline (file, line, reason) before anything is searched.
    """
    path = _file(truth) or app.settings.bench_queries.path
    queries = read_truth(path)
    before = read_baseline(_file(baseline)) if baseline is not None else None
    if save is not None:
        _refuse_other_files(_file(save))
    app.indexer.index(app.store)
    known = set(app.store.paths())
    searcher = app.searcher
    outcomes = [_outcome(searcher, query) for query in queries]
    metrics = summarize(outcomes)
    comparison = compare(_file(baseline), before, metrics, outcomes) if before else None
    warnings = [] if known else app.indexer.files.vault_warnings()
    for name in dict.fromkeys(name for query in queries for name in query.acceptable if name not in known):
        asked = [query.query for query in queries if name in query.acceptable]
        warnings.append(
            warning("no-card", f"{name} is no card of the vault; it counts as not found for: {', '.join(asked)}",
                    f"correct its rel_path in {path}")
        )  # fmt: skip
    result = Measured(path, app.settings.vault.path, len(known), metrics, outcomes, comparison, _file(save), warnings)
    if save is not None:
        _save(result)
    return result


def _outcome(searcher, query):
    found = searcher.search(query.query, LONG, kind=query.kind, source=query.source, sync=False)
    paths, tiers = [hit.path for hit in found.hits], [hit.matched for hit in found.hits]
    return Outcome(*query[:2], query.kind, query.source, query.acceptable, (tiers or [""])[0], paths,
                   score(query.acceptable, paths, tiers))  # fmt: skip


def explain(app, query):
    """The Result of a query with the account of how its hits got their score."""
    app.indexer.index(app.store)
    return app.searcher.search(query, LONG, sync=False, is_explained=True)


def _file(value):
    """The absolute path of a file named on the command line; None stays None."""
    if value is None:
        return None
    if not value or "\0" in value:
        raise UsageError("bench: that is no file name", hint="give a plain path")
    return os.path.abspath(os.path.expanduser(value))


# ---- files ---------------------------------------------------------------------------------------


def read_truth(path):
    """The Queries of a truth file. Raises SetupError with the line and the reason when it cannot be used."""
    what = "truth file"
    text, content = _read_json(path, what, _TRUTH_HINT)
    entries = content.get("queries") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise _broken(path, what, 1, 'it must hold {"queries": [...]} with at least one query', _TRUTH_HINT)
    queries = []
    for number, entry in enumerate(entries):
        fault = _fault(entry)
        if fault:
            raise _broken(path, what, _line_of_entry(text, number), f"query {number + 1}: {fault}", _TRUTH_HINT)
        acceptable = list(dict.fromkeys(entry["acceptable"]))
        queries.append(Query(entry["group"], entry["query"], acceptable, entry.get("kind"), entry.get("source")))
    return queries


def _fault(entry):
    """Why an entry of a truth file is no query; "" when it is one."""
    if not isinstance(entry, dict):
        return "it must be an object"
    for key in ("group", "query"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            return f"{key!r} must be a text"
    if entry["group"] == "all":
        return "'all' stands for every group, choose another name"
    acceptable = entry.get("acceptable")
    if not isinstance(acceptable, list) or not all(isinstance(path, str) and path for path in acceptable):
        return "'acceptable' must be a list of rel_paths ([] when nothing should be found)"
    for key in ("kind", "source"):
        if entry.get(key) is not None and not isinstance(entry[key], str):
            return f"{key!r} must be a text"
    return ""


def _line_of_entry(text, number):
    """The line on which the entry `number` (from 0) of "queries" begins; 1 when it cannot be told."""
    decoder, start = json.JSONDecoder(), re.search(r'"queries"\s*:\s*\[', text)
    at = start.end() if start else 0
    try:
        for _ in range(number):
            at = decoder.raw_decode(text, re.compile(r"[\s,]*").match(text, at).end())[1]
    except ValueError:
        return 1
    return text.count("\n", 0, re.compile(r"[\s,]*").match(text, at).end()) + 1


def read_baseline(path):
    """A saved measurement in its plain form. Raises SetupError when the file is none."""
    _, content = _read_json(path, "baseline", _BASELINE_HINT)
    if not _is_measurement(content):
        raise _broken(path, "baseline", 1, "it is not what memory bench --save writes", _BASELINE_HINT)
    return content


def _is_measurement(content):
    """Whether a JSON value has the shape that `compare` reads."""
    if not isinstance(content, dict) or not isinstance(content.get("results"), list):
        return False
    groups = content.get("metrics")
    if not isinstance(groups, dict) or not all(map(_are_figures, groups.values())):
        return False
    for result in content["results"]:
        if not isinstance(result, dict) or not _are_figures(result.get("scores")):
            return False
        texts = [result.get("group"), result.get("query"), result.get("kind") or "", result.get("source") or ""]
        paths = result.get("paths")
        if not isinstance(paths, list) or not all(isinstance(text, str) for text in texts + paths):
            return False
    return True


def _are_figures(value):
    """Whether a JSON value maps metrics to numbers near 0 to 1 or null (NaN is neither)."""
    if not isinstance(value, dict):
        return False
    figures = [value.get(metric.name) for metric in METRICS]
    return all(f is None or isinstance(f, (int, float)) and -100 < f < 100 for f in figures)


def _read_json(path, what, hint):
    """(text, value) of a JSON file; SetupError names what is missing or broken."""
    if not os.path.lexists(path):
        raise SetupError(f"there is no {what} {path}", "", hint)
    try:
        data, _ = vault.read_bytes(os.path.realpath(path), MAX_BYTES)
    except CardError as error:
        raise SetupError(f"cannot read the {what} {path}", error.message, hint) from None
    try:
        text = data.decode("utf-8-sig")
        return text, json.loads(text)
    except UnicodeDecodeError as error:
        line, reason = data.count(b"\n", 0, error.start) + 1, "it is not UTF-8 text"
    except json.JSONDecodeError as error:
        line, reason = error.lineno, f"it is not JSON ({error.msg}, column {error.colno})"
    except (ValueError, RecursionError):
        line, reason = 1, "it is not usable JSON"
    raise _broken(path, what, line, reason, hint)


def _broken(path, what, line, reason, hint):
    cure = f"correct that line, or move the file away; {hint}"
    return SetupError(f"cannot use the {what} {path}", f"line {line}: {reason}", cure)


def _refuse_other_files(path):
    """Raises SetupError when a file to save to holds something else than a former measurement."""
    if not os.path.lexists(path) or os.path.isfile(path) and not os.path.getsize(path):
        return
    try:
        read_baseline(path)
    except SetupError:
        why = "it is not a measurement that was saved before"
        raise SetupError(f"will not replace {path}", why, "choose another file with --save") from None


def _save(result):
    """Writes metrics and results, a query a line, to `result.saved` (0600 when new)."""
    from mcore.clients import files

    metrics = json.dumps(plain(result.metrics), ensure_ascii=False, indent=1)
    text = f'{{"cards": {result.cards},\n"metrics": {metrics},\n"results": [\n{_a_line_each(result.results)}\n]}}\n'
    try:
        files.write(result.saved, files.read(result.saved), text, None)
    except SetupError as error:
        raise SetupError(error.message, error.why, "choose another file with --save") from None


def _a_line_each(entries):
    """JSON of a list's entries, each on its own line: a difference can be read."""
    return ",\n".join("  " + json.dumps(plain(entry), ensure_ascii=False) for entry in entries)


# ---- a first truth file --------------------------------------------------------------------------

DRAFTED = 10  # queries a group; the user reads every one
SAMPLED = 60  # cards that queries are drawn from
MAX_ACCEPTABLE = 5  # a word that more cards hold is no question

_IDENTIFIER = re.compile(
    r"(?<![\w./:@%=-])(?:[A-Za-z0-9]+(?:[_.\-][A-Za-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]+|[A-Z][a-z]+[A-Z][A-Za-z0-9]+)"
    r"(?![\w/:@=-])", re.A
)  # fmt: skip
_HEADING = re.compile(r"^ {0,3}#{2,6}[ \t]+(\S.*)$", re.M)


def draft(app, truth=None):
    """Drafts a truth file for the user to correct: keywords of titles and headings (group A), identifiers (C).

    Acceptable are the cards whose text literally holds every word, found by reading all of them, not by
    searching. Text that looks like a credential is left out. An existing file is never replaced.
    """
    path = _file(truth) or app.settings.bench_queries.path
    if os.path.lexists(path):
        return Drafted("conflict", path, [], [])
    app.indexer.index(app.store)
    ids = app.store.ids()
    names = app.store.real_names(ids.values())
    searchable = app.searcher.searchable()  # a forgotten, closed or scoped card is the right answer to none of these
    cards = [(rel_path, names[id]) for rel_path, id in sorted(ids.items()) if rel_path in searchable]
    if not cards:
        raise SetupError("there is no card to draft queries from", f"the vault {app.settings.vault.path} holds none",
                         "capture a card, or point --vault at a folder of notes")  # fmt: skip
    drawn = _draw(_texts(app, cards[:: max(1, len(cards) // SAMPLED)][:SAMPLED]))
    _fill_in(_texts(app, cards), drawn)
    queries = []
    for group in "AC":
        fit = [e for e in drawn if e["group"] == group and 0 < len(e["acceptable"]) <= MAX_ACCEPTABLE]
        fit.sort(key=lambda entry: entry["note"])
        queries += fit[:: max(1, len(fit) // DRAFTED)][:DRAFTED]
    text = '{"queries": [\n' + _a_line_each(queries) + "\n]}\n"
    return Drafted("drafted" if _publish(path, text) else "conflict", path, queries, [])


def _texts(app, cards):
    """(rel_path, title, body, labels) of each card as its file has it; what cannot be read is passed over."""
    root, max_bytes = app.settings.vault.path, app.settings.max_card_bytes
    for done, (rel_path, name) in enumerate(cards):
        if app.progress:
            app.progress(done, len(cards))
        try:
            data, _ = vault.read_bytes(vault.file_path(root, name), max_bytes)
        except CardError:
            continue
        card = read_card(rel_path, vault.decode(data)[0])
        yield rel_path, card.title, card.body, card.labels


def _draw(texts):
    """Entries of a truth file without their cards: from each card its title, a heading, identifiers."""
    from mcore.secretscan import redact

    drawn = {}
    for _, title, body, _ in texts:
        title, body = (re.sub(r"redacted-\S+", " ", redact(text)) for text in (title, body))
        heading = "".join(_HEADING.findall(body)[:1])
        names = [word for word in _IDENTIFIER.findall(body) if 4 < len(word) < 40]
        names.sort(key=_is_plain)
        for group, query, drawn_from in (
            ("A", " ".join(_keywords(title)), "title"),
            ("A", " ".join(_keywords(heading)), "heading"),
            *(("C", name, "identifier") for name in names[:3]),
        ):
            if query:
                entry = {"group": group, "query": query, "acceptable": [], "note": f"draft: {drawn_from}"}
                drawn.setdefault(query.casefold(), entry)
    return list(drawn.values())


def _is_plain(name):
    """Whether an identifier may be a compound word of prose (`well-known`) or a mere number: the last choice."""
    letters = re.sub(r"[.\-]", "", name)
    return letters.isdigit() or letters.isalpha() and letters.islower()


def _keywords(line):
    """At most three words of a title or heading: the longest, in their order."""
    from mcore.tokenize import UNSPACED

    words = dict.fromkeys(re.findall(rf"[{UNSPACED}]{{2,}}|[^\W_{UNSPACED}](?:[_.\-]?[^\W_{UNSPACED}])+", line))
    longest = sorted(words, key=len, reverse=True)[:3]
    return [word for word in words if word in longest]


def _fill_in(texts, entries):
    """Adds to each entry the cards that literally hold its words, Latin ones as whole words."""
    words = {word for entry in entries for word in entry["query"].casefold().split()}
    patterns = {word: re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])") for word in words}
    for rel_path, *parts in texts:
        text = "\n".join(parts).casefold()
        held = {word for word in words if word in text and patterns[word].search(text)}
        for entry in entries:
            if held.issuperset(entry["query"].casefold().split()):
                entry["acceptable"].append(rel_path)


def _publish(path, text):
    """Writes a new file (0600, its folder 0700); False when somebody else made it meanwhile."""
    folder, name = os.path.split(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return vault.publish(folder, name, text.encode("utf-8"))
    except OSError as error:
        why = error.strerror or str(error)
        raise SetupError(f"cannot write {path}", why, "choose another file with --truth") from None
