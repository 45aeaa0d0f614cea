"""mcore.vault: the walk finds what is memory and names what it leaves out; files are read whole and written safely."""

import errno
import os
import subprocess
import sys
import threading

import pytest
from conftest import ROOT

from mcore import vault
from mcore.errors import CardError, SetupError
from mcore.vault import Stamp, decode, ensure_folder, is_inside, is_walked, publish, read_bytes, scan, stamp_of
from mcore.vault.reading import make_stamp

POSIX = os.name == "posix"
LINUX = sys.platform.startswith("linux")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "vault").mkdir()
    return str(tmp_path / "vault")


def skipped(root, **more):
    return {entry.path: entry.reason for entry in scan(root, name_ignored=True, **more).skipped}


# ---- the walk ------------------------------------------------------------------------------------

READ = [
    "a.md", "b.markdown", "c.mdc", "d.mdx", "README.MD", ".hidden.md", "deep/er/and/deeper/e.md", ".claude/memory/f.md",
    ".cursor/rules/g.mdc", ".agents/h.md", ".memory-bank/i.md", ".kiro/j.md", "name with  spaces.md", "云.md", "🚀.md",
    "it's \"quoted\".md", "-rf.md", "*.md", "[x].md", "~.md", "%s.md", "..md", ".md", "git/k.md", "build/l.md",
]  # fmt: skip
LEFT_OUT = {
    ".git/a.md": "ignore list",
    ".obsidian/a.md": "ignore list",
    ".trash/a.md": "ignore list",
    ".Trash-1000/files/a.md": "ignore list",
    "deep/node_modules/pkg/README.md": "ignore list",
    ".stversions/a.md": "ignore list",
    ".venv/lib/a.md": "ignore list",
    "__pycache__/a.md": "ignore list",
    "._a.md": "ignore list",
    ".#a.md": "ignore list",
    "~$a.md": "ignore list",
    ".tmp-memory-1-a.md": "ignore list",
    "odd.Md": "suffix",
    "odd.MDX": "suffix",
}
NO_CARDS = ["a.txt", "md", "a.md.bak", "a.md~", "image.png", "notes.md.txt"]


def test_notes_are_read_and_what_is_left_out_is_named(root, write_note):
    """README: "`memory index --json` names every card file that was left out with the reason"."""
    for name in [*READ, *LEFT_OUT, *NO_CARDS]:
        write_note(name)
    found = scan(root, name_ignored=True)
    assert sorted(found.files) == sorted(READ)
    assert {entry.path for entry in found.skipped} == set(LEFT_OUT)
    assert all(LEFT_OUT[entry.path] in entry.reason for entry in found.skipped)
    assert found.skipped == sorted(found.skipped)


@pytest.mark.parametrize(
    "patterns, left",
    [
        (["drafts"], {"a.md", "x/a.md", "x/notes/c.tmp.md"}),
        (["*.tmp.md"], {"a.md", "x/a.md", "drafts/b.md"}),
        (["x/notes"], {"a.md", "x/a.md", "drafts/b.md"}),
        (["x/*"], {"a.md", "drafts/b.md"}),
        (["a.md"], {"drafts/b.md", "x/notes/c.tmp.md"}),
        (["["], {"a.md", "x/a.md", "drafts/b.md", "x/notes/c.tmp.md"}),
        (["*"], set()),
    ],
)
def test_the_ignore_list_of_the_settings_adds_names_and_patterns(root, write_note, patterns, left):
    for name in ("a.md", "x/a.md", "drafts/b.md", "x/notes/c.tmp.md"):
        write_note(name)
    found = scan(root, patterns, name_ignored=True)
    assert set(found.files) == left and len(found.files) + len(found.skipped) == 4
    for name in ("a.md", "x/a.md", "drafts/b.md", "x/notes/c.tmp.md"):
        assert is_walked(root, name, patterns) is (name in left)


@pytest.mark.skipif(not LINUX, reason="names as Linux has them")
def test_names_that_only_linux_has_are_read(root, write_note):
    names = ["new\nline.md", "tab\t.md", "back\\slash.md", "esc\x1b[31m.md", "\x7f.md", "n" * 252 + ".md"]
    names += [":.md", "con.md", "café.md", "cafe\u0301.md", "x\u202ey.md", "a" * 200 + "/b.md"]
    for name in names:
        write_note(name, "x")
    assert sorted(scan(root).files) == sorted(names)


