"""The clients that `memory setup` knows: where each keeps its configuration and what belongs in it.

Read the table `CLIENTS` first. `edits`, `jsonc`, `toml_text` and `yaml_text` change a text and
know no files; `setup` reads and writes the files; `hook` is the text that a session hook says.
Sources of the paths and shapes: the clients' own documentation, `mcp list` runs of five of them.

Three rules hold for every row: the interpreter's absolute path is written (a program started from
a desktop has no shell PATH), every path among the arguments is absolute (clients start servers
in /, in the home folder or in the project), and no environment variable is relied on (clients pass
six of them, or all, or all whose name does not look like a credential).
"""

import os

from mcore.errors import UsageError
from mcore.record import namedtuple

Environment = namedtuple("Environment", "home env platform")
Environment.__doc__ = """The machine as set-up sees it: the home folder, the environment variables as a dict,

and `sys.platform`. Nothing else is asked, so a test can describe any machine.
"""

Place = namedtuple("Place", "file marker")
Place.__doc__ = "A file a client may read, and the folder or file whose existence says it is installed."

Client = namedtuple("Client", "name title aliases format places project kind container entry newer base hooks note")
Client.__doc__ = """One client.

`name` and `aliases` are what one types, `format` is json, toml or yaml. `places(environment)` lists
the candidates for its user-wide file, the preferred one first; `project` is the file inside a
project (relative), or None. `kind` says what `container` (a path in the document) is: a `map` of
entries by name, a `list` of entries with a name, or DeepSeek Harness's `patch` list.
`entry(name, command)` is what belongs there. `newer` is None or (container, entry) of a newer
layout, used where the document already has that container. `base` is what a new file needs besides.
`hooks` is a `Hooks` or None, `note` what to do after a change.
"""

Hooks = namedtuple("Hooks", "format places project path item output base inline note")
Hooks.__doc__ = """Where a client's session hook goes.

`format` is json, toml or script (a file that is the hook itself). `path` leads to the list in the
document, `item(shell_command)` is what is appended, `output` the format that `memory hook` must
print. `inline` is None, or the TOML file in the same folder whose own `hooks` are used when it has some.
"""


def _folder(environment, variable, *default):
    """The folder that `variable` names when it is absolute, else `default` under the home folder."""
    told = environment.env.get(variable, "")
    return told if os.path.isabs(told) else os.path.join(environment.home, *default)


def _applications(environment):
    """The folder in which desktop programs keep their settings."""
    if environment.platform == "darwin":
        return os.path.join(environment.home, "Library", "Application Support")
    if environment.platform == "win32":
        return _folder(environment, "APPDATA", "AppData", "Roaming")
    return _folder(environment, "XDG_CONFIG_HOME", ".config")


def _config(environment):
    """~/.config, also on macOS and Windows: for programs that use it everywhere."""
    return _folder(environment, "XDG_CONFIG_HOME", ".config")


def _in(folder, *files):
    """Places for `files` in `folder`, which is also what says that the client is installed."""
    return [Place(os.path.join(folder, file), folder) for file in files]


def _home(*parts):
    """Places for a file under the home folder; its folder is the mark."""
    return lambda environment: _in(os.path.join(environment.home, *parts[:-1]), parts[-1])


def _claude_code(environment):
    told = environment.env.get("CLAUDE_CONFIG_DIR", "")
    if os.path.isabs(told):
        return _in(told, ".claude.json")
    return [Place(os.path.join(environment.home, ".claude.json"), os.path.join(environment.home, ".claude"))]


def _claude_desktop(environment):
    return _in(os.path.join(_applications(environment), "Claude"), "claude_desktop_config.json")


def _codex(file):
    return lambda environment: _in(_folder(environment, "CODEX_HOME", ".codex"), file)


def _kimi(file):
    return lambda environment: _in(_folder(environment, "KIMI_CODE_HOME", ".kimi-code"), file)


def _vscode(environment):
    flavours = ("Code", "Code - Insiders", "VSCodium")
    users = [os.path.join(_applications(environment), flavour, "User") for flavour in flavours]
    return [place for user in users for place in _in(user, "mcp.json")]


def _zed(environment):
    if environment.platform == "win32":
        return _in(os.path.join(_applications(environment), "Zed"), "settings.json")
    return _in(os.path.join(_config(environment), "zed"), "settings.json")


def _opencode(environment):
    return _in(os.path.join(_config(environment), "opencode"), "opencode.json", "opencode.jsonc", "config.json")


def _cline(environment):
    places = []
    for editor in ("Code", "Code - Insiders", "VSCodium", "Cursor"):
        folder = os.path.join(_applications(environment), editor, "User", "globalStorage", "saoudrizwan.claude-dev")
        places.append(Place(os.path.join(folder, "settings", "cline_mcp_settings.json"), folder))
    shell = os.path.join(environment.home, ".cline")
    places.append(Place(os.path.join(shell, "data", "settings", "cline_mcp_settings.json"), shell))
    return places


