"""mcore.search: four tiers, true hits, and empty answers that can be trusted."""

import errno
import json
import os
import sqlite3
import unicodedata
from contextlib import closing

import pytest
from conftest import paths_of

from mcore.errors import SetupError, StoreDamaged
from mcore.importer import Freshness
from mcore.search import MAX_LIMIT, TIERS, FtsSearcher, Hit, Searcher
from mcore.tokenize import split_query, to_query_expr

CARDS = {
    "03-Knowledge/nginx.md": "---\ntitle: nginx 站点根目录\ntags: [web]\nsource: alice\n---\n"
    "root is /srv/www on host ecs-prod-01",
    "07-Tools/sqlite.md": "---\nsource: bob\n---\n# sqlite3 backup\n\nuse the sqlite3 .backup command, 数据库备份",
    "03-Knowledge/redis.md": "# redis\n\nredis cache eviction policy allkeys-lru; 缓存淘汰",
    "note.md": "# plain\n\nnothing of interest here, just words",
}


@pytest.fixture
def app(write_note, make_app):
    for name, text in CARDS.items():
        write_note(name, text)
    return make_app()


def search(app, *args, **more):
    return app.searcher.search(*args, **more)


def slugs(result):
    return [note.slug for note in result.warnings]


# ---- tiers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["目标", "Rollout Plan", "what is our goal?"])
def test_a_card_whose_title_is_the_query_stands_first(write_note, make_app, query):
    for number in range(30):
        write_note(f"{number}.md", f"# {query} {number}\n\n{query} {query} {query}\n")
    write_note("titled.md", f"# {query.lower()}\n\n{'other words at length ' * 200}\n")
    result = search(make_app(), query, is_explained=True)
    assert paths_of(result)[0] == "titled.md"
    first = result.explained.hits[0]
    assert ("title", query) in {(part.kind, part.text) for part in first.parts}
    assert sum(part.score for part in first.parts) == pytest.approx(first.score, abs=0.001)
    assert result.hits[0].matched == "all"
    assert search(make_app(), query, kind="decision").hits == []


def test_a_query_that_cannot_be_bound_is_no_title(app):
    assert search(app, "redis \udc80").hits


@pytest.mark.parametrize("query, matched, path", [
    ("redis eviction", "all", "03-Knowledge/redis.md"),
    ("站点", "all", "03-Knowledge/nginx.md"),
    ("ecs-prod-01", "all", "03-Knowledge/nginx.md"),
    ("WEB", "all", "03-Knowledge/nginx.md"),
    ("sqlit backu", "all-prefix", "07-Tools/sqlite.md"),
    ("redis zzzz", "any", "03-Knowledge/redis.md"),
    ("zzzz evict", "any-prefix", "03-Knowledge/redis.md"),
])
def test_each_tier_answers_when_those_above_found_nothing(app, query, matched, path):
    result = search(app, query)
    assert result.matched == matched and paths_of(result) == [path]
    assert {hit.matched for hit in result.hits} == {matched}
    assert [hit.coverage for hit in result.hits] == ([1.0] if matched.startswith("all") else [0.5])


WRITINGS = {
    "redis": ["redis6.2", "redis 6.2", "Redis-6.2", "redis v6.2"],
    "jdk": ["JDK17", "JDK 17", "jdk-17"],
    "node": ["nodejs", "Node.js", "node js"],
}


@pytest.mark.parametrize("match", ["cascade", "fill"])
@pytest.mark.parametrize("name, query", [(name, way) for name, ways in WRITINGS.items() for way in ways])
def test_each_way_to_write_a_product_finds_all_of_them(write_note, make_app, name, query, match):
    """Also where one card has it as it was asked, and others have its words apart."""
    for other, ways in WRITINGS.items():
        for number, way in enumerate(ways):
            write_note(f"{other}{number}.md", f"we still run {way} on that host")
    for number in range(6):
        write_note(f"apart{number}.md", "redis, a jdk and node are in version 6, chapters 6.2, 17, 80 and js")
    hits = search(make_app(), query, match=match).hits
    found = {hit.path: hit for hit in hits if not hit.path.startswith("apart")}
    assert found.keys() == {f"{name}{number}.md" for number in range(len(WRITINGS[name]))}
    assert [(hit.matched, hit.missing) for hit in found.values()] == [("all", [])] * len(found)


