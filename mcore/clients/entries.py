"""Which entries of a configuration text are ours, and the text with or without them. Pure: no files.

An entry is ours when it starts this program's `mcp` (a hook: its `hook`), whatever interpreter or
options it names. An entry that bears our name and starts something else (the official
server-memory, Goose's own extension) is never changed: ours is then called `memory-agent`, and when
that is taken too the text is refused.

Taking out gives back the text of before whenever that is still known: a text that consists of its
backup plus our entry becomes the backup, one that holds nothing but what we would write into an
empty file becomes no file. Otherwise the entry alone goes, with a container that would be left
empty at the place where a new one is put.
"""

import re
import shlex

from mcore.clients import DSH_PLUGIN, jsonc, toml_text, yaml_text
from mcore.clients.edits import BY_HAND, ConfigFault, look_up, settled
from mcore.record import namedtuple

# No underscore: Gemini CLI splits its tool names at one. Short: the name is part of every tool name.
NAMES = ("memory", "memory-agent")
EDITORS = {"json": jsonc, "toml": toml_text, "yaml": yaml_text}

File = namedtuple("File", "client path format server hooks")
File.__doc__ = "A file to edit: `server` and `hooks` say whether the entry, the hook or both live in it."
Piece = namedtuple("Piece", "kind name path value words")
Piece.__doc__ = """An entry in a document: kind `server` or `hook`, its name (hooks have none), path and value.

`words` is the command line it starts as a list; None when it starts none (a remote server).
"""

_PROGRAM = {"memory", "memory.py", "memory.exe", "memory-agent", "memory_agent", "mcore", "mcore.cli", "cli.py"}
_LAUNCHER = re.compile(r"(?:python[0-9.]*w?|pyw?|uvx?|env)(?:\.exe)?|run|&")
_STARTS = ("type", "transport", "command", "cmd", "args")
_MARK = "# memory-agent session hook; `memory setup cline --remove` takes it out"


def with_server(file, text, command):
    """(text with an entry that starts `command`, notes for the user).

    An entry of ours that is there keeps its place, its name and every field that does not say what
    is started. Raises ConfigFault when the text cannot be edited or both our names are taken.
    """
    editor, notes = EDITORS[file.format], []
    document = editor.read(text)
    container, make = _layout(file.client, document)
    there = servers(file.client, document)
    named = {piece.name: piece for piece in there}
    mine = [named[name] for name in NAMES if name in named and is_ours(named[name].words, "mcp", command)]
    for piece in there:
        if piece.name not in NAMES and is_ours(piece.words, "mcp", command):
            notes.append(f"{file.path} also starts this program under the name {piece.name!r}")
    if mine:
        path = mine[0].path
        text = _refreshed(editor, text, mine[0], make(mine[0].name, command))
        if is_off(mine[0]):
            notes.append(f"the entry {mine[0].name!r} is switched off in {file.path}")
    else:
        name = _free_name(named, notes)
        text = _based(editor, text, document, file.client.base)
        path, value = _place(file.client, container, editor.read(text), name, make(name, command))
        text = editor.put(text, path, value)
    _reads_back(editor, text, path, command)
    return text, notes


def with_hook(file, text, line):
    """`text` with a session hook that runs the shell line `line`; one of ours is brought up to date."""
    editor, hooks = EDITORS[file.format], file.client.hooks
    document = editor.read(text)
    mine = hook_pieces(file, document)
    if mine:
        path = (*mine[0].path, *_inner(mine[0]), "command")
        return text if look_up(document, path) == line else editor.put(text, path, line)
    text = _based(editor, text, document, hooks.base)
    return editor.put(text, (*hooks.path, _count(document, hooks.path)), hooks.item(line))


def without(file, text, backup):
    """(text without our entries, None when no file should be left; notes). `backup` may be None."""
    editor, notes = EDITORS[file.format], []
    document = editor.read(text)
    mine = pieces(file, document)
    if file.server:
        for piece in servers(file.client, document):
            if piece.name == NAMES[0] and piece not in mine:
                notes.append(f"the entry named {NAMES[0]} in {file.path} is not ours and stays")
    if not mine:
        return text, notes
    if is_backup_of(file, text, backup):
        return backup, notes
    if _replayed(file, "", mine) == text:
        return None, notes
    while mine:
        text = _taken_out(editor, text, mine[-1])
        mine = pieces(file, editor.read(text))
    return text, notes


