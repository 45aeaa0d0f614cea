"""mcore.search beyond one page of one wording: variants, offset, and why an answer is as it is."""

import pytest
from conftest import paths_of

from mcore.search import FUSED_POOL, MAX_POOL, MAX_VARIANTS


@pytest.fixture
def app(make_app, write_note):
    for n in range(30):
        write_note(f"z{n:02}.md", f"zebra note number {n}")
    fields = "title: redis\naliases: [缓存库, kv store]\nquestions: [which cache do we use?]"
    write_note("redis.md", f"---\n{fields}\n---\neviction")
    write_note("valkey.md", "# valkey\n\na fork of the cache server")
    return make_app()


def search(app, query, *more, **named):
    return app.searcher.search(query, *more, **named)


def test_pages_follow_one_another_without_gap_or_repeat(app):
    seen, offset = [], 0
    while offset is not None:
        result = search(app, "zebra", limit=7, offset=offset)
        seen += paths_of(result)
        offset = result.retrieval.next_offset
    assert len(seen) == len(set(seen)) == 30
    assert seen == paths_of(search(app, "zebra", limit=20)) + paths_of(search(app, "zebra", limit=20, offset=20))


def test_an_offset_beyond_what_was_found_says_so(app, memory):
    result = search(app, "zebra", offset=30)
    assert (result.hits, result.retrieval.reason, result.retrieval.pool) == ([], "offset_beyond_pool", 30)
    assert (result.retrieval.terms_used, result.retrieval.terms_dropped) == (["zebra"], [])
    assert "30 cards were found" in memory("search", "zebra", "--offset", "30").out
    assert search(app, "zebra", offset=10_000).retrieval.reason == "offset_beyond_pool"


@pytest.mark.parametrize("query, more, reason", [
    ("zebra", {}, "matched"),
    ("zebra quokka", {}, "relaxed_match"),
    ("quokka", {}, "no_lexical_match"),
    ("zebra", {"scope": "project/x", "scope_only": True}, "empty_scope"),
    ("zebra", {"kind": "tool"}, "empty_scope"),
])  # fmt: skip
def test_the_reason_tells_why(app, query, more, reason):
    assert search(app, query, **more).retrieval.reason == reason


def test_a_relaxed_answer_names_the_terms_it_used_and_dropped(app):
    result = search(app, "zebra quokka")
    assert (result.retrieval.terms_used, result.retrieval.terms_dropped) == (["zebra"], ["quokka"])
    assert all(hit.matched == "any" and hit.missing == ["quokka"] for hit in result.hits)
    mixed = search(app, "eviction fork", match="fill")
    assert {hit.path: hit.missing for hit in mixed.hits} == {"redis.md": ["fork"], "valkey.md": ["eviction"]}
    assert mixed.retrieval.terms_dropped == []


def test_other_wordings_are_fused_by_rank(app):
    result = search(app, "eviction", variants=["fork", "缓存库"])
    assert result.retrieval.strategy == "fused"
    asked = [(asked.query, asked.hits) for asked in result.retrieval.queries]
    assert asked == [("eviction", 1), ("fork", 1), ("缓存库", 1)]
    assert paths_of(result) == ["redis.md", "valkey.md"]
    assert [hit.score for hit in result.hits] == pytest.approx([2 / 61, 1 / 61], abs=1e-4)


def test_a_wording_that_finds_nothing_harms_nothing(app):
    assert paths_of(search(app, "valkey", variants=["quokka"])) == paths_of(search(app, "valkey"))
    assert search(app, "valkey", variants=["valkey", " ", ""]).retrieval.strategy == "cascade"


def test_too_many_or_too_long_wordings_are_cut_and_said(app):
    result = search(app, "valkey", variants=[f"fork{n} " + "x" * 200 for n in range(9)])
    assert len(result.retrieval.queries) == 1 + MAX_VARIANTS
    assert all(len(asked.query) <= 100 for asked in result.retrieval.queries)
    assert [warning.slug for warning in result.warnings] == ["variants-cut"]


def test_the_pool_of_fused_wordings_is_deeper_than_a_page(app):
    result = search(app, "zebra", variants=["note number"], limit=5)
    assert len(result.hits) == 5 and result.retrieval.pool == 30 <= FUSED_POOL <= MAX_POOL


