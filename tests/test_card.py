"""mcore.card: a title gives a portable file name, a path gives a kind and a title, a body its heading."""

import unicodedata

import pytest

from mcore.card import (
    DEFAULT_KIND,
    KIND_FOLDERS,
    MAX_HEADING_CHARS,
    MAX_STEM_BYTES,
    content_hash,
    file_stem,
    first_heading,
    folder_kind,
    name_key,
    os_stem,
    path_title,
)

STEMS = [
    ("nginx 站点根目录位置", "nginx-站点根目录位置"),
    ("two  words\tand\nlines", "two-words-and-lines"),
    ('a<b>c:d"e/f\\g|h?i*j', "a-b-c-d-e-f-g-h-i-j"),
    ("../../etc/passwd", "etc-passwd"),
    ("..", "card-"),
    (".hidden", "hidden"),
    ("~$lock", "$lock"),
    (".tmp-memory-x", "tmp-memory-x"),
    ("ends with dots...", "ends-with-dots"),
    ("C#", "C#"),
    ("v2.6.10", "v2.6.10"),
    ("con", "_con"),
    ("CON.air.1997", "_CON.air.1997"),
    ("nul .txt", "nul-.txt"),
    ("NUL.txt", "_NUL.txt"),
    ("COM1", "_COM1"),
    ("com¹", "_com¹"),
    ("LPT9.log", "_LPT9.log"),
    ("console", "console"),
    ("cafe\u0301", "café"),
    ("zero\u200bwidth\ufeff", "zerowidth"),
    ("rtl\u202etxt", "rtltxt"),
    ("nul\0byte", "nulbyte"),
    ("lone\ud800surrogate", "lonesurrogate"),
    ("🚀", "🚀"),
    ("---", "card-"),
    ("！？", "card-"),
    ("\u0301", "card-"),
]


@pytest.mark.parametrize("title, stem", STEMS)
def test_a_title_gives_this_name(title, stem):
    given = file_stem(title)
    assert given.startswith(stem) if stem == "card-" else given == stem


HOSTILE = [title for title, _ in STEMS] + [
    "", " ", "x" * 10_000, "云" * 5_000, "🚀" * 500, "a\u0301" * 500, "\u0301" * 500, "é" * 64 + "x" + "\u0301" * 9,
    "." * 300, "-" * 300 + "x", " " * 300 + "x", "\x00" * 300, "\ud800" * 9, "con." + "x" * 300, "\u00a0\u2028\u3000x",
    "\u1100\u1161\u11a8" * 99, "ß" * 200, "İ" * 200, "＜＞：", "a．", "aux\u200b", "ＣＯＮ", "$", "`", "\U000e0041x",
    *map(chr, range(0, 0x250)), *(f"x{chr(n)}y" for n in range(0, 0x250)), *(f"{chr(n)}x" for n in range(0x80)),
]  # fmt: skip


def faults_of_name(stem):
    """What some file system would not take in a name, or would take for another."""
    device = unicodedata.normalize("NFKC", stem.split(".")[0]).casefold()
    return [
        fault
        for fault, true in {
            "empty": not stem,
            "no room for a suffix": len(stem.encode("utf-8")) > MAX_STEM_BYTES + 1,
            "a forbidden sign": set(stem) & set('<>:"/\\|?*'),
            "white space or a control": any(c.isspace() or unicodedata.category(c)[0] == "C" for c in stem),
            "an end that vanishes": stem[:1] in " .~-" or stem[-1:] in " .~-",
            "not composed": stem != unicodedata.normalize("NFC", stem),
            "a device": device in {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))},
        }.items()
        if true
    ]


def test_every_name_is_portable():
    """What Windows, macOS and Linux all take as one part of a path, with room for `-12345.md`."""
    wrong = {title: faults for title in HOSTILE if (faults := faults_of_name(file_stem(title)))}
    assert wrong == {}


def test_a_title_composed_or_decomposed_has_one_name():
    for title in HOSTILE:
        if not file_stem(title).startswith("card-"):
            assert file_stem(unicodedata.normalize("NFD", title)) == file_stem(title), ascii(title)


