"""mcore.budget: whole cards only, and no qualifier cut."""

import pytest

from mcore.budget import Block, compact, pack
from mcore.tokenize import split_query


def test_a_card_goes_in_whole_or_not_at_all_and_a_smaller_one_may_follow():
    packed = pack([Block("a", "x" * 50), Block("b", "y" * 60), Block("c", "z" * 48)], 100)
    assert [block.key for block in packed.blocks] == ["a", "c"]  # 50 + 2 + 48
    assert packed.left_out == [("b", 60)]


@pytest.mark.parametrize("sentence", [
    "It probably runs on port 8080.", "这台机器可能已经下线。", "Only when the VPN is up.", "尚未验证的结论。",
    "除非先停掉服务。", "This is unverified.", "It is not sure whether that holds.", "据说端口是 8080。",
])  # fmt: skip
def test_a_sentence_that_says_how_sure_it_is_is_never_left_out(sentence):
    filler = "Plain words follow one another here. " * 20
    assert sentence in compact(f"The first sentence. {filler}{sentence} {filler}")


def test_the_first_sentence_and_those_that_answer_stay():
    body = "nginx serves the shop. " + "Nothing of note. " * 20 + "The root is /srv/www. 无关的话。站点根目录在别处。"
    shown = compact(body, split_query("root 根目录")[0])
    assert shown.startswith("nginx serves the shop. …")
    assert "The root is /srv/www." in shown and "站点根目录在别处。" in shown
    assert "Nothing of note" not in shown and "无关" not in shown


def test_headings_are_not_what_a_card_says_first():
    shown = compact("# nginx\n\n## root\nThe root is /srv/www. " + "More of it. " * 30)
    assert shown == "… The root is /srv/www. …"


def test_a_short_body_is_not_shortened():
    assert compact("Answer in 中文.\nNever push to main.") == "Answer in 中文. Never push to main."


def test_a_long_sentence_is_cut_unless_it_qualifies():
    plain, guess = "word " * 200, "word " * 200 + "maybe."
    assert len(compact(plain)) < 300 and compact(plain).endswith("…")
    assert compact(guess).endswith("maybe.")


@pytest.mark.parametrize("body", ["", "\n\n", "# \n---\n", "x"])
def test_odd_bodies(body):
    assert compact(body) in ("", "x")