def _continue(environment):
    return _in(_folder(environment, "CONTINUE_GLOBAL_DIR", ".continue"), "config.yaml")


def _goose(environment):
    if environment.platform == "win32":
        folder = os.path.join(_applications(environment), "Block", "goose")
        return [Place(os.path.join(folder, "config", "config.yaml"), folder)]
    return _in(os.path.join(_config(environment), "goose"), "config.yaml")


def _trae(environment):
    places = []
    for flavour in ("Trae", "Trae CN"):
        folder = os.path.join(_applications(environment), flavour)
        places += [
            Place(os.path.join(folder, "User", "mcp.json"), os.path.join(folder, "User")),
            Place(os.path.join(folder, "mcp.json"), folder),
        ]
    return places


def _codebuddy(environment):
    home = environment.home
    return [Place(os.path.join(home, ".codebuddy.json"), os.path.join(home, ".codebuddy"))]


def _dsh(environment):
    return _in(_folder(environment, "DSH_HOME", ".dsh"), "cordis.patch.yml")


def _plain(name, command):
    return {"command": command[0], "args": command[1:], "env": {}}


def _typed(name, command):
    return {"type": "stdio", **_plain(name, command)}


def _switched(name, command):
    return {**_plain(name, command), "disabled": False}


def _codex_entry(name, command):
    return {"command": command[0], "args": command[1:]}


def _opencode_entry(name, command):
    return {"type": "local", "command": command, "environment": {}, "enabled": True}


def _opencode_newer(name, command):
    return {"type": "local", "command": command, "environment": {}, "disabled": False}


def _continue_entry(name, command):
    return {"name": name, **_plain(name, command)}


def _goose_entry(name, command):
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "cmd": command[0],
        "args": command[1:],
        "envs": {},
        "timeout": 300,
    }


def _dsh_entry(name, command):
    return {
        "id": "memory-agent",
        "name": DSH_PLUGIN,
        "config": {
            "serverName": name,
            "transport": "stdio",
            "command": command[0],
            "args": command[1:],
            "env": {},
        },
    }


DSH_PLUGIN = "@deepseek-ai/dsh-mcp-client"
SESSION_STARTS = "startup|resume|clear|compact"


def _grouped(matcher=None, **extra):
    """The item of Claude Code's shape: a group with an optional matcher and one command hook."""
    group = {} if matcher is None else {"matcher": matcher}
    return lambda command: {**group, "hooks": [{"type": "command", "command": command, **extra}]}


def _client(name, title, format, places, container, entry, note, **more):
    """A row with the usual defaults."""
    row = {"aliases": (), "project": None, "kind": "map", "newer": None, "base": {}, "hooks": None, **more}
    return Client(
        name=name, title=title, format=format, places=places, container=container, entry=entry, note=note, **row
    )


def _hooks(format, places, project, path, item, output, note="", base=None, inline=None):
    return Hooks(format, places, project, path, item, output, base or {}, inline, note)


_SERVERS = ("mcpServers",)
_SESSION = ("hooks", "SessionStart")


def _claude_settings(environment):
    return _in(_folder(environment, "CLAUDE_CONFIG_DIR", ".claude"), "settings.json")


def _cline_hook(environment):
    folder = os.path.join(environment.home, "Documents", "Cline")
    return [Place(os.path.join(folder, "Hooks", "TaskStart"), folder)]


