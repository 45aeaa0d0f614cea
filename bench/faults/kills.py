"""kill -9 at random moments: captures, captures through the server, rebuilds, rebuilds of a damaged index.

    python bench/faults/kills.py [--captures 5000] [--served 1000] [--rebuilds 2000] [--repairs 500] [--seed 1]

The moments are spread over 0 to 1.5 times what the command takes when it is left alone. A kill is survived
when every card whose creation was told is on disk, every card on disk is whole and found by its word, no
temporary file is returned, a search after a killed rebuild is right or refused, the next `index` makes it
right, and no reading count is lost. Status 1 when one is lost.
"""

import random
import sys
import time

from harness import (
    Place,
    Server,
    Tally,
    answer_of,
    damage_schema,
    faults_of_index,
    faults_of_output,
    note,
    parser,
    planted,
)

from mcore.errors import McoreError
from mcore.vault import TEMP_PREFIX

BODY_CHARS = (40, 5_000, 200_000)
SERVED_AT_ONCE = 8  # captures sent before the server is killed
NOTES = 150  # in the vault whose rebuilds are killed
READ = 5  # of them have reading counts


def captures(place, count, rng):
    """The Tally of kills of `memory capture`."""
    tally, usual = Tally("captures"), usual_seconds(lambda n: capture(place, f"usual{n}", "x" * 40))
    app = place.app()
    for number in range(count):
        body = body_of(number, rng)
        ended = capture(place, title_of(number), body, rng.uniform(0, 1.5 * usual))
        answer = answer_of(ended)
        told = bool(answer) and answer["status"] == "created"
        faults = [*faults_of_output(ended, (0, -9)), *faults_of_card(place, app, number, body, told)]
        tally.trial(f"capture {number}", faults)
    app.close()
    return tally


def served(place, count, rng):
    """The Tally of captures through servers that are killed, SERVED_AT_ONCE in each."""
    tally, usual = Tally("served"), usual_seconds(lambda n: serve(place, [(f"usual{n}", "x" * 40)], None))
    app = place.app()
    for first in range(0, count, SERVED_AT_ONCE):
        numbers = range(first, min(first + SERVED_AT_ONCE, count))
        bodies = {number: body_of(number, rng) for number in numbers}
        cards = [(title_of(number), body) for number, body in bodies.items()]
        told = serve(place, cards, rng.uniform(0, 1.5 * usual + 0.02 * SERVED_AT_ONCE))
        for number, body in bodies.items():
            faults = faults_of_card(place, app, number, body, title_of(number) in told)
            tally.trial(f"served capture {number}", faults)
    app.close()
    return tally


def serve(place, cards, kill_after):
    """The titles of those (title, body) cards whose creation a server told before it was killed."""
    server, titles = Server(place), {}
    try:
        for title, body in cards:
            titles[server.send("memory_capture", title=title, body=body)] = title
        if kill_after is not None:
            time.sleep(kill_after)
            server.kill()
        answers = list(server.answers(None if kill_after is not None else len(cards)))
    finally:
        server.close()
    return {titles[id] for id, is_error, content in answers if not is_error and content["status"] == "created"}


def rebuilds(place, count, rng, damaged=False):
    """The Tally of kills of `memory index --rebuild`, of a whole or of a damaged index."""
    tally = Tally("repairs" if damaged else "rebuilds")
    for number in range(NOTES):
        place.write(f"{number}.md", note(number))
    read = {f"{number}.md": 1 for number in range(READ)}
    for path in read:
        place.memory("show", path)
    usual = usual_seconds(lambda _: place.memory("index", "--rebuild"))
    for number in range(NOTES, NOTES + count):
        if damaged:
            damage_schema(place.db)
        if number % 10 == 0:
            place.write(f"{number}.md", note(number))
        ended = place.memory("index", "--rebuild", kill_after=rng.uniform(0, 1.5 * usual))
        faults = [*faults_of_output(ended, (0, -9)), *faults_after_rebuild(place, rng, read, damaged)]
        tally.trial(f"{tally.name} {number}", faults)
    return tally


def faults_after_rebuild(place, rng, read, damaged):
    """What is wrong once a rebuild was killed: at once, after the next `index`, and in the reading counts."""
    numbers = sorted(int(path[:-3]) for path in place.cards())
    some = rng.sample(numbers, 5) + [numbers[-1]]
    app = place.app()
    try:
        try:
            yield from faults_of_words(app, some)
        except McoreError as refused:
            if not refused.hint:
                yield f"refused without a hint: {refused.message}"
        try:
            total = app.indexer.index(app.store).total
        except McoreError:
            if not damaged:
                raise
            total = app.indexer.rebuild(app.rebuild_path()).total
        if total != len(numbers):
            yield f"{total} cards of {len(numbers)} after the next index"
        yield from faults_of_words(app, some)
        counts = dict(app.store.query("SELECT rel_path, read_count FROM card_stats"))
        if counts != read:
            yield f"reading counts: {counts}"
    except Exception as fault:
        yield f"{type(fault).__name__}: {fault}"
    finally:
        app.close()
    yield from faults_of_index(place.db)


def faults_of_words(app, numbers):
    """Faults of a search for the word of each note."""
    for number in numbers:
        found = [hit.path for hit in app.searcher.search(planted(number)).hits]
        if found != [f"{number}.md"]:
            yield f"{planted(number)} was found in {found}"


def faults_of_card(place, app, number, body, told):
    """What is wrong with one captured card after a kill; `told` says whether its creation was acknowledged."""
    path = f"03-Knowledge/{title_of(number)}.md"
    data = place.read(path)
    if data is None and told:
        yield "it was told to be created and is not there"
    if data is not None and not (data.startswith(b"---\n") and data.endswith(f"---\n\n{body}\n".encode())):
        yield f"it is not whole: {len(data)} bytes"
    try:
        found = [hit.path for hit in app.searcher.search(planted(number)).hits]
    except Exception as fault:
        yield f"search: {type(fault).__name__}: {fault}"
        return
    if found != ([path] if data is not None else []):
        yield f"found in {found}"
    if any(TEMP_PREFIX in path for path in app.store.paths()):
        yield "a temporary file is indexed"


def usual_seconds(run):
    """What one run takes when it is left alone, the median of three; `run` is given its number."""
    seconds = []
    for number in range(3):
        started = time.monotonic()
        run(number)
        seconds.append(time.monotonic() - started)
    return sorted(seconds)[1]


def title_of(number):
    return f"card-{number}"


def body_of(number, rng):
    return f"{planted(number)} 第{number}号 " + "z" * rng.choice(BODY_CHARS)


def capture(place, title, body, kill_after=None):
    return place.memory("capture", "--json", "--title", title, text=body, kill_after=kill_after)


def main(argv=None):
    options = parser(__doc__.splitlines()[0], captures=5000, served=1000, rebuilds=2000, repairs=500, seed=1)
    options = options.parse_args(argv)
    rng, all_parts = random.Random(options.seed), Tally()
    parts = (
        (options.captures, captures),
        (options.served, served),
        (options.rebuilds, rebuilds),
        (options.repairs, lambda *args: rebuilds(*args, damaged=True)),
    )
    for count, run in parts:
        if count:
            with Place() as place:
                tally = run(place, count, rng)
                tally.end()
                all_parts.add(tally)
    return all_parts.end()


if __name__ == "__main__":
    sys.exit(main())
