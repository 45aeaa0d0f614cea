"""Makes folders and card files that can overwrite nothing, and changes or removes one durably.

A new card is written to a temporary file in its own folder, synced, published by a name claim that fails
when the name is taken, and the folder is synced before anybody is told.
"""

import errno
import os
import re
import stat
from contextlib import contextmanager

from mcore.errors import CardChanged, CardError, SetupError
from mcore.vault.reading import close, names_in, read_bytes

TEMP_PREFIX = ".tmp-memory-"
_STALE_SECONDS = 3600


def ensure_folder(root, folder):
    """The path of `folder` in the vault, made if need be and synced into its parent.

    Raises SetupError when the folder cannot be made or leads out of the vault through a link.
    """
    path = os.path.join(root, folder)
    try:
        make_folder(root)
        _refuse_link(root, folder)  # before anything is made beyond it
        make_folder(path)
    except OSError as error:
        raise SetupError(
            f"cannot make the folder {path}",
            error.strerror or str(error),
            "check that the vault is a folder you may write to (memory paths)",
        ) from None
    _refuse_link(root, folder)
    return path


def _refuse_link(root, folder):
    path = os.path.join(root, folder)
    if os.path.realpath(path) != os.path.normpath(os.path.join(os.path.realpath(root), folder)):
        raise SetupError(f"{path} is a link", "a card is only written inside the vault", "replace the link by a folder")


def make_folder(path):
    """Makes a folder and its parents, each synced into the one above."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_folder(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    sync_folder(parent)


def sync_folder(path):
    """Makes the names in a folder durable; a system without folder handles has nothing to sync."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        close(fd)


@contextmanager
def folder_lock(path, lock_dir, lock_name="capture.lock"):
    """Holds the right to choose names and change cards in a folder; waits for other processes.

    The lock is the folder itself (no file appears in the vault); on Windows, which cannot lock a
    folder, the file `lock_name` in `lock_dir`. It serializes naming so that equal captures meet; that
    no card is overwritten rests on the name claim alone.
    """
    if os.name == "nt":
        import msvcrt

        os.makedirs(lock_dir, exist_ok=True)
        fd = os.open(os.path.join(lock_dir, lock_name), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
                    break
                except OSError:
                    continue
            yield
        finally:
            os.close(fd)
        return
    import fcntl

    fd = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError:
            pass  # a network file system without locks: the name claim still holds
        yield
    finally:
        close(fd)


def _write_synced(path, data):
    """Writes a file that does not exist yet, all of it, and syncs it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with open(fd, "wb", buffering=0) as handle:
        view = memoryview(data)
        while view:
            view = view[handle.write(view) :]
        os.fsync(fd)


@contextmanager
def temp_beside(path):
    """A free name for what is to stand at `path`; a file that has it in the end is removed."""
    temp = os.path.join(os.path.dirname(path), f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
    try:
        yield temp
    finally:
        discard(temp)


def publish(folder, name, data):
    """Writes a new file durably and returns True, or False when the name is taken.

    Nothing is ever replaced: the name is claimed by a hard link (a rename on Windows), which fails
    when it exists. Raises OSError when the data cannot be written; then no file is left.
    """
    target = os.path.join(folder, name)
    with temp_beside(target) as temp:
        _write_synced(temp, data)
        if not claim(temp, target):
            return False
    sync_folder(folder)
    return True


def replace(path, old, new):
    """Puts the bytes `new` in the place of a card file that holds `old`, durably and at once.

    A kill at any moment leaves the one or the other, whole. Raises CardChanged when the file holds
    something else by then (an edit by hand), OSError when it cannot be written; then it is as it was.
    """
    with temp_beside(path) as temp:
        _write_synced(temp, new)
        os.chmod(temp, stat.S_IMODE(os.lstat(path).st_mode))
        try:
            now, _ = read_bytes(path, len(old))
        except CardError:
            now = None
        if now != old:
            raise CardChanged(path)
        os.replace(temp, path)
    sync_folder(os.path.dirname(path))


def erase(path):
    """Removes a file for good and syncs its folder; one that is not there is no fault."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_folder(os.path.dirname(path))


def discard(path):
    """Removes a file that nobody needs, if that can be done."""
    try:
        os.unlink(path)
    except OSError:
        pass


def claim(temp, target):
    """Gives a finished file its name and returns True, or False when the name is taken."""
    try:
        if os.name == "nt":
            os.rename(temp, target)
        else:
            os.link(temp, target)
        return True
    except FileExistsError:
        return False
    except (OSError, NotImplementedError) as error:
        if getattr(error, "errno", None) not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, None):
            raise
    # A file system without hard links (FAT, some network shares): claim the name with an empty
    # file, then put the finished one in its place.
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    os.replace(temp, target)
    return True


def clear_stale_temps(folder, now):
    """Removes temporary files of captures that were killed (ours by name, over an hour old)."""
    for path in stale_temps(folder, now):
        discard(path)


def stale_temps(folder, now):
    """The paths of temporary files in a folder that a killed capture left: ours by name, over an hour old."""
    return stale_entries(folder, re.escape(TEMP_PREFIX) + "[0-9]+-[0-9a-f]{12}", now)


def stale_entries(folder, pattern, now):
    """The paths of what was not written to for an hour in a folder, by a pattern of the whole name.

    `now` is in seconds since 1970; infinity makes all of it stale.
    """
    names = [name for name in names_in(folder) if re.fullmatch(pattern, name)]
    stale = []
    for path in (os.path.join(folder, name) for name in names):
        try:
            if now - os.lstat(path).st_mtime > _STALE_SECONDS:
                stale.append(path)
        except OSError:
            continue
    return stale