def test_the_tiers_are_in_order_and_a_lower_one_finds_no_less(app):
    search(app, "x")
    for query in ("redis cache", "sqlite use", "nothing words", "root evict"):
        terms, _ = split_query(query)
        found = []
        for tier in TIERS:
            expr = to_query_expr(terms, tier)
            found.append({row.id for row in app.store.match(expr, 20)} if expr else found[-1])
        assert found[0] <= found[1] and found[0] <= found[2] and found[1] | found[2] <= found[3], query


def test_a_one_letter_prefix_does_not_match_the_whole_vault(app):
    assert search(app, "r zzzz").hits == []


@pytest.mark.parametrize(
    "limit, expected", [(1, 1), (3, 3), (20, 20), (21, 20), (10**9, 20), (0, 1), (-1, 1), (-(10**9), 1)]
)
def test_the_limit_is_kept_within_1_and_20(write_note, make_app, limit, expected):
    for number in range(30):
        write_note(f"{number}.md", f"the common word zebra, {number}")
    assert len(search(make_app(), "zebra", limit).hits) == expected


def test_hits_come_best_first_and_larger_is_better(app, write_note):
    write_note("zebra title.md", "# zebra\n\nzebra zebra")
    write_note("mention.md", "# other\n\n" + "filler words of all kinds " * 50 + "zebra")
    result = search(app, "zebra")
    assert paths_of(result) == ["zebra title.md", "mention.md"]
    assert result.hits[0].score > result.hits[1].score > 0


def test_a_part_of_a_term_is_no_whole_coverage(write_note, make_app):
    write_note("a.md", "docker compose and 20 other tools")
    [hit] = search(make_app(), "docker compose 2.20").hits
    assert (hit.matched, hit.coverage) == ("any", 0.8333)


def test_coverage_never_ranks(write_note, make_app):
    write_note("rare.md", "# quokka\n\nquokka")
    for number in range(12):
        write_note(f"common{number}.md", "alpha beta gamma " + "filler " * number)
    result = search(make_app(), "alpha beta gamma quokka", 20)
    scores = [hit.score for hit in result.hits]
    assert result.matched == "any" and scores == sorted(scores, reverse=True)
    assert result.hits[0].path == "rare.md" and result.hits[0].coverage < result.hits[1].coverage


# ---- fields --------------------------------------------------------------------------------------


def test_every_hit_has_every_field(app):
    for query in ("redis", "sqlit", "redis zzzz", "zzzz evict"):
        for hit in search(app, query).hits:
            assert hit._fields == Hit._fields == tuple(
                "id path title kind source score matched coverage snippet missing revision scope state valid_from "
                "valid_to replaces replaced_by confidence review_due".split()
            )
            assert None not in hit[:9]
    hit = search(app, "allkeys").hits[0]
    assert (hit.title, hit.kind, hit.source) == ("redis", "knowledge", "")


@pytest.mark.parametrize("query", ["redis", "zzzzqqqq", "", "!!!", "\u200b"])
def test_the_json_has_every_key_whatever_was_found(app, query):
    from mcore.render import to_json

    result = json.loads(to_json(search(app, query)))
    assert " ".join(result) == (
        "query hits matched searched hidden outdated nearest as_of scope retrieval freshness explained warnings"
    )
    assert result["explained"] == {}
    assert list(result["freshness"]) == ["checked", "changed", "stale", "unreadable", "unchecked"]
    assert result["query"] == query


