"""The vault folder: walk it, read a card file, write a new one that can overwrite nothing. No SQL.

Source files are only read. Links are not followed, special files not opened. A new card is written
to a temporary file in its own folder, synced, published by a name claim that fails when the name
is taken, and the folder is synced before anybody is told.
"""

import errno
import fnmatch
import os
import re
import stat
from collections import namedtuple
from contextlib import contextmanager
from functools import lru_cache

from mcore.card import CARD_SUFFIXES
from mcore.errors import CardError, SetupError

# What no vault means as memory: version control, trash, caches, other programs' folders. Agent
# folders (.claude, .cursor, .agents, .memory-bank, .kiro) do hold memory, so a dot alone says nothing.
IGNORED_FOLDERS = (
    ".git .hg .svn .jj .obsidian .trash .Trash .Trash-* .stversions .stfolder .history .recycle "
    "$RECYCLE.BIN .cache .venv .tox .mypy_cache .pytest_cache .ruff_cache .smart-env .dropbox.cache "
    "node_modules __pycache__"
).split()
IGNORED_FILES = (".tmp-*", "._*", ".#*", "~$*", ".~*")
_IGNORED_FILE_STARTS = {pattern[0] for pattern in IGNORED_FILES}
TEMP_PREFIX = ".tmp-memory-"
STALE_TEMP_SECONDS = 3600

Stamp = namedtuple("Stamp", "size mtime_ns ctime_ns inode")
Stamp.__doc__ = """What a file's metadata says about its content: bytes, nanoseconds, inode number.

On Windows `ctime_ns` is the time of creation, so an edit that restores size and mtime shows only in
the content; `index` reads every file there.
"""

Skipped = namedtuple("Skipped", "path reason")
Scan = namedtuple("Scan", "files skipped raw_names unread")
Scan.__doc__ = """One walk: `files` maps rel_path to Stamp, `skipped` names what was left out and why.

`raw_names` maps a rel_path that is not the file's real name (the name is not valid UTF-8) to the
real one. `unread` are the folders (as rel_path + "/", "" for the vault) that could not be looked into:
of their cards nothing is known.
"""

_LOOKS_ALIKE = "its name is not valid UTF-8 and reads like another's"
_MAX_INT = (1 << 63) - 1
_SUFFIXES_FOLDED = tuple({suffix.casefold() for suffix in CARD_SUFFIXES})


def is_scannable(root):
    """Whether the vault is there as a folder; raises SetupError when something else has its name."""
    try:
        mode = os.stat(root).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SetupError(f"cannot look into the vault {root}", error.strerror or "", "check its permissions") from None
    if not stat.S_ISDIR(mode):
        raise SetupError(f"the vault {root} is not a folder", "a file has its name", "choose a folder with --vault")
    return True


def is_bare(root):
    """Whether the vault is away: no such folder, or nothing at all in it (the place of a drive that is
    not mounted)."""
    try:
        return not is_scannable(root) or not os.listdir(root)
    except OSError:
        return True


