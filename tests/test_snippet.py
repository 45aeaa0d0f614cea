"""mcore.snippet: the place that answers, as the note has it, with the words marked."""

import unicodedata

import pytest

from mcore.snippet import SNIPPET_CHARS, mark, snippet
from mcore.tokenize import split_query


def answer(query, body):
    """The marked snippet of a body, as the text of a search shows it."""
    terms, _ = split_query(query)
    return mark(snippet(body, terms), terms)


NFD = unicodedata.normalize("NFD", "We met at the Café Noir, 한국어.")

PLACES = [
    ("nginx", "the nginx root", "the **nginx** root"),
    ("conf", "nginx configuration", "nginx **conf**iguration"),
    ("阿里云", "我们用阿里云部署", "我们用**阿里云**部署"),
    ("云", "天上有云", "天上有**云**"),
    ("ecs-prod", "先连接ecs-prod后", "先连接**ecs-prod**后"),
    ("ecsprod", "the ecs-prod host", "the **ecs-prod** host"),
    ("getusername", "call get_user_name()", "call **get_user_name**()"),
    ("user", "getUserName, no superuser", "get**User**Name, no superuser"),
    ("server", "HTTPServer", "HTTP**Server**"),
    ("id_ed25519", "in ~/.ssh/id_ed25519.pub", "in ~/.ssh/**id_ed25519**.pub"),
    ("ecs prod", "ecs and prod", "**ecs** and **prod**"),
    ("cafe", "at the Café Noir", "at the **Café** Noir"),
    ("café", "at the cafe noir", "at the **cafe** noir"),
    ("café", NFD, NFD.replace("Cafe\u0301", "**Cafe\u0301**")),
    ("한국어", NFD, NFD.replace(NFD[-9:-1], "**" + NFD[-9:-1] + "**")),
    ("ガラス", "これはｶﾞﾗｽです", "これは**ｶﾞﾗｽ**です"),
    ("ghost", "a gh\u200bost here", "a **gh\u200bost** here"),
    ("ecs", "full ｅｃｓ here", "full **ｅｃｓ** here"),
    ("strasse", "Die Straße", "Die **Straße**"),
    ("m2", "20 ㎡ of it", "20 **㎡** of it"),
    ("阿里云", "「阿里云」，、。①㎡½阿里云", "「**阿里云**」，、。①㎡½**阿里云**"),
    ("สวัสดี", "เขาพูดสวัสดีครับ", "เขาพูด**สวัสดี**ครับ"),
    ("नमस्ते", "वह नमस्ते बोला", "वह **नमस्ते** बोला"),
    ("дом", "ведомость и дом", "ведомость и **дом**"),
    ("nowhere", "first   line\n\n  second", "first line second"),
    ("x", "", ""),
    ("-- ()", "only signs asked", "only signs asked"),
]


@pytest.mark.parametrize("query, body, shown", PLACES)
def test_the_place_is_shown_as_the_note_has_it(query, body, shown):
    assert answer(query, body) == shown


def test_a_cut_is_said_on_both_sides():
    shown = answer("needle", "hay " * 500 + "needle " + "straw " * 500)
    assert shown.startswith("…") and shown.endswith("…") and "**needle**" in shown
    assert len(shown) <= SNIPPET_CHARS + len("……****")


def test_the_window_with_most_different_terms_wins():
    body = "redis redis redis " + "filler " * 100 + "redis keeps a cache eviction policy " + "filler " * 100
    assert "**cache** **eviction**" in answer("redis cache eviction", body)


def test_the_place_is_found_beyond_a_long_line():
    body = "，。" * 150_000 + "针" + "，。" * 150_000
    assert "针" in answer("针", body[100_000:])


@pytest.mark.parametrize("unit", ["a", "A-", "云", "ﷺ", "e\u0301", "a\u200b", "\u3000", "①½", "\u0301", "x\n", "aम"])
def test_a_huge_line_is_shown_in_part(unit):
    """One line of characters that change their length when they are compared."""
    body = unit * (200_000 // len(unit))
    terms, _ = split_query(unit * 20 + " nowhere " + body[:50])
    assert len(snippet(body, terms)) <= SNIPPET_CHARS + 2


@pytest.mark.parametrize("text, query", [
    ("стоит Ёлка тут", "елка"), ("στην Αθήνα", "ΑΘΗΝΑ"), ("אמר שָׁלוֹם", "שלום"), ("في كتـــاب", "كتاب"),
])  # fmt: skip
def test_a_word_is_marked_whatever_optional_marks_it_has(text, query):
    start, word, *rest = text.split()
    assert mark(text, split_query(query)[0]) == " ".join([start, f"**{word}**", *rest])


def test_marks_never_change_the_text_itself():
    text = "ｶﾞﾗｽ ㎡ ½ ﬁ Straße İ e\u0301 a\u200bb 云𠮷 नमस्ते \u0301 👨\u200d👩\u200d👧 ﷺ 한국어"
    for start in range(len(text)):
        terms, _ = split_query(text[start:])
        assert mark(text, terms, "", "") == text
