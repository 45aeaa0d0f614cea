"""Walks the vault: which card files there are, what is left out and why. Reads names and metadata, no content.

Links are not followed, special files not opened. Owns the digest of a folder's listing, by which a later walk
knows a folder in which nothing is new.
"""

import errno
import marshal
import os
import stat
import time
from zlib import adler32, crc32

from mcore.card import CARD_SUFFIXES
from mcore.errors import SetupError
from mcore.record import namedtuple
from mcore.vault.ignored import HISTORY_FOLDER, IGNORED_FILE_STARTS, IGNORED_FILES, IGNORED_FOLDERS, matcher
from mcore.vault.names import file_path, is_inside, is_text, printable
from mcore.vault.reading import close, make_stamp

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
        self.is_ignored_folder = matcher((*IGNORED_FOLDERS, *ignore))
        self.is_ignored_file = matcher((*IGNORED_FILES, *ignore))
        self.files, self.skipped, self.raw_names, self.unread = {}, [], {}, []
        self.folders, self.checked, self.late = {}, 0, []
        self.stack = [("", root)]

    def whole(self, known, odd_names=False):
        """The Scan; None when a folder's name is not text and `odd_names` were not expected."""
        turn = time.monotonic_ns() if self.deadline else 0
        while self.stack:
            prefix, path = self.stack.pop()
            if not (odd_names or is_text(prefix)):
                return None
            if self._is_over():
                self.late.append(printable(prefix))
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
                self.folders[printable(prefix)] = digest
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
                elif (self.ignore or name[0] in IGNORED_FILE_STARTS) and self._is_ignored(prefix, name):
                    self._skip(prefix + name, "file name is on the ignore list")
                else:
                    listing += (name, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
                if not at % 1000 and self._is_over():
                    self.late.append(printable(prefix))
                    return None
        except OSError as error:
            if not prefix:
                raise SetupError(
                    f"cannot look into the vault {self.root}", error.strerror or "", "check its permissions"
                ) from None
            if not isinstance(error, FileNotFoundError):  # what went away meanwhile is not left out
                self._skip(prefix, f"folder cannot be read: {error.strerror}")
                self.unread.append(printable(prefix))
            return None
        finally:
            if fd is not None:
                close(fd)
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
            self.unread.append(printable(rel))

    def _skip(self, rel, reason):
        self.skipped.append(Skipped(printable(rel), reason))

    def _take_in(self, prefix, listing):
        """Adds the files of a folder under the names they have in the index."""
        files, raw_names = self.files, self.raw_names
        for at in range(0, len(listing), 5):
            rel = prefix + listing[at]
            shown = rel if rel.isascii() or is_text(rel) else printable(rel)
            if shown != rel:
                if shown in files:
                    self._skip(rel, _LOOKS_ALIKE)
                    continue
                raw_names[shown] = rel
            elif raw_names and raw_names.pop(rel, None):
                self._skip(rel, _LOOKS_ALIKE)
            files[shown] = make_stamp(*listing[at + 1 : at + 5])


def _digest(listing):
    """63 bits that tell one listing from another (hashlib would add 4 ms of OpenSSL to every search)."""
    data = marshal.dumps(listing, 2)  # what later versions write depends on reference counts
    return (adler32(data) & 0x7FFFFFFF) << 32 | crc32(data)


def _is_junction(entry):
    """A Windows junction or mount point, which is_symlink() does not count as a link."""
    return os.name == "nt" and bool(getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0))


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
                yield Skipped(printable(f"{inner}/{name}"), reason)


def is_walked(root, name, ignore=()):
    """Whether a walk would come upon a card file: it is there, and no folder on the way is a link or
    on the ignore list. `name` is its real name below the root. What the disk fails to tell counts as there."""
    path, parts = root, name.split("/")
    folders, names = matcher((*IGNORED_FOLDERS, *ignore)), matcher((*IGNORED_FILES, *ignore))
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
