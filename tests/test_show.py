"""mcore.show: one card by id or path, from its file as it is now, in pages."""

import hashlib
import os
import sqlite3
from contextlib import closing

import pytest

from mcore.errors import CardError, NotFound, UsageError
from mcore.show import Shown, show

CARD = """---
title: 站点
kind: tool
source: me
tags: [a, b]
created: 2026-01-02
extra: {n: [1, x]}
---

body 正文 one
line two
"""


@pytest.fixture
def app(write_note, make_app):
    write_note("07-Tools/站点.md", CARD)
    write_note("note.md", "# A note\n\n" + "0123456789" * 10)
    return make_app()


def test_a_card_is_shown_with_every_field(app):
    shown = show(app, path="07-Tools/站点.md")
    assert shown._fields == Shown._fields
    assert shown._replace(id=0, freshness=None) == Shown(
        0, "07-Tools/站点.md", "站点", "tool", "me", ["a", "b"], "2026-01-02", None, {"extra": {"n": ["1", "x"]}},
        "body 正文 one\nline two\n", 0, 21, 21, False, None, None,
        hashlib.blake2b(CARD.encode(), digest_size=16).hexdigest()[:16], "global", "current", None, None, [], None, [],
    )


def test_id_path_and_either_name_the_same_card(app):
    by_path = show(app, path="note.md")
    for name, value in (
        ("id", by_path.id), ("card", str(by_path.id)), ("card", "note.md"), ("path", "./note.md"), ("path", "NOTE.md")
    ):
        again = show(app, **{name: value})
        assert (again.id, again.path, again.text) == (by_path.id, "note.md", by_path.text)


@pytest.mark.parametrize("path", ["07-tools/站点.MD", "07-Tools\\站点.md", ".\\07-Tools\\站点.md"])
def test_a_path_is_matched_as_macos_or_windows_would(app, path):
    assert show(app, path=path).path == "07-Tools/站点.md"


def test_a_name_is_matched_composed_or_decomposed_but_the_exact_one_first(write_note, make_app):
    write_note("Café.md", "the decomposed one")
    app = make_app()
    assert show(app, path="Café.md").text == "the decomposed one"
    write_note("Café.md", "the composed one")
    if len(os.listdir(app.settings.vault.path)) == 2:
        assert show(app, path="Café.md").text == "the composed one"
        assert show(app, path="Café.md").text == "the decomposed one"


@pytest.mark.parametrize("given", [{}, {"card": ""}, {"path": ""}, {"id": 1, "card": "note.md"}])
def test_one_card_must_be_named_and_only_one(app, given):
    with pytest.raises(UsageError, match="one card"):
        show(app, **given)


@pytest.mark.parametrize("id", [0, -1, 99, 2**63 - 1, 2**63, -(2**63) - 1, 10**40])
def test_an_unknown_id_is_not_found_however_odd(app, id):
    with pytest.raises(NotFound) as caught:
        show(app, id=id)
    assert str(id) in caught.value.message and caught.value.hint


@pytest.mark.parametrize("path", [
    "../out.md", "../../etc/passwd", "/etc/passwd", "07-Tools/../../out.md", "07-Tools", "07-Tools/", ".", "/", "~",
    "C:\\x", "\\\\server\\share", "file:///etc/passwd", "http://x/y.md", "a\0b", "note.md\0", "x" * 100_000, "note.md/",
    "*", "%", "' OR 1=1", "\ufffd", "-1", "9" * 30, "note", "站点.md", "\n", " note.md",
])  # fmt: skip
def test_a_path_that_is_no_card_is_not_found_and_opens_nothing(app, tmp_path, path):
    (tmp_path / "out.md").write_text("OUTSIDE")
    with pytest.raises((NotFound, UsageError)) as caught:
        show(app, card=path)
    assert "OUTSIDE" not in str(vars(caught.value)) and len(caught.value.message) < 300
    assert caught.value.exit_code in (1, 2)


def test_a_hit_may_be_named_by_its_id_and_its_path_together(app):
    by_path = show(app, path="note.md")
    assert show(app, id=by_path.id, path="note.md").path == "note.md"
    with pytest.raises(UsageError, match="one card"):
        show(app, id=by_path.id, path="07-Tools/站点.md")


@pytest.mark.parametrize("path", ["站点.md", "站点", "/home/u/07-Tools/站点.md", "C:\\notes\\07-Tools\\站点.MD"])
def test_the_card_of_that_file_name_is_offered(app, path):
    with pytest.raises(NotFound) as caught:
        show(app, path=path)
    assert caught.value.hint == "did you mean 07-Tools/站点.md?"


def test_a_near_path_is_offered(app):
    with pytest.raises(NotFound) as caught:
        show(app, path="07-Tools/站点信息.md")
    assert caught.value.hint == "did you mean 07-Tools/站点.md?"


