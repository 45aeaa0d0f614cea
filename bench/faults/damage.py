"""A damaged index: one byte flipped or the file cut short, then every note asked for, then rebuilt.

    python bench/faults/damage.py [--seeds 2000] [--notes 60] [--seed 1]

A damage is survived when each search finds its note or refuses with a hint (never a false "nothing
found", never a traceback), when `index --rebuild` then restores every note, and when the reading counts are
kept if SQLite can still read them. The last line says how many searches were answered and refused.
Status 1 when one is lost.
"""

import os
import random
import shutil
import sqlite3
import sys
from contextlib import closing

from harness import Place, Tally, faults_of_index, parser, planted

from mcore.app import App
from mcore.errors import McoreError

KINDS = ("project", "tool", "mistake")
COUNTS = "SELECT rel_path, read_count, last_read_at FROM card_stats NOT INDEXED"
CUT_SHARE = 0.2  # of the damages


def han(number):
    """Two Chinese characters that no other note has next to each other."""
    return chr(0x4E00 + number) + chr(0x6E00 + number)


def fill(place, notes):
    """A vault of notes with a word, a pair of characters and a kind each, indexed, some of them read."""
    for number in range(notes):
        text = f"{planted(number)} 服务器{han(number)} " + f"filler{number % 7} words and 一些文字 " * (number % 40)
        place.write(f"{number}.md", f"---\ntitle: Note {number}\nkind: {KINDS[number % 3]}\n---\n{text}\n")
    with closing(place.app()) as app:
        app.indexer.index(app.store)
        with app.store.writing():
            for number in range(0, notes, 5):
                app.store.count_read(f"{number}.md", "2026-01-01T00:00:00Z")


def damaged_copy(rng, source, target):
    """Copies an index with one fault in it; says which."""
    shutil.copyfile(source, target)
    size = os.path.getsize(target)
    at = rng.randrange(size)
    if rng.random() < CUT_SHARE:
        os.truncate(target, at)
        return f"cut to {at} of {size} bytes"
    with open(target, "r+b") as handle:
        handle.seek(at)
        old = handle.read(1)[0]
        new = old ^ rng.choice([*(1 << bit for bit in range(8)), rng.randrange(1, 256)])
        handle.seek(at)
        handle.write(bytes([new]))
    return f"byte {at} of {size} made {new} from {old}"


class Trial:
    """One damaged index, asked and rebuilt."""

    def __init__(self, place, db, notes, rng):
        self.place, self.db, self.notes, self.rng = place, db, notes, rng
        self.answered = self.refused = 0

    def faults(self):
        yield from self.ask(sync=False)
        yield from self.ask(sync=True)
        counts = readable_counts(self.db)
        try:
            with closing(self.app()) as app:
                app.indexer.rebuild(self.db)
        except Exception as fault:
            yield f"rebuild: {type(fault).__name__}: {fault}"
            return
        refused = self.refused
        yield from self.ask(sync=False)
        if self.refused > refused:
            yield "refused after the rebuild"
        yield from faults_of_index(self.db)
        if counts is not None and readable_counts(self.db) != counts:
            yield f"{len(counts)} reading counts could be read, {len(readable_counts(self.db) or ())} were kept"

    def ask(self, sync):
        """Asks for every note once; what was neither right nor refused with a hint."""
        app = self.app()
        for number in range(self.notes):
            query, kind = self.rng.choice(
                ((planted(number), None), (han(number), None), (planted(number), KINDS[number % 3]))
            )
            try:
                found = [hit.path for hit in app.searcher.search(query, kind=kind, sync=sync).hits]
            except McoreError as error:
                self.refused += 1
                if not error.hint:
                    yield f"refused without a hint: {error.message} ({error.why})"
                app.close()
                app = self.app()
                continue
            except Exception as fault:
                yield f"{query} {kind}: {type(fault).__name__}: {fault}"
                continue
            self.answered += 1
            if f"{number}.md" not in found:
                yield f"{query} ({kind}, sync {sync}) is in {number}.md and was found in {found}"
        app.close()

    def app(self):
        return App(self.db, self.place.vault, home=self.place.home)


def readable_counts(db):
    """The reading counts as SQLite reads them, those that make sense; None when it cannot."""
    with closing(sqlite3.connect(db)) as connection:
        try:
            rows = connection.execute(COUNTS).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):
            return None
    return sorted(row for row in rows if list(map(type, row)) == [str, int, str])


def main(argv=None):
    options = parser(__doc__.splitlines()[0], seeds=2000, notes=60, seed=1).parse_args(argv)
    tally, answered, refused = Tally(), 0, 0
    with Place() as place:
        fill(place, options.notes)
        for seed in range(options.seed, options.seed + options.seeds):
            rng = random.Random(seed)
            folder = os.path.join(place.folder, "damaged")
            os.mkdir(folder)
            db = os.path.join(folder, "memory.db")
            what = damaged_copy(rng, place.db, db)
            trial = Trial(place, db, options.notes, rng)
            tally.trial(f"seed {seed} ({what})", trial.faults())
            answered, refused = answered + trial.answered, refused + trial.refused
            shutil.rmtree(folder)
    return tally.end(f"; {answered} searches answered, {refused} refused")


if __name__ == "__main__":
    sys.exit(main())