def scan(root, ignore=(), name_ignored=False):
    """Walks the vault and returns a Scan. Reads names and metadata, no content.

    `ignore` are extra shell patterns for a name or a rel_path. With `name_ignored` the card files
    inside ignored folders are named as skipped too (a search does not need them).
    """
    files, skipped, raw_names, unread = {}, [], {}, []
    folders, names = _pattern((*IGNORED_FOLDERS, *ignore)), _pattern((*IGNORED_FILES, *ignore))

    def skip(rel, reason):
        skipped.append(Skipped(_shown(rel), reason))

    stack = [("", root)]
    while stack:
        prefix, path = stack.pop()
        try:
            with os.scandir(path) as found:
                entries = list(found)  # a disk may fail in the middle of a folder
        except OSError as error:
            if not prefix:
                raise SetupError(
                    f"cannot look into the vault {root}", error.strerror or "", "check its permissions"
                ) from None
            if not isinstance(error, FileNotFoundError):  # what went away meanwhile is not left out
                skip(prefix, f"folder cannot be read: {error.strerror}")
                unread.append(_shown(prefix))
            continue
        for entry in entries:  # 10,000 of them before each search: the common case comes first and costs little
            name = entry.name
            rel = prefix + name
            try:
                if entry.is_dir(follow_symlinks=False) and not _is_junction(entry):
                    if not (folders(name) or (ignore and folders(rel))):
                        stack.append((rel + "/", entry.path))
                    elif name_ignored:
                        skipped.extend(_cards_below(rel, entry.path, "folder is on the ignore list"))
                    continue
                if not name.endswith(CARD_SUFFIXES):
                    if name.casefold().endswith(_SUFFIXES_FOLDED):
                        skip(rel, "suffix is not written as cards have it (.md)")
                    elif entry.is_symlink() and entry.is_dir():
                        skip(rel, _link_reason(entry.path, root))
                    continue
                if (ignore or name[0] in _IGNORED_FILE_STARTS) and (names(name) or (ignore and names(rel))):
                    skip(rel, "file name is on the ignore list")
                    continue
                info = entry.stat(follow_symlinks=False)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    skip(rel, f"cannot be looked at: {error.strerror}")
                    unread.append(_shown(rel))
                continue
            if not stat.S_ISREG(info.st_mode):
                link = stat.S_ISLNK(info.st_mode)
                skip(rel, _link_reason(entry.path, root) if link else "not a regular file")
                continue
            shown = rel if rel.isascii() or _is_text(rel) else _shown(rel)
            if shown != rel:
                if shown in files:
                    skip(rel, _LOOKS_ALIKE)
                    continue
                raw_names[shown] = rel
            elif raw_names and raw_names.pop(rel, None):
                skip(rel, _LOOKS_ALIKE)
            files[shown] = _stamp(info)
    skipped.sort()
    return Scan(files, skipped, raw_names, unread)


@lru_cache(maxsize=8)
def _pattern(globs):
    """A predicate: does a name match one of the shell patterns?"""
    return re.compile("|".join(fnmatch.translate(g) for g in globs)).match


def _is_junction(entry):
    """A Windows junction or mount point, which is_symlink() does not count as a link."""
    return os.name == "nt" and bool(getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0))


