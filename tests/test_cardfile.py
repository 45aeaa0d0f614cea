"""mcore.cardfile: a file's text -> Card, and what capture writes reads back."""

import pytest

from mcore.card import MAX_HEADING_CHARS, MAX_TITLE_CHARS
from mcore.cardfile import new_card_text, one_line, read_card


def card(text, rel_path="07-Tools/file-name.md"):
    return read_card(rel_path, text)


@pytest.mark.parametrize(
    "text, title",
    [
        ("---\ntitle: From frontmatter\n---\n# Heading", "From frontmatter"),
        ("---\nTitle: Any case\n---\n# Heading", "Any case"),
        ("---\ntitle:\n---\n# Heading", "Heading"),
        ("---\ntitle: [a, b]\n---\n# Heading", "Heading"),
        ("---\ntitle: 2024-01-02\n---\n", "2024-01-02"),
        ("---\ntitle: 1.10\n---\n", "1.10"),
        ("---\ntitle: true\n---\n", "true"),
        ('---\ntitle: "two\\nlines"\n---\n', "two lines"),
        ("+++\ntitle = 'toml'\n+++\n", "toml"),
        ("text\n\n# Heading ##\n", "Heading"),
        ("no heading", "file-name"),
        ("", "file-name"),
        ("---\ntitle: never closed\n# Heading", "Heading"),
    ],
)
def test_the_title_is_the_frontmatter_s_else_the_heading_else_the_file_name(text, title):
    assert card(text).title == title


@pytest.mark.parametrize(
    "rel_path, text, kind",
    [
        ("07-Tools/a.md", "x", "tool"),
        ("07-Tools/a.md", "---\nkind: Mistake\n---\n", "mistake"),
        ("a.md", "---\nkind: own word\n---\n", "own word"),
        ("a.md", "---\nkind: [x, y]\n---\n", "knowledge"),
        ("a.md", "---\nkind: [Tool]\n---\n", "tool"),
        ("x/08-mistakes/a.md", "", "mistake"),
    ],
)
def test_the_kind_is_the_frontmatter_s_else_the_folder_s(rel_path, text, kind):
    assert card(text, rel_path).kind == kind


def test_a_date_field_of_another_name_is_read_too():
    read = card("---\ndate: 2024-01-02\nlastmod: 2024-02-03\npriority: 1\nttl: 30d\n---\n")
    assert (read.created, read.updated, read.priority, read.ttl) == ("2024-01-02", "2024-02-03", "1", "30d")
    assert card("").created is None and card("").source == ""


def test_everything_worth_finding_is_in_the_labels():
    read = card("---\ntitle: T\ntags: [alpha, beta]\naliases: [other name]\nsummary: wherefore\n---\nbody")
    for word in ("alpha", "beta", "other name", "wherefore", "file-name"):
        assert word in read.labels
    assert read.tags == ["alpha", "beta"] and read.aliases == ["other name"] and read.body == "body"


def test_a_title_ends_somewhere():
    """A title stands in every hit; the first line of a text without line ends once was one of 1 MB."""
    assert len(card("# " + "x" * 1_000_000).title) == MAX_HEADING_CHARS
    assert len(card("---\ntitle: " + "x" * 1_000_000 + "\n---\n").title) == MAX_TITLE_CHARS
    assert len(card("x" * 999_999 + "\n===").title) == MAX_HEADING_CHARS


@pytest.mark.parametrize(
    "text",
    [
        "---\ntags: [" + ", ".join(f"tag{n}" for n in range(10_000)) + "]\n---\nbody",
        "---\ntags:\n" + "".join(f"- tag{n}\n" for n in range(10_000)) + "---\nbody",
    ],
    ids=["flow", "block"],
)
def test_ten_thousand_tags_are_all_read(text):
    assert len(card(text).tags) == 10_000 and card(text).body == "body"


@pytest.mark.parametrize(
    "text",
    ["---", "---\n", "---\n---", "---\n\0\n---\nx", "---\n: :\n---\n", "---\ntags: {a: [b, {c: d}]}\n---\n",
     "---\n" * 99, "---\n" + "a: " * 10_000 + "\n---\n", "---\n" + "[" * 10_000 + "\n---\n", "---\ntitle: &a *a\n---\n",
     "{" * 10_000, "+++\n" + "[" * 10_000 + "\n+++\n",
     "\ufeff---\ntitle: x\n---\n", "---\ntitle: !!python/object:os.system x\n---\n"],
    ids=lambda text: ascii(text[:16]),
)  # fmt: skip
def test_no_text_is_beyond_reading(text):
    read = card(text)
    assert read.title and read.kind and isinstance(read.labels, str) and isinstance(read.body, str)


@pytest.mark.parametrize(
    "value, line",
    [("a  b\n c", "a b c"), (True, "true"), (False, "false"), (None, ""), ([1], "1"), ([1, 2], ""), ([], ""), ({}, ""),
     (1.5, "1.5"), (0, "0")],
)
def test_a_value_on_one_line(value, line):
    assert one_line(value) == line


ODD_WORDS = [
    "plain", "云 服务器", "yes", "null", "1.10", "2024-01-02", "a: b", "# no comment", "'one' \"two\"", "back\\slash",
    "- item", "[list]", "{map}", "*star", "&anchor", "!tag", "%x", "@at", "`tick`", "---", "...", "tab\there", " edge ",
    "🚀", "\u2028line", "\x85next", "e\u0301", "trailing:", "|", ">", "?", "~", "", "x" * 5_000,
]  # fmt: skip


@pytest.mark.parametrize("word", ODD_WORDS, ids=lambda word: ascii(word[:12]))
def test_what_capture_writes_reads_back_equal(word):
    title = one_line(word) or "t"
    body = f"{word}\n---\nmore\n"
    read = card(new_card_text(title, "tool", word.strip(), [word, "second"], "2026-01-01T00:00:00Z", body))
    assert (read.title, read.kind, read.created) == (title, "tool", "2026-01-01T00:00:00Z")
    assert read.source == one_line(word.strip())
    assert read.fields["tags"] == [word, "second"] and read.body.strip() == body.strip()