def is_backup_of(file, text, backup):
    """Whether `text` is `backup` plus our entries and nothing else."""
    if backup is None:
        return False
    try:
        editor = EDITORS[file.format]
        mine = pieces(file, editor.read(text))
        return bool(mine) and not pieces(file, editor.read(backup)) and _replayed(file, backup, mine) == text
    except ConfigFault:
        return False


def script(line):
    """A hook that is a file of its own and runs the shell line `line`."""
    return f"#!/bin/sh\n{_MARK}\nexec {line}\n"


def is_script(text):
    """Whether `text` is a hook file of ours."""
    return text is not None and _MARK in text


def hook_line(client, command, platform):
    """The session hook as one shell line: the server's command with `hook` in the place of `mcp`."""
    place = list(command).index("mcp")
    words = [*command[:place], "hook", *command[place + 1 :], "--format", client.hooks.output]
    if platform != "win32":
        return shlex.join(words)
    # Forward slashes and double quotes mean the same to cmd and to Git Bash; PowerShell, which Gemini
    # and Qwen use, runs a quoted program only behind an ampersand.
    words = [word.replace("\\", "/") for word in words]
    odd = [place == 0 or re.search(r"[^\w./:-]", word) for place, word in enumerate(words)]
    line = " ".join(f'"{word}"' if quote else word for word, quote in zip(words, odd, strict=True))
    return "& " + line if client.hooks.output in ("gemini", "qwen") else line


def wrapped(client, entry):
    """`entry` inside everything that leads to it in an empty document."""
    value = {"map": {NAMES[0]: entry}, "list": [entry], "patch": [{"insert": [entry]}]}[client.kind]
    for step in reversed(client.container):
        value = {step: value}
    return value


def servers(client, document):
    """Every server entry in the client's container as a `Piece`."""
    container, _ = _layout(client, document)
    there = look_up(document, container)
    found = []
    if client.kind == "map":
        rows = there.items() if isinstance(there, dict) else ()
        found = [(name, (*container, name), entry) for name, entry in rows]
    elif client.kind == "list":
        rows = enumerate(there if isinstance(there, list) else ())
        found = [(_name(entry, "name"), (*container, place), entry) for place, entry in rows]
    else:
        for place, change in enumerate(there if isinstance(there, list) else ()):
            rows = _get(change, "insert")
            for inner, entry in enumerate(rows if isinstance(rows, list) else ()):
                if _get(entry, "name") == DSH_PLUGIN:
                    found.append((_name(_get(entry, "config"), "serverName"), (place, "insert", inner), entry))
    return [Piece("server", name, path, entry, _words(entry)) for name, path, entry in found]


def hook_pieces(file, document):
    """Every item of the client's hook list that runs our hook, as a `Piece`."""
    there = look_up(document, file.client.hooks.path)
    found = []
    for place, item in enumerate(there if isinstance(there, list) else ()):
        inner = _get(item, "hooks")
        lines = [_get(hook, "command") for hook in inner] if isinstance(inner, list) else [_get(item, "command")]
        if any(_is_our_line(line) for line in lines):
            found.append(Piece("hook", None, (*file.client.hooks.path, place), item, lines))
    return found


def pieces(file, document):
    """Our own entries in a document: servers under our names, then hooks."""
    found = []
    if file.server:
        there = servers(file.client, document)
        found += [piece for piece in there if piece.name in NAMES and is_ours(piece.words, "mcp")]
    if file.hooks:
        found += hook_pieces(file, document)
    return found


def is_ours(words, verb, command=()):
    """Whether a command line runs `verb` of this program; `command` is how it is started today."""
    if not words or verb not in words:
        return False
    known = set(_PROGRAM)
    if verb in command:
        known |= _programs(command[: list(command).index(verb)])
    return bool(_programs(words[: words.index(verb)]) & known)


def is_off(piece):
    """Whether the entry is there but switched off."""
    return _get(piece.value, "disabled") is True or _get(piece.value, "enabled") is False


def _programs(words):
    """The last path part of every word that is no option, no option's value and no interpreter."""
    names = set()
    for place, word in enumerate(words):
        if not word.startswith("-") and not (place and words[place - 1].startswith("--")):
            *_, folder, name = ["", *re.split(r"[\\/]", word.lower())]
            names.add(folder if name == "__main__.py" else name)
    return {name for name in names if name and not _LAUNCHER.fullmatch(name)}


def _is_our_line(line):
    if not isinstance(line, str):
        return False
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return is_ours(words, "hook")


