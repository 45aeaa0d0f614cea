"""mcore.similar: cards that share rare words with a new one, and no more work than a bounded number of cards."""

import pytest

from mcore import similar as module
from mcore.similar import similar


@pytest.fixture
def store(make_app, write_note):
    for number in range(30):
        write_note(f"{number:02}.md", f"# note {number}\n\ncommon words of every note, and 每张卡片 too\n")
    write_note("ecs.md", "# ecs-prod 站点根目录\n\nnginx serves /srv/www\n")
    write_note(
        "long.md", "# notes of a year\n\nnginx once, 站点 once\n" + "\n".join(f"word{n} filler" for n in range(400))
    )
    app = make_app()
    app.indexer.index(app.store)
    return app.store


@pytest.mark.parametrize("title, body, best", [
    ("nginx root", "where nginx serves from", "ecs.md"),
    ("站点根目录", "", "ecs.md"),
    ("EcsProd", "", "ecs.md"),  # the joined form of an identifier
    ("word17", "", "long.md"),
])  # fmt: skip
def test_the_card_that_shares_rare_words_comes_first(store, title, body, best):
    assert similar(store, title, body, 3, None)[0].rel_path == best


def test_scores_fall_and_the_card_itself_is_left_out(store):
    found = similar(store, "nginx 站点", "", 3, None)
    assert [card.rel_path for card in found] == ["ecs.md", "long.md"]  # the shorter one says more
    assert found[0].score > found[1].score > 0
    assert [card.rel_path for card in similar(store, "nginx 站点", "", 3, "ecs.md")] == ["long.md"]


def test_words_of_many_cards_tell_nothing(store, monkeypatch):
    assert len(similar(store, "common words", "", 3, None)) == 3
    monkeypatch.setattr(module, "LIST_LIMIT", 20)
    assert similar(store, "common words", "", 3, None) == []
    assert [card.rel_path for card in similar(store, "common nginx", "", 3, "long.md")] == ["ecs.md"]


@pytest.mark.parametrize("title", ["", "!?", "a b c", "zzzz", "\"' OR *"])
def test_a_text_without_known_words_has_no_neighbours(store, title):
    assert similar(store, title, "", 3, None) == []
