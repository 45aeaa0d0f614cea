"""mcore.revise and mcore.history: cards corrected, superseded, retracted, forgotten, restored, purged.

Each change is one file written whole, the former text kept under `.history/`, the writer's form kept.
"""

import json
import os

import pytest
from conftest import paths_of

from mcore import history, vault
from mcore.capture import capture
from mcore.errors import CardError, NotFound, UsageError
from mcore.revise import forget, purge, restore, retract, revisions, supersede, update
from mcore.show import show
from mcore.stats import stats

BODY = "the database host is alpha.example, port 5432"
NEXT = "the database host is beta.example since the move"
LAST = "the database host is gamma.example by now"

BY_HAND = (
    "\ufeff---\r\n# mine\r\ntitle:   'DB host'\r\ntags:\r\n    - x\r\nodd :  [1,  2]   # why\r\n---\r\n"
    "\r\nAlpha text.\r\n"
)


@pytest.fixture
def app(make_app, tmp_path):
    (tmp_path / "vault").mkdir()
    return make_app()


def read(tmp_path, name):
    return (tmp_path / "vault" / name).read_bytes().decode("utf-8", "surrogateescape")


def found(app, query, **more):
    return paths_of(app.searcher.search(query, **more))


# ---- update --------------------------------------------------------------------------------------


def test_an_update_changes_the_card_and_keeps_the_former_text(app, tmp_path):
    made = capture(app, "db host", BODY, tags=["db"])
    before = read(tmp_path, made.path)
    done = update(app, made.path, {"confidence": "0.8", "tags": ["db", "主机"]}, body=NEXT)
    assert (done.status, done.path, done.id, done.indexed) == ("updated", made.path, made.id, True)
    assert done.former_revision == made.revision and done.revision != made.revision
    assert done.fields == ["tags", "confidence", "updated", "body"]
    assert read(tmp_path, done.history_path) == before
    assert found(app, "alpha") == [] and found(app, "beta 主机") == [made.path]
    shown = show(app, path=made.path)
    assert (shown.text.strip(), shown.tags, shown.revision) == (NEXT, ["db", "主机"], done.revision)
    assert shown.created and shown.updated and shown.fields["confidence"] == "0.8"


def test_a_card_written_by_hand_keeps_its_form_and_unknown_fields(app, tmp_path, write_note):
    write_note("notes/by hand.md", BY_HAND)
    update(app, "notes/by hand.md", {"title": "db 主机", "aliases": ["数据库"]})
    assert read(tmp_path, "notes/by hand.md") == BY_HAND.replace("  'DB host'", "db 主机").replace(
        "# why\r\n", "# why\r\naliases: [数据库]\r\n"
    )
    assert found(app, "数据库") == ["notes/by hand.md"]


@pytest.mark.parametrize(
    "codec, mark", [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("utf-8", b"\xef\xbb\xbf")]
)
def test_an_encoding_is_kept(app, tmp_path, write_note, codec, mark):
    write_note("a.md", mark + "---\ntitle: 旧\n---\n正文 body".encode(codec))
    update(app, "a.md", {"title": "新"})
    assert (tmp_path / "vault/a.md").read_bytes() == mark + "---\ntitle: 新\n---\n正文 body".encode(codec)


def test_bytes_that_are_no_text_survive(app, tmp_path, write_note):
    write_note("a.md", b"---\ntitle: a\n---\nzebra \xff\xfe end\n")
    update(app, "a.md", {"title": "b"})
    assert (tmp_path / "vault/a.md").read_bytes() == b"---\ntitle: b\n---\nzebra \xff\xfe end\n"


def test_the_path_never_changes_whatever_the_title_and_kind(app):
    made = capture(app, "db host", BODY)
    done = update(app, made.path, {"title": "another name", "kind": "mistake"})
    assert done.path == made.path and found(app, "another") == [made.path]
    assert show(app, path=made.path).kind == "mistake"


