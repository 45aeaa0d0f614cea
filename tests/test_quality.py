"""mcore.quality: figures worked out by hand, and what counts as worse."""

import pytest

from mcore.quality import METRICS, Moved, Outcome, compare, score, summarize
from mcore.render import plain

NAMES = [metric.name for metric in METRICS[:-1]]

# acceptable, hits, and by hand: first, P@5, noise@5, R@10, nDCG@10, MRR@10, empty
JUDGED = [
    ("a", "a", (1, 1, 0, 1, 1, 1, 0)),
    ("a", "abcde", (1, 1, 0.8, 1, 1, 1, 0)),
    ("a", "xa", (0, 1, 0.5, 1, 0.63093, 0.5, 0)),
    ("a", "xyz", (0, 0, 1, 0, 0, 0, 0)),
    ("a", "", (0, 0, 0, 0, 0, 0, 1)),
    ("ab", "axb", (1, 1, 1 / 3, 1, (1 + 0.5) / (1 + 0.63093), 1, 0)),
    ("ab", "a", (1, 0.5, 0, 0.5, 1 / 1.63093, 1, 0)),
    ("a", "vwxyza", (0, 0, 1, 1, 0.356207, 1 / 6, 0)),
    ("abcdef", "abcde", (1, 1, 0, 5 / 6, 2.94846 / 3.30467, 1, 0)),
    ("a", "0123456789a", (0, 0, 1, 0, 0, 0, 0)),
    ("abcdefghijkl", "abcdefghijkl", (1, 1, 0, 10 / 12, 1, 1, 0)),
]


@pytest.mark.parametrize("acceptable, hits, expected", JUDGED, ids=[f"{row[0]}-{row[1]}" for row in JUDGED])
def test_figures_are_those_worked_out_by_hand(acceptable, hits, expected):
    scores = score(list(acceptable), list(hits), ["all"] * len(hits))
    assert [scores[name] for name in NAMES] == pytest.approx(expected, abs=1e-5)
    assert scores["unanswerable_right"] is None


@pytest.mark.parametrize(
    "tiers, right",
    [([], 1), (["any"], 1), (["any", "any-prefix"], 1), (["all"], 0), (["all-prefix"], 0), (["any", "all"], 0)],
)
def test_a_query_that_nothing_answers_is_right_when_empty_or_of_low_confidence(tiers, right):
    scores = score([], ["x"] * len(tiers), tiers)
    assert scores["unanswerable_right"] == right
    assert [scores[name] for name in NAMES] == [None] * len(NAMES)


def outcome(group, query, acceptable, hits, tier="all", kind=None):
    tiers = [tier] * len(hits)
    scores = score(acceptable, hits, tiers)
    return Outcome(group, query, kind, None, list(acceptable), (tiers or [""])[0], list(hits), scores)


def test_groups_are_means_over_the_queries_that_have_an_answer():
    metrics = summarize([
        outcome("B", "q", "a", "a"), outcome("A", "r", "a", "xa", "any"), outcome("A", "s", "", ""),
        outcome("A", "t", "", "x"), outcome("A", "u", "a", ""),
    ])  # fmt: skip
    assert list(metrics) == ["A", "B", "all"]
    a, everything = metrics["A"], metrics["all"]
    assert (a["queries"], a["judged"], a["unanswerable"]) == (4, 2, 2)
    assert (a["first_acceptable"], a["mrr_at_10"], a["empty"], a["unanswerable_right"]) == (0, 0.25, 0.5, 0.5)
    assert (a["tiers"], a["tiers_unanswerable"]) == ({"any": 1, "none": 1}, {"none": 1, "all": 1})
    assert everything["first_acceptable"] == pytest.approx(1 / 3, abs=1e-6) and everything["judged"] == 3
    assert metrics["B"]["unanswerable_right"] is None


def compared(before, now):
    saved = plain({"metrics": summarize(before), "results": before})
    return compare("base.json", saved, summarize(now), now)


def test_the_same_answers_are_not_worse():
    run = [outcome("A", "q", "ab", "axb"), outcome("F", "r", "", "")]
    assert compared(run, run) == ("base.json", [], [], [], [])


@pytest.mark.parametrize("now, fell", [
    ("xa", {"first_acceptable", "noise_at_5", "ndcg_at_10", "mrr_at_10"}),
    ("ax", {"noise_at_5"}),
    ("", set(NAMES) - {"noise_at_5"}),
    ("x", set(NAMES) - {"empty"}),
])  # fmt: skip
def test_a_fall_names_metric_group_and_query(now, fell):
    same = outcome("B", "r", "b", "b")
    result = compared([outcome("A", "q", "a", "a"), same], [outcome("A", "q", "a", now), same])
    assert {fall.metric for fall in result.falls if fall.group == "A"} == fell
    assert {fall.metric for fall in result.falls if fall.group == "all"} == fell
    assert not [fall for fall in result.falls if fall.group == "B"]
    assert all(fall.queries == ["q"] for fall in result.falls)
    assert [(entry.query, set(entry.metrics)) for entry in result.worse] == [("q", fell)]


def test_better_answers_are_no_fall():
    assert compared([outcome("A", "q", "a", "xya")], [outcome("A", "q", "a", "a")]).falls == []


def test_a_query_that_nothing_answers_falls_when_it_is_answered_with_confidence():
    result = compared([outcome("F", "q", "", "x", "any")], [outcome("F", "q", "", "x", "all")])
    assert [(fall.group, fall.metric, fall.before, fall.now) for fall in result.falls] == [
        ("F", "unanswerable_right", 1.0, 0.0), ("all", "unanswerable_right", 1.0, 0.0),
    ]  # fmt: skip


def test_the_cards_that_moved_are_named_with_their_places():
    result = compared([outcome("A", "q", "ab", "axyb")], [outcome("A", "q", "ab", "xazy")])
    assert result.worse[0].moved == [
        Moved("a", True, 1, 2), Moved("z", False, None, 3), Moved("b", True, 4, None),
    ]  # fmt: skip


def test_one_query_up_and_one_down_is_no_fall_yet_told():
    result = compared(
        [outcome("A", "q", "a", "a"), outcome("A", "r", "a", "xa")],
        [outcome("A", "q", "a", "xa"), outcome("A", "r", "a", "a")],
    )
    assert result.falls == [] and [entry.query for entry in result.worse] == ["q"]


def test_queries_of_one_side_are_told_and_filters_are_part_of_a_query():
    result = compared([outcome("A", "q", "a", "a"), outcome("A", "r", "a", "a")],
                      [outcome("A", "q", "a", "a", kind="tool"), outcome("A", "r", "a", "a")])  # fmt: skip
    assert (result.added, result.gone, result.falls) == (["q"], ["q"], [])


def test_a_baseline_without_a_metric_or_group_is_compared_in_what_it_has():
    now = [outcome("A", "q", "a", ""), outcome("B", "r", "a", "")]
    saved = {"metrics": {"A": {"first_acceptable": 1.0, "empty": None}}, "results": []}
    assert [(fall.group, fall.metric) for fall in compare("b", saved, summarize(now), now).falls] == [
        ("A", "first_acceptable")
    ]
