"""What `memory setup` and `memory hook` do with a client: which command starts this program, which
text a session begins with."""

import os
import sys

from mcore.card import KIND_FOLDERS
from mcore.errors import UsageError
from mcore.record import namedtuple
from mcore.render import counted

HOOK_SECONDS = 0.3  # of looking for changed files

Setup = namedtuple("Setup", "client path diff changed written backups snippet clients notes")
Setup.__doc__ = """A change to a client's configuration, or a list of clients.

`diff` is what changes in `path`; `written` and `backups` the files of an applied change; `snippet`
the text to paste; `clients` what `--list` found.
"""
Hook = namedtuple("Hook", "format text output")

_NOTHING = Setup(None, None, "", False, [], [], "", [], [])


def server_command(app):
    """The command line that starts this server, interpreter first, every path absolute.

    Nothing is left to PATH or the working folder: clients start servers with neither.
    """
    # A file, not `-m mcore`: that would look for modules in the client's working folder first.
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    command = [os.path.abspath(sys.executable), program, "mcp", "--vault", os.path.abspath(app.settings.vault.path)]
    # A client hands down few variables, so what came from one is written out.
    if app.settings.home.origin != "default":
        command += ["--home", app.settings.home.path]
    if app.settings.db.origin in ("flag", "environment"):
        command += ["--db", app.settings.db.path]
    return command


def setup(app, client=None, *, apply=False, remove=False, show=False, listing=False, hooks=False, project=None):
    """The Setup of a client. Writes only with `apply`. Raises UsageError, SetupError."""
    from mcore.clients import setup as clients

    command, machine = server_command(app), clients.this_machine()
    if listing:
        return _NOTHING._replace(clients=clients.listing(command, machine))
    if show:
        return _NOTHING._replace(client=client, snippet=clients.snippet(client, command, hooks=hooks))
    if not client:
        raise UsageError(
            "setup needs a client", hint="memory setup --list names them, --print gives a snippet for any other"
        )
    project = os.path.abspath(project) if project else None
    plan = clients.plan(client, command, machine, remove=remove, hooks=hooks, project=project)
    result = _NOTHING._replace(client=client, path=plan.path, diff=plan.diff, changed=plan.changed, notes=plan.notes)
    if not (apply and plan.changed):
        return result
    done = clients.apply(plan)
    written = [done, *done.also]
    return result._replace(written=[d.path for d in written], backups=[d.backup for d in written if d.backup])


def hook(app, format):
    """The Hook for a client's format. Never raises for what is wrong with vault or index: a hook
    fails open."""
    from mcore.clients.hook import CHARS, DEFAULT_CHARS, hook_output, hook_text

    stats, line = None, ""
    try:
        freshness = app.indexer.refresh(app.store, HOOK_SECONDS)
        counts = app.store.counts_by("kind")
        # Kinds that a card made up are text of that card, and have no place in what a model takes as instruction.
        kinds = {kind: count for kind, count in counts.items() if kind in KIND_FOLDERS}
        stats, line = {"total": sum(counts.values()), "kinds": kinds}, _freshness_line(freshness)
    except Exception:
        stats = None
    text = hook_text(stats, line, CHARS.get(format, DEFAULT_CHARS))
    return Hook(format, text, hook_output(text, format))


def _freshness_line(freshness):
    if freshness.stale:
        return f"The index is behind by {counted(freshness.stale, 'changed file')} (memory_reindex takes them in)."
    return f"The index is up to date with {counted(freshness.checked, 'file')}."
