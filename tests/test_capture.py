"""mcore.capture: one card written whole or not at all, nothing that exists ever overwritten."""

import os
import re
import stat
import unicodedata

import pytest
from blackbox import cards_below, check_names

from mcore import vault
from mcore.capture import capture
from mcore.card import KIND_FOLDERS
from mcore.errors import SetupError, UsageError

BODY = "nginx 站点根目录在 /srv/www/html，重启用 systemctl"
TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def app(make_app):
    return make_app()


def read(tmp_path, path):
    with open(tmp_path / "vault" / path, encoding="utf-8", newline="") as handle:
        return handle.read()


def slugs(result):
    return [note.slug for note in result.warnings]


# ---- the table of SPEC section 5 -----------------------------------------------------------------


def test_a_new_card_is_created_indexed_and_found_at_once(app, tmp_path):
    result = capture(app, "nginx 站点根目录位置", BODY, tags=["nginx", "路径"], source="tester")
    assert result[:5] == ("created", "03-Knowledge/nginx-站点根目录位置.md", 1, True, False)
    assert result[5:9] == (None, [], [], []) and result.warnings == []
    text = read(tmp_path, result.path)
    assert re.fullmatch(
        r"---\ntitle: nginx 站点根目录位置\nkind: knowledge\nsource: tester\ntags: \[nginx, 路径\]\n"
        r'created: "?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"?\n---\n\n' + re.escape(BODY) + "\n",
        text,
    )
    assert [hit.path for hit in app.searcher.search("站点 systemctl", sync=False).hits] == [result.path]


def test_only_that_card_is_indexed_never_the_whole_vault(app, write_note):
    write_note("other.md", "an unindexed note with zebra")
    capture(app, "one", BODY)
    assert app.store.paths() == ["03-Knowledge/one.md"]


def test_the_same_card_again_is_unchanged(app, tmp_path):
    first = capture(app, "t", BODY)
    before = os.stat(tmp_path / "vault" / first.path)
    again = capture(app, "t", f"  {BODY}\r\n\r\n", tags=["other"], source="else")
    assert again[:4] == ("unchanged", first.path, first.id, True)
    assert os.stat(tmp_path / "vault" / first.path) == before
    assert len(cards_below(tmp_path / "vault")) == 1


def test_another_body_is_saved_beside_the_first_and_says_so(app, tmp_path):
    one, two, three = (capture(app, "t", f"{BODY} {n}") for n in range(3))
    assert [r.path for r in (one, two, three)] == [f"03-Knowledge/t{n}.md" for n in ("", "-2", "-3")]
    assert [r.conflict for r in (one, two, three)] == [False, True, True]
    assert two.existing_path == three.existing_path == one.path
    assert (two.collision_paths, three.collision_paths) == ([one.path], [one.path, two.path])
    assert [capture(app, "t", f"{BODY} {n}").path for n in range(3)] == [one.path, two.path, three.path]
    assert read(tmp_path, one.path).endswith(f"{BODY} 0\n")


def test_a_gap_in_the_numbers_hides_no_card(app, tmp_path):
    for n in range(3):
        capture(app, "t", f"{BODY} {n}")
    os.unlink(tmp_path / "vault/03-Knowledge/t-2.md")
    assert capture(app, "t", f"{BODY} 2")[:2] == ("unchanged", "03-Knowledge/t-3.md")
    assert capture(app, "t", f"{BODY} new").path == "03-Knowledge/t-2.md"


def test_reject_writes_nothing_when_the_title_is_taken(app, tmp_path):
    first = capture(app, "t", BODY)
    result = capture(app, "t", f"{BODY} other", on_conflict="reject")
    assert result[:7] == ("conflict", None, None, False, True, first.path, [first.path])
    assert len(cards_below(tmp_path / "vault")) == 1
    assert capture(app, "t", BODY, on_conflict="reject").status == "unchanged"
    assert capture(app, "u", BODY, on_conflict="reject").status == "created"


