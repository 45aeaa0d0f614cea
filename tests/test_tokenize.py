"""mcore.tokenize: what is stored and what is asked meet, in every script, for every query."""

import re
import sqlite3
import unicodedata
from contextlib import closing

import pytest

from mcore import schema
from mcore.tokenize import (
    MAX_TERMS,
    MAX_WORD,
    PIECE,
    UNSPACED,
    columns,
    identifier_parts,
    normalize,
    split_bigrams,
    split_query,
    term_expr,
    to_query_expr,
)

TIERS = ("all", "all-prefix", "any", "any-prefix")


class Index:
    """A full-text table of texts alone; `ask` gives the numbers of those that a query finds in a tier."""

    def __init__(self, *texts):
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute(schema.CARDS_FTS)
        for number, text in enumerate(texts):
            self.connection.execute(
                "INSERT INTO cards_fts (rowid, title, labels, body, names) VALUES (?, ?, ?, ?, ?)",
                (number, *columns("", "", text)),
            )

    def ask(self, query, tier="all"):
        terms, _ = split_query(query)
        expr = to_query_expr(terms, tier) if terms else None
        if expr is None:
            return []
        rows = self.connection.execute("SELECT rowid FROM cards_fts WHERE cards_fts MATCH ? ORDER BY 1", (expr,))
        return [number for (number,) in rows]

    def close(self):
        self.connection.close()


def finds(query, text, tier="all"):
    with closing(Index(text)) as index:
        return index.ask(query, tier) == [0]


@pytest.mark.parametrize(
    "text, cut",
    [
        ("阿里云", "阿里 里云 云"),
        ("云", "云"),
        ("plain words", "plain words"),
        ("先连接ecs-prod后", "先连 连接 接 ecs-prod 后"),
        ("nginxमें", "nginx में"),
        ("bảo quản, nộiб", "bảo quản, nội б"),
        ("ok𠮷野家", "ok 𠮷野 野家 家"),
        ("", ""),
    ],
)
def test_a_run_without_spaces_is_cut_into_pairs_and_its_last_character(text, cut):
    assert split_bigrams(text).split() == cut.split()


@pytest.mark.parametrize(
    "text, normal",
    [
        ("ＥＣＳ－ｐｒｏｄ", "ecs-prod"),
        ("ｶﾞﾗｽ", "ガラス"),
        ("cafe\u0301", "café"),
        ("gh\u200bo\u00ads\u2060t\ufeff", "ghost"),
        ("Straße", "strasse"),
        ("a\0b\ud800c", "a b c"),
        ("❤\ufe0f", "❤"),
        ("⼈⼯", "人工"),
        ("㈱", "(株)"),
    ],
)
def test_both_sides_see_text_in_one_form(text, normal):
    assert normalize(text) == normal


@pytest.mark.parametrize(
    "text, parts",
    [
        ("getUserName", {"get user name"}),
        ("HTTPServer2", {"http server 2"}),
        ("ecs-prod", {"ecsprod"}),
        ("id_ed25519", {"ided25519"}),
        ("list2dict py2to3", {"list 2 dict", "py 2 to 3"}),
        ("sqlite3 utf8", set()),
        ("v0 p95 3f9a1c", set()),
        ("get_userName", {"getusername", "get user name"}),
        ("plain Words UPPER 123 x", set()),
        ("先连接ecs-prod后getUserName", {"ecsprod", "get user name"}),
        ("a" * 100 + "B" * 100, set()),
    ],
)
def test_the_hidden_words_of_an_identifier(text, parts):
    assert set(identifier_parts(text)) == parts


def test_data_inside_a_text_is_not_remembered():
    """A megabyte of hex is one word; kept for later cards, a vault of them filled the memory."""
    from mcore import tokenize

    identifier_parts("0aF" * 300_000 + " getUserName")
    assert max(map(len, tokenize._word_forms)) <= tokenize._MAX_IDENTIFIER