def test_pages_of_fused_wordings_repeat_no_card(app, write_note):
    words = "nginx redis queue cache docker sqlite".split()
    for number in range(150):
        text = " ".join(words[number * step % 6] for step in (1, 3, 5, 7))
        write_note(f"n{number:03}.md", f"# note {number}\n\n{text} {words[number % 5]}")
    seen, offset = [], 0
    while offset is not None:
        result = search(app, "nginx redis", variants=["queue cache", "docker"], match="fill", limit=20, offset=offset)
        seen += paths_of(result)
        offset = result.retrieval.next_offset
    assert len(seen) == len(set(seen)) == result.retrieval.pool > FUSED_POOL


@pytest.mark.parametrize("query", ["缓存库", "kv store", "which cache do we use?"])
def test_aliases_and_questions_are_searched(app, query):
    assert paths_of(search(app, query))[0] == "redis.md"


def test_what_a_hit_lacks_is_told_by_the_wording_that_its_tier_is_of(app, write_note):
    write_note("most.md", "# most\n\ngamma gamma delta delta")
    write_note("both.md", "# both\n\nalpha gamma delta and some other words")
    result = search(app, "alpha epsilon iota", variants=["gamma delta eta"], match="fill")
    told = {hit.path: (hit.matched, hit.coverage, hit.missing) for hit in result.hits}
    assert told == {"both.md": ("any", 0.6667, ["eta"]), "most.md": ("any", 0.6667, ["eta"])}


def test_terms_that_no_hit_of_any_wording_holds_are_dropped(app):
    told = search(app, "quokka eviction", variants=["fork"]).retrieval
    assert (told.terms_used, told.terms_dropped) == (["eviction"], ["quokka"])
    told = search(app, "quokka wombat", variants=["fork"]).retrieval
    assert (told.terms_used, told.terms_dropped) == ([], ["quokka", "wombat"])
    told = search(app, "quokka server", variants=["fork"], match="cascade").retrieval
    assert (told.terms_used, told.terms_dropped) == (["server"], ["quokka"])


def test_what_a_hit_lacks_does_not_depend_on_the_other_hits(app, write_note):
    write_note("whole.md", "# whole\n\nthe thing was deployed")
    alone = search(app, "how to deploy the queue?").hits
    write_note("loose.md", "# loose\n\nqueues of deployments")
    beside = search(app, "how to deploy the queue?").hits
    assert {"any", "any-prefix"} <= {hit.matched for hit in beside}
    for hits in (alone, beside):
        hit = next(hit for hit in hits if hit.path == "whole.md")
        assert (hit.coverage, hit.missing) == (0.2, ["how", "to", "deploy", "queue"])


def test_a_card_with_the_title_leads_on_a_page_of_any_size(app, write_note):
    write_note("titled.md", "# Node.js\n\n" + "other words at length " * 200)
    write_note("more.md", "# more\n\nnodejs node js Node.js")
    pages = [search(app, "Node.js", limit=limit, is_explained=True) for limit in (1, 2, 3, 20)]
    assert {(page.hits[0].path, page.hits[0].score) for page in pages} == {("titled.md", pages[0].hits[0].score)}
    for hit in pages[-1].explained.hits:
        assert sum(part.score for part in hit.parts) == pytest.approx(hit.score, abs=0.001)


def test_pages_of_a_name_with_other_writings_are_of_one_list(app, write_note):
    for n in range(24):
        write_note(f"a{n:02}.md", f"# card {n}\n\nnodejs retry gateway cache {'filler ' * n}")
    for n in range(12):
        write_note(f"b{n:02}.md", f"# other {n}\n\n{'cache ' * (n + 1)} {'filler ' * n * n}")
    query, total = "nodejs retry gateway cache wombat", 24 + 12 + 2  # two of the others hold `cache` too
    whole = [hit for offset in (0, 20) for hit in search(app, query, limit=20, offset=offset, match="cascade").hits]
    assert len(whole) == total == len({hit.path for hit in whole})
    assert [hit.score for hit in whole] == sorted((hit.score for hit in whole), reverse=True)
    for step in (1, 7):
        pages = [search(app, query, limit=step, offset=at, match="cascade").hits for at in range(0, total + step, step)]
        assert [(hit.path, hit.score) for hits in pages for hit in hits] == [(hit.path, hit.score) for hit in whole]


