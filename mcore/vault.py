"""The vault folder: walk it, read a card file, write a new one that can overwrite nothing. No SQL.

Source files are only read. Links are not followed, special files not opened. A new card is written
to a temporary file in its own folder, synced, published by a name claim that fails when the name
is taken, and the folder is synced before anybody is told.
"""

import codecs
import errno
import marshal
import os
import re
import stat
import time
from contextlib import contextmanager
from functools import lru_cache
from zlib import adler32, crc32

from mcore.card import CARD_SUFFIXES
from mcore.errors import CardChanged, CardError, SetupError
from mcore.record import namedtuple

# What no vault means as memory: version control, trash, caches, other programs' folders. Agent
# folders (.claude, .cursor, .agents, .memory-bank, .kiro) do hold memory, so a dot alone says nothing.
IGNORED_FOLDERS = (
    ".git .hg .svn .jj .obsidian .trash .Trash .Trash-* .stversions .stfolder .history .recycle "
    "$RECYCLE.BIN .cache .venv .tox .mypy_cache .pytest_cache .ruff_cache .smart-env .dropbox.cache "
    "node_modules __pycache__"
).split()
IGNORED_FILES = (".tmp-*", "._*", ".#*", "~$*", ".~*")
_WILD = frozenset("*?[")
_IGNORED_FILE_STARTS = {pattern[0] for pattern in IGNORED_FILES}
HISTORY_FOLDER = ".history"  # below the vault: former texts of cards, never walked
TEMP_PREFIX = ".tmp-memory-"
STALE_TEMP_SECONDS = 3600

Stamp = namedtuple("Stamp", "size mtime_ns ctime_ns inode")
Stamp.__doc__ = """What a file's metadata says about its content: bytes, nanoseconds, inode number.

On Windows `ctime_ns` is the time of creation, so an edit that restores size and mtime shows only in
the content; `index` reads every file there.
"""

Skipped = namedtuple("Skipped", "path reason")
Scan = namedtuple("Scan", "files skipped raw_names unread folders checked late")
Scan.__doc__ = """One walk: `files` maps rel_path to Stamp, `skipped` names what was left out and why.

`raw_names` maps a rel_path that is not the file's real name (the name is not valid UTF-8) to the
real one. `unread` are the folders (as rel_path + "/", "" for the vault) and files that could not be
looked at: of their cards nothing is known. `folders` maps each folder that was listed to the digest of its
listing (0: it has none), or to None when that was the digest known before: the files of such a folder are
not in `files`.
`checked` counts the card files of all listed folders; `late` are folders there was no time for.
"""

_LOOKS_ALIKE = "its name is not valid UTF-8 and reads like another's"
_MAX_INT = (1 << 63) - 1
_BY_HANDLE = os.stat in os.supports_dir_fd and os.scandir in os.supports_fd
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FORBIDDEN = (errno.EACCES, errno.EPERM)  # a folder that cannot be looked into: its cards count as unreadable
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


def scan(root, ignore=(), name_ignored=False, known=None, deadline=None):
    """Walks the vault and returns a Scan. Reads names and metadata, no content.

    `ignore` are extra shell patterns for a name or a rel_path. With `name_ignored` the card files
    inside ignored folders are named as skipped too (a search does not need them). `known` maps folders to
    the digests of listings there is nothing new in; a walk that is not done by `deadline` (of
    time.monotonic) leaves the rest.
    """
    walk = _Walk(root, ignore, name_ignored, deadline)
    found = walk.whole(known or {})
    # Bytes that are no text make two folders read alike: then a listing says nothing of its folder alone.
    return found if found is not None else _Walk(root, ignore, name_ignored, deadline).whole({}, True)