# ---- pages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset, max_chars, text, next_offset", [
    (0, 20_000, "0123456789" * 10, None),
    (0, 10, "0123456789", 10),
    (95, 10, "56789", None),
    (90, 10, "0123456789", None),
    (100, 10, "", None),
    (10**30, 10, "", None),
    (-5, 3, "012", 3),
    (3, 0, "0123456789" * 10, None),
    (0, -1, "0123456789" * 10, None),
    (0, 10**30, "0123456789" * 10, None),
])
def test_a_page_says_where_it_stands_and_how_to_go_on(app, offset, max_chars, text, next_offset):
    shown = show(app, path="note.md", offset=offset, max_chars=max_chars)
    body = "# A note\n\n"
    whole = body + "0123456789" * 10
    start = max(0, offset)
    size = max_chars if max_chars > 0 else len(whole)
    assert shown.text == whole[start : start + size] and shown.returned == len(shown.text)
    assert (shown.offset, shown.length) == (start, len(whole))
    assert shown.has_more == (shown.next_offset is not None) == (bool(shown.text) and start + size < len(whole))


def test_pages_put_together_are_the_whole_card(app, write_note):
    write_note("long.md", "长" * 45_000 + "🚀" + "x" * 7 + "\r\n" * 10)
    text, offset = "", 0
    while offset is not None:
        shown = show(app, path="long.md", offset=offset)
        text, offset = text + shown.text, shown.next_offset
    assert text == "长" * 45_000 + "🚀" + "x" * 7 + "\n" * 10 == show(app, path="long.md", full=True).text


# ---- the file as it is now -----------------------------------------------------------------------


def test_an_edit_since_the_search_is_shown(app, write_note):
    hit = app.searcher.search("0123456789 note").hits[0]
    write_note("note.md", "---\ntitle: Renamed\n---\nedited a moment ago")
    for sync in (True, False):
        shown = show(app, id=hit.id, sync=sync)
        assert (shown.title, shown.text) == ("Renamed", "edited a moment ago")


def test_a_card_deleted_or_moved_since_the_search(app, write_note, tmp_path):
    hit = app.searcher.search("note").hits[0]
    os.rename(tmp_path / "vault/note.md", tmp_path / "vault/moved.md")
    assert show(app, id=hit.id).path == "moved.md"
    os.unlink(tmp_path / "vault/moved.md")
    with pytest.raises(NotFound, match="not in the vault any more"):
        show(app, id=hit.id, sync=False)
    with pytest.raises(NotFound, match="no card with the id"):
        show(app, id=hit.id)


def test_a_card_that_became_a_link_out_of_the_vault_is_not_read(app, tmp_path):
    show(app, path="note.md")
    (tmp_path / "secret.md").write_text("OUTSIDE")
    os.unlink(tmp_path / "vault/note.md")
    os.symlink(tmp_path / "secret.md", tmp_path / "vault/note.md")
    for sync in (False, True):
        with pytest.raises((CardError, NotFound)) as caught:
            show(app, path="note.md", sync=sync)
        assert "OUTSIDE" not in str(vars(caught.value))


def test_a_folder_swapped_for_a_link_out_of_the_vault_is_not_followed(app, tmp_path):
    show(app, path="07-Tools/站点.md")
    os.rename(tmp_path / "vault/07-Tools", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", tmp_path / "vault/07-Tools")
    with pytest.raises(CardError, match="leads out of the vault"):
        show(app, path="07-Tools/站点.md", sync=False)


@pytest.mark.parametrize(
    "data", [b"a\xffb\n", b"\xff\xfeh\x00i\x00", b"---\ntitle: [x\n---\nb", b"", b"\xef\xbb\xbf# x", b"---\n---\n"]
)
def test_odd_files_are_shown_and_their_oddness_said(app, write_note, data):
    write_note("odd.md", data)
    shown = show(app, path="odd.md")
    assert isinstance(shown.text, str) and shown.title
    if data == b"a\xffb\n":
        assert shown.text == "a\ufffdb\n" and [note.slug for note in shown.warnings] == ["not-utf8"]


def test_a_card_that_is_too_large_is_told_how_to_be_read(app, write_note):
    write_note("big.md", "x" * 2000)
    app._settings = app.settings._replace(max_card_bytes=1000)
    with pytest.raises(CardError) as caught:
        show(app, path="big.md")
    assert caught.value.hint.startswith("raise max_card_bytes")


def test_a_name_that_is_not_utf8_is_shown_under_the_name_search_gives(app, tmp_path):
    try:
        with open(os.path.join(os.fsencode(tmp_path), b"vault", b"bad\xff\xe4\xb8name.md"), "wb") as handle:
            handle.write(b"an oddly named quokka")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    hit = app.searcher.search("quokka").hits[0]
    assert show(app, path=hit.path).text == show(app, id=hit.id).text == "an oddly named quokka"


# ---- reading counts ------------------------------------------------------------------------------


def test_readings_are_counted_and_survive_a_rebuild_and_a_move(app, tmp_path):
    for _ in range(3):
        show(app, path="note.md", offset=0)
    show(app, path="note.md", offset=50)
    assert app.store.read_counts(5)[:2] == (1, 3)
    app.indexer.rebuild(app.rebuild_path())
    assert [row[:2] for row in app.store.read_counts(5)[2]] == [("note.md", 3)]
    os.rename(tmp_path / "vault/note.md", tmp_path / "vault/other.md")
    show(app, path="other.md")
    assert [row[:2] for row in app.store.read_counts(5)[2]] == [("other.md", 4)]


def test_an_index_in_use_does_not_keep_a_card_from_being_read(app):
    show(app, path="note.md")
    with closing(sqlite3.connect(app.db_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert show(app, path="note.md").title == "A note"
        other.execute("ROLLBACK")