# (query, text, whether the highest tier finds it)
MEETINGS = [
    ("ecs-prod", "先连接ecs-prod后", True),
    ("先连接ecs-prod后", "先连接 ecs-prod 后", True),
    ("连接ecs-prod后", "先连接ecs-prod后", True),
    ("ecs-prod", "连接ecs-prod后", True),
    ("ecsprod", "the ecs-prod host", True),
    ("ecs-prod", "the ecsprod host", True),
    ("ecs-prod", "ecs and, far away, prod", False),
    ("getUserName", "get_user_name()", True),
    ("get_user_name", "getUserName()", True),
    ("user", "getUserName()", True),
    ("id_ed25519", "key in ~/.ssh/id_ed25519.pub", True),
    ("~/.ssh/id_ed25519", "key in ~/.ssh/id_ed25519.pub", True),
    ("2.6.10", "version 2.6.10 of", True),
    ("2.6.10", "version 2.6.1", False),
    ("елка", "Ёлка растёт", True), ("ёлка", "елка", True), ("йод", "иод", False), ("ΑΘΗΝΑ", "στην Αθήνα", True),
    ("οδός", "ΟΔΟΣ", True), ("της", "τῆς ψυχῆς", True), ("ὖ", "υ", True),
    ("שלום", "שָׁלוֹם", True), ("كتاب", "كتـــاب جديد", True), ("الخادم", "الخادِمُ", True),
    ("امر", "أمر", True), ("हिन्दी", "हिन्दि", False), ("nginxελλαδα", "nginx Ελλάδα", True),
    ("mysql8.0", "升级到 MySQL 8.0 之后", True), ("JDK17", "用 JDK 17 与", True), ("gpt5", "GPT-5", True),
    ("redis 6.2", "升级到Redis6.2，重启", True), ("JDK 17", "用JDK17与", True), ("mysql-8.0", "mysql8.0", True),
    ("连接redis 6.2集群", "连接Redis6.2集群", True), ("redis v6.2", "redis6.2", True), ("redis 6.2", "redis6.3", False),
    ("redis 6", "6 redis60", False), ("redis, port 6", "redis6", False), ("nodejs", "用 Node.js 写", True),
    ("Node.js", "nodejs", True), ("node js", "nodejs", True), ("socket.io", "socketio", True),
    ("radio", "rad io", False),
    ("sqlite35", "sqlite3", False), ("mysql8.0", "mysql 8.1", False), ("v2", "v 2", False),
    ("1.2.3", "released v1.2.3-rc.1", True), ("v1.2.3", "release 1.2.3", True), ("V1.2", "v1.2.3", True),
    ("2.6", "版本v2.6.10已上线", True), ("v0.9", "b is 0.9 here", False), ("1.2.3", "v11.2.3", False),
    ("阿里云", "用阿里云部署", True),
    ("阿里云", "阿里和云", False),
    ("云", "天上有云", True),
    ("云", "云在天上", True),
    ("云", "a云", True),
    ("ｅｃｓ", "ecs", True),
    ("ecs", "ｅｃｓ", True),
    ("ガラス", "ｶﾞﾗｽの", True),
    ("ghost", "gh\u200bost", True),
    ("gh\u200bost", "ghost", True),
    ("café", "cafe\u0301", True),
    ("cafe", "café", True),
    ("STRASSE", "Straße", True),
    ("İstanbul", "i\u0307stanbul", True),
    ("𠮷野家", "東京の𠮷野家で", True),
    ("𠮷", "東京の𠮷", True),
    ("\U00030000", "x\U00030000y", True),
    ("한국어", "이것은 한국어를", True),
    ("한국어", unicodedata.normalize("NFD", "한국어"), True),
    ("サーバー", "新しいサーバーを", True),
    ("สวัสดี", "เขาพูดสวัสดีครับ", True),
    ("ນ້ຳ", "ດື່ມນ້ຳແລ້ວ", True),
    ("ភាសា", "រៀនភាសាខ្មែរ", True),
    ("မြန်မာ", "ကျွန်တော်မြန်မာလူမျိုး", True),
    ("བོད་སྐད", "ང་བོད་སྐད་ཤེས", True),
    ("नमस्ते", "वह नमस्ते बोला", True),
    ("नमस्ते", "nginxनमस्ते", True),
    ("हिन्दी", "हिंदी", False),
    ("сервер", "новый сервер", True),
    ("bảo", "đảm bảo quản trị", True), ("bao", "đảm bảo", True), ("bảo", "b, rồi ả, rồi o", False),
    ("שלום", "אמר שלום לו", True),
    ("AND", "salt AND pepper", True),
    ("NEAR(a b)", "near a b", True),
    ('"quo"te', "quo te", True),
    ("title:x", "title and x", True),
    ("*", "anything", False),
    ("中文 english", "english 与中文", True),
]


@pytest.mark.parametrize("query, text, met", MEETINGS)
def test_query_and_text_meet_whole(query, text, met):
    assert finds(query, text) is met


@pytest.mark.parametrize("word", ["Python3", "mysql8.0", "getUserName", "v1.2.3", "utf-8", "iPhone15"])
def test_a_term_asks_for_each_of_its_forms_once(word):
    [term] = split_query(word)[0]
    assert len(term.phrases) == len(set(term.phrases))


