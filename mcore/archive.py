"""The file of a backup: a gzip-compressed tar that any tool opens, its last member the manifest.

Reading trusts nothing: a member is a regular file with a safe name, seen once and named in the
manifest with its size and SHA-256; what is unpacked is bounded before it is unpacked. Owns the archive
file alone: no vault, no index.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib

from mcore.errors import ArchiveError
from mcore.portable import unsafe
from mcore.record import namedtuple

FORMAT, VERSION = "memory-agent backup", 1
MANIFEST = "manifest.json"
CHUNK = 1 << 20

Entry = namedtuple("Entry", "size mtime_ns sha256")
Limits = namedtuple("Limits", "files bytes ratio free_bytes header_bytes manifest_bytes")
Limits.__doc__ = """What an archive may unpack to: so many files and bytes, and `ratio` times its own size (an archive
that unpacks to no more than `free_bytes` needs no ratio). `header_bytes` bounds what stands between two files."""
LIMITS = Limits(
    files=2_000_000, bytes=64 << 30, ratio=100, free_bytes=64 << 20, header_bytes=1 << 20, manifest_bytes=512 << 20
)


class Writer:
    """Writes an archive into an open binary file; `entries` maps each name to its Entry."""

    def __init__(self, stream):
        self.entries = {}
        self._outlet = _Outlet(stream)
        self._packed = gzip.GzipFile(filename="", fileobj=self._outlet, mode="wb", compresslevel=6, mtime=0)
        self._tar = tarfile.open(fileobj=self._packed, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8")

    def add(self, name, source, size, mtime_ns):
        """Adds `size` bytes read from the open file `source`. Raises OSError when it has fewer."""
        hashing = _Hashing(source)
        self._tar.addfile(_tar_info(name, size, mtime_ns), hashing)
        self.entries[name] = Entry(size, mtime_ns, hashing.digest.hexdigest())

    def add_bytes(self, name, data, mtime_ns):
        self.add(name, io.BytesIO(data), len(data), mtime_ns)

    def close(self, about):
        """Ends the archive with its manifest: `about` (a dict) and every entry."""
        files = [{"name": name, **entry._asdict()} for name, entry in self.entries.items()]
        manifest = {"format": FORMAT, "version": VERSION, **about, "files": files}
        data = json.dumps(manifest, indent=1).encode("ascii")  # escapes hold the bytes of any name
        self._tar.addfile(_tar_info(MANIFEST, len(data), 0), io.BytesIO(data))
        self._tar.close()
        self._packed.close()


    def abandon(self):
        """Ends without an archive, after an error: what is still held back goes nowhere. Left alone, the packers
        would write it when they are collected, and print that the file is closed."""
        self._outlet.stream = None
        self._tar.close()
        self._packed.close()


class _Outlet:
    """Where packed bytes go: a binary file, or nowhere once `stream` is None."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, data):
        return len(data) if self.stream is None else self.stream.write(data)

    def flush(self):
        if self.stream is not None:
            self.stream.flush()