def _is_text(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(rel):
    """A rel_path that can be stored and printed: undecodable bytes become U+FFFD."""
    return rel if _is_text(rel) else os.fsencode(rel).decode("utf-8", "replace")


def _link_reason(path, root):
    """Why a link is left out: it leads outside, nowhere, or to something that is walked anyway."""
    target = os.path.realpath(path)
    if not os.path.exists(target):
        return "link that leads nowhere"
    if is_inside(target, os.path.realpath(root)):
        return "link inside the vault: its target is read under its own name"
    return "link out of the vault: not followed"


def _cards_below(rel, path, reason):
    """A Skipped for every card file below an ignored folder."""
    for base, folders, names in os.walk(path):
        folders.sort()
        inner = rel + base[len(path) :].replace(os.sep, "/")
        for name in names:
            if name.endswith(CARD_SUFFIXES):
                yield Skipped(_shown(f"{inner}/{name}"), reason)


def is_inside(path, root):
    """Whether a real path is the root or below it (`/srv/share-secret` is not below `/srv/share`)."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def file_path(root, rel_path):
    """The path of a card file from its rel_path."""
    return os.path.join(root, *rel_path.split("/"))


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
        os.close(fd)
    return data, _stamp(info)


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
    """The Stamp of a stat result, in numbers that SQLite holds: years after 2262 count as 2262, and of an
    inode number (128 bits on some Windows disks) the lower 63 bits are kept."""
    mtime, ctime, inode = info.st_mtime_ns, info.st_ctime_ns, info.st_ino
    if not (-_MAX_INT <= mtime <= _MAX_INT and -_MAX_INT <= ctime <= _MAX_INT and inode <= _MAX_INT):
        mtime, ctime = (max(-_MAX_INT, min(ns, _MAX_INT)) for ns in (mtime, ctime))
        inode &= _MAX_INT
    return tuple.__new__(Stamp, (info.st_size, mtime, ctime, inode))  # twice as quick, 10,000 times a search


def is_walked(root, name, ignore=()):
    """Whether a walk would come upon a card file: it is there, and no folder on the way is a link or
    on the ignore list. `name` is its real name below the root."""
    path, parts = root, name.split("/")
    folders, names = _pattern((*IGNORED_FOLDERS, *ignore)), _pattern((*IGNORED_FILES, *ignore))
    for at, part in enumerate(parts[:-1], 1):
        path = os.path.join(path, part)
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return False
        except (OSError, ValueError):
            return False
        if folders(part) or (ignore and folders("/".join(parts[:at]))):
            return False
    if names(parts[-1]) or (ignore and names(name)):
        return False
    return stamp_of(file_path(root, name)) is not None


def decode(data):
    """(text, remark) of a card file's bytes; `remark` is "" or says what could not be decoded.

    UTF-8 with or without a byte order mark, UTF-32 with one, UTF-16 with one or where every other byte
    of the beginning is NUL. Line ends come back as "\\n".
    Bytes that are not UTF-8 become U+FFFD and the rest stays readable; no other encoding is guessed
    (0 of 86,001 real notes needed it). Raises CardError for a binary file.
    """
    remark = ""
    if data[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        text = data.decode("utf-32", "replace")
    elif data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    elif unmarked := _unmarked_utf16(data[:400]):
        text = data.decode(unmarked, "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if b"\0" in data:
                raise CardError("binary data, not text") from None
            text = data.decode("utf-8-sig", "replace")
            line = data.count(b"\n", 0, error.start) + 1
            remark = f"line {line} is not UTF-8: unreadable bytes are left out of the search"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, remark


def _unmarked_utf16(start):
    """The codec of UTF-16 text without a mark, from its first bytes; None when it is something else."""
    if b"\0" not in start:
        return None
    even, odd = start[::2].count(0), start[1::2].count(0)
    if min(even, odd) or max(even, odd) < 0.4 * len(start):
        return None
    return "utf-16-le" if odd else "utf-16-be"


# ---- writing -------------------------------------------------------------------------------------


def ensure_folder(root, folder):
    """The path of `folder` in the vault, made if need be and synced into its parent.

    Raises SetupError when the folder cannot be made or leads out of the vault through a link.
    """
    try:
        _make_folder(root)
        path = os.path.join(root, folder)
        _make_folder(path)
    except OSError as error:
        raise SetupError(
            f"cannot make the folder {os.path.join(root, folder)}",
            error.strerror or str(error),
            "check that the vault is a folder you may write to (memory paths)",
        ) from None
    real_root = os.path.realpath(root)
    if os.path.realpath(path) != os.path.join(real_root, folder):
        raise SetupError(f"{path} is a link", "a card is only written inside the vault", "replace the link by a folder")
    return path


def _make_folder(path):
    """Makes a folder and its parents, each synced into the one above."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        _make_folder(parent)
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
        os.close(fd)


@contextmanager
def folder_lock(path, lock_dir):
    """Holds the right to choose names in a folder; waits for other processes.

    The lock is the folder itself (no file appears in the vault); on Windows, which cannot lock a
    folder, a file in `lock_dir`. It serializes naming so that equal captures meet; that no card is
    overwritten rests on the name claim alone.
    """
    if os.name == "nt":
        import msvcrt

        os.makedirs(lock_dir, exist_ok=True)
        fd = os.open(os.path.join(lock_dir, "capture.lock"), os.O_RDWR | os.O_CREAT, 0o600)
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
        os.close(fd)


def publish(folder, name, data):
    """Writes a new file durably and returns True, or False when the name is taken.

    Nothing is ever replaced: the name is claimed by a hard link (a rename on Windows), which fails
    when it exists. Raises OSError when the data cannot be written; then no file is left.
    """
    temp = os.path.join(folder, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
    target = os.path.join(folder, name)
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(fd, "wb", buffering=0) as handle:
            view = memoryview(data)
            while view:
                view = view[handle.write(view) :]
            os.fsync(fd)
        if not _claim(temp, target):
            return False
    finally:
        try:
            os.unlink(temp)
        except OSError:
            pass
    sync_folder(folder)
    return True


def _claim(temp, target):
    """Gives a finished file its name unless the name is taken."""
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
    try:
        names = [name for name in os.listdir(folder) if name.startswith(TEMP_PREFIX)]
    except OSError:
        return
    for name in names:
        if not re.fullmatch("[0-9]+-[0-9a-f]{12}", name.removeprefix(TEMP_PREFIX)):
            continue
        path = os.path.join(folder, name)
        try:
            if now - os.lstat(path).st_mtime > STALE_TEMP_SECONDS:
                os.unlink(path)
        except OSError:
            continue
