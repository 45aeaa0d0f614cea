"""`memory setup`: works out a client's change, writes it, lists what is connected.

Choosing the files is done here, reading and writing them in `files`, the text in `entries` and the
editors below it.
"""

import os
import re
import sys

from mcore.clients import CLIENTS, Environment, entries, files, find, shown
from mcore.clients.edits import ConfigFault
from mcore.clients.entries import EDITORS, NAMES, File
from mcore.errors import SetupError, UsageError
from mcore.record import namedtuple

Plan = namedtuple("Plan", "client path before after diff changed notes backup saves also")
Plan.__doc__ = """A change that is worked out but not written.

`before` and `after` are the whole text of the file at `path` (None: no such file). `diff` is the
unified diff for reading (of all files when there are several), `changed` whether there is anything
to write, `notes` what the user should know, `backup` the file beside it that keeps the text of
before (None for a new file and for one that was ours alone). `saves` is False when the backup that
is there stays, because `before` is its text plus our entry. `also` holds further plans, for the
hook's file.
"""
Applied = namedtuple("Applied", "path backup also")
Applied.__doc__ = "What was written: the file, where its former text is kept (or None), the same of further files."
Found = namedtuple("Found", "name title path installed connected detail")
Found.__doc__ = """A client on this machine: the file set-up would edit, whether the client seems installed,

whether that file starts exactly this program, and a line on what was found.
"""

_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


def this_machine():
    """The Environment of this process."""
    return Environment(os.path.expanduser("~"), dict(os.environ), sys.platform)


def plan(client_name, command, environment, *, remove=False, hooks=False, project=None):
    """The change that connects a client to `command`, or with `remove` takes our entries out.

    `command` is the server's command line, interpreter first, all paths absolute, with the word
    `mcp` in it; the hook's is derived from it. `project` is the absolute path of a project whose own
    file is meant instead of the user's. Raises UsageError for a call that cannot be met and
    SetupError, with file, line and reason, for a file that cannot be edited safely.
    """
    client = find(client_name)
    _check_command(command)
    if not remove:
        _check_possible(client, command, environment, hooks, project)
        # A hook that is there is brought up to date with the entry, asked for or not.
        hooks = hooks or _is_hooked(client, environment, project)
    plans = [
        _plan_file(file, list(command), environment, remove, hooks)
        for file in _files(client, environment, project, hooks, remove)
    ]
    changed = any(each.changed for each in plans)
    notes = [note for each in plans for note in each.notes]
    if not changed:
        notes.append(f"nothing of ours is in {plans[0].path}" if remove else f"{client.title} is connected already")
    elif not remove:
        notes += [client.note] + ([client.hooks.note] if hooks and client.hooks.note else [])
    diff = "".join(each.diff for each in plans)
    return plans[0]._replace(diff=diff, notes=notes, changed=changed, also=tuple(plans[1:]))


def apply(plan):
    """Writes a plan: every file or, when one of them has changed since, none.

    Raises SetupError when a file is not as it was when the plan was made, or cannot be written.
    """
    plans = [each for each in (plan, *plan.also) if each.before != each.after]
    for each in plans:
        if files.read(each.path) != each.before:
            why = "it has changed since the change was worked out"
            raise SetupError(f"cannot write {each.path}", why, "run the command again")
    for each in plans:
        files.write(each.path, each.before, each.after, each.backup if each.saves else None)
    done = [Applied(each.path, each.backup, ()) for each in plans]
    return done[0]._replace(also=tuple(done[1:])) if done else Applied(plan.path, None, ())


def listing(command, environment):
    """Every known client with what was found of it here. Never fails because of one broken file."""
    return [_found(client, list(command), environment) for client in CLIENTS]


def snippet(client_name, command, *, hooks=False, platform=None):
    """The text to paste by hand: for a client in its own format, for None the common JSON form."""
    client = find(client_name) if client_name else find("claude-desktop")
    _check_command(command)
    if not hooks:
        return EDITORS[client.format].snippet(entries.wrapped(client, client.entry(NAMES[0], list(command)))) + "\n"
    _check_hooks(client)
    line = entries.hook_line(client, command, platform or sys.platform)
    if client.hooks.format == "script":
        return entries.script(line)
    value = [client.hooks.item(line)]
    for step in reversed(client.hooks.path):
        value = {step: value}
    return EDITORS[client.hooks.format].snippet({**client.hooks.base, **value}) + "\n"


