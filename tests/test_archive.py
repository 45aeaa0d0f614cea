"""The archive of a backup: any tool opens it, and nothing in a strange one is trusted."""

import gc
import gzip
import io
import json
import os
import sys
import tarfile

import pytest

from mcore import archive
from mcore.archive import LIMITS, MANIFEST, Writer, read
from mcore.errors import ArchiveError

FILES = {"vault/a.md": b"# A", "vault/深/度.md": "正文".encode() * 999, "config.json": b"{}", "vault/empty.md": b""}


def packed(tmp_path, files=FILES):
    path = tmp_path / "b.tar.gz"
    with open(path, "xb") as stream:
        writer = Writer(stream)
        for name, data in files.items():
            writer.add_bytes(name, data, 1_700_000_000_123_456_789)
        writer.close({"created": "2026-01-01T00:00:00Z"})
    return path, writer.entries


def opened(path, limits=LIMITS):
    """(about, entries, {name: bytes}) of an archive."""
    taken = {}

    def take(name, chunks):
        taken[name] = b"".join(chunks)

    with open(path, "rb") as stream:
        return (*read(stream, take, limits), taken)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is full")
def test_an_archive_that_cannot_be_written_is_given_up_without_a_word(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    stream = open("/dev/full", "wb")
    writer = Writer(stream)
    with pytest.raises(OSError, match="space"):
        writer.add_bytes("vault/a", os.urandom(1 << 20), 0)
    writer.abandon()
    with pytest.raises(OSError, match="space"):
        stream.close()
    del writer
    gc.collect()
    assert told == []


def test_what_goes_in_comes_out(tmp_path):
    path, entries = packed(tmp_path)
    about, read_back, taken = opened(path)
    assert (read_back, taken, about["created"]) == (entries, FILES, "2026-01-01T00:00:00Z")
    assert {entry.mtime_ns for entry in read_back.values()} == {1_700_000_000_123_456_789}


def test_any_tar_opens_it(tmp_path):
    path, _ = packed(tmp_path)
    with tarfile.open(path) as tar:
        assert {m.name: tar.extractfile(m).read() for m in tar if m.name != MANIFEST} == FILES
        assert {m.mode for m in tar} == {0o600}


@pytest.mark.skipif(os.name == "nt", reason="names of bytes")
def test_a_name_that_is_no_utf8_and_one_of_400_bytes_come_back(tmp_path):
    files = {os.fsdecode(b"vault/bad\xffname.md"): b"x", "vault/" + "字" * 80 + "/" + "名" * 80 + ".md": b"y"}
    path, _ = packed(tmp_path, files)
    assert opened(path)[2] == files


def test_a_file_that_shrinks_while_it_is_packed_is_an_error(tmp_path):
    with open(tmp_path / "b.tar.gz", "xb") as stream:
        writer = Writer(stream)
        with pytest.raises(OSError):
            writer.add("vault/a.md", io.BytesIO(b"short"), 10_000, 0)
        writer.abandon()


# ---- what is refused -----------------------------------------------------------------------------


def strange(tmp_path, members, manifest=None, tail=b""):
    """An archive of (TarInfo or name, bytes) pairs, with a manifest that agrees unless one is given."""
    path = tmp_path / "strange.tar.gz"
    files = []
    with gzip.open(path, "wb", 1) as out:
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for info, data in members:
                if isinstance(info, str):
                    info = tarfile.TarInfo(info)
                    info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
                digest = archive.sha256(io.BytesIO(data))
                files.append({"name": info.name, "size": len(data), "mtime_ns": 0, "sha256": digest})
            if manifest is None:
                manifest = {"format": archive.FORMAT, "version": archive.VERSION, "files": files}
            if manifest is not False:
                text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
                info = tarfile.TarInfo(MANIFEST)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
        out.write(tail)
    return path


def special(name, type, linkname="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = type, linkname, size
    return info


GOOD = ("vault/a.md", b"# A")
REFUSED = {
    "absolute": [("/etc/cron.d/x", b"x")],
    "way up": [("vault/../../x", b"x")],
    "bare way up": [("..", b"x")],
    "dot": [("vault/./x", b"x")],
    "empty part": [("vault//x", b"x")],
    "long name": [("vault/" + "x" * 256, b"x")],
    "symbolic link": [(special("vault/l", tarfile.SYMTYPE, "/etc/passwd"), b"")],
    "hard link": [GOOD, (special("vault/l", tarfile.LNKTYPE, "vault/a.md"), b"")],
    "device": [(special("vault/d", tarfile.CHRTYPE), b"")],
    "pipe": [(special("vault/p", tarfile.FIFOTYPE), b"")],
    "folder": [(special("vault/d/", tarfile.DIRTYPE), b"")],
    "sparse": [(special("vault/s", tarfile.GNUTYPE_SPARSE), b"")],
    "twice": [GOOD, GOOD],
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_member_that_no_backup_has_is_refused(tmp_path, what):
    with pytest.raises(ArchiveError):
        opened(strange(tmp_path, REFUSED[what]))


def test_the_maker_of_strange_archives_can_make_a_good_one(tmp_path):
    assert opened(strange(tmp_path, [GOOD]))[2] == dict([GOOD])


SUM = archive.sha256(io.BytesIO(b"# A"))


def listing(*names, size=3, sha256=SUM):
    files = [{"name": name, "size": size, "mtime_ns": 0, "sha256": sha256} for name in names]
    return {"format": archive.FORMAT, "version": 1, "files": files}


MANIFESTS = {
    "none": False,
    "not json": b"{",
    "deep json": b"[" * 100_000,
    "a list": b"[]",
    "of another program": {"format": "x", "version": 1, "files": []},
    "of a newer program": {"format": archive.FORMAT, "version": 99, "files": []},
    "without the file": listing(),
    "of nonsense": {"format": archive.FORMAT, "version": 1, "files": [1]},
    "with another sum": listing("vault/a.md", sha256="0" * 64),
    "with another size": listing("vault/a.md", size=4),
    "with a file too many": listing("vault/a.md", "vault/b.md"),
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_that_does_not_agree_is_refused(tmp_path, manifest):
    with pytest.raises(ArchiveError):
        opened(strange(tmp_path, [GOOD], MANIFESTS[manifest]))


def test_nothing_may_come_after_the_manifest(tmp_path):
    with pytest.raises(ArchiveError):
        opened(strange(tmp_path, [GOOD, (MANIFEST, b"{}"), ("vault/b.md", b"x")]))
    with pytest.raises(ArchiveError):
        (tmp_path / "strange.tar.gz").unlink()
        opened(strange(tmp_path, [GOOD], tail=b"\0" * 20_480 + b"more"))


def test_what_unpacks_to_far_more_than_its_size_is_refused_early(tmp_path):
    zeros = bytes(1 << 20)
    path = strange(tmp_path, [("vault/a.md", zeros), ("vault/b.md", zeros)])
    taken = []
    tight = LIMITS._replace(free_bytes=1 << 16)
    with pytest.raises(ArchiveError) as caught, open(path, "rb") as stream:
        read(stream, lambda name, chunks: taken.extend(map(len, chunks)), tight)
    assert "far more" in caught.value.why and sum(taken) < len(zeros)
    assert opened(path)[2]["vault/b.md"] == zeros  # small enough to need no ratio


def test_a_header_that_claims_a_gigabyte_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "x.tar.gz"
    header = special("PaxHeaders/x", tarfile.XHDTYPE, size=1 << 30).tobuf(tarfile.USTAR_FORMAT)
    with gzip.open(path, "wb", 1) as out:
        out.write(header + bytes(8 << 20))
    with pytest.raises(ArchiveError) as caught:
        opened(path)
    assert "header" in caught.value.why


def test_too_many_or_too_large_files_are_refused(tmp_path):
    path, _ = packed(tmp_path)
    for limits in (LIMITS._replace(files=2), LIMITS._replace(bytes=5000), LIMITS._replace(manifest_bytes=100)):
        with pytest.raises(ArchiveError):
            opened(path, limits)


def test_every_cut_and_every_changed_byte_is_noticed(tmp_path):
    path, entries = packed(tmp_path, {"vault/a.md": b"# A\n" + bytes(range(256)) * 3})
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at])
        with pytest.raises(ArchiveError):
            opened(path)
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:  # the time and system of the gzip header mean nothing
            assert opened(path)[1] == entries and at < 10
        except ArchiveError:
            pass


@pytest.mark.parametrize("data", [b"", b"x", b"PK\x03\x04" * 99, gzip.compress(b""), gzip.compress(b"not a tar" * 999)])
def test_what_is_no_archive_is_said_to_be_none(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ArchiveError):
        opened(tmp_path / "x")