@pytest.mark.parametrize("fields, query, more, hidden", [
    ("kind: tool", "deployed", {"kind": "mistake"}, {"kind": 1}),  # in another form
    ("source: bob", "deployed", {"kind": "mistake", "source": "eve"}, {"kind_and_source": 1}),
    ("scope: project/x", "deployed", {}, {"scope": 1}),
    ("valid_to: 2020-01-01", "deployed", {}, {"validity": 1}),
    ("kind: tool", "quokka", {"kind": "mistake", "variants": ["wombat", "deploy"]}, {"kind": 1}),  # of another wording
    ("kind: tool", "!!", {"kind": "mistake", "variants": ["deploy"]}, {"kind": 1}),
    ("scope: project/x", "quokka", {"variants": ["deploy"]}, {"scope": 1}),
    ("valid_to: 2020-01-01", "quokka", {"variants": ["deploy"]}, {"validity": 1}),
    ("kind: tool", "deploy", {"scope": "project/y", "scope_only": True}, {"scope": 1}),  # of a global card
    ("kind: tool", "deploy", {"scope": "project/y", "scope_only": True, "kind": "mistake"}, {}),
])  # fmt: skip
def test_an_empty_answer_tells_what_each_filter_hid(app, write_note, fields, query, more, hidden):
    write_note("hidden.md", f"---\n{fields}\n---\n# hidden\n\nhow to deploy")
    result = search(app, query, **more)
    assert (result.hits, result.hidden) == ([], hidden)
    outdated = ["hidden.md"] if "validity" in hidden else []
    assert [card.path for card in result.outdated] == outdated


def test_each_filter_tells_its_own_best_tier(app, write_note):
    write_note("elsewhere.md", "---\nscope: project/x\n---\nwombat koala")
    write_note("expired.md", "---\nvalid_to: 2020-01-01\n---\nonly a koala")
    assert search(app, "wombat koala").hidden == {"scope": 1, "validity": 1}


def test_a_page_beyond_the_hits_hides_no_more_than_the_first(app, write_note):
    write_note("expired.md", "---\nvalid_to: 2020-01-01\n---\nzebra notes")
    pages = [search(app, "zebra note", offset=offset) for offset in (0, 40)]
    assert pages[0].hits and not pages[1].hits and pages[0].hidden == pages[1].hidden


@pytest.mark.parametrize("query", ["evicti", "evicti?"])
def test_one_word_that_begins_another_finds_it_in_either_way(app, query):
    for match in ("cascade", "fill", "auto"):
        hits = search(app, query, match=match).hits
        assert [(hit.path, hit.matched, hit.coverage) for hit in hits] == [("redis.md", "all-prefix", 1.0)]


def test_what_fills_up_is_counted_where_a_filter_hides_it(app, write_note):
    write_note("part.md", "disk 77")
    assert paths_of(search(app, "dis77", match="fill")) == ["part.md"]
    assert search(app, "dis77", match="fill", kind="tool").hidden == {"kind": 1}


def test_pages_of_few_among_many_are_of_one_list(app, write_note):
    rare = ("beta gamma delta", "epsilon zeta", "")
    for n in range(490):
        kind, words = ("mistake", "") if n % 7 else ("tool", rare[n // 7 % 3])
        words += f" {'alpha ' * (1 + n % 4)}{'filler ' * (n % 11)}"
        write_note(f"many{n:03}.md", f"---\nkind: {kind}\n---\n# card {n}\n\n{words}")
    query, more, pages = "alpha beta gamma delta epsilon zeta wombat", {"kind": "tool", "match": "cascade"}, {}
    for step in (6, 17, 20):
        shown = [search(app, query, step, offset=at, **more) for at in range(0, 80, step)]
        pages[step] = [(hit.path, hit.score) for result in shown for hit in result.hits]
    assert len(dict(pages[20])) == len(pages[20]) == 70
    assert pages[6] == pages[17] == pages[20]
