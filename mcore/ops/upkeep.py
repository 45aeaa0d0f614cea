"""Operations about the vault and the index as a whole: index, stats, paths."""

from collections import Counter

from mcore.errors import EXIT_OK
from mcore.operation import Operation, param
from mcore.render import counted, in_line, note_lines

_SHOWN = 10  # entries of a list in text; --json has all


def _index(app, args):
    if args["rebuild"]:
        path = app.rebuild_path()
        report = app.indexer.rebuild(path)
        app.close()
        return report
    return app.indexer.index(app.store)


def _index_text(report):
    counts = ", ".join(f"{getattr(report, key)} {key}" for key in ("added", "updated", "moved", "removed", "unchanged"))
    lines = [f"{counted(report.total, 'card')}: {counts} ({report.seconds:.2f} s)"]
    if report.skipped:
        lines.append(f"{counted(len(report.skipped), 'file')} left out:")
        for reason, count in Counter(entry.reason for entry in report.skipped).most_common(_SHOWN):
            example = next(entry.path for entry in report.skipped if entry.reason == reason)
            lines.append(f"  {count} x {reason}, such as {example}")
        lines.append("  (memory index --json names every one)")
    lines += note_lines(report.warnings[:_SHOWN])
    if len(report.warnings) > _SHOWN:
        lines.append(f"note: {len(report.warnings) - _SHOWN} more notes in memory index --json")
    return "\n".join(map(in_line, lines))


INDEX = Operation(
    name="index",
    tool="memory_reindex",
    title="Reindex memory",
    summary="take in changed files, or rebuild",
    description=(
        "Take in changed files; rebuild builds the index anew. Rarely needed: searches look for changes. Use when "
        "an answer says stale or damaged."
    ),
    params=(param("rebuild", "boolean", "build the index from nothing", default=False, brief="anew"),),
    run=_index,
    text=_index_text,
    exit_code=lambda report: EXIT_OK,
    read_only=False,
    destructive=False,
    idempotent=True,
    output={
        **{key: {"type": "integer"} for key in ("added", "updated", "moved", "removed", "unchanged", "total")},
        "skipped": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array", "items": {"type": "object"}},
    },
)


def _stats(app, args):
    from mcore.stats import stats

    return stats(app, not args["no_sync"])


def _stats_text(result):
    lines = [f"{counted(result.total, 'card')} in {result.vault}"]
    for name in ("kinds", "sources"):
        table = getattr(result, name)
        shown = [f"{key or '(none)'} {count}" for key, count in list(table.items())[:_SHOWN]]
        if len(table) > _SHOWN:
            shown.append(f"and {len(table) - _SHOWN} more in memory stats --json")
        if shown:
            lines.append(f"{name}: " + ", ".join(shown))
    if set(result.scopes) - {"global"}:
        shown = [f"{name} {s['total']} ({s['active']} in force, newest {s['newest']})"
                 for name, s in list(result.scopes.items())[:_SHOWN]]  # fmt: skip
        lines.append("scopes: " + ", ".join(shown))
    if result.forgotten or result.retracted:
        lines.append(f"forgotten {result.forgotten}, retracted {result.retracted}")
    counts = result.read_counts
    lines.append(f"read: {counts.readings} times, {counts.cards} different cards")
    for card in result.latest:
        lines.append(f"  {card.changed_at}  {card.title}  {card.path}")
    lines += note_lines(result.warnings)
    return "\n".join(map(in_line, lines))


STATS = Operation(
    name="stats",
    tool="memory_stats",
    title="Memory overview",
    summary="totals by kind and source, latest cards",
    description="How many cards, by kind, source and scope; newest and most read.",
    params=(param("no_sync", "boolean", "do not look for changed files first", default=False, door="cli"),),
    run=_stats,
    text=_stats_text,
    exit_code=lambda result: EXIT_OK,
    read_only=True,
    destructive=False,
    idempotent=True,
    output={
        "total": {"type": "integer"},
        "kinds": {"type": "object"},
        "sources": {"type": "object"},
        "latest": {"type": "array", "items": {"type": "object"}},
        "scopes": {"type": "object"},
        "read_counts": {"type": "object"},
        "warnings": {"type": "array", "items": {"type": "object"}},
    },
)


def _paths(app, args):
    from mcore.stats import paths

    return paths(app)


def _paths_text(result):
    width = max(len(name) for name in result._fields)
    rows = [(name, getattr(result, name)) for name in result._fields if name != "warnings"]
    return "\n".join(f"{name:{width}}  {place['path']}  (from {place['from']})" for name, place in rows)


PATHS = Operation(
    name="paths",
    tool=None,
    title="Paths",
    summary="each path in force and what decided it",
    description="",
    params=(),
    run=_paths,
    text=_paths_text,
    exit_code=lambda result: EXIT_OK,
    read_only=True,
    destructive=False,
    idempotent=True,
    output={},
)