def test_another_revision_is_a_conflict_and_nothing_is_written(app, tmp_path, write_note):
    made = capture(app, "db host", BODY)
    by_hand = read(tmp_path, made.path).replace("alpha", "by-hand")
    write_note(made.path, by_hand)
    done = update(app, made.path, {}, body=NEXT, expected_revision=made.revision)
    assert (done.status, done.path) == ("conflict", made.path)
    assert done.revision == show(app, path=made.path).revision != made.revision
    assert read(tmp_path, made.path) == by_hand and not (tmp_path / "vault/.history").exists()
    again = update(app, made.path, {}, body=NEXT, expected_revision=done.revision)
    assert again.status == "updated"


def test_an_update_that_changes_nothing_writes_nothing(app, tmp_path):
    made = capture(app, "db host", BODY, tags=["db"])
    done = update(app, str(made.id), {"title": "db host", "tags": ["db"]}, body=BODY)
    assert (done.status, done.revision, done.history_path) == ("unchanged", made.revision, None)
    assert not (tmp_path / "vault/.history").exists()


def test_empty_takes_a_field_out(app):
    made = capture(app, "db host", BODY, tags=["db"], more={"scope": "project/x", "pinned": True})
    update(app, made.path, {"tags": [], "scope": "", "pinned": False})
    shown = show(app, path=made.path)
    assert (shown.tags, shown.scope, "pinned" in shown.fields) == ([], "global", False)


@pytest.mark.parametrize("field, value", [("valid_to", "never"), ("ttl", "permanent"), ("ttl", "0"), ("ttl", "永久")])
def test_an_end_that_is_said_to_be_open_takes_the_field_out(app, field, value):
    made = capture(app, "db host", BODY, more={"ttl": "30d", "valid_to": "2036-01-01"})
    update(app, made.path, {field: value})
    assert field not in show(app, path=made.path).fields