@pytest.mark.parametrize("body, status", [
    ("x" * 19, "rejected"), ("x" * 20, "created"), ("龙" * 19, "rejected"), ("龙" * 20, "created"),
    ("", "rejected"), (" " * 40, "rejected"), ("\n\t\u3000" * 20, "rejected"), ("  " + "x" * 19 + "  ", "rejected"),
    ("🚀" * 20, "created"), ("x\n" * 10, "rejected"),
])
def test_a_body_under_twenty_characters_is_rejected(app, tmp_path, body, status):
    result = capture(app, "t", body)
    assert result.status == status
    if status == "rejected":
        assert result.path is None and slugs(result) == ["short-body"] and not (tmp_path / "vault").exists()


# ---- bodies --------------------------------------------------------------------------------------

BODIES = [
    "---\ntitle: not mine\nkind: tool\n---\n\nthe body goes on here",
    "+++\ntitle = 'not mine'\n+++\nthe body goes on here",
    "\ufeff---\ntitle: not mine\n---\nthe body goes on",
    "# Another title\n\nthe body goes on here",
    "\n\n\n   leading space and blank lines stay\n\n\n",
    "line\r\nends of\rthree kinds\nand a tab\t.",
    "trailing spaces   \n\n    code\n\n" + "x" * 20,
    "nul \0 and \x1b[31m escapes \x9b and \u2028 marks",
    "emoji 👨‍👩‍👧‍👦 ext-b 𠮷野家 nfd e\u0301 zwj \u200d here",
    "```\n---\n```\n\n---\n\n***\nafter the rules",
    "half \ud83d a character is no character at all",
    "长" * 100_000,
    "```\nan open fence with # no title in it",
    "{\"json\": true}\n\nis the first line of it",
    "x" * 20 + "\n---\n",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_what_is_captured_reads_back_the_same(app, body):
    from mcore.show import show

    result = capture(app, "the title", body, kind="tool", tags=["a"])
    shown = show(app, path=result.path, max_chars=0)
    expected = body.replace("\ud83d", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")
    assert shown.text == expected.removesuffix("\n") + "\n"
    assert (shown.title, shown.kind, shown.tags) == ("the title", "tool", ["a"])
    assert capture(app, "the title", body, kind="tool").status == "unchanged"


# ---- titles --------------------------------------------------------------------------------------

TITLES = [
    "a/b", "a\\b", "../../etc/passwd", "/etc/passwd", "C:\\Windows", "..", ".", "...",
    "~", "~/x", ".hidden", "-rf", "--help", "-", "con", "NUL", "aux.md", "COM1", "com¹",
    "LPT9.txt", "CON .x", "ＣＯＮ", "conin$", "prn.", "nul:", "a:b", 'a"b', "a<b>c|d?e*f",
    "trail.", "trail ", " lead", "two  spaces", "tab\there", "line\nbreak",
    "line\r\nbreak", "u\u2028v\u2029w", "a\x00b", "\x1b[31mred", "\x7f", "🚀", "🚀🚀",
    "👨‍👩‍👧‍👦", "？！", "!!!", "....", "、。", "\u200b", "\u202egnp.exe", "zero\u200bwidth",
    "\ufeffbom", "\u00ad", "名" * 300, "x" * 900, "é" * 200, "e\u0301" * 200, "🚀" * 100,
    "a" * 129 + "é", "a" * 254 + ".md", "name.md", "v1.2.3", "x.tar.gz.", "yes", "no",
    "null", "~", "true", "2024-01-01", "12:30:00", "1458", "0x1F", "1e3", ".5", "nan",
    "[a, b]", "{a: b}", "- item", "# head", "a: b", "a #b", "'q'", '"q"', "`x`", "@at",
    "%pct", "&a", "*b", "!tag", "|", ">", "? k", "key:", "<<", "=", "---", "+++", "...",
    "it's \"both\" \\ back", "$(id)", "%s%n", "a%2Fb", "{{x}}", "مرحبا", "हिन्दी",
    "ไทย", "한글", "ｶﾀｶﾅ", "ﬁne", "Ⅷ", "straße", "STRASSE", "İstanbul", "\ud800x",
    "mixed 中文 and English 混排", "http://x.y/z?q=1#f", "user@host:/path", "#1", "C#",
    "C++", "node.js", "\U000e0041tag", "𠮷野家",
]  # fmt: skip


@pytest.mark.parametrize("title", TITLES, ids=lambda title: ascii(title)[:24])
def test_a_title_of_any_kind_gives_a_portable_name_and_reads_back(app, tmp_path, title):
    result = capture(app, title, BODY)
    names = [name for name, _ in cards_below(tmp_path / "vault")]
    assert names == [result.path] and result.path.startswith("03-Knowledge/")
    check_names(names)
    whole = " ".join(title.replace("\ud800", "\ufffd").split())
    assert app.store.by_path(result.path).title == whole.replace("\0", " ")
    app.indexer.rebuild(app.rebuild_path())
    assert app.store.paths() == names
    assert capture(app, title, BODY).status == "unchanged"
    assert capture(app, title, BODY, on_conflict="reject").status == "unchanged"


def test_all_those_titles_in_one_vault_keep_every_card(app, tmp_path):
    titles = list(dict.fromkeys(unicodedata.normalize("NFC", " ".join(title.split())) for title in TITLES))
    results = [capture(app, title, f"{BODY} {number:04}") for number, title in enumerate(titles)]
    assert {result.status for result in results} == {"created"}
    assert [result.conflict for result in results] == [False] * len(results)
    cards = cards_below(tmp_path / "vault")
    assert len(cards) == len(titles)
    check_names([name for name, _ in cards])


@pytest.mark.parametrize("one, other", [
    ("Nginx", "nginx"), ("straße", "STRASSE"), ("a/b", "a:b"), ("x" * 200 + "1", "x" * 200 + "2"),
    ("İx", "i̇x"), ("a b", "a-b"), ("ⅷ", "Ⅷ"),
])
def test_names_that_one_system_would_take_for_the_same_are_kept_apart(app, tmp_path, one, other):
    first, second = capture(app, one, BODY), capture(app, other, BODY)
    assert (first.status, second.status, second.conflict) == ("created", "created", False)
    assert second.collision_paths in ([first.path], [])
    check_names([name for name, _ in cards_below(tmp_path / "vault")])


def test_a_title_composed_or_decomposed_is_one_title(app):
    composed, decomposed = (unicodedata.normalize(form, "résumé ポスト 한국어") for form in ("NFC", "NFD"))
    assert capture(app, composed, BODY).status == "created"
    assert capture(app, decomposed, BODY).status == "unchanged"
    assert capture(app, decomposed, BODY + " more").conflict is True


@pytest.mark.parametrize("title", ["", " ", "\n\t", "\u3000", "\x1f"])
def test_an_empty_title_is_refused_with_what_to_do(app, title):
    with pytest.raises(UsageError) as caught:
        capture(app, title, BODY)
    assert caught.value.message == "the title is empty" and caught.value.hint


def test_a_title_that_is_a_body_is_refused(app, tmp_path):
    with pytest.raises(UsageError, match="over 10000 characters"):
        capture(app, "x" * 10_001, BODY)
    assert not (tmp_path / "vault").exists()


# ---- kinds, tags, source -------------------------------------------------------------------------


@pytest.mark.parametrize("kind, folder", KIND_FOLDERS.items())
def test_each_kind_has_its_folder(app, kind, folder):
    assert capture(app, "t", BODY, kind=kind).path == f"{folder}/t.md"
    assert app.store.by_path(f"{folder}/t.md").kind == kind


@pytest.mark.parametrize(
    "kind", ["", "Knowledge", "../x", "/tmp", "03-Knowledge", "knowledge/..", "a\0b", "\ud800", TOKEN]
)
def test_no_other_kind_makes_a_folder(app, tmp_path, kind):
    with pytest.raises(UsageError) as caught:
        capture(app, "t", BODY, kind=kind)
    assert "system, project, knowledge" in caught.value.hint
    assert not (tmp_path / "vault").exists()


YAML_LIKE = ["[x]", "{y}", "z: w", "'q'", '"', "a, b", "- c", "null", "1", "&a", "*b", "!c", "%d", "@e", "`f`", "g #h"]


@pytest.mark.parametrize("tags, kept", [
    (["a", "b c"], ["a", "b c"]), (["#x", "##y"], ["x", "y"]), (["C#", "f#"], ["C#", "f#"]),
    (["", " ", "#"], []), (["a\nkind: tool"], ["a kind: tool"]),
    (YAML_LIKE, YAML_LIKE),
    (["half\ud800"], ["half\ufffd"]), (["x" * 500], ["x" * 500]), (["标签/子"], ["标签/子"]),
])  # fmt: skip
def test_tags_read_back_and_cannot_break_the_frontmatter(app, tags, kept):
    from mcore.show import show

    result = capture(app, "t", BODY, tags=tags)
    shown = show(app, path=result.path)
    assert (shown.tags, shown.title, shown.kind, shown.fields) == (kept, "t", "knowledge", {})


@pytest.mark.parametrize("source, kept", [
    ("claude-code", "claude-code"), ("two\nlines: x", "two lines: x"), ("bad\udcff", "bad\ufffd"), ("", ""), (None, ""),
    ("yes", "yes"), ("- x", "- x"), ("1.0", "1.0"),
])
def test_the_source_is_one_line_of_text(app, source, kept):
    from mcore.show import show

    assert show(app, path=capture(app, "t", BODY, source=source).path).source == kept


# ---- credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["title", "body", "tags", "source"])
def test_a_credential_is_named_by_kind_and_place_and_never_repeated(app, tmp_path, place):
    values = {"title": "t", "body": BODY, "tags": ["a"], "source": "s"}
    values[place] = ["a", TOKEN] if place == "tags" else f"{BODY} {TOKEN}"
    result = capture(app, **values)
    assert result.status == "created" and result.indexed
    assert [(found.kind, found.where) for found in result.secrets_found] == [("github-token", place)]
    found = result.secrets_found[0]
    text = ", ".join(values["tags"]) if place == "tags" else values[place]
    assert text[found.start : found.end] == TOKEN
    assert "secret" in slugs(result) and TOKEN not in repr(result) and TOKEN not in result.path
    refused = capture(app, **values, reject_secrets=True)
    assert refused.status == "rejected" and refused.path is None and TOKEN not in repr(refused)
    assert len(cards_below(tmp_path / "vault")) == 1


def test_a_note_about_where_a_key_is_kept_is_no_credential(app):
    body = "key is in ~/.ssh/id_ed25519; token: see above; 密码: 见密码库"
    assert capture(app, "t", body, reject_secrets=True).status == "created"


def test_hidden_characters_are_said(app):
    result = capture(app, "t", f"{BODY} \u202eevil\u202c \U000e0041")
    assert slugs(result) == ["invisible"] and "U+202E" in result.warnings[0].message
    assert "\u202e" not in result.warnings[0].message


# ---- similar cards -------------------------------------------------------------------------------


def test_up_to_three_similar_cards_are_named_and_nothing_is_merged(app, tmp_path):
    for number in range(5):
        capture(app, f"nginx root {number}", f"the nginx root of host {number} is /srv/www{number}")
    for number in range(20):
        capture(app, f"fruit {number}", f"quite another matter altogether, about fruit number {number}")
    result = capture(app, "nginx root", "the nginx root of another host is elsewhere")
    assert len(result.similar) == 3 and all("nginx" in card.title for card in result.similar)
    assert result.path not in [card.path for card in result.similar]
    scores = [card.score for card in result.similar]
    assert scores == sorted(scores, reverse=True)
    assert len(cards_below(tmp_path / "vault")) == 26


# ---- what stands in the way ----------------------------------------------------------------------


def test_a_file_of_somebody_else_is_never_touched(app, write_note, tmp_path):
    path = write_note("03-Knowledge/t.md", "# Not ours\n\nhand written text of a person")
    os.mkdir(tmp_path / "vault/03-Knowledge/t-2.md")
    os.symlink("/nowhere", tmp_path / "vault/03-Knowledge/t-3.md")
    before = (os.stat(path), read(tmp_path, "03-Knowledge/t.md"))
    result = capture(app, "t", BODY)
    assert (result.status, result.path, result.conflict) == ("created", "03-Knowledge/t-4.md", False)
    assert result.collision_paths == [f"03-Knowledge/t{n}.md" for n in ("", "-2", "-3")]
    assert (os.stat(path), read(tmp_path, "03-Knowledge/t.md")) == before


def test_a_card_edited_by_hand_is_kept_beside_the_original_captured_again(app, tmp_path):
    first = capture(app, "t", BODY)
    with open(tmp_path / "vault" / first.path, "a", encoding="utf-8") as handle:
        handle.write("\nmy own addition\n")
    again = capture(app, "t", BODY)
    assert (again.status, again.conflict, again.existing_path) == ("created", True, first.path)
    assert "my own addition" in read(tmp_path, first.path)


def test_nothing_is_written_through_a_link(app, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "vault/03-Knowledge").mkdir(parents=True)
    os.symlink(outside / "card.md", tmp_path / "vault/03-Knowledge/t.md")
    os.symlink(outside, tmp_path / "vault/07-Tools")
    assert capture(app, "t", BODY).path == "03-Knowledge/t-2.md"
    with pytest.raises(SetupError, match="is a link"):
        capture(app, "t", BODY, kind="tool")
    assert os.listdir(outside) == []


def test_a_vault_that_is_a_link_is_a_vault(make_app, tmp_path):
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    app = make_app(vault=tmp_path / "link")
    assert capture(app, "t", BODY).indexed
    assert [name for name, _ in cards_below(tmp_path / "real")] == ["03-Knowledge/t.md"]


@pytest.mark.parametrize("where", ["vault", "vault/03-Knowledge", "."])
def test_a_file_in_place_of_a_folder_is_said_and_kept(make_app, tmp_path, where):
    blocked = tmp_path / where if where != "." else tmp_path / "file"
    blocked.parent.mkdir(exist_ok=True)
    blocked.write_text("a file")
    app = make_app(vault=tmp_path / "file/vault" if where == "." else None)
    with pytest.raises(SetupError) as caught:
        capture(app, "t", f"{BODY} {TOKEN}")
    assert "03-Knowledge" in caught.value.message and caught.value.hint and TOKEN not in str(vars(caught.value))
    assert blocked.read_text() == "a file"


@pytest.mark.skipif(AS_ROOT or os.name != "posix", reason="permissions do not bind here")
def test_a_vault_that_cannot_be_written_is_said(app, tmp_path):
    folder = tmp_path / "vault/03-Knowledge"
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    try:
        with pytest.raises(SetupError, match="cannot write the card") as caught:
            capture(app, "t", BODY)
    finally:
        folder.chmod(0o700)
    assert caught.value.why == "Permission denied" and os.listdir(folder) == []


@pytest.mark.parametrize("damage", ["folder", "garbage", "other program", "missing column", "newer"])
def test_the_card_stays_when_the_index_fails(app, tmp_path, damage):
    import sqlite3

    capture(app, "before", BODY)
    app.close()
    db = tmp_path / "home/memory.db"
    if damage in ("missing column", "newer"):
        connection = sqlite3.connect(db)
        if damage == "newer":
            connection.execute("PRAGMA user_version = 99")
        else:
            connection.execute("ALTER TABLE cards RENAME COLUMN remark TO odd")
        connection.commit()
        connection.close()
    else:
        for path in (tmp_path / "home").glob("memory.db*"):
            path.unlink()
        if damage == "folder":
            db.mkdir()
        elif damage == "garbage":
            db.write_bytes(os.urandom(5000))
        else:
            connection = sqlite3.connect(db)
            connection.execute("CREATE TABLE notes (a)")
            connection.commit()
            connection.close()
    result = capture(app, "t", BODY + " after the damage")
    assert (result.status, result.indexed, result.id, slugs(result)) == ("created", False, None, ["not-indexed"])
    assert "after the damage" in read(tmp_path, result.path)


def test_a_fault_of_ours_in_the_index_is_a_remark_too(app, tmp_path, monkeypatch):
    monkeypatch.setattr("mcore.prepare.read_card", lambda *_: 1 / 0)
    result = capture(app, "t", BODY)
    assert (result.status, result.indexed, slugs(result)) == ("created", False, ["not-indexed"])
    assert "ZeroDivisionError" in result.warnings[0].message and (tmp_path / "vault" / result.path).exists()


# ---- whole or not at all -------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["open", "fsync", "link", "unlink", "mkdir", "listdir", "lstat"])
def test_a_call_that_fails_leaves_no_half_card(app, tmp_path, monkeypatch, call):
    """The k-th call of each kind fails, for k = 1, 2, ... until the capture goes through."""
    real, status = getattr(os, call), None
    for fails_at in range(1, 20):
        calls = [0]

        def failing(*args, calls=calls, fails_at=fails_at, **more):
            calls[0] += 1
            if calls[0] == fails_at:
                raise OSError(28, "No space left on device")
            return real(*args, **more)

        monkeypatch.setattr(os, call, failing)
        try:
            status = capture(app, f"t{fails_at}", f"{BODY} {fails_at} END").status
        except SetupError as error:
            assert error.message.startswith("cannot ") and error.why == "No space left on device"
            status = None
        finally:
            monkeypatch.setattr(os, call, real)
        for name, data in cards_below(tmp_path / "vault"):
            assert data.endswith(b"END\n"), name
        left = [name for _, _, names in os.walk(tmp_path) for name in names if name.startswith(vault.TEMP_PREFIX)]
        assert left == [] or call == "unlink"
        if calls[0] < fails_at:
            break
    assert status == "created"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_cards_and_folders_are_for_their_owner_alone(app, tmp_path):
    result = capture(app, "t", BODY)
    for path, mode in ((result.path, 0o600), ("03-Knowledge", 0o700), (".", 0o700)):
        assert stat.S_IMODE(os.stat(tmp_path / "vault" / path).st_mode) == mode


def test_a_card_too_large_to_be_read_again_is_rejected(app, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.json").write_text('{"max_card_bytes": 1000}')
    result = capture(app, "t", "x" * 1000)
    assert not (tmp_path / "vault").exists()
    assert (result.status, result.path, slugs(result)) == ("rejected", None, ["long-body"])
    assert capture(app, "t", "x" * 500).status == "created" and len(cards_below(tmp_path / "vault")) == 1


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be synced here")
def test_a_card_is_on_disk_before_it_has_its_name_and_the_name_before_the_answer(app, monkeypatch):
    calls, fsync, link = [], os.fsync, os.link

    def noted_fsync(fd):
        calls.append("file" if stat.S_ISREG(os.fstat(fd).st_mode) else "folder")
        fsync(fd)

    def noted_link(*args, **more):
        calls.append("name")
        link(*args, **more)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "link", noted_link)
    capture(app, "t", BODY)
    assert calls == ["folder", "folder", "file", "name", "folder"]  # the vault and the kind's folder were new
    calls.clear()
    capture(app, "u", BODY)
    assert calls == ["file", "name", "folder"]