def _tar_info(name, size, mtime_ns):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, max(0, mtime_ns // 1_000_000_000), 0o600
    return info


class _Hashing:
    """A file that is hashed as it is read."""

    def __init__(self, source):
        self._source = source
        self.digest = hashlib.sha256()

    def read(self, size):
        data = self._source.read(size)
        self.digest.update(data)
        return data


class _Bounded:
    """The unpacked bytes of a gzip file, of which no more are given than were allowed.

    `allow` gives room for what comes next, so that a header that claims a gigabyte is refused before
    it is read.
    """

    def __init__(self, packed, most):
        self._packed = packed
        self._left = most
        self._room = 0

    def allow(self, size):
        self._room = size + 2 * tarfile.RECORDSIZE  # tarfile reads ahead by one record

    def read(self, size):
        data = self._packed.read(min(size, CHUNK))
        self._room -= len(data)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError("cannot use the archive", "it unpacks to far more than its size", "it is no backup")
        if self._room < 0:
            raise ArchiveError("cannot use the archive", "a header in it is far too long", "it is no backup")
        return data

    def expect_end(self):
        """Reads to the end of the file, so that its checksum is checked; only padding may follow."""
        while data := self._packed.read(CHUNK):
            self._left -= len(data)
            if data.strip(b"\0") or self._left < 0:
                raise ArchiveError("cannot use the archive", "something follows its end", "it is no backup")


def read(stream, take=None, limits=LIMITS):
    """The manifest of an open archive as (about, {name: Entry}), after every byte was checked against it.

    `take(name, chunks)` gets each file as it comes, `chunks` being an iterable of bytes that it must
    exhaust; what it wrote counts only once this has returned. Raises ArchiveError.
    """
    try:
        return _read(stream, take or drop, limits)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(str(error) or type(error).__name__) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _damaged(f"a header makes no sense ({type(error).__name__})") from None


def _read(stream, take, limits):
    packed_size = os.fstat(stream.fileno()).st_size
    most = min(limits.bytes, max(limits.free_bytes, limits.ratio * packed_size))
    found, manifest = {}, None
    with gzip.GzipFile(fileobj=stream, mode="rb") as packed:
        bounded = _Bounded(packed, most)
        bounded.allow(limits.header_bytes)
        with tarfile.open(fileobj=bounded, mode="r|", encoding="utf-8") as tar:
            while (info := tar.next()) is not None:
                tar.members.clear()  # tarfile keeps every header it has seen
                _check_member(info, found, manifest, limits)
                bounded.allow(info.size)
                chunks = _Chunks(tar.extractfile(info), info.size)
                if info.name == MANIFEST:
                    manifest = b"".join(chunks)
                else:
                    take(info.name, chunks)
                    found[info.name] = Entry(chunks.size, None, chunks.digest.hexdigest())
                bounded.allow(limits.header_bytes)
        bounded.expect_end()
    return _matched(manifest, found)


class _Chunks:
    """The bytes of one member, in pieces; hashed and counted as they pass."""

    def __init__(self, source, size):
        self._source, self._want = source, size
        self.size, self.digest = 0, hashlib.sha256()

    def __iter__(self):
        while data := self._source.read(CHUNK):
            self.size += len(data)
            self.digest.update(data)
            yield data
        if self.size != self._want:
            raise EOFError("a file in it is cut off")


def _check_member(info, found, manifest, limits):
    """Raises ArchiveError unless a member is one that a backup may have here."""

    def refuse(why):
        raise ArchiveError("cannot use the archive", f"{info.name[:200]!r}: {why}", "it is no backup of this program")

    if manifest is not None:
        refuse("it comes after the manifest")
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
        refuse("it is a link, a folder, a device or a sparse file")
    reason = unsafe(info.name)
    if reason:
        refuse(reason)
    if info.name in found:
        refuse("it is in the archive twice")
    if len(found) >= limits.files or info.size > (limits.manifest_bytes if info.name == MANIFEST else limits.bytes):
        refuse("it is too large, or there are too many files")


def _matched(manifest, found):
    """(about, entries) of a manifest that says just what was found."""
    if manifest is None:
        raise _damaged("its manifest is missing")
    about = json.loads(manifest)
    if not isinstance(about, dict) or about.get("format") != FORMAT or not isinstance(about.get("files"), list):
        raise ArchiveError("cannot use the archive", "its manifest is not that of a backup", "choose another file")
    if about.get("version") != VERSION:
        why = f"it has version {about.get('version')!r} and this program knows {VERSION}"
        raise ArchiveError("cannot use the archive", why, "upgrade memory-agent")
    entries = {}
    for item in about.pop("files"):
        size, mtime_ns, digest = item["size"], item["mtime_ns"], item["sha256"]
        if item["name"] in entries or not isinstance(mtime_ns, int):
            raise _damaged("its manifest contradicts itself")
        entries[item["name"]] = Entry(size, mtime_ns, digest)
    for name in entries.keys() | found.keys():
        there, said = found.get(name), entries.get(name)
        if there is None or said is None or (there.size, there.sha256) != (said.size, said.sha256):
            raise _damaged(f"{name[:200]!r} is not as the manifest says")
    return about, entries


def _damaged(why):
    return ArchiveError("cannot use the archive", why, "it is damaged, cut off or no backup: choose another file")


def drop(name, chunks):
    """The `take` for a file that nobody wants."""
    for _ in chunks:
        pass


def sha256(stream):
    """The SHA-256 of the rest of an open file, as hex digits."""
    digest = hashlib.sha256()
    while data := stream.read(CHUNK):
        digest.update(data)
    return digest.hexdigest()