# Hook time-outs: seconds for Claude Code, Codex, CodeBuddy and Kimi, milliseconds for Gemini. Qwen Code's
# documentation says milliseconds in one release and seconds in another, so its default (a minute) is left.
CLIENTS = (
    _client(
        "claude-code", "Claude Code", "json", _claude_code, _SERVERS, _typed,
        "start a new session; /mcp lists the server",
        aliases=("claude",), project=".mcp.json",
        hooks=_hooks(
            "json", _claude_settings, ".claude/settings.local.json", _SESSION,
            _grouped(SESSION_STARTS, timeout=10), "claude",
        ),
    ),
    _client(
        "claude-desktop", "Claude Desktop", "json", _claude_desktop, _SERVERS, _plain,
        "quit Claude Desktop completely (also from the tray) and start it again",
    ),
    _client(
        "codex", "Codex", "toml", _codex("config.toml"), ("mcp_servers",), _codex_entry,
        "start a new session; `codex mcp list` shows the server",
        aliases=("codex-cli",), project=".codex/config.toml",
        hooks=_hooks(
            "json", _codex("hooks.json"), ".codex/hooks.json", _SESSION,
            _grouped(SESSION_STARTS, timeout=10), "codex",
            note="Codex asks you to review and trust a new hook before it runs it",
            inline="config.toml",
        ),
    ),
    _client(
        "cursor", "Cursor", "json", _home(".cursor", "mcp.json"), _SERVERS, _plain,
        "restart Cursor, then switch the server on under Settings, MCP",
        project=".cursor/mcp.json",
        hooks=_hooks(
            "json", _home(".cursor", "hooks.json"), ".cursor/hooks.json", ("hooks", "sessionStart"),
            lambda command: {"command": command}, "cursor", base={"version": 1},
        ),
    ),
    _client(
        "vscode", "VS Code", "json", _vscode, ("servers",), _typed,
        "run `MCP: List Servers` in VS Code and start the server there",
        aliases=("vs-code", "code", "copilot"), project=".vscode/mcp.json",
    ),
    _client(
        "windsurf", "Windsurf", "json", _home(".codeium", "windsurf", "mcp_config.json"), _SERVERS, _switched,
        "press refresh in the MCP panel of Cascade, or restart Windsurf",
    ),
    _client(
        "zed", "Zed", "json", _zed, ("context_servers",), _plain,
        "Zed starts the server by itself; its agent panel shows it",
        project=".zed/settings.json",
    ),
    _client(
        "gemini", "Gemini CLI", "json", _home(".gemini", "settings.json"), _SERVERS, _plain,
        "start a new session in a trusted folder; `gemini mcp list` shows the server",
        aliases=("gemini-cli",), project=".gemini/settings.json",
        hooks=_hooks(
            "json", _home(".gemini", "settings.json"), ".gemini/settings.json", _SESSION,
            _grouped(timeout=10000), "gemini",
        ),
    ),
    _client(
        "qwen", "Qwen Code", "json", _home(".qwen", "settings.json"), _SERVERS, _plain,
        "start a new session; `qwen mcp list` shows the server",
        aliases=("qwen-code",), project=".qwen/settings.json",
        hooks=_hooks(
            "json", _home(".qwen", "settings.json"), ".qwen/settings.json", _SESSION, _grouped(), "qwen"
        ),
    ),
    _client(
        "opencode", "opencode", "json", _opencode, ("mcp",), _opencode_entry,
        "start a new session; `opencode mcp list` shows the server",
        project="opencode.json", newer=(("mcp", "servers"), _opencode_newer),
    ),
    _client(
        "cline", "Cline", "json", _cline, _SERVERS, _switched,
        "open Cline's MCP panel and switch the server on",
        hooks=_hooks(
            "script", _cline_hook, None, (), None, "cline", note="switch hooks on in Cline's settings"
        ),
    ),
    _client(
        "continue", "Continue", "yaml", _continue, _SERVERS, _continue_entry,
        "reload the window; the tools appear in agent mode",
        kind="list", project=".continue/mcpServers/memory-agent.yaml",
        base={"name": "Local Config", "version": "1.0.0", "schema": "v1"},
    ),
    _client(
        "goose", "Goose", "yaml", _goose, ("extensions",), _goose_entry,
        "start a new session",
    ),
    _client(
        "kimi", "Kimi Code", "json", _kimi("mcp.json"), _SERVERS, _plain,
        "start a new session; /mcp lists the server",
        aliases=("kimi-code", "kimi-cli"), project=".kimi-code/mcp.json",
        hooks=_hooks(
            "toml", _kimi("config.toml"), None, ("hooks",),
            lambda command: {"event": "UserPromptSubmit", "command": command, "timeout": 10}, "kimi",
            note="Kimi Code shows its model nothing at a session's start, so this hook adds a short text "
            "to every prompt",
        ),
    ),
    _client(
        "trae", "Trae", "json", _trae, _SERVERS, _plain,
        "restart Trae; for a project file also switch on `Enable Project MCP`",
        aliases=("trae-cn",), project=".trae/mcp.json",
    ),
    _client(
        "workbuddy", "WorkBuddy", "json", _home(".workbuddy", "mcp.json"), _SERVERS,
        lambda name, command: {"type": "stdio", **_switched(name, command)},
        "restart WorkBuddy and allow the connector",
    ),
    _client(
        "codebuddy", "CodeBuddy", "json", _codebuddy, _SERVERS, _typed,
        "start a new session; /mcp lists the server",
        project=".mcp.json",
        hooks=_hooks(
            "json", _home(".codebuddy", "settings.json"), ".codebuddy/settings.local.json", _SESSION,
            _grouped(SESSION_STARTS, timeout=10), "claude",
        ),
    ),
    _client(
        "dsh", "DeepSeek Harness", "yaml", _dsh, (), _dsh_entry,
        "the web profile reloads the file by itself; restart other profiles",
        aliases=("deepseek-harness", "deepseek"), kind="patch",
    ),
)  # fmt: skip


def find(name):
    """The client called `name`; UsageError with the likely ones when there is none."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    for client in CLIENTS:
        if wanted == client.name or wanted in client.aliases:
            return client
    import difflib

    names = [client.name for client in CLIENTS]
    near = difflib.get_close_matches(wanted, names, 3, 0.5)
    raise UsageError(
        f"no client is called {name!r}",
        hint=("did you mean " + " or ".join(near) + "? " if near else "")
        + "known: "
        + ", ".join(names)
        + "; for anything else use --print",
    )
