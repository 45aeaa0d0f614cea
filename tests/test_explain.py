"""mcore.explain: the parts of a score add up, and unknown words are named with those the vault has."""

import pytest


@pytest.fixture
def app(write_note, make_app):
    write_note("run.md", "# deploy\n\nwe deployed nginx twice, then list2dict and 数据库备份")
    write_note("title.md", "# nginx root\n\nthe root of nginx")
    write_note("other.md", "# other\n\nredis eviction and 数据表")
    for number in range(6):
        write_note(f"n{number}.md", f"something else {number}")
    return make_app()


def explained(app, query, **more):
    return app.searcher.search(query, is_explained=True, **more)


@pytest.mark.parametrize("query", ["nginx", "how was nginx deployed?", "数据库 nginx", "nginx root zzzz", "redis 数据"])
def test_the_parts_of_a_score_add_up(app, query):
    result = explained(app, query)
    assert [hit.path for hit in result.explained.hits] == [hit.path for hit in result.hits] != []
    for hit in result.explained.hits:
        assert sum(part.score for part in hit.parts) == pytest.approx(hit.score, abs=0.001)
        assert [part.score for part in hit.parts] == sorted((part.score for part in hit.parts), reverse=True)


def test_a_part_says_what_was_counted_where_and_how_rare_it_is(app):
    hit = next(hit for hit in explained(app, "nginx").explained.hits if hit.path == "title.md")
    (part,) = [part for part in hit.parts if part.kind == "word"]
    assert (part.text, part.tokens, part.cards, part.count) == ("nginx", ["nginx"], 2, 6)
    assert part.fields[0] == "title" and "body" in part.fields and hit.holds == ["nginx"]
    forms = [part.tokens for part in explained(app, "was it deploy?").explained.hits[0].parts]
    assert any({"deploy", "deployed"} <= set(tokens) for tokens in forms)


@pytest.mark.parametrize("word, nearest", [
    ("ngnix", ["nginx"]), ("evicton", ["eviction"]), ("gninx", ["nginx"]), ("数剧库", ["数据库"]), ("qqqqq", []),
])  # fmt: skip
def test_unknown_words_are_named_with_those_the_vault_has(app, word, nearest):
    terms = explained(app, word).explained.terms
    assert {term.cards for term in terms} == {0} and terms[0].nearest == nearest


def test_a_known_word_needs_no_other(app):
    assert [(term.text, term.cards, term.nearest) for term in explained(app, "redis").explained.terms] == [
        ("redis", 1, [])
    ]


def test_an_answer_is_the_same_with_its_account(app):
    for query in ("nginx", "ngin", "how was it deployed?", "zzzz"):
        plain, told = app.searcher.search(query), explained(app, query)
        assert plain.explained == {} and plain.hits == told.hits
