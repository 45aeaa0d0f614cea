"""Where everything is: flag > environment > config.json > default, and which of them decided.

Reads the environment and config.json, nothing else.
"""

import errno
import os
import stat

from mcore import scope
from mcore.errors import SetupError
from mcore.record import namedtuple

Place = namedtuple("Place", "path origin")
Place.__doc__ = """An absolute path and what decided it: flag, environment, config or default."""

Settings = namedtuple("Settings", "home db vault config bench_queries ignore max_card_bytes sync_seconds scopes")
Settings.__doc__ = """The paths in force and this machine's settings.

`home`, `db`, `vault` and `config` are Places; `ignore` names files or folders (shell patterns) that
are left out beside the built-in list; `max_card_bytes` is the largest file read as a card;
`sync_seconds` how long a search may spend on taking in what changed; `scopes` are the mapped folders,
as `scope.folder_ranges` gives them.
"""

ENV_HOME, ENV_DB, ENV_VAULT = "MEMORY_AGENT_HOME", "MEMORY_AGENT_DB", "MEMORY_AGENT_VAULT"
MAX_CONFIG_BYTES = 1 << 20
MAX_CARD_BYTES = 16 << 20  # the largest of 86,001 real notes has 0.94 MB
SYNC_SECONDS = 2.0

KNOWN = {"db": str, "vault": str, "ignore": list, "max_card_bytes": int, "sync_seconds": (int, float), "scopes": dict}


def resolve(flag_db=None, flag_vault=None, flag_home=None, env=None, cwd=None, config=None):
    """The Settings in force. Raises SetupError when config.json is broken, never ignores it.

    A relative path on the command line is taken from `cwd`, one in config.json from the data root.
    `config` stands in for what config.json holds.
    """
    env = os.environ if env is None else env
    home = Place(_absolute(flag_home, cwd, "--home"), "flag") if flag_home else _home(env)
    config_file = os.path.join(home.path, "config.json")
    config = read_config(config_file) if config is None else config
    db = _place("db", flag_db, env.get(ENV_DB), config, home.path, "memory.db", cwd)
    vault = _place("vault", flag_vault, env.get(ENV_VAULT), config, home.path, "vault", cwd)
    return Settings(
        home,
        db,
        vault,
        Place(config_file, "default"),
        Place(os.path.join(home.path, "bench_queries.json"), "default"),
        tuple(pattern.rstrip("/") or pattern for pattern in config.get("ignore", ())),
        config.get("max_card_bytes", MAX_CARD_BYTES),
        float(config.get("sync_seconds", SYNC_SECONDS)),
        scope.folder_ranges(config.get("scopes", {})),
    )


def _home(env):
    """The data root: MEMORY_AGENT_HOME, else ~/.memory_agent."""
    value = env.get(ENV_HOME)
    if value:
        return Place(_absolute(value, None, ENV_HOME), "environment")
    return Place(os.path.join(os.path.abspath(os.path.expanduser("~")), ".memory_agent"), "default")


def _place(key, flag, variable, config, home, default, cwd):
    """One path by the order of precedence."""
    if flag:
        return Place(_absolute(flag, cwd, f"--{key}"), "flag")
    if variable:
        return Place(_absolute(variable, cwd, f"MEMORY_AGENT_{key.upper()}"), "environment")
    if config.get(key):
        return Place(_absolute(config[key], home, f"config.json key {key!r}"), "config")
    return Place(os.path.join(home, default), "default")


def _absolute(value, base, named):
    if "\0" in value:
        raise SetupError(f"{named} is not a usable path", "it holds a NUL character", "give a plain path")
    value = os.path.expanduser(value)
    return os.path.abspath(os.path.join(base, value) if base else value)


def open_regular(path):
    """A file opened to read its bytes. OSError also for what is no regular file: a FIFO would be waited for."""
    handle = open(path, "rb", opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0)))
    if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
        handle.close()
        raise OSError(errno.EINVAL, "not a regular file")
    return handle


def read_config(path):
    """config.json as a dict of checked values; {} when there is no such file.

    Raises SetupError with the file, the line and the reason.
    """
    try:
        with open_regular(path) as handle:
            data = handle.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        raise SetupError(
            f"the data root {os.path.dirname(path)} is not a folder",
            "a file has its name",
            f"move that file away or set {ENV_HOME}",
        ) from None
    except OSError as error:
        raise SetupError(f"cannot read {path}", error.strerror or str(error), "check its permissions") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise SetupError(f"cannot use {path}", "it is larger than 1 MiB", "a settings file holds a few lines")
    return check_config(path, data)


def check_config(path, data):
    """The bytes of a config.json as a dict of checked values; SetupError (about `path`) when they are not."""
    if not data.strip():
        return {}
    import json

    def broken(line, reason):
        return SetupError(f"cannot use {path}", f"line {line}: {reason}", "correct that line, or move the file away")

    try:
        text = data.decode("utf-8-sig")
        config = json.loads(text)
    except UnicodeDecodeError as error:
        raise broken(data.count(b"\n", 0, error.start) + 1, "it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise broken(error.lineno, f"it is not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError):
        raise broken(1, "it is not usable JSON") from None
    if not isinstance(config, dict):
        raise broken(1, 'it must hold one JSON object, such as {"vault": "~/notes"}')
    for key, kind in KNOWN.items():
        if config.get(key) is None:
            config.pop(key, None)
            continue
        _check_value(key, config[key], kind, lambda reason, key=key: broken(_line_of(text, key), reason))
    return config


def _check_value(key, value, kind, broken):
    """Raises what `broken(reason)` gives unless `value` suits the setting `key`."""
    if not isinstance(value, kind) or isinstance(value, bool):
        want = {
            "ignore": "a list of names",
            "max_card_bytes": "a whole number",
            "sync_seconds": "a number",
            "scopes": "an object that gives a scope its folders",
        }
        raise broken(f"{key!r} must be {want.get(key, 'text')}")
    if isinstance(value, str) and "\0" in value:
        raise broken(f"{key!r} holds a NUL character")
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise broken(f"{key!r} holds half a character (a lone surrogate)")
    if key == "ignore" and not all(isinstance(item, str) and item and "\0" not in item for item in value):
        raise broken("'ignore' must be a list of names, each a text")
    if key == "scopes":
        _check_scopes(value, broken)
    elif kind is not list and not isinstance(value, str) and not 0 <= value < 1e15:
        raise broken(f"{key!r} must not be negative or absurdly large")


def _check_scopes(value, broken):
    """Raises unless `value` maps scopes to a folder of the vault or a list of them; makes all of them lists."""
    for name, folders in value.items():
        if scope.normalized(name) in (None, scope.GLOBAL):
            raise broken(f"'scopes' names {name!r}; a scope is project/<id> or domain/<id>")
        value[name] = folders = [folders] if isinstance(folders, str) else folders
        if not isinstance(folders, list) or not all(
            isinstance(folder, str) and folder.strip("/\\") and "\0" not in folder for folder in folders
        ):
            raise broken(f"'scopes' must give {name!r} a folder of the vault, or a list of them")


def _line_of(text, key):
    """The line on which a key first stands (for messages; 1 when it cannot be told)."""
    at = text.find(f'"{key}"')
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
