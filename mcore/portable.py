"""Which names would not travel: to Windows, to macOS, into another folder. Pure: no disk."""

import re

from mcore.card import is_reserved, name_key

MAX_NAME_BYTES = 255  # of one name on most file systems
MAX_PATH_UNITS = 230  # UTF-16 units of a rel_path: Windows takes 260 with the folder it is in

_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]')


def path_faults(rel_path):
    """What another system would not take of a path, one text a fault; [] when it travels."""
    faults = []
    for name in rel_path.split("/"):
        faults += _name_faults(name)
    units = len(rel_path.encode("utf-16-le", "replace")) // 2
    if units > MAX_PATH_UNITS:
        faults.append(f"the path has {units} characters and Windows takes 260 with the folder it is in")
    return list(dict.fromkeys(faults))


def _name_faults(name):
    found = _FORBIDDEN.search(name)
    if found:
        char = found[0]
        yield f"{char!r} is forbidden in a Windows name" if char.isprintable() else "it holds a control character"
    if name[-1:] in (".", " "):
        yield "Windows drops a dot or space at the end of a name"
    if is_reserved(name):
        yield f"Windows reserves the name {name.split('.')[0]}"
    if len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        yield f"a name has over {MAX_NAME_BYTES} bytes"


def unsafe(name):
    """Why a name from an archive must not become a file below a folder, or "" when it may.

    An absolute name, a way up, and an empty or overlong part are unsafe anywhere; `\\` and `:` are refused
    by `path_faults` where they mean something.
    """
    if "\0" in name:
        return "it holds a NUL character"
    if name.startswith("/"):
        return "it is absolute"
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return "it leads elsewhere"
        if len(part.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES:
            return f"a part of it has over {MAX_NAME_BYTES} bytes"
    return ""


def collisions(rel_paths):
    """Groups of files or folders that macOS or Windows would take for one, each a sorted list of paths.

    Names are one there when they are equal after NFC and case folding. Of colliding folders only
    the folders are named, not what is in them.
    """
    seen = {}
    for rel_path in rel_paths:
        at = -1
        while True:
            at = rel_path.find("/", at + 1)
            path = rel_path if at < 0 else rel_path[:at]
            parent, _, name = path.rpartition("/")
            seen.setdefault((parent, name if name.isascii() and name.islower() else name_key(name)), set()).add(path)
            if at < 0:
                break
    return sorted(sorted(paths) for paths in seen.values() if len(paths) > 1)
