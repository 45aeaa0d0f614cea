"""A call that fails: at call k, for every k until the command succeeds, once and for ever after, or killed there.

    python bench/faults/failing_calls.py [--every 1] [--commands capture,search] [--errors EIO,killed]

Commands (capture, search, show, index --rebuild, that of a damaged index) meet ENOSPC, EIO, EACCES, EINTR and
EMFILE from the operating system, and "locked", "full" and "I/O error" from SQLite. A trial is survived when
the command ends with a documented status and no traceback, a card that was told to be created is whole and
found, no card is half written, no other file of the vault has changed, a search found its card or said what it
lacks, and the next search and index are right. `--every` tries only each so-many-th k. Status 1 when one is lost.
"""

import os
import signal
import sqlite3
import sys

from calls import SQL, SYSTEM, Calls, forked, system_error
from harness import Place, Tally, answer_of, damage_schema, faults_of_index, faults_of_output, note, parser, planted

from mcore.errors import StoreError

NOTES = 12
BODY = f"{planted(999)} 第999号 and a body of some length"
CARD = "03-Knowledge/new-card.md"
KILLED = -signal.SIGKILL

SYSTEM_ERRORS = ("ENOSPC", "EIO", "EACCES", "EINTR", "EMFILE")
SQL_ERRORS = ("database is locked", "database or disk is full", "disk I/O error")
ERRORS = (*SYSTEM_ERRORS, *SQL_ERRORS, "killed")
COMMANDS = {
    "capture": ["capture", "--json", "--title", "new card"],
    "search": ["search", "--json", planted(3)],
    "search of a changed note": ["search", "--json", planted(100)],
    "show": ["show", "--json", "3.md"],
    "rebuild": ["index", "--rebuild", "--json"],
    "repair": ["index", "--rebuild", "--json"],
}


def failing(name):
    """(the names of the calls to fail, a function that makes the error) of one kind of error."""
    if name == "killed":
        return [*SYSTEM, SQL], lambda: os.kill(os.getpid(), signal.SIGKILL)
    if name in SYSTEM_ERRORS:
        return SYSTEM, lambda: system_error(name)
    return [SQL], lambda: sqlite3.OperationalError(name)


def try_command(tally, command, error, for_ever, every):
    """Fails call 1 (or that and all later ones), then `every` calls later, until none is left to fail."""
    names, make = failing(error)
    at = 1
    while True:

        def decide(number, *_, at=at):
            return make() if number == at or for_ever and number > at else None

        with Place() as place:
            before = prepare(place, command)
            run = forked(place, COMMANDS[command], Calls(names, decide), BODY if command == "capture" else "")
            reached = run.calls is None or run.calls >= at
            which = f" ({' '.join(run.noted[0])})" if run.noted else ""
            label = f"{command}, {error} at call {at}{which}{' and after' if for_ever else ''}"
            tally.trial(label, faults(place, command, run, before, error == "killed"))
        if not reached:
            return
        at += every


def prepare(place, command):
    """A vault with an index, a reading count and a note that the index does not know yet; its files."""
    for number in range(NOTES):
        place.write(f"{number}.md", note(number))
    app = place.app()
    app.indexer.index(app.store)
    with app.store.writing():
        app.store.count_read("5.md", "now")
    app.close()
    place.write("100.md", note(100))
    if command == "repair":
        damage_schema(place.db)
    return {path: place.read(path) for path in place.cards()}


def faults(place, command, run, before, killed):
    yield from faults_of_output(run, (0, 1, 2, 3, KILLED) if killed else (0, 1, 2, 3))
    answer = answer_of(run)
    if answer is None and run.code != KILLED and run.code != 2:
        yield f"status {run.code} and no answer: {run.err[-200:]}"
    for path, data in before.items():
        if place.read(path) != data:
            yield f"{path} changed"
    card = place.read(CARD)
    if card is not None and not (card.startswith(b"---\n") and card.endswith(BODY.encode() + b"\n")):
        yield f"half a card: {card[-60:]}"
    if run.code == 0 and command == "capture" and (card is None or answer["status"] != "created"):
        yield f"capture ended with 0: {run.out[:200]}"
    if command.startswith("search") and run.code in (0, 1):
        yield from faults_of_search(command, answer)
    yield from faults_afterwards(place, card, command == "repair")


def faults_of_search(command, answer):
    """A search that could not look at everything must say so."""
    due = "100.md" if "changed" in command else "3.md"
    found = [hit["path"] for hit in answer["hits"]]
    freshness = answer["freshness"]
    if found != [due] and not (not found and (freshness["stale"] or freshness["unreadable"])):
        yield f"found {found}, {freshness}"


def faults_afterwards(place, card, damaged):
    """What is wrong once calls work again; an index that was `damaged` may need its rebuild once more."""
    app = place.app()
    try:
        if damaged and not opens(app):
            app.indexer.rebuild(app.rebuild_path())
        for number in (3, 100):
            found = [hit.path for hit in app.searcher.search(planted(number)).hits]
            if found != [f"{number}.md"]:
                yield f"afterwards {number}.md was found in {found}"
        found = [hit.path for hit in app.searcher.search(planted(999)).hits]
        if found != ([CARD] if card is not None else []):
            yield f"afterwards the card was found in {found}"
        counts = dict(app.store.query("SELECT rel_path, read_count FROM card_stats WHERE rel_path = '5.md'"))
        if counts != {"5.md": 1}:
            yield f"reading counts: {counts}"
        total = app.indexer.index(app.store).total
        if total != len(place.cards()):
            yield f"{total} cards of {len(place.cards())} after the next index"
    except Exception as fault:
        yield f"afterwards: {type(fault).__name__}: {fault} {getattr(fault, 'why', '')}"
    finally:
        app.close()
    yield from faults_of_index(place.db)


def opens(app):
    try:
        return bool(app.store)
    except StoreError:
        return False


def main(argv=None):
    options = parser(__doc__.splitlines()[0], every=1)
    options.add_argument("--commands", default=",".join(COMMANDS), help="names, with commas")
    options.add_argument("--errors", default=",".join(ERRORS), help="names, with commas")
    options = options.parse_args(argv)
    in_all = Tally()
    for command in options.commands.split(","):
        tally = Tally(command)
        for error in options.errors.split(","):
            for for_ever in (False,) if error == "killed" else (False, True):
                try_command(tally, command, error, for_ever, options.every)
        tally.end()
        in_all.add(tally)
    return in_all.end()


if __name__ == "__main__":
    sys.exit(main())
