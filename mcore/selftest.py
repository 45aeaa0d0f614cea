"""Holds the search against a plain look through the files: recall by script, every miss by name.

Words and phrases are drawn from the user's own cards. A search must find every card that a plain
scan finds (it may find more: other forms of a word, both Chinese scripts). 1.0 is the promise.
"""

import time

from mcore import secretscan, vault
from mcore.card import content_hash
from mcore.cardfile import read_card
from mcore.errors import CardError, warning
from mcore.plainscan import SCRIPTS, draw, holds, plain
from mcore.record import namedtuple
from mcore.scope import ALL
from mcore.search import ANY_TIME, MAX_LIMIT
from mcore.tokenize import without_payloads

SAMPLES = 20  # queries of each script

Result = namedtuple("Result", "seed cards queries recall scripts misses seconds warnings")
Result.__doc__ = """How much of what is in the files the search finds.

`scripts` has an entry for each script that was drawn, `misses` every card that a search did not
find and a plain scan did; `seed` draws the same again.
"""
Recall = namedtuple("Recall", "script queries expected found recall")
Miss = namedtuple("Miss", "script query path why")

_Card = namedtuple("_Card", "file digest text")


def selftest(app, seed=None, samples=SAMPLES):
    """The Result for `samples` queries of each script; `seed` None takes one of chance."""
    import random

    started = time.monotonic()
    seed = random.randrange(1 << 32) if seed is None else seed
    app.indexer.index(app.store)
    cards, asked = _read(app, random.Random(seed), samples)
    scripts, misses = [], []
    for script in SCRIPTS:
        queries = sorted(asked.get(script, ()))
        if not queries:
            continue
        expected = found = 0
        for query in queries:
            needle = plain(query)
            wanted = {path for path, card in cards.items() if needle in card.text and holds(card.text, needle)}
            missed = [miss for miss in _missed(app, script, query, wanted) if _stands(app, cards[miss.path])]
            expected += len(wanted)
            found += len(wanted) - len({miss.path for miss in missed})
            misses += missed
        scripts.append(Recall(script, len(queries), expected, found, _share(found, expected)))
    expected, found = sum(each.expected for each in scripts), sum(each.found for each in scripts)
    warnings = [] if cards else [warning("no-cards", "there is no card to draw words from", "capture one first")]
    queries = sum(each.queries for each in scripts)
    seconds = round(time.monotonic() - started, 3)
    return Result(seed, len(cards), queries, _share(found, expected), scripts, misses, seconds, warnings)


def _share(found, expected):
    """found / expected, never rounded up to 1."""
    return 1.0 if found == expected else min(0.9999, round(found / expected, 4))


def _read(app, rng, samples):
    """(path -> _Card with its plain text, script -> the queries drawn); each file is read once, forgotten cards
    are left out.

    Each place drawn has the same chance to be among the samples (reservoir sampling).
    """
    settings, store = app.settings, app.store
    names = store.real_names(store.ids().values())
    cards, asked, drawn = {}, {}, dict.fromkeys(SCRIPTS, 0)
    searchable = app.searcher.searchable(ALL, ANY_TIME)
    paths = [(path, id) for path, id in sorted(store.ids().items()) if path in searchable]
    for done, (path, id) in enumerate(paths):
        if app.progress:
            app.progress(done, len(paths))
        file = vault.file_path(settings.vault.path, names[id])
        try:
            data, _ = vault.read_bytes(file, settings.max_card_bytes)
            card = read_card(path, vault.decode(data)[0])
        except CardError:
            continue
        text = "\n".join((card.title, card.labels, without_payloads(card.body)))
        cards[path] = _Card(file, content_hash(data), plain(text))
        for piece in draw(text, rng.randrange):
            drawn[piece.script] += 1
            queries = asked.setdefault(piece.script, [])
            place = len(queries) if len(queries) < samples else rng.randrange(drawn[piece.script])
            if place < samples and piece.query not in queries and not _is_secret(text, piece):
                queries[place : place + 1] = [piece.query]
    return cards, asked


def _is_secret(text, piece):
    """Whether a piece stands in a line that looks like it holds a credential: a report must not repeat it."""
    start = text.rfind("\n", 0, piece.start) + 1
    end = text.find("\n", piece.end)
    return bool(secretscan.scan(text[start : len(text) if end < 0 else end]))


def _missed(app, script, query, wanted):
    """A Miss for each wanted card that is not found, or found and not shown where there is room."""
    found = app.searcher.every(query)
    misses = [Miss(script, query, path, "not found") for path in sorted(wanted - found)]
    if misses or not wanted:
        return misses
    shown = {hit.path for hit in _widest_search(app, query).hits}
    if not shown & found:
        return [Miss(script, query, path, "found, and no hit is shown") for path in sorted(wanted)]
    if len(found) <= MAX_LIMIT:
        return [Miss(script, query, path, "found, and not among the hits") for path in sorted(wanted - shown)]
    return []


def _widest_search(app, query):
    return app.searcher.search(query, MAX_LIMIT, sync=False, match="cascade", scope=ALL, as_of=ANY_TIME)


def _stands(app, card):
    """Whether a card's file still holds what was read: a miss may be an edit of this moment."""
    try:
        return content_hash(vault.read_bytes(card.file, app.settings.max_card_bytes)[0]) == card.digest
    except CardError:
        return False
