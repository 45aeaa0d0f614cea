"""mcore.validity: what a card's frontmatter says of its life, and what is in force when."""

import pytest

from mcore.validity import (
    ALWAYS,
    CURRENT,
    EXPIRED,
    FUTURE,
    PLAIN,
    RETRACTED,
    SUPERSEDED,
    Closing,
    Link,
    closings,
    interval,
    length,
    read,
    resolve,
    starts,
    state,
)

DAY = 86400.0
JAN_5 = 1704412800.0  # 2024-01-05


def test_a_card_without_such_fields_has_the_plain_life():
    assert read({"title": "x", "tags": ["a"]}) is PLAIN


@pytest.mark.parametrize("text", [
    "2024-01-05", "2024/1/5", "2024年1月5日", "2024-01-05T00:00", "2024-01-05 00:00:00", "2024-01-05T08:00:00+08:00",
    "1704412800", "1704412800000",
])  # fmt: skip
def test_dates_are_read_in_every_form_people_write(text):
    life = read({"valid_from": text, "valid_to": text, "review_by": text})
    assert (life.valid_from, life.valid_to, life.review_by, life.notes) == (JAN_5, JAN_5, JAN_5, ())


@pytest.mark.parametrize("field, value", [
    ("valid_to", "never"), ("valid_from", ""), ("valid_to", None), ("review_by", []), ("ttl", "permanent"), ("ttl", []),
])  # fmt: skip
def test_an_end_that_is_left_open_is_no_fault(field, value):
    assert read({field: value}) == PLAIN


def test_a_list_of_one_stands_for_its_item():
    life = read({"valid_to": ["2024-01-05"], "ttl": ["7d"]})
    assert (life.valid_to, life.ttl, life.notes) == (JAN_5, 7 * DAY, ())


@pytest.mark.parametrize("field, value", [
    ("valid_to", "soon"), ("valid_from", "2024-02-30"), ("review_by", ["a"]), ("ttl", "a while"), ("scope", "frontend"),
])  # fmt: skip
def test_what_cannot_be_read_is_named_and_not_heeded(field, value):
    life = read({field: value})
    assert len(life.notes) == 1 and field in life.notes[0]
    assert life._replace(notes=()) == PLAIN


@pytest.mark.parametrize("text, seconds", [
    ("30d", 30 * DAY), ("12 hours", DAY / 2), ("2周", 14 * DAY), ("3个月", 90 * DAY), ("P1M", 30 * DAY),
    ("P1DT12H", 1.5 * DAY),
    ("30", 30 * DAY), ("3600s", 3600), ("1.5h", 5400), ("90 天", 90 * DAY), ("5mins", 300), ("2 Weeks", 14 * DAY),
    ("1w2d", 9 * DAY), ("1h 30m", 5400), ("1 week, 2 days", 9 * DAY), ("2 weeks and 1 day", 15 * DAY), ("90mins", 5400),
    ("1M", 30 * DAY), ("1m", 60), ("1y 2M", 425 * DAY), ("PT5M", 300), ("5 MIN", 300),
    ("７天", 7 * DAY), ("一周", 7 * DAY), ("两个月", 60 * DAY), ("兩週", 14 * DAY), ("半年", 182.5 * DAY),
    ("十五天", 15 * DAY),
    ("二十天", 20 * DAY), ("1年6个月", 545 * DAY), ("1週間", 7 * DAY), ("3ヶ月", 90 * DAY), ("24時間", DAY),
    ("7일", 7 * DAY),
    ("2주", 14 * DAY), ("3개월", 90 * DAY), ("1d 5", None), ("d1", None), ("1.2.3", None), ("十五", 15 * DAY),
    ("5ms", None), ("3 yrs", 1095 * DAY), ("2wks", 14 * DAY),
    ("半", DAY / 2), ("1h-2h", None), ("30d!", None), ("1dd", None),
    ("p", None), ("", None), ("-3d", None), ("30 parsecs", None), ("d", None), ("9" * 70 + "d", None),
])  # fmt: skip
def test_lengths_of_time(text, seconds):
    assert length(text) == seconds


