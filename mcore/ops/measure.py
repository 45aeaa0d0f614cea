"""Operations that judge the search: bench. Command line only."""

from mcore.errors import EXIT_CONFLICT, EXIT_NOTHING, EXIT_OK, UsageError
from mcore.operation import Operation, param
from mcore.render import in_line, note_lines


def _bench(app, args):
    from mcore import benchmark

    given = [name for name in ("init", "explain", "save", "baseline") if args[name] not in (None, False)]
    if len(given) > 1 and given != ["save", "baseline"]:
        raise UsageError(f"bench: --{given[0]} does not go with --{given[1]}", hint="leave one of them out")
    if args["init"]:
        return benchmark.draft(app, args["truth"])
    if args["explain"] is not None:
        return benchmark.explain(app, args["explain"])
    return benchmark.measure(app, args["truth"], args["baseline"], args["save"])


def _bench_text(result):
    forms = {"Measured": _measured, "Drafted": _drafted, "Result": _explained}
    return "\n".join(map(in_line, forms[type(result).__name__](result)))


def _bench_exit(result):
    if type(result).__name__ == "Measured":
        return EXIT_NOTHING if result.comparison and result.comparison.falls else EXIT_OK
    if type(result).__name__ == "Drafted":
        return EXIT_OK if result.status == "drafted" else EXIT_CONFLICT
    return EXIT_OK if result.hits else EXIT_NOTHING


def _measured(result):
    from mcore.quality import METRICS

    metrics = [metric for metric in METRICS if metric.name != "unanswerable_right"]
    rows = [["group", "queries", *(metric.heading for metric in metrics), "answered by"]]
    for group, figures in result.metrics.items():
        if figures["judged"]:
            rows.append([group, str(figures["judged"]), *(f"{100 * figures[metric.name]:.1f}" for metric in metrics),
                         _counts(figures["tiers"])])  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows)]  # noqa: B905
    queries = result.metrics["all"]["queries"]
    lines = [f"{result.cards} cards, {queries} queries of {result.truth}; figures in percent", ""]
    for first, *cells, last in rows if len(rows) > 1 else []:
        middle = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:]))  # noqa: B905
        lines.append(f"{first:{widths[0]}}  {middle}  {last}")
    for group, figures in result.metrics.items():
        if figures["unanswerable"] and group != "all":
            lines.append(
                f"{group:{widths[0]}}  {figures['unanswerable']:>{widths[1]}}  that no card answers: "
                f"{100 * figures['unanswerable_right']:.1f} right (nothing found, or low confidence only)  "
                + _counts(figures["tiers_unanswerable"])
            )
    lines += _compared(result.comparison) if result.comparison else []
    lines += [f"saved: {result.saved}"] if result.saved else []
    return lines + note_lines(result.warnings)


def _counts(tiers):
    return ", ".join(f"{tier} {count}" for tier, count in tiers.items())


def _compared(comparison):
    """What fell, and for each query behind it the cards that moved in or out."""
    from mcore.quality import METRICS

    heading = {metric.name: metric.heading for metric in METRICS}
    lines = [""]
    for fall in comparison.falls:
        lines.append(f"WORSE  {fall.group}  {heading[fall.metric]}  {100 * fall.before:.2f} -> {100 * fall.now:.2f}")
    fallen = {query for fall in comparison.falls for query in fall.queries}
    for entry in comparison.worse:
        if entry.query in fallen:
            lines.append(f"  {entry.group}  {entry.query}: " + ", ".join(heading[name] for name in entry.metrics))
            lines += [f"      {_place(card)}  {card.path}" + "  (acceptable)" * card.acceptable for card in entry.moved]
    if not comparison.falls:
        lines.append(f"No metric is worse than in {comparison.baseline}.")
        if comparison.worse:
            lines.append(f"{len(comparison.worse)} queries are worse, outweighed by others (--json names them).")
    for queries, what in ((comparison.added, "not in the baseline"), (comparison.gone, "in the baseline alone")):
        if queries:
            lines.append(f"note: {len(queries)} queries are {what}, such as: {queries[0]}")
    return lines


def _place(card):
    """How a card moved: out 1, in 3, 1 -> 4."""
    if card.now is None:
        return f"out {card.before}"
    return f"in {card.now}" if card.before is None else f"{card.before} -> {card.now}"


def _drafted(result):
    if result.status == "conflict":
        return [f"conflict: {result.truth} exists and stays as it is", "move it away, or name another with --truth"]
    lines = [f"drafted: {result.truth}, {len(result.queries)} queries"]
    lines += [f"  {e['group']}  {e['query']}  ({len(e['acceptable'])} acceptable)" for e in result.queries]
    return [*lines, "Correct it: every card you would accept; questions of your own as group B. Then: memory bench"]


def _explained(result):
    from mcore.explain import lines

    return [f"{len(result.hits)} hits for: {result.query}", *lines(result.explained), *note_lines(result.warnings)]


BENCH = Operation(
    name="bench",
    tool=None,
    title="Measure the search",
    summary="measure the search on your own queries; --init drafts them",
    description="",
    params=(
        param("truth", help="queries and the cards that answer them (default: bench_queries.json in the data root)"),
        param("save", help="keep figures and answers in this file"),
        param("baseline", help="compare with a saved file; exit 1 when any figure is worse"),
        param("init", "boolean", "draft a truth file from your cards, for you to correct", default=False),
        param("explain", help="instead: how the hits of this query got their score"),
    ),
    run=_bench,
    text=_bench_text,
    exit_code=_bench_exit,
    read_only=False,
    destructive=False,
    idempotent=True,
    output={},
)