# ---- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("filters, found, hidden", [
    ({}, ["07-Tools/sqlite.md"], {}),
    ({"kind": "tool"}, ["07-Tools/sqlite.md"], {}),
    ({"kind": "TOOL"}, ["07-Tools/sqlite.md"], {}),
    ({"source": "bob"}, ["07-Tools/sqlite.md"], {}),
    ({"kind": "tool", "source": "bob"}, ["07-Tools/sqlite.md"], {}),
    ({"kind": "mistake"}, [], {"kind": 1}),
    ({"kind": "nonsense'--"}, [], {"kind": 1}),
    ({"source": "alice"}, [], {"source": 1}),
    ({"kind": "tool", "source": "alice"}, [], {"source": 1}),
    ({"kind": "mistake", "source": "bob"}, [], {"kind": 1}),
    ({"kind": "mistake", "source": "alice"}, [], {"kind_and_source": 1}),
    ({"kind": "", "source": ""}, ["07-Tools/sqlite.md"], {}),
])
def test_a_filter_says_what_it_hides(app, filters, found, hidden):
    result = search(app, "sqlite3 backup", **filters)
    assert (paths_of(result), result.hidden) == (found, hidden)


def test_a_filter_counts_hits_of_the_tier_that_would_answer(app):
    assert search(app, "redis zzzz", kind="tool").hidden == {"kind": 1}
    assert search(app, "zzzzqqqq", kind="tool").hidden == {}
    assert search(app, "", kind="tool").hidden == {}


# ---- empty answers -------------------------------------------------------------------------------


def test_an_empty_answer_says_how_many_cards_were_searched_and_could_not_be_read(app, write_note):
    write_note("binary.md", b"\x00\xff\xfe\x00" * 100)
    result = search(app, "zzzzqqqq")
    assert (result.hits, result.matched, result.searched) == ([], "", 4)
    assert result.freshness.unreadable == 1 and "unreadable" in slugs(result)


@pytest.mark.parametrize("query, nearest", [
    ("ngins", ["nginx"]), ("evicton", ["eviction"]), ("sqlte3x", ["sqlite3"]), ("zzzzqqqq", []), ("龘龘", []),
    ("q", []),
])
def test_an_empty_answer_names_the_nearest_words(app, query, nearest):
    result = search(app, query)
    assert result.hits == [] and result.nearest[: len(nearest) or None] == nearest


def test_a_word_that_the_vault_has_is_not_offered_as_the_nearest(app):
    result = search(app, "redis", kind="tool")
    assert (result.nearest, result.hidden) == ([], {"kind": 1})


@pytest.mark.parametrize("query", [
    "", " ", "\u3000", "...", "-", '"', "*", "%", "_", "！？", "🚀", "\u200b", "()", "^", "\x00", "\ud800", "' OR 1=1",
    "NEAR(", "a AND OR NOT", "title:redis", "{title}", "-redis", "redis*^", '"redis', "redis\x00cache", "\ufffe",
])
def test_no_query_is_an_error_and_none_returns_the_whole_vault(app, query):
    result = search(app, query)
    assert len(result.hits) < 4
    if not split_query(query)[0]:
        assert result.hits == [] and "no-terms" in slugs(result)


def test_a_very_long_query_is_answered_and_says_what_was_left_off(app):
    result = search(app, "redis " + " ".join(f"t{n}" for n in range(10_000)))
    assert paths_of(result) == ["03-Knowledge/redis.md"] and "query-cut" in slugs(result)
    assert search(app, "x" * 1_000_000).hits == []
    assert search(app, "龙" * 100_000).hits == []


def test_an_empty_vault_and_a_missing_one_are_told_apart(make_app, tmp_path):
    missing = search(make_app(), "x")
    assert (missing.searched, slugs(missing)) == (0, ["no-vault"])
    (tmp_path / "vault").mkdir()
    assert slugs(search(make_app(), "x")) == []


@pytest.mark.parametrize("name", ["vault", "vault/below"])
def test_a_vault_that_is_a_file_is_an_error_and_not_an_empty_answer(make_app, tmp_path, name):
    (tmp_path / "vault").write_text("a file")
    with pytest.raises(SetupError, match="vault"):
        search(make_app(vault=tmp_path / name), "x")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind here")