@pytest.mark.skipif(not LINUX, reason="names that are no text")
def test_a_name_that_is_not_utf8_is_read_under_a_readable_one(root, write_note):
    raw = os.fsencode(root)
    for name in (b"\xff.md", b"\xfe.md", b"folder\xff/note.md"):
        os.makedirs(os.path.dirname(os.path.join(raw, name)), exist_ok=True)
        with open(os.path.join(raw, name), "wb") as handle:
            handle.write(name)
    found = scan(root)
    assert sorted(found.files) == ["folder\ufffd/note.md", "\ufffd.md"]
    assert [entry.path for entry in found.skipped] == ["\ufffd.md"]
    assert set(found.raw_names) == set(found.files)
    write_note("\ufffd.md", "the real one")
    found = scan(root)
    assert found.raw_names == {"folder\ufffd/note.md": os.fsdecode(b"folder\xff/note.md")}
    assert len(found.files) == 2 and len(found.skipped) == 2


@pytest.mark.skipif(not POSIX, reason="links")
def test_links_are_not_followed_and_named(root, write_note, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.md").write_text("secret")
    write_note("in/a.md")
    for name, target in {
        "out.md": "../out/secret.md",
        "outside": "../out",
        "inside.md": "in/a.md",
        "nowhere.md": "no/such",
        "self.md": "self.md",
        "loop": ".",
        "absolute.md": "/etc/hostname",
    }.items():
        os.symlink(target, os.path.join(root, name))
    found = scan(root)
    reasons = {entry.path: entry.reason for entry in found.skipped}
    assert list(found.files) == ["in/a.md"]
    assert {path for path, reason in reasons.items() if "out of the vault" in reason} >= {"out.md", "outside"}
    assert "own name" in reasons["inside.md"] and "own name" in reasons["loop"]
    assert "nowhere" in reasons["nowhere.md"] and set(reasons) >= {"self.md", "absolute.md"}


@pytest.mark.skipif(not POSIX, reason="special files")
def test_special_files_are_named_and_never_opened(root):
    os.mkfifo(os.path.join(root, "fifo.md"))
    assert skipped(root) == {"fifo.md": "not a regular file"}
    with pytest.raises(CardError, match="regular file"):
        read_bytes(os.path.join(root, "fifo.md"), 100)
    with pytest.raises(CardError):
        read_bytes("/dev/zero", 100)


@pytest.mark.skipif(not POSIX, reason="paths over 4,096 bytes")
def test_a_path_too_long_for_the_system_is_named_and_the_rest_is_read(root):
    handle = os.open(root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=handle)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
        os.close(os.open("n.md", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
    os.close(handle)
    found = scan(root)
    assert 10 < len(found.files) < 25 and all(path.endswith("/n.md") for path in found.files)
    assert [entry.reason for entry in found.skipped] == ["folder cannot be read: File name too long"]
    assert found.unread == [found.skipped[0].path]


@pytest.mark.skipif(not POSIX or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_rights_is_named_and_remembered(root, write_note):
    write_note("closed/a.md")
    os.chmod(os.path.join(root, "closed"), 0)
    try:
        found = scan(root)
    finally:
        os.chmod(os.path.join(root, "closed"), 0o700)
    assert "closed" in found.skipped[0].path and found.unread == ["closed/"]


@pytest.mark.parametrize("mtime", [-86400 * 40000, -1, 0, 7_258_118_400, 10_413_792_000])
def test_a_stamp_of_any_year_fits_the_database(root, write_note, mtime):
    path = write_note("a.md", "x")
    os.utime(path, (mtime, mtime))
    stamp = stamp_of(path)
    assert scan(root).files["a.md"] == stamp == read_bytes(path, 10)[1]
    assert all(-(1 << 63) <= number < 1 << 63 for number in stamp)


def test_an_inode_number_of_128_bits_fits_the_database():
    assert make_stamp(1, 2, 3, (1 << 127) + 5) == Stamp(1, 2, 3, 5)


@pytest.mark.skipif(not POSIX, reason="links")
def test_a_file_below_a_link_is_not_in_the_vault(root, write_note, tmp_path):
    write_note("notes/a.md")
    assert is_walked(root, "notes/a.md")
    os.rename(os.path.join(root, "notes"), tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", os.path.join(root, "notes"))
    assert not is_walked(root, "notes/a.md") and stamp_of(os.path.join(root, "notes", "a.md"))


@pytest.mark.parametrize(
    "name", [".git/a.md", "x/node_modules/a.md", "._a.md", "no.md", "folder", "a\0b.md", "x" * 5000, "no/such/a.md"]
)
def test_what_a_walk_would_not_come_upon(root, write_note, name):
    write_note("folder/a.md")
    for ignored in (".git/a.md", "x/node_modules/a.md", "._a.md"):
        write_note(ignored)
    assert not is_walked(root, name)


@pytest.mark.parametrize(
    "path, inside",
    [("/srv/share", True), ("/srv/share/a", True), ("/srv/share-secret", False), ("/srv", False), ("/", False)],
)
def test_a_name_that_only_begins_alike_is_outside(path, inside):
    assert is_inside(path.replace("/", os.sep), "/srv/share".replace("/", os.sep)) is inside
    assert is_inside(path.replace("/", os.sep), os.sep)


def test_a_vault_that_is_a_file_or_is_missing_is_told_apart(root, write_note, tmp_path):
    assert vault.is_scannable(root) and not vault.is_scannable(str(tmp_path / "missing"))
    with pytest.raises(SetupError, match="cannot look into"):
        vault.is_scannable(os.path.join(write_note("a.md"), "below"))
    with pytest.raises(SetupError, match="not a folder"):
        vault.is_scannable(write_note("a.md"))


# ---- reading -------------------------------------------------------------------------------------

DECODED = [
    (b"plain", "plain", False),
    ("云\r\nb\rc\n".encode(), "云\nb\nc\n", False),
    (b"\xef\xbb\xbfmarked", "marked", False),
    ("云 text".encode("utf-16"), "云 text", False),
    ("# Title\r\n云 and text".encode("utf-16-le"), "# Title\n云 and text", False),
    ("# Title\r\n云 and text".encode("utf-16-be"), "# Title\n云 and text", False),
    (b"\xfe\xff" + "云\r\n".encode("utf-16-be"), "云\n", False),
    ("云".encode("utf-32"), "云", False),
    (b"\x00\x00\xfe\xff" + "云".encode("utf-32-be"), "云", False),
    (b"ok\nbad \xff byte\n", "ok\nbad \ufffd byte\n", True),
    ("中文".encode("gbk"), "\ufffd\ufffd\ufffd\ufffd", True),
    (b"half \xe4\xba", "half \ufffd", True),
    (b"\xed\xa0\x80 surrogate", "\ufffd\ufffd\ufffd surrogate", True),
    (b"nul \0 inside", "nul \0 inside", False),
    (b"", "", False),
    (b"\xff\xfe", "", False),
    (b"\xff\xfeA", "\ufffd", False),
]


@pytest.mark.parametrize("data, text, said", DECODED)
def test_bytes_become_text_and_what_is_lost_is_said(data, text, said):
    decoded, remark = decode(data)
    assert decoded == text and bool(remark) is said


def test_the_remark_names_the_line():
    assert "line 3 " in decode(b"a\nb\nc \xff\n")[1]


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xd8\xff\xe0\0\x10JFIF", bytes(range(256))])
def test_a_binary_file_is_no_text(data):
    with pytest.raises(CardError, match="binary"):
        decode(data)


@pytest.mark.parametrize("size, limit, read", [(10, 10, True), (11, 10, False), (0, 0, True), (3 << 20, 1 << 24, True)])
def test_a_file_is_read_whole_or_named_as_too_large(write_note, size, limit, read):
    path = write_note("a.md", b"x" * size)
    if read:
        assert read_bytes(path, limit) == (b"x" * size, stamp_of(path))
    else:
        with pytest.raises(CardError, match="larger than 10 bytes"):
            read_bytes(path, limit)


@pytest.mark.skipif(not POSIX, reason="links")
def test_a_link_is_not_opened(write_note, tmp_path):
    os.symlink(write_note("a.md"), tmp_path / "link.md")
    with pytest.raises(CardError, match="link"):
        read_bytes(str(tmp_path / "link.md"), 100)
    assert stamp_of(str(tmp_path / "link.md")) is None


@pytest.mark.parametrize("name", ["missing.md", "folder"])
def test_what_cannot_be_read_is_said(root, name):
    os.mkdir(os.path.join(root, "folder"))
    with pytest.raises(CardError):
        read_bytes(os.path.join(root, name), 100)


# ---- writing -------------------------------------------------------------------------------------


def test_a_published_file_is_whole_and_leaves_nothing_else(root):
    assert publish(root, "a.md", b"x" * 100_000)
    assert os.listdir(root) == ["a.md"] and os.path.getsize(os.path.join(root, "a.md")) == 100_000


@pytest.mark.parametrize("taken", ["file", "folder", "link", "dangling"])
def test_a_taken_name_is_never_replaced(root, tmp_path, taken):
    target = os.path.join(root, "a.md")
    if taken == "folder":
        os.mkdir(target)
    elif taken == "file":
        open(target, "w").close()
    elif POSIX:
        (tmp_path / "out.md").write_text("out")
        os.symlink(tmp_path / ("out.md" if taken == "link" else "none"), target)
    else:
        pytest.skip("links")
    before = os.lstat(target)
    assert publish(root, "a.md", b"new") is False
    assert os.lstat(target) == before and os.listdir(root) == ["a.md"]
    assert taken != "link" or (tmp_path / "out.md").read_text() == "out"


def test_of_many_writers_of_one_name_one_wins(root):
    won = []
    threads = [
        threading.Thread(target=lambda n=n: publish(root, "a.md", b"%d" % n) and won.append(n)) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and os.listdir(root) == ["a.md"]
    assert read_bytes(os.path.join(root, "a.md"), 100)[0] == b"%d" % won[0]


@pytest.mark.skipif(not POSIX, reason="a file size limit")
def test_a_full_disk_leaves_no_file(root):
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        f"sys.path.insert(0, {ROOT!r});"
        f"from mcore.vault import publish; publish({root!r}, 'a.md', b'x' * 5000)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60)
    assert "File too large" in ran.stderr and os.listdir(root) == []


def test_a_folder_of_cards_is_made_with_its_parents(tmp_path):
    path = ensure_folder(str(tmp_path / "new" / "vault"), "07-Tools")
    assert os.path.isdir(path)
    assert ensure_folder(str(tmp_path / "new" / "vault"), "07-Tools") == path
    assert not POSIX or os.stat(path).st_mode & 0o077 == 0


@pytest.mark.skipif(not POSIX, reason="links")
def test_no_folder_of_cards_leads_out_through_a_link(root, tmp_path):
    (tmp_path / "out").mkdir()
    os.symlink(tmp_path / "out", os.path.join(root, "07-Tools"))
    with pytest.raises(SetupError, match="link"):
        ensure_folder(root, "07-Tools")
    os.symlink(root, tmp_path / "linked-vault")
    assert ensure_folder(str(tmp_path / "linked-vault"), "05-Prompts")


@pytest.mark.parametrize("where", ["vault", "07-Tools"])
def test_a_file_in_place_of_a_folder_is_said(tmp_path, where):
    root = tmp_path / "vault"
    if where == "07-Tools":
        root.mkdir()
        root = root / where
    root.write_text("x")
    with pytest.raises(SetupError, match="cannot make the folder"):
        ensure_folder(str(tmp_path / "vault"), "07-Tools")


def test_old_temporary_files_of_killed_captures_go_and_others_stay(root):
    now = 1_800_000_000
    old, new, theirs = ".tmp-memory-1-0123456789ab", ".tmp-memory-2-0123456789ab", ".tmp-memory-mine.md"
    for name, age in {old: 7200, new: 60, "a.md": 7200, ".tmp-other": 7200, theirs: 7200}.items():
        path = os.path.join(root, name)
        open(path, "w").close()
        os.utime(path, (now - age, now - age))
    vault.clear_stale_temps(root, now)
    assert sorted(os.listdir(root)) == [new, theirs, ".tmp-other", "a.md"]


def test_one_holds_the_right_to_names_and_the_other_waits(root, tmp_path):
    order = []

    def second():
        with vault.folder_lock(root, str(tmp_path)):
            order.append("second")

    with vault.folder_lock(root, str(tmp_path)):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"] and os.listdir(root) == []


def test_a_system_without_folder_handles_walks_the_same(write_note, root, monkeypatch):
    for name in ("a.md", "b/c.md", "b/.git/d.md", "b/e.MD", "b/f.md/g.md"):
        write_note(name, name)
    with_handles = scan(root, name_ignored=True)
    monkeypatch.setattr("mcore.vault.walking._BY_HANDLE", False)
    assert scan(root, name_ignored=True) == with_handles and len(with_handles.files) == 4


@pytest.mark.parametrize(
    "number, there", [("EIO", True), ("EMFILE", True), ("ENOENT", False), ("EACCES", False), ("ELOOP", False)]
)
def test_a_disk_that_fails_to_tell_makes_no_card_disappear(root, monkeypatch, number, there):
    def lstat(path):
        raise OSError(getattr(errno, number), "no")

    monkeypatch.setattr(os, "lstat", lstat)
    assert is_walked(root, "a.md") is is_walked(root, "deep/a.md") is there


@pytest.mark.skipif(not POSIX, reason="Windows has no folder handles")
def test_a_descriptor_that_fails_to_close_after_reading_is_no_failure(root, monkeypatch):
    path = os.path.join(root, "a.md")
    with open(path, "w") as handle:
        handle.write("zebra")
    close = os.close

    def failing(fd):
        close(fd)
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "close", failing)
    assert read_bytes(path, 100)[0] == b"zebra"
    vault.sync_folder(root)


def test_without_hard_links_a_taken_name_is_not_replaced_either(root, monkeypatch):
    def link(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    assert publish(root, "a.md", b"first") and not publish(root, "a.md", b"second")
    assert read_bytes(os.path.join(root, "a.md"), 100)[0] == b"first" and os.listdir(root) == ["a.md"]
