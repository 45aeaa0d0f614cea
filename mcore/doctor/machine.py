"""What the doctor looks at outside the vault: settings, permissions, SQLite, clients. Reads only."""

import os
import stat
import sys
import time

from mcore.backup import left_overs
from mcore.doctor.findings import ERROR, NOTE, WARNING, finding, from_error
from mcore.errors import SetupError
from mcore.paths import KNOWN, read_config
from mcore.record import namedtuple
from mcore.render import in_line

Machine = namedtuple("Machine", "system python sqlite fts5")
Machine.__doc__ = "What this runs on: versions as text, and whether SQLite has FTS5."

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
MIN_SQLITE = (3, 20)  # contentless tables and fts5vocab's `instance` form


def check_config(app):
    """(findings, whether the settings can be trusted); sets a broken config.json aside for this run."""
    try:
        config = app.settings.config.path
        return list(_unknown_keys(config)), True
    except SetupError as error:
        app.leave_config_aside()
        where = app.settings.config.path
        return [from_error("config-broken", ERROR, where, error)], False


def _unknown_keys(path):
    """Findings of settings that nothing reads, for they are misspelt."""
    from difflib import get_close_matches

    for key in read_config(path):
        if key not in KNOWN:
            near = get_close_matches(key.casefold(), KNOWN, 1)
            cure = f"did you mean {near[0]!r}?" if near else "the settings are: " + ", ".join(KNOWN)
            yield finding("config-unknown", WARNING, path, f"nothing reads the setting {in_line(key)[:60]!r}", cure)


def check_sqlite():
    """(Machine, findings) of the SQLite build."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(a)")
            fts5, found = True, []
        except sqlite3.Error as error:
            cure = "use a Python whose sqlite3 module has FTS5"
            message = f"no full-text search: {error}"
            fts5, found = False, [finding("sqlite-no-fts5", ERROR, sys.executable, message, cure)]
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        cure = "use a Python with a newer SQLite"
        found.append(finding("sqlite-old", ERROR, sys.executable, f"SQLite {version} is too old", cure))
    return Machine(sys.platform, sys.version.split()[0], version, fts5), found


def check_permissions(settings, db_path):
    """Findings of who else may read or write what is ours."""
    if os.name == "nt":
        return
    home = settings.home.path
    mode = _mode(home)
    if mode is not None and mode & _OTHERS:
        message = f"other users may look into the data root (mode {mode:04o})"
        yield finding("permissions", WARNING, home, message, f"chmod 700 {_quoted(home)}")
    files = [settings.config.path, settings.bench_queries.path, *(db_path + side for side in ("", "-wal", "-shm"))]
    for path in files:
        mode = _mode(path)
        if mode is not None and mode & _OTHERS:
            message = f"other users may read or write it (mode {mode:04o})"
            yield finding("permissions", WARNING, path, message, f"chmod 600 {_quoted(path)}")
    root = settings.vault.path
    mode = _mode(root)
    if mode is not None and mode & stat.S_IWOTH:
        message = f"every user may write cards into the vault (mode {mode:04o})"
        yield finding("permissions", WARNING, root, message, f"chmod o-w {_quoted(root)}")
    if mode is not None and not os.access(root, os.W_OK | os.X_OK):
        yield finding("vault-read-only", WARNING, root, "no card can be captured into it", "give yourself write access")


def check_left_overs(settings):
    """Findings of what a killed restore left beside its place."""
    for path in left_overs(settings, time.time()):
        message = "left by a restore that was killed; what it holds is in the archive"
        yield finding("stale-restore", WARNING, path, message, f"rm -r {_quoted(path)}")


def _mode(path):
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _quoted(path):
    import shlex

    return shlex.quote(path)


def check_clients(app):
    """Findings of the clients on this machine: connected, not connected, connected to something else."""
    from mcore.clients import setup
    from mcore.connect import server_command

    for client in setup.listing(server_command(app), setup.this_machine()):
        if not client.installed or client.connected:
            continue
        command = f"memory setup {client.name} --apply"
        if client.detail.startswith("not connected"):
            yield finding("client-not-connected", NOTE, client.path, f"{client.title}: {client.detail}", command)
        elif client.detail.startswith("switched off"):
            yield finding("client-off", NOTE, client.path, f"{client.title}: {client.detail}", command)
        elif client.detail.startswith("stale"):
            message = f"{client.title} starts another program, index or vault: {client.detail}"
            yield finding("client-stale", WARNING, client.path, message, command)
        else:
            cure = f"mend that file, then: {command}"
            yield finding("client-unreadable", WARNING, client.path, f"{client.title}: {client.detail}", cure)
