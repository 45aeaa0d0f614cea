"""Reads a configuration file whole and replaces it whole. Knows nothing of what stands in it."""

import os

from mcore.errors import SetupError
from mcore.paths import open_regular
from mcore.vault import make_folder, sync_folder

BACKUP = ".memory-agent.bak"


def read(path):
    """A file's text with its own line ends, None when there is no such file.

    Raises SetupError for what cannot be read or is not UTF-8 (with the line).
    """
    try:
        with open_regular(path) as stream:
            content = stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(
            f"cannot read {path}", error.strerror or str(error), "check the path and its rights"
        ) from error
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SetupError(f"cannot edit {path}", "line 1: it is written in UTF-16", "save it as UTF-8 and try again")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SetupError(f"cannot edit {path}", f"line {line}: not valid UTF-8", "save it as UTF-8") from error


def backup_path(path):
    """Where the text of before is kept: beside the real file, also when `path` is a symbolic link."""
    return os.path.realpath(path) + BACKUP


def read_backup(path):
    """The text that is kept for `path`, None when there is none or it cannot be read."""
    try:
        return read(backup_path(path))
    except SetupError:
        return None


def write(path, before, after, backup):
    """Replaces the text `before` of the file at `path` by `after`; None stands for no file.

    A symbolic link is followed, the mode is kept (new files 0600, new scripts and folders 0700), `before` goes
    to the path `backup` first unless that is None. Raises SetupError; then the file is as it was.
    """
    real = os.path.realpath(path)
    try:
        if after is None:
            os.unlink(real)
            sync_folder(os.path.dirname(real))
            return
        mode = 0o700 if after.startswith("#!") else 0o600
        if before is not None:
            if not os.access(real, os.W_OK):
                raise PermissionError(13, "the file is read only")
            mode = os.stat(real).st_mode & 0o7777
        make_folder(os.path.dirname(real))
        if backup:
            _replace(backup, before, mode)
        _replace(real, after, mode)
    except OSError as error:
        hint = "check its rights, close the client, and try again"
        raise SetupError(f"cannot write {path}", error.strerror or str(error), hint) from error


def _replace(path, text, mode):
    """Write `text` to `path` in one step: a reader sees the old file or the new one, also after a crash."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
        _like(temporary, path, mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def _like(temporary, path, mode):
    """Give the new file the mode, and where we may the owner, of the one it replaces."""
    if hasattr(os, "chown") and os.path.exists(path):
        there = os.stat(path)
        mine = os.stat(temporary)
        if (there.st_uid, there.st_gid) != (mine.st_uid, mine.st_gid):
            try:
                os.chown(temporary, there.st_uid, there.st_gid)
            except PermissionError:
                pass  # somebody else's file in a folder we may write to; its content is what counts
    os.chmod(temporary, mode)
