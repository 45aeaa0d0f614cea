"""Whose database a file is, in which form, and the making of its tables."""

import sqlite3
from contextlib import closing

from mcore import schema
from mcore.errors import SetupError, StoreDamaged, StoreNewer, StoreOutdated
from mcore.store.faults import BUSY_SECONDS, REBUILD, guarded


def check_form(connection, path, version):
    """Raises unless our database at `path` has the form this program works with."""
    if version > schema.VERSION:
        raise StoreNewer(
            f"cannot use the index {path}",
            f"it has schema {version} and this program knows up to {schema.VERSION}",
            "upgrade memory-agent, choose another file with --db, or run: memory index --rebuild",
        )
    if version < schema.VERSION:
        raise StoreOutdated(f"cannot use the index {path}", "it was made in an older form", REBUILD)
    if not _complete(connection):
        raise StoreDamaged(f"cannot use the index {path}", "tables are missing from it", REBUILD)


def identity(connection):
    """(the number of its form, whether our mark is on it)."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return version, connection.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID


def _complete(connection):
    """Whether all tables are there, those that FTS5 made among them (one of another name stops a rebuild in place)."""
    names = (*schema.TABLES, *(f"cards_fts_{part}" for part in ("data", "idx", "docsize", "config")))
    marks = ", ".join("?" * len(names))
    found = connection.execute(f"SELECT count(*) FROM sqlite_master WHERE name IN ({marks})", names)
    return found.fetchone()[0] == len(names)


def refuse_others(connection, path, version):
    """Raises unless a database without our mark is new. What is not ours is never set aside: another
    program would miss it."""
    names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if identity(connection)[1]:
        return  # another process has just made it
    if {"cards", "cards_fts", "card_stats"} <= names:
        raise StoreDamaged(f"cannot use the index {path}", "its mark is damaged", REBUILD)
    if names or version:
        raise SetupError(
            f"cannot use {path} as the index", "it is another program's database", "choose another with --db"
        )


def create(connection):
    """Makes the tables of a new index; of several processes the first one does it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not identity(connection)[1]:
            create_derived(connection)
            for statement in _statements(schema.KEPT):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema.VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_derived(connection):
    """Makes every table but `card_stats`."""
    for statement in _statements(schema.DERIVED):
        connection.execute(statement)
    connection.execute(schema.CARDS_FTS)


def _statements(script):
    """The statements of a script whose comments and texts hold no semicolon before a line's end."""
    return [s for s in script.split(";\n") if s.strip()]


def renew(path):
    """Gives an index of an older form the tables of today, empty, in one transaction; `card_stats` stays."""
    with guarded(path), closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if identity(connection)[0] < schema.VERSION:
            for table in schema.TABLES[:-1]:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            create_derived(connection)
            connection.execute(f"PRAGMA user_version = {schema.VERSION}")
        connection.execute("COMMIT")


def state_of(connection, path):
    """Another one whenever the index has changed, by this connection or another."""
    with guarded(path):
        return connection.execute("PRAGMA data_version").fetchall()[0][0], connection.total_changes
