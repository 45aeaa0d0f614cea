"""Reads one file, and what its metadata says. Owns the Stamp; a link is not followed, a special file not opened."""

import errno
import os
import stat

from mcore.errors import CardError
from mcore.record import namedtuple

Stamp = namedtuple("Stamp", "size mtime_ns ctime_ns inode")
Stamp.__doc__ = """What a file's metadata says about its content: bytes, nanoseconds, inode number.

On Windows `ctime_ns` is the time of creation, so an edit that restores size and mtime shows only in
the content; `index` reads every file there.
"""

_MAX_INT = (1 << 63) - 1


def read_bytes(path, max_bytes):
    """(bytes, Stamp) of a regular file. Raises CardError with the reason when it is not to be read.

    A link is refused, a FIFO does not block. The stamp is taken from the opened file before reading.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CardError("is a link") from None
        raise CardError(f"cannot be opened: {error.strerror}") from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise CardError("not a regular file")
        if info.st_size > max_bytes:
            raise CardError(f"larger than {max_bytes} bytes", hint="raise max_card_bytes in config.json to read it")
        data = _read_all(fd, info.st_size)
    except OSError as error:
        raise CardError(f"cannot be read: {error.strerror}") from None
    finally:
        close(fd)
    return data, _stamp(info)


def close(fd):
    """Closes a descriptor that nothing was written through: an error of it would lose nothing."""
    try:
        os.close(fd)
    except OSError:
        pass


def _read_all(fd, size):
    """All bytes of an open file; its size is a first guess, since it may be growing."""
    data = os.read(fd, size + 1)
    more = data
    while more:
        more = os.read(fd, 1 << 20)
        data += more
    return data


def stamp_of(path):
    """The Stamp of a regular file, or None when there is no such file any more."""
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    return _stamp(info)


def _stamp(info):
    return make_stamp(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def make_stamp(size, mtime, ctime, inode):
    """The Stamp of a stat result's numbers, as SQLite holds them: years after 2262 count as 2262, and of an
    inode number (128 bits on some Windows disks) the lower 63 bits are kept."""
    if not (-_MAX_INT <= mtime <= _MAX_INT and -_MAX_INT <= ctime <= _MAX_INT and inode <= _MAX_INT):
        mtime, ctime = (max(-_MAX_INT, min(ns, _MAX_INT)) for ns in (mtime, ctime))
        inode &= _MAX_INT
    return tuple.__new__(Stamp, (size, mtime, ctime, inode))  # twice as quick


def names_in(folder):
    """The names in a folder, sorted; none when it is not there or cannot be looked into."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