def test_what_may_not_be_looked_into_is_counted_or_an_error(app, tmp_path):
    assert search(app, "redis").freshness.unreadable == 0
    for folder, outcome in (("03-Knowledge", 2), (".", SetupError)):
        os.chmod(tmp_path / "vault" / folder, 0)
        try:
            if outcome is SetupError:
                with pytest.raises(SetupError, match="cannot look into the vault"):
                    search(app, "redis")
            else:
                result = search(app, "redis")
                assert (result.hits, result.freshness.unreadable) == ([], outcome)
        finally:
            os.chmod(tmp_path / "vault" / folder, 0o700)
    assert paths_of(search(app, "redis")) == ["03-Knowledge/redis.md"]


def test_an_index_that_lost_its_full_text_is_no_empty_answer(app):
    search(app, "redis")
    with closing(sqlite3.connect(app.db_path)) as connection:
        connection.execute("INSERT INTO cards_fts (cards_fts) VALUES ('delete-all')")
        connection.commit()
    with pytest.raises(StoreDamaged, match="cannot use the index") as caught:
        search(app, "redis")
    assert "index --rebuild" in caught.value.hint
    app.indexer.rebuild(app.rebuild_path())
    assert paths_of(search(app, "redis")) == ["03-Knowledge/redis.md"]


@pytest.mark.parametrize("damage", [
    "DELETE FROM cards_fts_data", "DROP TABLE cards_fts", "DROP TABLE cards", "DELETE FROM meta",
    "PRAGMA user_version = 99", "ALTER TABLE cards RENAME COLUMN racy TO odd", "DELETE FROM cards",
    "UPDATE cards SET rel_path = x'ff' || rel_path",
    "UPDATE cards SET rel_path = CAST(x'ff' || rel_path AS TEXT)", "DROP TABLE card_stats", "DELETE FROM cards_fts_idx",
    "UPDATE cards_fts_config SET v = 99", "DELETE FROM cards_fts_docsize", "PRAGMA application_id = 5",
])
def test_damage_never_looks_like_no_result_and_a_rebuild_heals_it(app, memory, damage):
    search(app, "redis")
    with closing(sqlite3.connect(app.db_path)) as connection:
        connection.execute(damage)
        connection.commit()
    app.close()
    for line in ("search redis --json", "search redis --no-sync", "stats", "show note.md", "index"):
        ran = memory(*line.split())
        assert ran.code in (0, 2) and "Traceback" not in ran.err and "fault in memory-agent" not in ran.err, line
        if line.startswith("search") and ran.code == 0:
            assert "03-Knowledge/redis.md" in ran.out
    assert memory("index", "--rebuild").code == 0
    assert "03-Knowledge/redis.md" in memory("search", "redis").out
    assert memory("stats", "--json").code == 0 == memory("show", "note.md").code


# ---- true to the files ---------------------------------------------------------------------------


def test_freshness_counts_what_was_looked_at_and_taken_in(app, write_note):
    assert search(app, "redis").freshness == Freshness(4, 4, 0, 0)
    assert search(app, "redis").freshness == Freshness(4, 0, 0, 0)
    write_note("new.md", "a new note about zebras")
    write_note("note.md", "# plain\n\nedited, now with zebras")
    os.unlink(os.path.join(app.settings.vault.path, "03-Knowledge/redis.md"))
    result = search(app, "zebras")
    assert result.freshness == Freshness(4, 3, 0, 0) and sorted(paths_of(result)) == ["new.md", "note.md"]
    assert search(app, "redis").hits == []


def test_without_a_look_nothing_is_claimed_but_a_deleted_card_is_never_returned(app, write_note):
    search(app, "redis")
    write_note("new.md", "a new note about redis")
    os.unlink(os.path.join(app.settings.vault.path, "03-Knowledge/redis.md"))
    result = search(app, "redis", sync=False)
    assert (result.hits, result.freshness) == ([], Freshness(0, 0, 1, 0))


