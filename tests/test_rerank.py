"""A closer look at the best cards of a question: words in part, feedback by pairs."""

import os
from functools import partial

import pytest
from conftest import paths_of

from mcore.rerank import (
    CHARS,
    DEPTH,
    FEEDBACK_PAIRS,
    LEAD,
    LEAD_CHARS,
    PARTIAL,
    feedback,
    lead_words,
    partial_words,
    shown,
)


@pytest.fixture
def app(make_app):
    return make_app()


def test_a_word_counts_by_the_share_of_its_trigrams():
    gains = partial_words({"methyltransferase": 6.0}, {1: "dna methylation", 2: "nothing", 3: "methyltransferase"})
    found = {gain.doc: gain.score for gain in gains}
    assert found[3] == pytest.approx(PARTIAL * 6.0)
    assert found[1] == pytest.approx(PARTIAL * 6.0 * 4 / 15)  # met eth thy hyl of 15
    assert 2 not in found


def test_a_trigram_counts_once_for_the_rarest_word_that_has_it():
    gains = partial_words({"handle": 1.0, "handler": 9.0}, {1: "handler"})
    assert sum(gain.score for gain in gains) == pytest.approx(PARTIAL * 9.0)


def test_a_short_word_is_nothing_in_part():
    assert partial_words({"ab": 5.0}, {1: "ab abc"}) == []


def test_a_word_of_three_letters_counts_only_where_a_word_begins():
    texts = {1: "the gpu", 2: "a_gpu_box", 3: "先看gpu的", 4: "hicgpu and xgpu", 5: "xgpu, then gpus"}
    assert {gain.doc for gain in partial_words({"gpu": 5.0}, texts)} == {1, 2, 3, 5}


def test_a_count_is_a_number_that_explain_can_tell():
    assert [repr(gain.count) for gain in partial_words({"gpu": 5.0}, {1: "the gpu"})] == ["1"]


def test_a_word_at_the_start_of_a_card_counts_a_little_more():
    texts = {1: "redis " + "x" * LEAD_CHARS, 2: "x" * LEAD_CHARS + " redis", 3: "credis " + "x" * LEAD_CHARS}
    assert [(gain.doc, gain.score) for gain in lead_words({"redis": 5.0}, texts)] == [(1, pytest.approx(LEAD * 5.0))]


def test_feedback_raises_cards_that_share_what_marks_the_best_ones():
    texts = {1: "李娜喜欢爬山", 2: "李娜买了帐篷", 3: "爬山要带帐篷", 4: "今天下雨"}
    scores = {1: 5.0, 2: 4.0, 3: 1.0, 4: 1.0}
    gains = feedback(scores, texts, {"李娜"})
    raised = {gain.doc for gain in gains}
    assert 3 in raised and 4 not in raised
    assert "李娜" not in {gain.text for gain in gains}
    assert len({gain.text for gain in gains}) <= FEEDBACK_PAIRS


def test_feedback_takes_no_pair_that_one_card_alone_has():
    assert feedback({1: 2.0, 2: 1.0}, {1: "数据库备份", 2: "网络配置"}, set()) == []


def test_feedback_pairs_cross_no_border_of_scripts():
    texts = {1: "用nginx配置", 2: "用nginx部署"}
    assert feedback({1: 2.0, 2: 1.0}, texts, set()) == []


def test_the_beginning_of_a_long_card_is_looked_at():
    assert shown("标题", "x" * 3 * CHARS) == "标题\n" + "x" * CHARS


def test_an_accent_is_no_difference():
    texts = {1: shown("", "my résumé"), 2: shown("", "my resume")}
    first, second = partial_words({"resume": 5.0}, texts)  # as the query has it, without accents
    assert first.score == second.score


def test_an_accent_elsewhere_in_a_card_changes_no_letter_of_another_script():
    assert shown("", "café, йод") == "\ncafe, йод"


def test_a_question_finds_a_card_with_a_part_of_its_rare_word_first(app, write_note):
    write_note("a.md", "# Notes\n\nthe protein was seen in cells, in the lab and in the field\n")
    write_note("b.md", "# Notes\n\nthe protein was seen in cells, demethylated in the lab\n")
    app.indexer.index(app.store)
    hits = app.searcher.search("how was the protein methylating seen in cells?").hits
    assert [hit.path for hit in hits] == ["b.md", "a.md"]


def test_no_more_than_so_many_cards_are_read_beside_the_hits(app, write_note):
    for number in range(DEPTH + 20):
        write_note(f"{number}.md", f"# Note {number}\n\nwhat was decided about the queue, number {number}\n")
    app.indexer.index(app.store)
    hit, *_ = app.searcher.search("what was decided about the queue?", is_explained=True).explained.hits
    looked = {part.text: part.cards for part in hit.parts if part.kind == "partial"}
    assert looked == {"decided": DEPTH, "queue": DEPTH}


def test_a_question_whose_only_card_was_deleted_finds_nothing(app, write_note):
    path = write_note("a.md", "# 数据库备份\n\n数据库的备份每天做\n")
    write_note("b.md", "# 天气\n\n今天下雨\n")
    app.indexer.index(app.store)
    os.unlink(path)
    assert paths_of(app.searcher.search("数据库的备份是什么时候做的？")) == []


def test_pages_of_a_question_with_a_filter_are_pieces_of_one_list(app, write_note):
    words = "数据库 备份 网络 配置 缓存 部署 日志 队列 登录 密码 北京 上海 爬山 帐篷 会议 预算 合同 客户".split()
    for number in range(400):
        folder = "07-Tools" if number % 23 == 0 else "03-Knowledge"
        text = "，".join(words[number * step % len(words)] for step in (1, 2, 3, 5, 7, 11, 13))
        write_note(f"{folder}/{number}.md", f"# 记录 {number}\n\n{text}\n")
    app.indexer.index(app.store)
    for query in ("队列数据库帐篷是什么？", "爬山日志会议是什么？", "登录上海合同是什么？"):
        ask = partial(app.searcher.search, query, kind="tool", sync=False)
        whole = paths_of(ask(limit=18))
        assert [path for at in range(0, 18, 3) for path in paths_of(ask(limit=3, offset=at))] == whole