@pytest.mark.parametrize("given, body", [
    ({}, None), ({"title": " "}, None), ({"kind": "nope"}, None), ({"valid_to": "soon"}, None), ({"ttl": "x"}, None),
    ({"scope": "shop"}, None), ({"valid_from": "2026-01-02", "valid_to": "2026-01-01"}, None),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(app, tmp_path, given, body):
    made = capture(app, "db host", BODY)
    with pytest.raises(UsageError):
        update(app, made.path, given, body)
    assert show(app, path=made.path).revision == made.revision


def test_short_bodies_and_credentials_are_judged_as_in_capture(app):
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    made = capture(app, "db host", BODY)
    assert update(app, made.path, {}, body="short").status == "rejected"
    refused = update(app, made.path, {}, body=f"{BODY} {token}", reject_secrets=True)
    assert refused.status == "rejected" and refused.secrets_found[0].where == "body"
    done = update(app, made.path, {"aliases": [token]})
    assert done.status == "updated" and done.secrets_found[0].where == "aliases"
    assert token not in repr(refused) and token not in repr(done.warnings)


def test_no_card_outside_or_unknown_is_changed(app, tmp_path):
    (tmp_path / "outside.md").write_text("outside text of a file")
    for card in ("../outside.md", "no.md", "99", "/etc/passwd"):
        with pytest.raises(NotFound):
            update(app, card, {"title": "x"})
    assert (tmp_path / "outside.md").read_text() == "outside text of a file"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_mode_of_a_file_is_kept(app, tmp_path, write_note):
    os.chmod(write_note("a.md", "zebra text"), 0o640)
    update(app, "a.md", {"title": "b"})
    assert os.stat(tmp_path / "vault/a.md").st_mode & 0o777 == 0o640


def test_what_is_written_meanwhile_by_another_hand_is_not_lost(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(b"by another hand")
    with pytest.raises(CardError):
        vault.replace(str(path), b"what we read", b"what we would write")
    assert path.read_bytes() == b"by another hand" and os.listdir(tmp_path) == ["a.md"]


# ---- history -------------------------------------------------------------------------------------


def test_history_lists_revisions_newest_first_with_what_changed(app, tmp_path):
    made = capture(app, "db host", BODY)
    update(app, made.path, {}, body=NEXT)
    update(app, made.path, {"title": "主机"})
    told = revisions(app, made.path, diff=True)
    assert [r.current for r in told.revisions] == [True, False, False]
    assert [set(r.fields) - {"updated"} for r in told.revisions] == [{"title"}, {"body"}, set()]
    assert [r.title for r in told.revisions] == ["主机", "db host", "db host"] and told.total == 3
    assert "-title: db host" in told.revisions[0].diff and "+title: 主机" in told.revisions[0].diff
    assert f"-{BODY}" in told.revisions[1].diff and told.revisions[2].diff is None
    assert told.revisions[2].revision == made.revision
    assert len(revisions(app, made.path, limit=1).revisions) == 1


def test_former_texts_are_not_searched_and_not_reported_as_left_out(app):
    made = capture(app, "db host", BODY)
    update(app, made.path, {}, body=NEXT)
    report = app.indexer.index(app.store)
    assert (report.total, report.skipped) == (1, [])
    assert found(app, "alpha", as_of="any") == []


def test_a_former_text_comes_back_by_its_revision(app, tmp_path):
    made = capture(app, "db host", BODY)
    before = read(tmp_path, made.path)
    update(app, made.path, {}, body=NEXT)
    assert restore(app, made.path, made.revision[:8]).revision == made.revision
    assert read(tmp_path, made.path) == before and revisions(app, made.path).total == 3
    with pytest.raises(NotFound, match="no revision"):
        restore(app, made.path, "0123456789abcdef")


def test_a_deleted_card_comes_back_from_its_history(app, tmp_path):
    made = capture(app, "db host", BODY)
    update(app, made.path, {}, body=NEXT)
    os.unlink(tmp_path / "vault" / made.path)
    assert revisions(app, made.path).total == 1
    assert restore(app, made.path).status == "restored"
    assert found(app, "alpha") == [made.path]
    with pytest.raises(NotFound):
        restore(app, "../../outside.md")


def test_a_text_is_kept_once_though_a_kill_came_between(app, tmp_path):
    made = capture(app, "db host", BODY)
    data = (tmp_path / "vault" / made.path).read_bytes()
    first = history.keep(str(tmp_path / "vault"), made.path, data, 0)
    assert history.keep(str(tmp_path / "vault"), made.path, data, 99) == first
    assert update(app, made.path, {}, body=NEXT).history_path == first.path


# ---- supersede -----------------------------------------------------------------------------------


def test_a_new_fact_closes_an_old_one_whose_file_is_not_touched(app, tmp_path):
    old = capture(app, "db host", BODY, tags=["db"], more={"aliases": ["主库"], "scope": "project/shop"})
    before = read(tmp_path, old.path)
    new = supersede(app, old.path, {}, NEXT)
    assert (new.status, new.supersedes, new.path) == ("created", old.path, "03-Knowledge/db-host-2.md")
    assert read(tmp_path, old.path) == before
    shown = show(app, path=new.path)
    assert (shown.title, shown.tags, shown.scope, shown.replaces) == ("db host", ["db"], "project/shop", [old.path])
    assert shown.fields["aliases"] == ["主库"]
    hits = app.searcher.search("db host", scope="shop").hits
    assert [(hit.path, hit.replaces, hit.state) for hit in hits] == [(new.path, [old.path], "current")]
    was = show(app, path=old.path)
    assert (was.state, was.replaced_by, was.valid_to) == ("superseded", new.path, shown.valid_from)


def test_a_successor_inherits_what_is_not_given_and_empty_takes_out(app):
    old = capture(app, "db host", BODY, "tool", ["db"], more={"aliases": ["主库"], "pinned": True, "priority": "2"})
    new = supersede(app, old.path, {"tags": [], "title": "主机", "kind": ""}, NEXT)
    shown = show(app, path=new.path)
    assert (shown.title, shown.kind, shown.tags) == ("主机", "tool", [])
    assert (shown.fields["aliases"], shown.fields["pinned"], "priority" in shown.fields) == (["主库"], True, False)


def test_search_as_of_a_time_shows_what_was_in_force(app, write_note):
    write_note("a.md", "---\ntitle: host\ncreated: 2020-01-01\nvalid_from: 2020-01-01\n---\nthe host is alpha")
    write_note("b.md", "---\ntitle: host\nvalid_from: 2022年1月1日\nsupersedes: a.md\n---\nthe host is beta")
    write_note("c.md", "---\ntitle: host\nvalid_from: 2024/1/1\nsupersedes: '[[b]]'\n---\nthe host is gamma")
    for as_of, expected in {
        None: ["c.md"], "2021-06-01": ["a.md"], "2022-01-01": ["b.md"], "2023-12-31T23:59:59Z": ["b.md"],
        "2024-01-01": ["c.md"], "2019-01-01": [],
    }.items():  # fmt: skip
        assert found(app, "host", as_of=as_of) == expected, as_of
    assert sorted(found(app, "host", as_of="any")) == ["a.md", "b.md", "c.md"]
    assert app.searcher.search("gamma").hits[0].replaces == ["b.md", "a.md"]
    nothing = app.searcher.search("alpha")
    assert nothing.hits == [] and nothing.hidden == {"validity": 1}
    assert [(card.path, card.state, card.replaced_by) for card in nothing.outdated] == [("a.md", "superseded", "b.md")]
    with pytest.raises(UsageError):
        found(app, "host", as_of="someday")


def test_a_second_successor_is_a_conflict_that_names_the_first(app, tmp_path):
    old = capture(app, "db host", BODY)
    first = supersede(app, old.path, {}, NEXT)
    second = supersede(app, old.path, {}, LAST)
    assert (second.status, second.path, second.existing_path) == ("conflict", None, first.path)
    assert len(os.listdir(tmp_path / "vault/03-Knowledge")) == 2
    again = supersede(app, old.path, {}, NEXT)
    assert (again.status, again.path) == ("unchanged", first.path)
    chained = supersede(app, first.path, {}, LAST)
    assert app.searcher.search("db host").hits[0].replaces == [first.path, old.path]
    assert found(app, "db host") == [chained.path]


def test_a_successor_written_by_hand_is_seen_though_a_look_was_just_taken(app, write_note):
    """A server content with its last look must not write a second successor."""
    old = capture(app, "db host", BODY)
    before = app.freshness()
    write_note("by-hand.md", f"---\ntitle: db host\nsupersedes: [{old.path}]\n---\n{NEXT}\n")
    app.kept = lambda look: before
    assert app.freshness() == before
    second = supersede(app, old.path, {}, LAST)
    assert (second.status, second.existing_path) == ("conflict", "by-hand.md")


def test_a_successor_with_the_old_text_is_a_card_of_its_own(app):
    old = capture(app, "db host", BODY)
    new = supersede(app, old.path, {}, NEXT)
    back = supersede(app, new.path, {}, BODY)
    assert back.status == "created" and found(app, "alpha") == [back.path]


def test_a_superseding_needs_the_revision_that_was_read_and_a_card_in_use(app):
    old = capture(app, "db host", BODY)
    update(app, old.path, {"tags": ["x"]})
    assert supersede(app, old.path, {}, NEXT, expected_revision=old.revision).status == "conflict"
    forget(app, old.path)
    assert supersede(app, old.path, {}, NEXT).status == "rejected"


def test_wrong_is_told_apart_from_superseded(app):
    old, other = capture(app, "db host", BODY), capture(app, "cache host", "the cache host is kappa, port 6379")
    new = supersede(app, old.path, {}, NEXT, wrong=True)
    retract(app, other.path, "a typo")
    assert show(app, path=old.path).state == show(app, path=other.path).state == "retracted"
    assert show(app, path=other.path).fields["retracted_reason"] == "a typo"
    for as_of in (None, "2020-01-01", "2099-01-01"):
        assert set(found(app, "host", as_of=as_of)) <= {new.path}
    assert {hit.state for hit in app.searcher.search("alpha kappa", as_of="any").hits} == {"retracted"}
    assert restore(app, other.path).status == "restored" and found(app, "kappa") == [other.path]


def test_when_the_successor_was_wrong_the_old_card_holds_again(app):
    old = capture(app, "db host", BODY)
    new = supersede(app, old.path, {}, NEXT)
    retract(app, new.path)
    assert found(app, "db host") == [old.path]
    restore(app, new.path)
    assert found(app, "db host") == [new.path]


def test_when_a_forgotten_successor_was_wrong_the_old_card_holds_again_too(app):
    old = capture(app, "db host", BODY)
    new = supersede(app, old.path, {}, NEXT)
    forget(app, new.path)
    assert found(app, "db host") == []
    retract(app, new.path)
    assert found(app, "db host") == [old.path]


def test_links_by_hand_are_heeded_as_soon_as_they_are_there_or_gone(app, write_note, tmp_path):
    write_note("old.md", "the zebra text of old")
    write_note("new.md", "---\nsupersedes: old.md\n---\nthe zebra text of new")
    assert found(app, "zebra") == ["new.md"]
    write_note("new.md", "the zebra text of new")
    assert sorted(found(app, "zebra")) == ["new.md", "old.md"]
    write_note("sub/late.md", "---\nsupersedes: [new, old]\n---\nthe zebra text of late")
    assert found(app, "zebra") == ["sub/late.md"]
    os.unlink(tmp_path / "vault/sub/late.md")
    assert sorted(found(app, "zebra")) == ["new.md", "old.md"]
    write_note("ring.md", "---\nsupersedes: [old.md, ring.md]\n---\nthe zebra text of ring")
    write_note("old.md", "---\nsupersedes: ring.md\n---\nthe zebra text of old")
    assert len(found(app, "zebra")) == 2  # new.md, and one of the ring


def test_links_that_lead_nowhere_or_come_second_are_named(app, write_note):
    write_note("old.md", "the zebra text of old")
    write_note("one.md", "---\nsupersedes: old.md\nvalid_from: 2020-01-01\n---\nthe zebra text of one")
    write_note("two.md", "---\nsupersedes: [old.md, gone.md]\nvalid_from: 2021-01-01\n---\nthe zebra text of two")
    told = [note.message for note in app.indexer.index(app.store).warnings if note.slug == "link"]
    assert told == [
        "two.md: it supersedes 'gone.md', and there is no such card",
        "two.md: it supersedes old.md, and one.md does so already",
    ]


def test_what_is_derived_survives_a_rebuild(app, write_note, memory):
    old = capture(app, "db host", BODY, more={"scope": "project/shop", "ttl": "30d", "confidence": "high"})
    supersede(app, old.path, {}, NEXT)
    fields = "supersedes: [[db-host-2]]\nvalid_from: 2099-01-01\nreview_by: 1999-01-01"
    write_note("hand.md", f"---\n{fields}\n---\nhost to come")
    capture(app, "other host", "the host of the mail is omega")
    forget(app, "03-Knowledge/other-host.md")
    asked = ["search host --scope all --as-of any --json", "search host --scope shop --json", "stats --json"]
    before = [json.loads(memory(*line.split()).out) for line in asked]
    app.close()
    memory("index", "--rebuild")
    for line, was in zip(asked, before, strict=True):
        now = json.loads(memory(*line.split()).out)
        for answer in (was, now):
            for hit in answer.get("hits", ()):
                hit.pop("score")
        assert now == was


# ---- forget, restore, purge ----------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    BY_HAND, "no frontmatter, alpha", '+++\ntitle = "x"\n+++\nalpha', '---\n{"title": "x"}\n---\nalpha', "\n\nalpha",
])  # fmt: skip
def test_a_forgotten_card_is_in_no_answer_and_restore_brings_back_every_byte(app, tmp_path, write_note, text):
    write_note("a.md", text)
    write_note("b.md", "---\ntitle: beta\n---\nstays in the vault")
    assert found(app, "alpha") == ["a.md"]
    done = forget(app, "a.md")
    assert (done.status, done.path) == ("forgotten", "a.md")
    for more in ({}, {"as_of": "any"}, {"scope": "all", "as_of": "any"}, {"match": "fill"}):
        assert found(app, "alpha", **more) == []
    counted = stats(app)
    assert (counted.total, counted.forgotten, counted.kinds) == (1, 1, {"knowledge": 1})
    assert app.searcher.search("alpha").searched == 1 and "a.md" not in [card.path for card in counted.latest]
    assert app.searcher.search("alpho").nearest == []
    assert [s.path for s in capture(app, "alpha", "alpha text and more of it").similar] == []
    assert forget(app, "a.md").status == "unchanged"
    assert restore(app, "a.md").status == "restored" and read(tmp_path, "a.md") == text
    assert "a.md" in found(app, "alpha")


def test_a_forgotten_text_can_be_captured_again(app):
    made = capture(app, "db host", BODY)
    forget(app, made.path)
    again = capture(app, "db host", BODY)
    assert again.status == "created" and found(app, "alpha") == [again.path]


def test_a_purge_shows_first_and_then_leaves_no_trace(app, tmp_path):
    made = capture(app, "db host", BODY)
    update(app, made.path, {}, body=NEXT)
    show(app, path=made.path)
    kept = capture(app, "other", "a card that stays where it is")
    shown = purge(app, made.path)
    assert (shown.status, len(shown.files), shown.read_count) == ("preview", 2, 1)
    assert found(app, "beta") == [made.path]
    os.mkdir(tmp_path / ".git")
    done = purge(app, made.path, yes=True)
    assert done.status == "purged" and done.files == shown.files
    assert any(".git" in place for place in done.unreachable) and any("backups" in p for p in done.unreachable)
    assert not (tmp_path / "vault" / made.path).exists() and not (tmp_path / "vault/.history").exists()
    assert found(app, "host", as_of="any") == [] and found(app, "stays") == [kept.path]
    words = app.store.words
    assert app.store.reads_of(made.path) == 0 and words.starting("alpha") == words.starting("beta") == []
    app.close()
    data = b"".join(p.read_bytes() for p in (tmp_path / "home").iterdir() if p.suffix == ".db")
    assert b"03-Knowledge/db-host" not in data
    with pytest.raises(NotFound):
        purge(app, made.path)


def test_what_is_left_of_a_deleted_card_can_be_purged(app, tmp_path):
    made = capture(app, "db host", BODY)
    update(app, made.path, {}, body=NEXT)
    os.unlink(tmp_path / "vault" / made.path)
    assert purge(app, made.path, yes=True).status == "purged"
    assert not (tmp_path / "vault/.history").exists()


# ---- scope ---------------------------------------------------------------------------------------


def test_a_search_stays_in_its_scope_and_says_what_that_hides(app):
    for scope in ("global", "project/shop", "project/blog", "domain/pay"):
        capture(app, f"card of {scope}", f"the zebra of {scope} is here", more={"scope": scope})
    shop, everyone = "03-Knowledge/card-of-project-shop.md", "03-Knowledge/card-of-global.md"
    result = app.searcher.search("zebra")
    assert (paths_of(result), result.hidden) == ([everyone], {"scope": 3})
    assert sorted(found(app, "zebra", scope="Project/SHOP")) == sorted([shop, everyone])
    assert found(app, "zebra", scope="shop", scope_only=True) == [shop]
    assert len(found(app, "zebra", scope="all")) == 4
    assert {hit.scope for hit in app.searcher.search("zebra", scope="all").hits} == set(stats(app).scopes)
    missed = app.searcher.search("zebra", scope="project/shpo", scope_only=True)
    assert missed.hits == [] and "did you mean project/shop" in missed.warnings[0].hint
    assert missed.retrieval.reason == "empty_scope"
    with pytest.raises(UsageError, match="is no scope"):
        found(app, "zebra", scope="nowhere/x")


def test_a_scope_can_be_mapped_to_folders(write_note, make_app, tmp_path):
    write_note("02-Projects/shop/a.md", "zebra of the shop")
    write_note("02-Projects/shop/b.md", "---\nscope: global\n---\nzebra for everyone")
    write_note("c.md", "zebra outside")
    os.makedirs(tmp_path / "home")
    config = {"scopes": {"project/shop": "02-Projects/shop"}}
    (tmp_path / "home/config.json").write_text(json.dumps(config))
    app = make_app()
    assert sorted(found(app, "zebra")) == ["02-Projects/shop/b.md", "c.md"]
    assert sorted(found(app, "zebra", scope="shop")) == ["02-Projects/shop/a.md", "02-Projects/shop/b.md", "c.md"]
    assert found(app, "zebra", scope="shop", scope_only=True) == ["02-Projects/shop/a.md"]
    assert {name: (s["total"], s["active"]) for name, s in stats(app).scopes.items()} == {
        "global": (2, 2), "project/shop": (1, 1),
    }  # fmt: skip


def test_one_fact_may_be_kept_in_two_scopes(app):
    one = capture(app, "port", BODY, more={"scope": "project/a"})
    two = capture(app, "port", BODY, more={"scope": "project/b"})
    assert [one.status, two.status] == ["created", "created"]
    assert capture(app, "port", BODY, more={"scope": "project/a"}).path == one.path


def test_a_scope_that_is_nearly_another_one_is_told(app):
    capture(app, "one", BODY, more={"scope": "project/memory-agent"})
    noted = capture(app, "two", NEXT, more={"scope": "project/memroy-agent"})
    assert "project/memory-agent" in noted.warnings[0].hint


# ---- expiry --------------------------------------------------------------------------------------


def test_a_card_that_expired_or_is_to_come_is_left_out_and_said(app, write_note):
    write_note("past.md", "---\ncreated: 2020-01-01\nttl: 30d\n---\nzebra of the past")
    write_note("ended.md", "---\nvalid_to: 2020-01-01 10:30\n---\nzebra that ended")
    write_note("to-come.md", "---\nvalid_from: 2999-01-01\n---\nzebra to come")
    write_note("now.md", "---\nreview_by: 2020-01-01\nconfidence: low\n---\nzebra of today")
    write_note("odd.md", "---\nvalid_to: next week\nttl: some time\n---\nzebra of an odd card")
    result = app.searcher.search("zebra")
    assert sorted(paths_of(result)) == ["now.md", "odd.md"] and result.hidden == {"validity": 3}
    hit = next(hit for hit in result.hits if hit.path == "now.md")
    assert (hit.review_due, hit.confidence) == (True, "low")
    states = {hit.path: hit.state for hit in app.searcher.search("zebra", as_of="any").hits}
    assert states == {"past.md": "expired", "ended.md": "expired", "to-come.md": "future", "now.md": "current",
                      "odd.md": "current"}  # fmt: skip
    assert sorted(found(app, "zebra", as_of="2020-01-01T09:00:00Z")) == ["ended.md", "now.md", "odd.md", "past.md"]
    notes = [warning for warning in app.indexer.index(app.store).warnings if warning.slug == "field"]
    assert len(notes) == 2 and all("odd.md" in note.message for note in notes)


def test_no_name_leads_to_the_history_of_another_vault(app, make_app, tmp_path):
    """A model may be talked into any name: none of them reads, restores or erases what lies outside."""
    update(app, capture(app, "mine", BODY).path, {}, NEXT)  # so that the folder .history is there
    theirs = make_app(db=tmp_path / "theirs.db", vault=tmp_path / "theirs")
    card = capture(theirs, "theirs", BODY).path
    update(theirs, card, {}, NEXT)
    os.symlink(tmp_path / "theirs/.history", tmp_path / "vault/.history/linked")
    names = [f"../../theirs/.history/{card}", f"x/../../../theirs/.history/{card}", f"linked/{card}",
             str(tmp_path / "theirs/.history" / card), "a\0b.md", "..", "/"]  # fmt: skip
    for name in names:
        for ask in (revisions, restore, lambda app, name: purge(app, name, yes=True)):
            with pytest.raises(NotFound):
                ask(app, name)
    assert revisions(theirs, card).total == 2
