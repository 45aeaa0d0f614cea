"""Ranking: the parts of a query, stems, both Chinese scripts, which queries are questions, and the order."""

import pytest

from mcore.ranking import (
    JOINED_WEIGHT,
    LETTER_WEIGHT,
    LONG_RUN,
    NAME_PHRASE_WEIGHT,
    NAME_WEIGHT,
    NUMBERED_WEIGHT,
    PHRASE_WEIGHT,
    SINGLE_WEIGHT,
    SOFT_PAIR,
    SOFT_WORD,
    Ranking,
    is_question,
    parts,
    unaccented,
)
from mcore.stem import stem
from mcore.store.probe import tokens_of
from mcore.tokenize import normalize, split_bigrams, split_query
from mcore.variants import MAX_SPELLINGS, spellings, variants

STEMS = [
    ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("caress", "caress"), ("feed", "feed"),
    ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"), ("sing", "sing"),
    ("conflated", "conflat"), ("hopping", "hop"), ("falling", "fall"), ("filing", "file"), ("happy", "happi"),
    ("sky", "sky"), ("relational", "relat"), ("rational", "ration"), ("digitizer", "digit"),
    ("sensibility", "sensibl"), ("hopefulness", "hope"), ("triplicate", "triplic"), ("electrical", "electr"),
    ("adjustment", "adjust"), ("adoption", "adopt"), ("rate", "rate"), ("controlling", "control"),
    ("rolling", "roll"), ("generalizations", "gener"), ("is", "is"), ("a", "a"), ("archaeology", "archaeolog"),
]  # fmt: skip


@pytest.mark.parametrize("word, wanted", STEMS)
def test_a_stem_is_porters(word, wanted):
    assert stem(word) == wanted


def test_stems_agree_with_fts5s_own_tokenizer():
    import sqlite3

    words = sorted({word + end for word, _ in STEMS for end in ("", "s", "ed", "ing", "er", "ly", "ness", "ation")})
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(text, tokenize='porter unicode61')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, instance)")
    db.executemany("INSERT INTO f(rowid, text) VALUES (?, ?)", list(enumerate(words)))
    theirs = dict(db.execute("SELECT doc, term FROM v"))
    assert [(word, stem(word)) for word in words] == [(word, theirs[at]) for at, word in enumerate(words)]


@pytest.mark.parametrize(
    "char, wanted",
    [("发", {"发", "發", "髮"}), ("髮", {"发", "發", "髮"}), ("汉", {"汉", "漢"}), ("的", {"的"}), ("a", {"a"})],
)
def test_variants_are_the_same_character_in_the_other_script(char, wanted):
    assert variants(char)[0] == char and set(variants(char)) == wanted


def test_spellings_begin_with_the_text_and_are_bounded():
    assert spellings("头发")[0] == "头发" and "頭髮" in spellings("头发") and spellings("锚") == ["锚", "錨"]
    assert len(spellings("干发台里")) == MAX_SPELLINGS


QUESTIONS = [
    "数据库多久备份一次", "生产环境怎么退回上一套？", "why does ranking stay lexical",
    "python check if a variable is iterable", "是什么原因",
    "升级集群之前需要备份的数据", "large files moved between two hosts quickly", "backup?",
    "Statins increase cholesterol.",
]  # fmt: skip
KEYWORDS = [
    "ecs-prod 22022", "数据库 备份", "no such column", "提示词 技术文档", "青禾教育 可用性", "getUserName",
    "k8s里的pod", "CREATE INDEX CONCURRENTLY", "refresh token rotate", "to_csv", "", "!!!",
    "nginx conf.",
]  # fmt: skip


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_sentence_is_a_question(query):
    assert is_question(query)


@pytest.mark.parametrize("query", KEYWORDS)
def test_keywords_are_no_question(query):
    assert not is_question(query)


def weights(query):
    return {(part.kind, part.text): part.weight for part in parts(query)}