@pytest.mark.parametrize("value, links", [
    ("a/b.md", ("a/b.md",)), ("[[a note|shown]]", ("a note",)), ("[[a note#part]]", ("a note",)),
    ("[old](./a/b.md)", ("a/b.md",)), ("x/[a](b).md", ("x/[a](b).md",)),
    (["a.md", "[[b]]", "a.md"], ("a.md", "b")), ("a\\b.md", ("a/b.md",)), (None, ()),
])  # fmt: skip
def test_links_are_read_as_paths_wikilinks_and_markdown_links(value, links):
    assert read({"supersedes": value}).supersedes == links


@pytest.mark.parametrize("value, is_set", [
    (True, True), ("2026-01-01", True), ("it was a typo", True), ("yes", True),
    (False, False), ("no", False), ("", False), (None, False), ("false", False),
])  # fmt: skip
def test_a_mark_is_true_a_date_or_a_reason(value, is_set):
    assert read({"retracted": value}).retracted is is_set
    assert read({"forgotten_at": value}).forgotten is is_set


def test_a_ttl_counts_from_the_last_confirmation_and_the_earlier_end_holds():
    life = read({"ttl": "10d"})
    assert interval(life, "2024-01-05", None, 0) == (None, JAN_5 + 10 * DAY)
    assert interval(life, "2024-01-05", "2024-01-06", 0) == (None, JAN_5 + 11 * DAY)
    assert interval(life, None, None, JAN_5) == (None, JAN_5 + 10 * DAY)
    assert interval(read({"ttl": "10d", "valid_from": "2024-01-05"}), None, None, 0) == (JAN_5, JAN_5 + 10 * DAY)
    assert interval(read({"ttl": "10d", "valid_to": "2024-01-06"}), "2024-01-05", None, 0)[1] == JAN_5 + DAY


def test_a_successor_begins_by_its_own_words_else_when_it_was_written():
    assert starts(5.0, "2024-01-05", 9.0) == 5.0
    assert starts(None, "2024-01-05", 9.0) == JAN_5
    assert starts(None, "once", 9.0) == 9.0


def test_a_link_means_a_path_or_the_only_card_of_that_name():
    paths, by_name = {"a/x.md", "b/y.md", "c/y.md"}, {"x": ["a/x.md"], "y": ["b/y.md", "c/y.md"]}
    assert resolve("a/x.md", paths, by_name) == resolve("a/x", paths, by_name) == "a/x.md"
    assert resolve("X", paths, by_name) == resolve("moved/x.md", paths, by_name) == "a/x.md"
    assert resolve("y", paths, by_name) is None and resolve("z", paths, by_name) is None


def test_of_two_successors_the_one_that_begins_first_closes_the_card():
    links = [Link("late.md", 9.0, "old.md", False), Link("early.md", 5.0, "old.md", False)]
    assert closings(links) == closings(links[::-1]) == {"old.md": Closing("early.md", 5.0, False)}


def test_a_ring_always_leaves_a_card():
    for links in (
        [Link("a", 1.0, "a", False)],
        [Link("a", 1.0, "b", False), Link("b", 2.0, "a", False)],
        [Link("a", 1.0, "b", False), Link("b", 2.0, "c", False), Link("c", 3.0, "a", False)],
    ):
        assert len(closings(links)) == len({link.path for link in links}) - 1


def test_what_a_wrong_card_closed_is_open_again():
    links = [Link("b", 1.0, "a", False), Link("c", 2.0, "b", True)]
    assert closings(links) == {"b": Closing("c", ALWAYS, True)}


@pytest.mark.parametrize("at, mark, start, end, closed, expected", [
    (5, "", None, None, None, CURRENT),
    (5, "", 5, 6, None, CURRENT),
    (5, "", 6, None, None, FUTURE),
    (5, "", None, 5, None, EXPIRED),
    (5, "", None, None, 5, SUPERSEDED),
    (4, "", None, None, 5, CURRENT),
    (4, "", None, None, ALWAYS, RETRACTED),
    (5, "forgotten", None, None, None, "forgotten"),
])  # fmt: skip
def test_a_card_holds_from_its_begin_until_just_before_its_end(at, mark, start, end, closed, expected):
    assert state(at, mark, start, end, closed) == expected