class _Walk:
    """One walk under way. 10,000 files are looked at before each search: the common case costs little."""

    def __init__(self, root, ignore, name_ignored, deadline):
        self.root, self.ignore, self.name_ignored, self.deadline = root, ignore, name_ignored, deadline
        self.is_ignored_folder = _pattern((*IGNORED_FOLDERS, *ignore))
        self.is_ignored_file = _pattern((*IGNORED_FILES, *ignore))
        self.files, self.skipped, self.raw_names, self.unread = {}, [], {}, []
        self.folders, self.checked, self.late = {}, 0, []
        self.stack = [("", root)]

    def whole(self, known, odd_names=False):
        """The Scan; None when a folder's name is not text and `odd_names` were not expected."""
        turn = time.monotonic_ns() if self.deadline else 0
        while self.stack:
            prefix, path = self.stack.pop()
            if not (odd_names or _is_text(prefix)):
                return None
            if self._is_over():
                self.late.append(_shown(prefix))
                continue
            above = len(self.stack)
            listing = self._list(prefix, path)
            if listing is None:
                continue
            if turn and len(self.stack) > above + 1:  # too little time ends elsewhere each time
                at = above + turn % (len(self.stack) - above)
                self.stack[above:] = self.stack[at:] + self.stack[above:at]
            digest = 0 if odd_names else _digest(listing)
            if digest and known.get(prefix) == digest:
                self.folders[prefix] = None
            else:
                self.folders[_shown(prefix)] = digest
                self._take_in(prefix, listing)
            self.checked += len(listing) // 5
        self.skipped.sort()
        return Scan(self.files, self.skipped, self.raw_names, self.unread, self.folders, self.checked, tuple(self.late))

    def _is_over(self):
        return self.deadline is not None and time.monotonic() > self.deadline

    def _list(self, prefix, path):
        """Name, size, mtime_ns, ctime_ns and inode of each card file of a folder, one after the other; None
        when the folder cannot be looked into."""
        fd, listing = None, []
        try:
            if _BY_HANDLE:  # a name below an open folder is found quicker than a path
                fd = os.open(path, _FOLDER_FLAGS | (os.O_NOFOLLOW if prefix else 0))
            with os.scandir(path if fd is None else fd) as found:
                entries = list(found)  # a disk may fail in the middle of a folder
            for at, entry in enumerate(entries):
                name = entry.name
                if not name.endswith(CARD_SUFFIXES):
                    self._pass(entry, prefix, path)
                    continue
                try:
                    if fd is None:
                        info = entry.stat(follow_symlinks=False)
                    else:
                        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as error:
                    self._miss(prefix + name, error)
                    continue
                if not stat.S_ISREG(info.st_mode):
                    self._pass(entry, prefix, path)
                elif (self.ignore or name[0] in _IGNORED_FILE_STARTS) and self._is_ignored(prefix, name):
                    self._skip(prefix + name, "file name is on the ignore list")
                else:
                    listing += (name, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
                if not at % 1000 and self._is_over():
                    self.late.append(_shown(prefix))
                    return None
        except OSError as error:
            if not prefix:
                raise SetupError(
                    f"cannot look into the vault {self.root}", error.strerror or "", "check its permissions"
                ) from None
            if not isinstance(error, FileNotFoundError):  # what went away meanwhile is not left out
                self._skip(prefix, f"folder cannot be read: {error.strerror}")
                self.unread.append(_shown(prefix))
            return None
        finally:
            if fd is not None:
                _close(fd)
        return listing

    def _pass(self, entry, prefix, path):
        """Takes note of what is no card file: a folder to walk, or something to be named as left out."""
        name = entry.name
        rel, full = prefix + name, os.path.join(path, name)
        try:
            if entry.is_dir(follow_symlinks=False) and not _is_junction(entry):
                if not (self.is_ignored_folder(name) or (self.ignore and self.is_ignored_folder(rel))):
                    self.stack.append((rel + "/", full))
                elif self.name_ignored and rel != HISTORY_FOLDER:
                    self.skipped.extend(_cards_below(rel, full, "folder is on the ignore list"))
            elif not name.endswith(CARD_SUFFIXES):
                if name.casefold().endswith(_SUFFIXES_FOLDED):
                    self._skip(rel, "suffix is not written as cards have it (.md)")
                elif entry.is_symlink() and entry.is_dir():
                    self._skip(rel, _link_reason(full, self.root))
            elif self._is_ignored(prefix, name):
                self._skip(rel, "file name is on the ignore list")
            else:
                self._skip(rel, _link_reason(full, self.root) if entry.is_symlink() else "not a regular file")
        except OSError as error:
            self._miss(rel, error)

    def _is_ignored(self, prefix, name):
        return self.is_ignored_file(name) or (self.ignore and self.is_ignored_file(prefix + name))

    def _miss(self, rel, error):
        if not isinstance(error, FileNotFoundError):
            self._skip(rel, f"cannot be looked at: {error.strerror}")
            self.unread.append(_shown(rel))

    def _skip(self, rel, reason):
        self.skipped.append(Skipped(_shown(rel), reason))

    def _take_in(self, prefix, listing):
        """Adds the files of a folder under the names they have in the index."""
        files, raw_names = self.files, self.raw_names
        for at in range(0, len(listing), 5):
            rel = prefix + listing[at]
            shown = rel if rel.isascii() or _is_text(rel) else _shown(rel)
            if shown != rel:
                if shown in files:
                    self._skip(rel, _LOOKS_ALIKE)
                    continue
                raw_names[shown] = rel
            elif raw_names and raw_names.pop(rel, None):
                self._skip(rel, _LOOKS_ALIKE)
            files[shown] = _storable(*listing[at + 1 : at + 5])


def _digest(listing):
    """63 bits that tell one listing from another (hashlib would add 4 ms of OpenSSL to every search)."""
    data = marshal.dumps(listing, 2)  # what later versions write depends on reference counts
    return (adler32(data) & 0x7FFFFFFF) << 32 | crc32(data)


@lru_cache(maxsize=8)
def _pattern(globs):
    """A predicate: does a name match one of the shell patterns?"""
    names = frozenset(glob for glob in globs if not _WILD.intersection(glob))
    starts = tuple(glob[:-1] for glob in globs if glob[-1:] == "*" and not _WILD.intersection(glob[:-1]))
    rest = [glob for glob in globs if glob not in names and glob[:-1] not in starts]
    if not rest:
        return lambda name: name in names or name.startswith(starts)
    import fnmatch  # only where somebody asks for such a pattern

    other = re.compile("|".join(map(fnmatch.translate, rest))).match
    return lambda name: name in names or name.startswith(starts) or other(name) is not None


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


def leads_inside(root, name):
    """Whether a name that somebody gave is one below the vault: no part of it is empty, leads up, or is a link
    that leads out."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return False
    return is_inside(os.path.realpath(file_path(root, name)), os.path.realpath(root))


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
        _close(fd)
    return data, _stamp(info)


def _close(fd):
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
    return _storable(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def _storable(size, mtime, ctime, inode):
    """The Stamp of a stat result's numbers, as SQLite holds them: years after 2262 count as 2262, and of an
    inode number (128 bits on some Windows disks) the lower 63 bits are kept."""
    if not (-_MAX_INT <= mtime <= _MAX_INT and -_MAX_INT <= ctime <= _MAX_INT and inode <= _MAX_INT):
        mtime, ctime = (max(-_MAX_INT, min(ns, _MAX_INT)) for ns in (mtime, ctime))
        inode &= _MAX_INT
    return tuple.__new__(Stamp, (size, mtime, ctime, inode))  # twice as quick


def is_walked(root, name, ignore=()):
    """Whether a walk would come upon a card file: it is there, and no folder on the way is a link or
    on the ignore list. `name` is its real name below the root. What the disk fails to tell counts as there."""
    path, parts = root, name.split("/")
    folders, names = _pattern((*IGNORED_FOLDERS, *ignore)), _pattern((*IGNORED_FILES, *ignore))
    for at, part in enumerate(parts[:-1], 1):
        path = os.path.join(path, part)
        if not _is(stat.S_ISDIR, path):
            return False
        if folders(part) or (ignore and folders("/".join(parts[:at]))):
            return False
    if names(parts[-1]) or (ignore and names(name)):
        return False
    return _is(stat.S_ISREG, file_path(root, name))


def _is(kind, path):
    """Whether a path, links not followed, is of a kind (a predicate of `stat`); so it is, too, when the disk
    fails to tell (an I/O error, too many open files): then nothing is known to have gone."""
    try:
        return kind(os.lstat(path).st_mode)
    except ValueError:
        return False
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, *_FORBIDDEN)


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
        data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            if b"\0" in data:
                raise CardError("binary data, not text") from None
            text = data.decode("utf-8", "replace")
            line = data.count(b"\n", 0, error.start) + 1
            remark = f"line {line} is not UTF-8: unreadable bytes are left out of the search"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, remark


_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def exact_text(data):
    """(text, encode) of a card file's bytes as they are: line ends and a byte order mark stay in the text.

    `encode(text)` gives bytes again, and for the same text the same bytes, undecodable ones included.
    Raises CardError for a binary file.
    """
    marked = next((codec for mark, codec in _MARKS if data.startswith(mark)), None)
    codec = marked or _unmarked_utf16(data[:400]) or "utf-8"
    errors = "surrogateescape" if codec == "utf-8" else "surrogatepass"
    try:
        text = data.decode(codec, errors)
    except UnicodeDecodeError:
        raise CardError("it is not whole text") from None
    return text, lambda changed: changed.encode(codec, errors)


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
        _close(fd)


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
        _close(fd)


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
        try:
            os.unlink(temp)
        except OSError:
            pass


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
        try:
            os.unlink(path)
        except OSError:
            continue


def stale_temps(folder, now):
    """The paths of temporary files in a folder that a killed capture left: ours by name, over an hour old."""
    names = [n for n in names_in(folder) if re.fullmatch(re.escape(TEMP_PREFIX) + "[0-9]+-[0-9a-f]{12}", n)]
    stale = []
    for path in (os.path.join(folder, name) for name in names):
        try:
            if now - os.lstat(path).st_mtime > STALE_TEMP_SECONDS:
                stale.append(path)
        except OSError:
            continue
    return stale


def names_in(folder):
    """The names in a folder, sorted; none when it is not there or cannot be looked into."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