def test_stop_words_are_soft_but_not_inside_an_identifier_nor_alone():
    found = weights("the backup of get_to_it")
    assert found["plain", "the"] == SOFT_WORD and found["word", "backup"] == 1.0
    assert found["word", "to"] == 1.0 and found["word", "gettoit"] == JOINED_WEIGHT
    assert weights("to be or not to be")["word", "be"] == 1.0


def test_question_phrases_are_soft_and_give_no_single_characters():
    found = weights("备份是什么")
    assert found["pair", "备份"] == 1.0 and found["pair", "什么"] == SOFT_PAIR
    assert found["single", "备"] == SINGLE_WEIGHT and ("single", "什") not in found


def test_single_characters_weigh_less_in_a_long_query():
    short, long = "备份数据库", "".join(map(chr, range(0x5000, 0x5000 + 2 * LONG_RUN)))
    assert weights(short)["single", "备"] == SINGLE_WEIGHT
    assert weights(long)["single", long[0]] == SINGLE_WEIGHT / 2


def test_a_word_that_ends_with_a_number_is_asked_in_parts_too():
    found = weights("egr2")
    assert (found["word", "egr2"], found["word", "egr"], found["plain", "2"]) == (
        NAME_WEIGHT,
        NUMBERED_WEIGHT,
        NUMBERED_WEIGHT,
    )


def test_joined_forms_and_single_letters_of_an_identifier_weigh_less():
    found = weights("x-rayBeam")
    assert found["word", "xraybeam"] == JOINED_WEIGHT and found["word", "x"] == LETTER_WEIGHT
    assert found["word", "ray"] == found["word", "beam"] == 1.0


def test_adjacent_words_are_phrases_unless_both_are_soft():
    found = weights("restore the database of the")
    assert found["phrase", "restore the"] == PHRASE_WEIGHT and ("phrase", "of the") not in found


def test_a_long_query_keeps_its_end():
    assert ("word", "quokka") in weights(" ".join(f"w{n}" for n in range(150)) + " quokka")


# ---- over a store ----------------------------------------------------------------------------------


CARDS = {
    "run": "The job was running all night",
    "ran": "Runs are listed by date",
    "hair": "頭髮護理的方法",
    "grow": "公司的发展计划",
    "short": "nginx reload",
    "long": "nginx reload " + "and many other words that say nothing about it " * 20,
    "title-nginx-upstream": "one line",
    "names": "call list2dict with getUserName",
}


@pytest.fixture
def app(tmp_path, monkeypatch):
    from mcore.app import App

    monkeypatch.setenv("MEMORY_AGENT_HOME", str(tmp_path / "home"))
    vault = tmp_path / "vault"
    vault.mkdir()
    for name, body in CARDS.items():
        (vault / f"{name}.md").write_text(f"---\ntitle: {name}\n---\n\n{body}\n", encoding="utf-8")
    app = App(None, str(vault))
    app.indexer.index(app.store)
    yield app
    app.close()


def found(app, query, **more):
    return [(hit.path[:-3], hit.matched) for hit in app.searcher.search(query, sync=False, **more).hits]


def test_a_question_finds_other_forms_of_its_words_and_says_so(app):
    answer = dict(found(app, "when was the run?"))
    assert answer["run"] == "any" and answer["ran"] == "any-prefix"


@pytest.mark.parametrize("query, card", [("头发护理", "hair"), ("發展", "grow"), ("發展計劃", "grow")])
def test_each_chinese_script_finds_the_other_whole(app, query, card):
    assert found(app, query) == [(card, "all")]


def test_of_two_cards_the_shorter_and_the_title_win(app):
    assert [name for name, _ in found(app, "nginx reload")] == ["short", "long"]
    assert found(app, "nginx", match="cascade")[0][0] == "title-nginx-upstream"


@pytest.mark.parametrize("query", ["list_2_dict", "user_name", "getusername"])
def test_sub_words_of_identifiers_are_found(app, query):
    assert found(app, query)[0][0] == "names"


