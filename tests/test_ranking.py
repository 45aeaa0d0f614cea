"""mcore.ranking: parts of a query, questions told from keywords, and what a score rests on."""

import pytest

from mcore.ranking import Ranking, is_question, parts

QUESTIONS = [
    ("nginx root", False), ("ecs-prod 私钥", False), ("数据库 备份", False), ("getUserName", False),
    ("how do I restore the backup", True), ("backup?", True), ("如何备份数据库", True), ("端口是多少", True),
    ("where is the root", True), ("one two three four five", True),
]  # fmt: skip


@pytest.mark.parametrize("query, is_one", QUESTIONS)
def test_a_question_is_told_from_keywords(query, is_one):
    assert is_question(query) is is_one


def test_stop_words_weigh_little_and_identifiers_are_spared():
    weights = {part.text: part.weight for part in parts("how to use with_statement")}
    assert weights["how"] < 0.5 and weights["with"] == weights["statement"] == 1.0


def test_nothing_but_stop_words_is_what_is_asked():
    assert all(part.weight == 1.0 for part in parts("to be") if part.kind == "word")


def scored(app, query):
    """rel_path -> score, best first."""
    scores = Ranking(app.store).scores(query)
    found = app.store.found(list(scores))
    return [row.rel_path for _, row in sorted(found.items(), key=lambda item: -scores[item[0]])]


def test_another_form_of_a_word_finds_a_card_and_the_same_form_finds_it_first(make_app, write_note):
    write_note("a.md", "the deploy script is here")
    write_note("b.md", "we deployed the service twice")
    write_note("c.md", "nothing of that kind at all")
    for number in range(8):
        write_note(f"n{number}.md", f"other note number {number}")
    app = make_app()
    app.indexer.index(app.store)
    assert scored(app, "deployed") == ["b.md", "a.md"]


def test_a_simplified_query_finds_a_traditional_card_and_the_reverse(make_app, write_note):
    write_note("hant.md", "繁體轉簡體的對照表")
    write_note("hans.md", "数据库备份")
    app = make_app()
    app.indexer.index(app.store)
    assert [hit.path for hit in app.searcher.search("繁体转简体").hits] == ["hant.md"]
    assert [hit.path for hit in app.searcher.search("數據庫").hits] == ["hans.md"]


def test_a_question_fills_up_from_lower_tiers_and_each_hit_says_its_own(make_app, write_note):
    write_note("all.md", "how do I restart nginx: the service has a unit file")
    write_note("some.md", "nginx restart notes")
    write_note("none.md", "a card of something else")
    app = make_app()
    app.indexer.index(app.store)
    filled = app.searcher.search("how do I restart nginx", match="auto").hits
    assert {hit.path: hit.matched for hit in filled} == {"all.md": "all", "some.md": "any"}
    alone = app.searcher.search("how do I restart nginx", match="cascade").hits
    assert [hit.path for hit in alone] == ["all.md"]
