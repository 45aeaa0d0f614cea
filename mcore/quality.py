"""How good ranked answers are, and what got worse between two measurements. Pure: names in, figures out.

A query's truth is the set of cards a person would accept. An empty set means that nothing should be
found: such a query has no precision, it is right when nothing or only low confidence was answered.
"""

from collections import Counter
from math import log2

from mcore.record import namedtuple

SHORT, LONG = 5, 10  # hits looked at by P@5 and noise@5; by R, nDCG and MRR

Metric = namedtuple("Metric", "name heading sign")
Metric.__doc__ = """A figure from 0 to 1; `sign` is 1 when larger is better, -1 when smaller is."""

METRICS = (
    Metric("first_acceptable", "first", 1),
    Metric("precision_at_5", "P@5", 1),
    Metric("noise_at_5", "noise@5", -1),
    Metric("recall_at_10", "R@10", 1),
    Metric("ndcg_at_10", "nDCG@10", 1),
    Metric("mrr_at_10", "MRR@10", 1),
    Metric("empty", "empty", -1),
    Metric("unanswerable_right", "right", 1),
)

Outcome = namedtuple("Outcome", "group query kind source acceptable tier paths scores")
Outcome.__doc__ = """One query answered: `paths` best first, `tier` of the first hit ("" when there is none),
`scores` as `score` gives them."""

Comparison = namedtuple("Comparison", "baseline falls worse added gone")
Comparison.__doc__ = """What is worse than in a former measurement.

`falls` are the metrics that fell, `worse` every query with a figure that did, `added` and `gone` the
queries that only one side has.
"""
Fall = namedtuple("Fall", "group metric before now queries")
Worse = namedtuple("Worse", "group query metrics moved")
Moved = namedtuple("Moved", "path acceptable before now")
Moved.__doc__ = """A card that changed its place; `before` and `now` count from 1, None is outside the list."""

_EQUAL = 1e-6  # figures are kept with six digits


def score(acceptable, paths, tiers):
    """metric -> value for one ranked list; None where a metric does not speak of such a query.

    Precision is capped (divisor min(5, acceptable)), noise is the share of the first five hits that
    are not acceptable (0 when there is none), gains are 0 or 1. `tiers` are those of the hits.
    """
    scores = dict.fromkeys(metric.name for metric in METRICS)
    if not acceptable:
        scores["unanswerable_right"] = float(all(tier.startswith("any") for tier in tiers))
        return scores
    right = [path in acceptable for path in paths[:LONG]]
    top, n = right[:SHORT], len(acceptable)
    scores["first_acceptable"] = float(right[:1] == [True])
    scores["precision_at_5"] = sum(top) / min(SHORT, n)
    scores["noise_at_5"] = top.count(False) / len(top) if top else 0.0
    scores["recall_at_10"] = sum(right) / n
    scores["ndcg_at_10"] = _gain(right) / _gain([True] * min(LONG, n))
    scores["mrr_at_10"] = 1 / (right.index(True) + 1) if True in right else 0.0
    scores["empty"] = float(not paths)
    return {name: value if value is None else round(value, 6) for name, value in scores.items()}


def _gain(right):
    return sum(1 / log2(place + 1) for place, is_right in enumerate(right, 1) if is_right)


def summarize(outcomes):
    """group -> its figures, "all" last: counts, the mean of each metric, which tier answered how often."""
    groups = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, []).append(outcome)
    return {**{group: _figures(groups[group]) for group in sorted(groups)}, "all": _figures(outcomes)}


def _figures(outcomes):
    judged = sum(bool(outcome.acceptable) for outcome in outcomes)
    figures = {"queries": len(outcomes), "judged": judged, "unanswerable": len(outcomes) - judged}
    for metric in METRICS:
        values = [v for v in (outcome.scores[metric.name] for outcome in outcomes) if v is not None]
        figures[metric.name] = round(sum(values) / len(values), 6) if values else None
    for name, some in (("tiers", True), ("tiers_unanswerable", False)):
        figures[name] = dict(Counter(o.tier or "none" for o in outcomes if bool(o.acceptable) is some).most_common())
    return figures


def compare(baseline, before, metrics, outcomes):
    """The Comparison of `metrics` and `outcomes` with `before`, the plain form of a former measurement.

    `before` has "metrics" and "results" as they were saved; a metric or group it lacks is not compared.
    """
    old = {_key(result): result for result in before["results"]}
    new = {_key(outcome._asdict()): outcome for outcome in outcomes}
    worse = [_worse(old[key], outcome) for key, outcome in new.items() if key in old]
    worse = [entry for entry in worse if entry.metrics]
    falls = []
    for group, figures in metrics.items():
        for metric in METRICS:
            was, now = before["metrics"].get(group, {}).get(metric.name), figures[metric.name]
            if _fell(metric, was, now):
                names = [w.query for w in worse if metric.name in w.metrics and group in ("all", w.group)]
                falls.append(Fall(group, metric.name, was, now, names))
    return Comparison(
        baseline, falls, worse,
        [outcome.query for key, outcome in new.items() if key not in old],
        [result["query"] for key, result in old.items() if key not in new],
    )  # fmt: skip


def _key(result):
    return result["group"], result["query"], result.get("kind"), result.get("source")


def _fell(metric, was, now):
    return was is not None and now is not None and (was - now) * metric.sign > _EQUAL


def _worse(old, outcome):
    """What fell for one query, and the cards that moved: in, out, or acceptable ones to another place."""
    metrics = [m.name for m in METRICS if _fell(m, old["scores"].get(m.name), outcome.scores[m.name])]
    before, now = (dict(zip(paths, range(1, LONG + 1))) for paths in (old["paths"], outcome.paths))  # noqa: B905
    moved = []
    for path in [*now, *(path for path in before if path not in now)]:
        card = Moved(path, path in outcome.acceptable, before.get(path), now.get(path))
        if card.before != card.now and (card.acceptable or None in card):
            moved.append(card)
    return Worse(outcome.group, outcome.query, metrics, moved)