def test_cascade_stops_at_the_first_tier_and_fill_goes_on(app):
    assert found(app, "nginx reload", match="cascade") == [("short", "all"), ("long", "all")]
    filled = found(app, "nginx reload", match="fill")
    assert sorted(filled) == [("long", "all"), ("short", "all"), ("title-nginx-upstream", "any")]
    assert found(app, "nginx reload") == found(app, "nginx reload", match="cascade")
    assert found(app, "why nginx reload?") == found(app, "why nginx reload?", match="fill")


def test_coverage_is_shown_and_the_score_alone_ranks(app):
    hits = app.searcher.search("how does nginx reload dates?", sync=False).hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 < hit.coverage <= 1 for hit in hits)


def test_filled_answers_keep_filters_and_leave_deleted_cards_out(app, tmp_path):
    assert found(app, "how to reload nginx?", kind="nothing") == []
    (tmp_path / "vault" / "short.md").unlink()
    assert "short" not in dict(found(app, "how to reload nginx?"))


def test_a_repeated_or_wordless_or_huge_query_is_answered(app):
    for query in ("", "？", "the", "的", "nginx " * 3000, "数据" * 4000, "α-β ünïcode naïve café", '" OR * NEAR('):
        app.searcher.search(query, sync=False, match="fill")


TOLD = [
    ("nginx root", False), ("ecs-prod 私钥", False), ("数据库 备份", False), ("getUserName", False),
    ("how do I restore the backup", True), ("backup?", True), ("如何备份数据库", True), ("端口是多少", True),
    ("where is the root", True), ("one two three four five", True),
]  # fmt: skip


@pytest.mark.parametrize("query, is_one", TOLD)
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


@pytest.mark.parametrize("query", ["initialise", "colours", "how do I initialise the grey colour scheme?"])
def test_the_other_english_spelling_finds_a_card(make_app, write_note, query):
    write_note("a.md", "Initialization of the gray color scheme.")
    write_note("b.md", "nothing of that kind at all")
    app = make_app()
    assert [hit.path for hit in app.searcher.search(query).hits][:1] == ["a.md"]


def test_the_plural_of_a_name_of_letters_and_digits_is_a_form_of_it(make_app, write_note):
    write_note("a.md", "# Notes\n\nE2F and the EC2s for 20 days\n")
    app = make_app()
    app.indexer.index(app.store)
    ranking = Ranking(app.store)
    ranking.scores("E2Fs on ec2 after 20s")
    counted = {token for feature in ranking.features if feature.part.kind == "word" for token in feature.tokens}
    assert {"e2f", "ec2s"} <= counted and "20" not in ranking.forms["20s"]


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


def test_words_with_hyphens_between_are_neighbours_as_in_any_sentence():
    assert weights("a double-strand break")["phrase", "double strand"] == PHRASE_WEIGHT
    assert weights("double-strand")["phrase", "double strand"] == PHRASE_WEIGHT
    assert weights("double_strand")["phrase", "double strand"] == NAME_PHRASE_WEIGHT
    assert weights("il-6")["phrase", "il 6"] == NAME_PHRASE_WEIGHT


def test_a_word_of_letters_and_digits_weighs_more_than_a_plain_one():
    found = weights("mda5 2026 receptor")
    assert found["word", "mda5"] == NAME_WEIGHT and found["word", "2026"] == found["word", "receptor"] == 1.0


def test_signs_of_vowels_make_no_name_of_a_word():
    found = {part.text: part.weight for part in parts("सर्वर कब egr2")}
    assert found["सर्वर"] == found["कब"] == 1.0 and found["egr2"] == NAME_WEIGHT


@pytest.mark.parametrize(
    "word", ["bảo", "Nội", "ứng", "café", "İzmir", "Μαΐου", "ψυχῆς", "за\u0301мок", "йод", "nginxΐ", "gh\u1e0d"]
)
def test_a_word_is_asked_for_as_fts5_stores_it(word):
    asked = {unaccented(term.text) for term in split_query(word)[0]}
    assert asked == set(tokens_of(split_bigrams(normalize(word))))
