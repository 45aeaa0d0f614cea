"""The name of a card below the vault (its rel_path), and the path behind it. Owns what counts as inside the vault."""

import os


def is_inside(path, root):
    """Whether a real path is the root or below it (`/srv/share-secret` is not below `/srv/share`)."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def file_path(root, rel_path):
    """The path of a card file from its rel_path."""
    return os.path.join(root, *rel_path.split("/"))


def leads_inside(root, name):
    """Whether a name that somebody gave is one below the vault: no part of it is empty, leads up, or is a link
    that leads out."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return False
    return is_inside(os.path.realpath(file_path(root, name)), os.path.realpath(root))


def is_text(name):
    """Whether a name is valid UTF-8 (a lone surrogate stands for a byte that is not)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(rel):
    """A rel_path that can be stored and printed: undecodable bytes become U+FFFD."""
    return rel if is_text(rel) else os.fsencode(rel).decode("utf-8", "replace")