def test_titles_without_a_letter_have_names_of_their_own():
    titles = ["！", "？", "...", "—", "“”", "", " "]
    assert len({file_stem(title) for title in titles}) == len(titles)


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("README.md", "readme.MD", True),
        ("café", "cafe\u0301", True),
        ("CAFÉ", "cafe\u0301", True),
        ("straße", "STRASSE", True),
        ("Ａ", "A", False),
        ("a", "á", False),
    ],
)
def test_names_that_a_file_system_takes_for_one_have_one_key(one, other, same):
    assert (name_key(one) == name_key(other)) is same


@pytest.mark.parametrize(
    "rel_path, kind",
    [
        *((f"{folder}/a.md", kind) for kind, folder in KIND_FOLDERS.items()),
        ("work/07-tools/deep/a.md", "tool"),
        ("08-MISTAKES/02-Projects/a.md", "mistake"),
        ("a.md", DEFAULT_KIND),
        ("07-Tools.md", DEFAULT_KIND),
        ("x07-Tools/a.md", DEFAULT_KIND),
    ],
)
def test_the_first_kind_folder_of_a_path_gives_the_kind(rel_path, kind):
    assert folder_kind(rel_path) == kind


@pytest.mark.parametrize(
    "rel_path, title",
    [
        ("a/redis.md", "redis"),
        ("a/x.mdc", "x"),
        ("v1.2.markdown", "v1.2"),
        ("notes.txt.md", "notes.txt"),
        ("UP.MD", "UP"),
        ("gpu/README.md", "gpu"),
        ("gpu/SKILL.md", "gpu"),
        ("README.md", "README"),
        (".md", ".md"),
        ("a/.md", ".md"),
        ("a\nb.md", "a\nb"),
    ],
)
def test_a_path_names_a_card_that_has_no_title(rel_path, title):
    assert path_title(rel_path) == title


def test_only_a_card_suffix_is_taken_off_a_name():
    assert [os_stem(name) for name in ("a.md", "a.Md", "a.txt", "md", ".mdx")] == ["a", "a.Md", "a.txt", "md", ".mdx"]


HEADINGS = [
    ("# One", "One"),
    ("text\n\n# Later\n# Second", "Later"),
    ("   # three spaces", "three spaces"),
    ("#\ttab", "tab"),
    ("# Closed ##", "Closed"),
    ("# C#", "C#"),
    ("# F# and C# ##  ", "F# and C#"),
    ("# ## ", ""),
    ("#", ""),
    ("#tag", ""),
    ("## Two", ""),
    ("    # code", ""),
    ("Setext\n======", "Setext"),
    ("Setext  \n   ==", "Setext"),
    ("\n===\n", ""),
    ("    code\n===", ""),
    ("```\n# in code\n```\n# Out", "Out"),
    ("~~~\n# in code\n```\n~~~\n# Out", "Out"),
    ("````\n```\n# in code\n````\n# Out", "Out"),
    ("```sh\n# in code\n```python\n# still\n```\n# Out", "Out"),
    ("```inline``` text\n# Out", "Out"),
    ("before\n```\nx\n```\n===\n# Out", "Out"),
    ("```\n# never closed", ""),
    ("# \n# Full", "Full"),
    ("", ""),
]


@pytest.mark.parametrize("body, heading", HEADINGS)
def test_the_first_level_1_heading_outside_code_is_found(body, heading):
    assert first_heading(body) == heading


def test_a_heading_far_down_is_no_title():
    assert first_heading("x\n" * 199 + "# In time") == "In time"
    assert first_heading("x\n" * 200 + "# Too late") == ""


@pytest.mark.parametrize("fill", [" ", "\t", "#", " #", "# ", "=", "`", "~", "a "])
def test_a_line_of_any_length_is_looked_at_to_its_end(fill):
    """Two nested repeats in the pattern once made 20,000 spaces take for ever."""
    for line in ("# a" + fill * 300_000 + "b", fill * 300_000, "# " + fill * 300_000, fill * 300_000 + "\n==="):
        assert len(first_heading(line)) <= MAX_HEADING_CHARS


def test_equal_bytes_have_equal_hashes_of_16_bytes():
    assert content_hash(b"a") == content_hash(b"a") != content_hash(b"b")
    assert len(content_hash(b"")) == 16