def test_deleted_cards_do_not_crowd_out_the_others(write_note, make_app):
    for number in range(60):
        write_note(f"{number:02}.md", "# zebra\n\nzebra" if number < 50 else "about a zebra " + "filler " * 50)
    app = make_app()
    search(app, "zebra")
    for number in range(50):
        os.unlink(os.path.join(app.settings.vault.path, f"{number:02}.md"))
    assert len(search(app, "zebra", 20, sync=False).hits) == 10


def test_what_does_not_fit_the_budget_is_counted_and_said(write_note, make_app, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.json").write_text('{"sync_seconds": 0}')
    for number in range(20):
        write_note(f"{number}.md", f"zebra {number}")
    result = search(make_app(), "zebra")
    taken = result.freshness.changed
    assert result.freshness == Freshness(20, taken, 20 - taken, 0) and 1 <= taken < 20
    assert "stale" in slugs(result) and len(result.hits) == taken


def test_an_index_in_use_gives_the_old_answer_and_says_so(app, write_note):
    search(app, "redis")
    write_note("new.md", "a new note about redis")
    with closing(sqlite3.connect(app.db_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = search(app, "redis")
        other.execute("ROLLBACK")
    assert paths_of(result) == ["03-Knowledge/redis.md"]
    assert result.freshness == Freshness(5, 0, 1, 0) and "stale" in slugs(result)
    assert len(search(app, "redis").hits) == 2


def test_an_index_that_cannot_be_written_still_answers(app, write_note):
    search(app, "redis")
    write_note("new.md", "a new note about redis")
    app.store.connection.execute("PRAGMA query_only = ON")
    result = search(app, "redis")
    assert paths_of(result) == ["03-Knowledge/redis.md"] and result.freshness.stale == 1
    app.store.connection.execute("PRAGMA query_only = OFF")


# ---- snippets ------------------------------------------------------------------------------------


def snippet_of(app, write_note, body, query):
    write_note("s.md", body)
    hits = [hit for hit in search(app, query, 20).hits if hit.path == "s.md"]
    assert hits, query
    return hits[0].snippet


@pytest.mark.parametrize("body, query, shown", [
    ("先连接ecs-prod后重启数据库服务", "数据库", "先连接ecs-prod后重启数据库服务"),
    ("# head\n\n" + "filler " * 200 + "the needle is here", "needle", "the needle is here"),
    ("ＡＰＩ　ｋｅｙ 全角", "api", "ＡＰＩ ｋｅｙ 全角"),
    (unicodedata.normalize("NFD", "un résumé dé"), "résumé", unicodedata.normalize("NFD", "un résumé dé")),
    ("a\u200bzero\u00adwidth", "azerowidth", "a\u200bzero\u00adwidth"),
    ("| 列 | 值 |\n|---|---|\n| 端口 | 8080 |", "8080", "8080"),
    ("\n\n\n  leading lines\n\tneedle\t\ttabs", "needle", "leading lines needle tabs"),
    ("𠮷野家 在东京", "野家", "𠮷野家 在东京"),
])
def test_a_snippet_is_the_matching_place_as_the_note_has_it(app, write_note, body, query, shown):
    assert shown in snippet_of(app, write_note, body, query)


@pytest.mark.parametrize("body, query", [
    ("---\ntitle: onlytitle\n---\nthe body says something else", "onlytitle"),
    ("---\ntags: [onlytag]\n---\nthe body says something else", "onlytag"),
    ("---\nnote: onlyfield\n---\nthe body says something else", "onlyfield"),
])
def test_a_match_outside_the_body_shows_the_start_of_the_body(app, write_note, body, query):
    assert snippet_of(app, write_note, body, query) == "the body says something else"


def test_a_card_without_a_body_has_an_empty_snippet(app, write_note):
    assert snippet_of(app, write_note, "---\ntitle: lonely\n---\n", "lonely") == ""


@pytest.mark.parametrize(
    "body", ["龙" * 1_000_000 + " needle", "needle " + "x " * 500_000, "x" * 1_000_000 + "\nneedle"], ids=range(3)
)
def test_a_very_long_line_gives_a_short_snippet_soon(app, write_note, body):
    import time

    write_note("s.md", body)
    app.indexer.index(app.store)
    started = time.process_time()
    hit = search(app, "needle").hits[0]
    assert time.process_time() - started < 1.5
    assert len(hit.snippet) < 400 and "\n" not in hit.snippet and "needle" in hit.snippet


def test_a_snippet_is_one_line_of_bounded_length(app, write_note):
    for query in ("word7 word9 word500", "word999", "word0"):
        shown = snippet_of(app, write_note, "\n".join(f"word{n} 数据{n}" for n in range(1000)), query)
        assert len(shown) < 300 and len(shown.splitlines()) == 1


# ---- the protocol --------------------------------------------------------------------------------


def test_another_searcher_can_stand_in():
    assert issubclass(FtsSearcher, Searcher)
    with pytest.raises(TypeError):
        Searcher()

    class Nothing(Searcher):
        def search(self, query, limit=10, kind=None, source=None, sync=True):
            return []

    assert Nothing().search("x") == [] and MAX_LIMIT == 20


# Signs that came after Unicode 6.1.
YOUNG = ["\U0001f9d1", "\U0001f980", "\U0001f916", "\U0001f3fb", "\u20bf", "\u20bd", "\u23f8", "\u2e43"]


@pytest.mark.parametrize("sign", YOUNG)
def test_a_sign_younger_than_the_tables_of_sqlite_hides_no_word(app, write_note, sign):
    """To unicode61 such a sign is a letter: `[[craxi-1🧑` was not found by `1`."""
    write_note("young.md", f"see redis7{sign}nginx9 and {sign}zebra{sign}云")
    for query in ("redis7", "nginx9", "zebra", "云", f"redis7{sign}nginx9"):
        result = search(app, query)
        assert (paths_of(result), result.matched) == (["young.md"], "all"), query


def test_every_card_of_the_first_tier_is_given_without_a_limit(app, write_note):
    for number in range(30):
        write_note(f"many/{number}.md", f"alpaca {number}")
    app.indexer.index(app.store)
    assert app.searcher.every("ALPACA") == {f"many/{number}.md" for number in range(30)}
    assert app.searcher.every("alpaca 7") == {"many/7.md"}
    assert app.searcher.every("，") == set()


def test_a_lower_tier_is_ranked_anew_when_all_of_a_higher_one_is_hidden(app, write_note):
    """The forms of a word that the first look found were used with the sizes of the second: KeyError."""
    write_note("old.md", "---\nvalid_to: 2020-01-01\n---\nnginx timeout")
    write_note("a.md", "nginx alone")
    write_note("b.md", "timeouts alone")
    result = search(app, "nginx timeout", match="cascade")
    assert "a.md" in paths_of(result) and "old.md" not in paths_of(result) and result.matched == "any"


def test_a_card_out_of_reach_since_it_was_looked_at_is_told(app, write_note, monkeypatch):
    """A folder may lose its rights, and a file its name, between the look and the answer."""
    write_note("a.md", "zebrafish")
    app.searcher.search("okapi")
    lstat = os.lstat

    def failing(path, **more):
        if os.fspath(path).endswith("a.md"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return lstat(path, **more)

    monkeypatch.setattr(os, "lstat", failing)
    result = app.searcher.search("zebrafish")
    assert (result.hits, result.freshness.stale) == ([], 1)
    assert slugs(result) == ["stale"]


@pytest.mark.parametrize("match", ["fill", "cascade"])
def test_a_filter_lets_no_card_through_that_holds_nothing_of_the_query(write_note, make_app, match):
    for number in range(320):
        write_note(f"03-Knowledge/{number}.md", f"# 备份 {number}\n\n数据库的备份每天做\n")
    write_note("07-Tools/hammer.md", "# hammer\n\nfor nails\n")
    result = search(make_app(), "数据库的备份", kind="tool", match=match)
    assert paths_of(result) == [] and result.hidden == {"kind": 320}
