"""A whole index made beside the one in use, and put in its place: loading in bulk, and the takeover.

Functions over an open Store: the new, private one while it is loaded, then the one that takes it over.
"""

import os
from contextlib import closing, nullcontext

from mcore import schema, termlists
from mcore.store.faults import guarded
from mcore.store.form import create_derived
from mcore.store.rows import Taken
from mcore.store.structure import on_its_level

# In bulk loads, with no merging before the end. CPU at 100,000 cards, the end included: 17.5 s with 1 MB, 14.7 with 4,
# 13.8 with 8, 14.1 with 16 and 64; at 10,000 the room itself costs: 1.1 s with 4 MB, 1.4 with 32.
FTS_HASH_BYTES = 8 << 20
# What two indexes have in common, and what the attached one lacks.
_LACKING = (
    "SELECT rel_path, id FROM main.cards WHERE rel_path NOT IN (SELECT rel_path FROM built.cards) "
    "AND id NOT IN (SELECT id FROM built.cards)"
)
_BOTH = "FROM main.cards AS old JOIN built.cards AS new USING (id) WHERE "
_MOVED = f"SELECT old.rel_path, new.rel_path {_BOTH} old.rel_path <> new.rel_path"
_UPDATED = f"SELECT count(*) {_BOTH} old.rel_path = new.rel_path AND old.content_hash <> new.content_hash"
_GONE = "SELECT count(*) FROM main.cards WHERE id NOT IN (SELECT id FROM built.cards)"


def begin_loading(store):
    """Prepares a new, private index for loading: no journal, and FTS5 gathers FTS_HASH_BYTES before it
    writes, without merging meanwhile."""
    store.is_loading = True
    with guarded(store.path):
        store.connection.execute("PRAGMA journal_mode = OFF")
        store.connection.execute("PRAGMA synchronous = OFF")
        store.connection.execute("PRAGMA cache_size = -32768")
        _set_fts(store, hashsize=FTS_HASH_BYTES, automerge=0, crisismerge=1000)


def end_loading(store, share=None):
    """Merges what was loaded and makes the lists of frequent terms. `share(jobs)` may have those made elsewhere:
    a generator of what `list_part` makes of each job, which may begin before the merge."""
    with guarded(store.path):
        parts = share(termlists.jobs(store.connection)) if share else None
    with closing(parts) if share else nullcontext():
        merge_loaded(store)
        with store.writing():
            store.make_lists(parts)
    store.is_loading = False


def merge_loaded(store):
    """Merges what was loaded and puts the settings that travel with the tables back to their defaults.

    One segment is quickest to search. Left apart, the pieces would be merged by a capture soon
    after, in one go of several seconds (FTS5's crisis merge).
    """
    with guarded(store.path):
        store.connection.execute("INSERT INTO cards_fts (cards_fts) VALUES ('optimize')")
        _set_fts(store, hashsize=1 << 20, automerge=4, crisismerge=16)
        structure = store.connection.execute("SELECT block FROM cards_fts_data WHERE id = 10").fetchone()
        if structure:
            raised = (on_its_level(structure[0]),)
            store.connection.execute("UPDATE cards_fts_data SET block = ? WHERE id = 10", raised)


def _set_fts(store, **settings):
    for setting in settings.items():
        store.connection.execute("INSERT INTO cards_fts (cards_fts, rank) VALUES (?, ?)", setting)


def take_over(store, other_path, late_rows):
    """Replaces every derived table by the one of another index, in one transaction; the Taken.

    Readers see the old tables until it commits; `card_stats` stays. FTS5's shadow tables are
    copied as they are, which is far quicker than indexing again. `late_rows` is given (rel_path, id)
    of the cards that the other index lacks, and returns the rows to add for them: there must be no
    moment at which a card that another process has just indexed is not there.
    """
    with guarded(store.path):
        store.connection.execute("ATTACH DATABASE ? AS built", (os.fsencode(other_path),))
        try:
            with store.writing():
                taken = _compared(store)
                _copy_built(store)
                late = late_rows(taken.lacking) if taken.lacking else ()
                if late:
                    for statement in ("SAVEPOINT copied", "ROLLBACK TO copied", "RELEASE copied"):
                        store.connection.execute(statement)  # FTS5 forgets what it knew of the empty tables
                    store.insert(late)
            return taken._replace(late=len(late))
        finally:
            store.connection.execute("DETACH DATABASE built")


def _compared(store):
    """The Taken of the attached index."""
    kept = store.query(f"SELECT count(*) {_BOTH} 1")[0][0]
    total = store.query("SELECT count(*) FROM built.cards")[0][0]
    moves, updated, gone = dict(store.query(_MOVED)), store.query(_UPDATED)[0][0], store.query(_GONE)[0][0]
    return Taken(store.query(_LACKING) if gone else [], moves, kept, updated, gone, total)


def _copy_built(store):
    """Puts the attached index's tables in place of this one's."""
    last = store.last_id()
    for table in schema.TABLES[:-1]:
        store.connection.execute(f"DROP TABLE IF EXISTS main.{table}")
    create_derived(store.connection)
    for table in schema.PLAIN:
        store.connection.execute(f"INSERT INTO main.{table} SELECT * FROM built.{table}")
    for part in ("data", "idx", "docsize", "config"):
        store.connection.execute(f"DELETE FROM main.cards_fts_{part}")
        store.connection.execute(f"INSERT INTO main.cards_fts_{part} SELECT * FROM built.cards_fts_{part}")
    built_last = store.query("SELECT max(seq) FROM built.sqlite_sequence WHERE name = 'cards'")[0][0]
    store.start_ids_after(max(last, built_last or 0))
