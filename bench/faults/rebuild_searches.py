"""Searches while the index is rebuilt again and again: a known card is never missed.

    python bench/faults/rebuild_searches.py [--searches 10000] [--cards 5000] [--seed 1]

One process rebuilds without a pause; searches go through a server and through an App of this process, with and
without a look for changes first. A search survives when it finds its card and was made over all cards. Status 1
when one is lost.
"""

import random
import sys
import threading

from harness import Place, Server, Tally, faults_of_output, note, parser, planted


def rebuild_until(done, place, tally):
    """Rebuilds until the event `done`, each time in a process of its own."""
    while not done.is_set():
        tally.trial("rebuild", faults_of_output(place.memory("index", "--rebuild"), (0,)))


def search(app, server, way, number):
    """(paths found, cards searched) of a search for a note's word in one of three ways."""
    if way == "server":
        is_error, answer = server.call("memory_search", query=planted(number))
        return ([], str(answer)) if is_error else ([hit["path"] for hit in answer["hits"]], answer["searched"])
    result = app.searcher.search(planted(number), sync=way == "look first")
    return [hit.path for hit in result.hits], result.searched


def main(argv=None):
    options = parser(__doc__.splitlines()[0], searches=10_000, cards=5000, seed=1).parse_args(argv)
    rng, searches, rebuilds, done = random.Random(options.seed), Tally("searches"), Tally("rebuilds"), threading.Event()
    with Place() as place:
        for number in range(options.cards):
            place.write(f"{number % 50}/{number}.md", note(number))
        place.memory("index")
        app, server = place.app(), Server(place)
        rebuilder = threading.Thread(target=rebuild_until, args=(done, place, rebuilds))
        rebuilder.start()
        try:
            for _ in range(options.searches):
                number, way = rng.randrange(options.cards), rng.choice(("server", "look first", "as it is"))
                try:
                    found, searched = search(app, server, way, number)
                except Exception as fault:
                    found, searched = f"{type(fault).__name__}: {fault}", 0
                right = (found, searched) == ([f"{number % 50}/{number}.md"], options.cards)
                searches.trial(f"{planted(number)} by {way}", [] if right else [f"{found} of {searched} cards"])
        finally:
            done.set()
            rebuilder.join()
            app.close()
            server.close()
    searches.end(f"; {rebuilds.tried} rebuilds meanwhile")
    searches.add(rebuilds)
    return 1 if searches.lost else 0


if __name__ == "__main__":
    sys.exit(main())
