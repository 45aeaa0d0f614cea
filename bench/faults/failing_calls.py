"""A call that fails: at call k, for every k until the command succeeds, once and for ever after, or killed there.

    python bench/faults/failing_calls.py [--every 1] [--commands capture,search] [--errors EIO,killed]

Commands (capture, search, show, index --rebuild, that of a damaged index) meet ENOSPC, EIO, EACCES, EINTR and
EMFILE from the operating system, and "locked", "full" and "I/O error" from SQLite. A trial is survived when
the command ends with a documented status and no traceback, a card that was told to be created is whole and
found, no card is half written, no other file of the vault has changed, a search found its card or said what it
lacks, and the next search and index are right. Every command that writes (`changes`) meets the same; its trial is
survived when the law of `changes` holds, when the same command afterwards does what was left to do, and when
the index is right then. `--every` tries only each so-many-th k. Status 1 when one is lost.
"""

import os
import signal
import sqlite3
import sys

from calls import SQL, SYSTEM, Calls, forked, system_error
from changes import CHANGES, Stage
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


def try_all(error, for_ever, every, trial):
    """Fails call 1 (or that and all later ones), then `every` calls later, until none is left to fail.

    `trial(calls, label)` is given the Calls that fail so, and says how the command ended (a Run).
    """
    names, make = failing(error)
    at = 1
    while True:

        def decide(number, *_, at=at):
            return make() if number == at or for_ever and number > at else None

        run = trial(Calls(names, decide), f"{error} at call {at}{' and after' if for_ever else ''}")
        if not (run.calls is None or run.calls >= at):
            return
        at += every


def try_command(tally, command, error, for_ever, every):
    """All trials of a command that is none of the changes, each in a place of its own."""

    def trial(calls, label):
        with Place() as place:
            before = prepare(place, command)
            run = forked(place, COMMANDS[command], calls, BODY if command == "capture" else "")
            which = f" ({' '.join(run.noted[0])})" if run.noted else ""
            tally.trial(f"{command}, {label}{which}", faults(place, command, run, before, error == "killed"))
        return run

    try_all(error, for_ever, every, trial)


def try_change(tally, stage, name, error, for_ever, every):
    """All trials of one of the changes."""
    stage.after(name)

    def trial(calls, label):
        stage.reset()
        run = forked(stage.place, [*stage.argv(name), "--json"], calls, CHANGES[name].text)
        which = f" ({' '.join(run.noted[0])})" if run.noted else ""
        tally.trial(f"{name}, {label}{which}", faults_of_change(stage, name, run, error == "killed"))
        return run

    try_all(error, for_ever, every, trial)


def faults_of_change(stage, name, run, killed):
    """What is wrong after a change met a failing call, and after the same command once calls work again."""
    yield from faults_of_output(run, (0, 1, 2, 3, KILLED) if killed else (0, 1, 2, 3))
    if run.code != KILLED and answer_of(run) is None and run.code != 2:
        yield f"status {run.code} and no answer: {run.err[-200:]}"
    yield from stage.faults(name, stage.tree(), run.code == 0)
    again = forked(stage.place, [*stage.argv(name), "--json"], Calls((), None), CHANGES[name].text)
    yield from faults_of_output(again, (0, 1, 2, 3))
    yield from (f"{fault}, after the same command again" for fault in stage.faults(name, stage.tree(), True))
    yield from stage.faults_of_index()
    yield from faults_of_index(stage.place.db)


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
    options.add_argument("--commands", help="names, with commas; by default these and all that write")
    options.add_argument("--errors", default=",".join(ERRORS), help="names, with commas")
    options = options.parse_args(argv)
    in_all = Tally()
    for command in options.commands.split(",") if options.commands else dict.fromkeys((*COMMANDS, *CHANGES)):
        tally = Tally(command)
        with Stage() as stage:
            for error in options.errors.split(","):
                for for_ever in (False,) if error == "killed" else (False, True):
                    if command in COMMANDS:
                        try_command(tally, command, error, for_ever, options.every)
                    else:
                        try_change(tally, stage, command, error, for_ever, options.every)
        tally.end()
        in_all.add(tally)
    return in_all.end()


if __name__ == "__main__":
    sys.exit(main())