@pytest.mark.parametrize(
    "query, text, tier",
    [
        ("nginx conf", "nginx configuration", "all-prefix"),
        ("a", "apple", None),
        ("数据库 nothere", "数据库备份", "any"),
        ("nothere conf", "configuration", "any-prefix"),
        ("ecs-nothere", "the ecs host", "any"),
        ("x" * (MAX_WORD + 50), "x" * (MAX_WORD + 50), "all-prefix"),
    ],
)
def test_a_looser_tier_finds_what_the_one_above_does_not(query, text, tier):
    assert next((name for name in TIERS if finds(query, text, name)), None) == tier


def test_every_character_of_a_script_without_spaces_is_found_wherever_it_stands():
    """README: "one Chinese character finds every card that holds it" (all planes, kana, Hangul, Thai, ...)."""
    unspaced = re.compile(f"[{UNSPACED}]")
    chars = filter(unspaced.match, map(chr, range(0x0E00, 0x32000, 61)))
    chars = [c for c in chars if unicodedata.category(c)[0] in "LM"]
    chars += list("云𠮷々〇のンㄅ가ᄀกກកကဿ〆ー")
    texts = [text for c in chars for text in (f"字{c}", f"{c}字", f"a{c}b", c)]
    with closing(Index(*texts)) as index:
        missed = [c for n, c in enumerate(chars) if not {4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3} <= set(index.ask(c))]
    assert len(chars) > 1_000 and [c for c in missed if normalize(c)] == []


def test_every_letter_of_every_script_is_found_as_a_word():
    chars = [c for c in map(chr, range(0, 0x20000, 41)) if unicodedata.category(c)[0] in "LN"]
    with closing(Index(*(f"x {c} y" for c in chars))) as index:
        missed = [c for n, c in enumerate(chars) if split_query(c)[0] and n not in index.ask(c)]
    assert len(chars) > 1_500 and missed == []


ODD_QUERIES = [
    "", " ", "-", '"', "'", "*", "()", "AND", "OR NOT", "NEAR(", "NEAR(a b, 5)", "^a", "a:b", "{a b}:c", "a*b*",
    "\0", "\ud800", "\U000e0041", "！", "。。。", "🚀", "👨\u200d👩\u200d👧", "%s", "\\", "--", "; DROP TABLE cards",
    "a" * 100_000, "a " * 10_000, "a + b",
    "云" * 10_000, "a-" * 5_000, "-a" * 5_000, '"' * 5_000, "(" * 5_000, "\u0301" * 1_000, "a\u0301" * 1_000, "ﷺ" * 500,
    "\n\r\t", "\x1f", "ﬀ", "½", "①②③", "a\u2028b", "\u202ea\u202c", "../../x", "_", "__init__", "a_b_c_d_e",
    "C++", "C#", ".net",
]  # fmt: skip


@pytest.mark.parametrize("query", ODD_QUERIES, ids=lambda query: ascii(query[:12]))
def test_no_query_is_a_syntax_error(query):
    with closing(Index("some text a b c", query)) as index:
        for tier in TIERS:
            index.ask(query, tier)


def test_a_query_of_ten_thousand_words_is_cut_and_says_by_how_much():
    terms, left_off = split_query(" ".join(f"word{n}" for n in range(10_000)))
    assert (len(terms), left_off) == (MAX_TERMS, 10_000 - MAX_TERMS)


def test_a_term_asked_twice_is_one_term():
    assert [term.text for term in split_query("Redis redis REDIS 云云云 云云")[0]] == ["redis", "云云"]


def test_a_separator_in_the_text_moves_no_column():
    assert columns("T\x1fitle", "la\x1fbels", "bo\x1fdy\x1f") == ("t itle", "la bels", "bo dy ", "")


def test_a_picture_inside_a_text_is_not_indexed():
    data = "data:image/png;base64," + "QUJD" * 100
    assert "qujd" not in columns("", "", f"![x]({data}) after").body
    assert "after" in columns("", "", f"![x]({data}) after").body


def test_the_letters_before_a_trailing_number_are_kept_apart_from_words():
    """`sqlite` finds `sqlite3` as the beginning of a longer word (all-prefix), never whole."""
    names = columns("t", "", "use sqlite3").names
    assert names == PIECE + "sqlite"
    (term,), _ = split_query("sqlite")
    assert PIECE not in term_expr(term) and PIECE + "sqlite" in term_expr(term, prefix=True)