def _check_command(command):
    """Raise UsageError unless `command` is complete and independent of PATH and working folder."""
    if "mcp" not in command[1:]:
        raise UsageError("the server's command must hold the word mcp", hint="interpreter, program, mcp, options")
    for place, word in enumerate(command):
        is_path = place == 0 or word.endswith(".py") or command[place - 1] in ("--vault", "--db")
        if is_path and not _ABSOLUTE.match(word):
            raise UsageError(f"{word!r} is not an absolute path", hint="clients start servers in folders of their own")
        try:
            word.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UsageError(f"{word!r} is not valid Unicode", hint="no configuration file can hold it") from error


def _check_hooks(client):
    if client.hooks is None:
        raise UsageError(
            f"{client.title} has no session hook that set-up can add",
            hint="clients with hooks: " + ", ".join(row.name for row in CLIENTS if row.hooks),
        )


def _check_possible(client, command, environment, hooks, project):
    """Raise for what a client is known not to be able to do."""
    if hooks:
        _check_hooks(client)
        if client.hooks.format == "script" and environment.platform == "win32":
            raise UsageError(f"{client.title} runs no hooks on Windows", hint="leave --hooks out")
        if project is not None and client.hooks.project is None:
            raise UsageError(f"{client.title} has no hook file in a project", hint="leave --project or --hooks out")
    if client.name == "trae" and " " in command[0]:
        raise SetupError(
            f"Trae cannot start {command[0]!r}",
            "it takes a space for the end of the command",
            "use an interpreter whose path has no space, such as one in a virtual environment",
        )


def _files(client, environment, project, hooks, remove):
    """The files a call concerns: the server's, then the hook's where that is another one."""
    found = [File(client, _server_path(client, environment, project), client.format, True, False)]
    if client.hooks is not None and (hooks or remove):
        for file in _hook_files(client, environment, project, remove):
            if file.path == found[0].path:
                found[0] = found[0]._replace(hooks=True)
            else:
                found.append(file)
    return found


def _server_path(client, environment, project):
    if project is not None:
        return _in_project(client, client.project, project)
    if not _ABSOLUTE.match(environment.home or ""):
        raise SetupError(f"the home folder {environment.home!r} is not an absolute path", hint="set HOME")
    return _choose(client.places(environment)).file


def _in_project(client, file, project):
    if file is None:
        raise UsageError(
            f"{client.title} has no such file in a project",
            hint="leave --project out; with a project: " + ", ".join(row.name for row in CLIENTS if row.project),
        )
    if not _ABSOLUTE.match(project) or not os.path.isdir(project):
        raise UsageError(f"{project!r} is not the absolute path of a folder", hint="give the project's root")
    return os.path.join(project, *file.split("/"))


def _choose(places):
    """The first place whose file exists, else the first whose program seems installed, else the first."""
    for test in (lambda place: os.path.lexists(place.file), lambda place: os.path.exists(place.marker)):
        for place in places:
            if test(place):
                return place
    return places[0]


def _hook_files(client, environment, project, all_that_exist):
    """The file the hook goes to (or, to take it out, every file it may be in)."""
    hooks = client.hooks
    if project is not None and hooks.project is None:
        return []
    path = os.path.join(project, *hooks.project.split("/")) if project else _choose(hooks.places(environment)).file
    own = File(client, path, hooks.format, False, True)
    if not hooks.inline:
        return [own]
    # Codex warns when hooks stand both in hooks.json and in config.toml: stay with what is in use.
    inline = File(client, os.path.join(os.path.dirname(path), hooks.inline), "toml", False, True)
    if all_that_exist:
        return [own, inline]
    return [inline] if not os.path.exists(path) and _has_hooks(inline.path) else [own]


def _has_hooks(path):
    """Whether a TOML file has hooks; a broken one is reported where it is edited."""
    try:
        return "hooks" in EDITORS["toml"].read(files.read(path) or "")
    except (ConfigFault, SetupError):
        return False