def _free_name(named, notes):
    free = [name for name in NAMES if name not in named]
    if not free:
        reason = f"other servers are named {NAMES[0]} and {NAMES[1]} already"
        raise ConfigFault(0, reason, "rename one of them, or add the lines of --print under another name")
    if free[0] != NAMES[0]:
        other = " ".join((named[NAMES[0]].words or ["something else"])[:3])
        notes.append(f"an entry named {NAMES[0]} is there already (it starts {other}); ours is named {free[0]}")
    return free[0]


def _layout(client, document):
    """Container and entry of the layout that this document uses."""
    if client.newer:
        there = look_up(document, client.newer[0])
        if isinstance(there, dict) and "command" not in there and "type" not in there:
            return client.newer
    return client.container, client.entry


def _place(client, container, document, name, entry):
    """Where a new server entry goes, and what is to be put there."""
    if client.kind == "map":
        return (*container, name), entry
    path = (*container, _count(document, container))
    return path, entry if client.kind == "list" else {"insert": [entry]}


def _count(document, path):
    """How many items the list at `path` has; 0 where there is none."""
    there = look_up(document, path)
    return len(there) if isinstance(there, list) else 0


def _get(value, key):
    return value.get(key) if isinstance(value, dict) else None


def _name(value, key):
    """The text at `key`, None when it is missing or no text."""
    name = _get(value, key)
    return name if isinstance(name, str) else None


def _words(entry):
    """The command line that a server entry starts, or None."""
    inner = _get(entry, "config") or entry
    command, rest = _get(inner, "command") or _get(inner, "cmd"), _get(inner, "args")
    words = command if isinstance(command, list) else [command, *(rest if isinstance(rest, list) else ())]
    return words if words and all(isinstance(word, str) for word in words) else None


def _inner(piece):
    """The steps from a hook item to the part that is ours: () or ("hooks", number)."""
    inner = _get(piece.value, "hooks")
    if not isinstance(inner, list):
        return ()
    return ("hooks", next(place for place, hook in enumerate(inner) if _is_our_line(_get(hook, "command"))))


def _refreshed(editor, text, piece, entry):
    """`text` with what starts the program brought up to date; the user's other fields stay."""
    lead = ("config",) if "config" in entry else ()
    for name, wanted in look_up(entry, lead).items():
        there = look_up(piece.value, (*lead, name))
        missing = there is None and name in ("type", "transport")
        if name in _STARTS and not missing and there != settled(wanted):
            text = editor.put(text, (*piece.path, *lead, name), wanted)
    return text


def _reads_back(editor, text, path, command):
    """Raise unless the entry at `path` of the new text starts `command`."""
    entry = look_up(editor.read(text), path)
    if isinstance(_get(entry, "insert"), list):
        entry = entry["insert"][0]
    if _words(entry) != list(command):
        raise ConfigFault(0, "the new entry does not read back as it was written", BY_HAND)


def _based(editor, text, document, base):
    """`text` with what a new document needs besides the entry."""
    if not document:
        for key, value in base.items():
            text = editor.put(text, (key,), value)
    return text


def _replayed(file, text, mine):
    """`text` with the entries `mine` put into it the way a connection would put them."""
    editor = EDITORS[file.format]
    for piece in mine:
        base = file.client.base if piece.kind == "server" else file.client.hooks.base
        document = editor.read(text)
        text = _based(editor, text, document, base)
        document = editor.read(text)
        if piece.kind == "hook":
            path, value = (*piece.path[:-1], _count(document, piece.path[:-1])), piece.value
        else:
            container, _ = _layout(file.client, document)
            path, value = _place(file.client, container, document, piece.name, piece.value)
        text = editor.put(text, path, value)
    return text


def _taken_out(editor, text, piece):
    """`text` without one piece, and without containers that it leaves empty where `put` makes them."""
    path = piece.path
    if piece.kind == "hook" and len(_get(piece.value, "hooks") or ()) > 1:
        return editor.drop(text, (*path, *_inner(piece)))
    document = editor.read(text)
    if len(path) > 2 and path[-2] == "insert" and len(look_up(document, path[:-1])) == 1:
        path = path[:-2]
    text = editor.drop(text, path)
    while len(path) > 1:
        path = path[:-1]
        left = editor.read(text)
        if look_up(left, path) or _get(look_up(left, path[:-1]), path[-1]) is None or not editor.is_last(text, path):
            break
        text = editor.drop(text, path)
    return text
