"""Which folders and files hold no memory, by their names alone. Looks at no disk."""

import re
from functools import lru_cache

# What no vault means as memory: version control, trash, caches, other programs' folders. Agent
# folders (.claude, .cursor, .agents, .memory-bank, .kiro) do hold memory, so a dot alone says nothing.
IGNORED_FOLDERS = (
    ".git .hg .svn .jj .obsidian .trash .Trash .Trash-* .stversions .stfolder .history .recycle "
    "$RECYCLE.BIN .cache .venv .tox .mypy_cache .pytest_cache .ruff_cache .smart-env .dropbox.cache "
    "node_modules __pycache__"
).split()
IGNORED_FILES = (".tmp-*", "._*", ".#*", "~$*", ".~*")
IGNORED_FILE_STARTS = {glob[0] for glob in IGNORED_FILES}
HISTORY_FOLDER = ".history"  # below the vault: former texts of cards, never walked
_WILD = frozenset("*?[")


@lru_cache(maxsize=8)
def matcher(globs):
    """A predicate: does a name match one of the shell patterns?"""
    names = frozenset(glob for glob in globs if not _WILD.intersection(glob))
    starts = tuple(glob[:-1] for glob in globs if glob[-1:] == "*" and not _WILD.intersection(glob[:-1]))
    rest = [glob for glob in globs if glob not in names and glob[:-1] not in starts]
    if not rest:
        return lambda name: name in names or name.startswith(starts)
    import fnmatch  # only where somebody asks for such a pattern

    other = re.compile("|".join(map(fnmatch.translate, rest))).match
    return lambda name: name in names or name.startswith(starts) or other(name) is not None