def _plan_file(file, command, environment, remove, hooks):
    before = files.read(file.path)
    try:
        if remove:
            after, notes = _without(file, before)
        else:
            after, notes = _with(file, before, command, environment, hooks)
        backup, saves = _backup(file, before, after)
    except ConfigFault as fault:
        where = f"line {fault.line}: " if fault.line else ""
        raise SetupError(f"cannot edit {file.path}", where + fault.reason, fault.hint) from fault
    diff = shown.unified(file.path, before, after)
    return Plan(file.client.name, file.path, before, after, diff, before != after, notes, backup, saves, ())


def _with(file, before, command, environment, hooks):
    """(the text with our entries in it, notes)."""
    line = entries.hook_line(file.client, command, environment.platform) if hooks else ""
    if file.format == "script":
        if before is not None and not entries.is_script(before):
            hint = f"add this line to it; it prints the JSON that Cline takes: {line}"
            raise ConfigFault(0, "it is a hook of your own", hint)
        return entries.script(line), []
    text, notes = before or "", []
    if file.server:
        if before is None:
            notes += _notes_on_new(file, environment)
        text, more = entries.with_server(file, text, command)
        notes += more
        if any("$" in word for word in command):
            notes.append(f"{file.client.title} may take the $ in the command for a variable")
    if file.hooks and hooks:
        text = entries.with_hook(file, text, line)
    return text, notes


def _notes_on_new(file, environment):
    """Notes on a file that is yet to be made; a refusal where that would hide another one."""
    older = os.path.join(os.path.dirname(file.path), "config.json")
    if file.client.name == "continue" and os.path.exists(older):
        raise ConfigFault(
            0,
            "there is none, and it would take the place of the older config.json beside it",
            "let Continue turn config.json into config.yaml first",
        )
    places = file.client.places(environment)
    if any(place.file == file.path for place in places) and not _is_installed(places):
        return [f"{file.client.title} was not found on this machine; the file is made all the same"]
    return []


def _is_installed(places):
    return any(os.path.lexists(place.file) or os.path.exists(place.marker) for place in places)


def _without(file, before):
    """(the text without our entries, notes)."""
    if before is None:
        return None, []
    if file.format == "script":
        return (None if entries.is_script(before) else before), []
    return entries.without(file, before, files.read_backup(file.path))


def _backup(file, before, after):
    """(where the text of before is kept, or None; whether it must be written there)."""
    if before is None or before == after or after is None or entries.is_script(before):
        return None, False
    there = files.read_backup(file.path)
    return files.backup_path(file.path), not entries.is_backup_of(file, before, there)


def _found(client, command, environment):
    places = client.places(environment)
    place = _choose(places)
    try:
        connected, detail = _state(client, place.file, command, environment)
    except SetupError as error:
        connected, detail = False, f"cannot be read: {error.why or error.message}"
    except ConfigFault as fault:
        connected, detail = False, f"cannot be read: line {fault.line}: {fault.reason}"
    return Found(client.name, client.title, place.file, _is_installed(places), connected, detail)


def _state(client, path, command, environment):
    """(whether the file at `path` starts exactly `command`, a line on what it holds)."""
    text = files.read(path)
    there = entries.servers(client, EDITORS[client.format].read(text or ""))
    ours = [piece for piece in there if entries.is_ours(piece.words, "mcp", command)]
    ours.sort(key=lambda piece: (piece.words != command, piece.name not in NAMES))
    if not ours:
        if any(piece.name == NAMES[0] for piece in there):
            return False, f"not connected; another server is named {NAMES[0]}"
        return False, "not connected" if text is not None else "not connected; no such file yet"
    name, words = ours[0].name, ours[0].words
    if entries.is_off(ours[0]):
        return False, f"switched off in the file: {name!r}"
    if words != command:
        return False, f"stale: {name!r} starts {' '.join(words)}"
    return True, f"connected as {name!r}" + (" with its session hook" if _is_hooked(client, environment) else "")


def _is_hooked(client, environment, project=None):
    """Whether a readable file has our session hook."""
    if client.hooks is None:
        return False
    for file in _hook_files(client, environment, project, True):
        try:
            text = files.read(file.path)
            if file.format == "script":
                found = entries.is_script(text)
            else:
                found = entries.hook_pieces(file, EDITORS[file.format].read(text or ""))
        except (ConfigFault, SetupError):
            continue
        if found:
            return True
    return False
