"""Operations that keep memory safe: doctor, selftest, backup, restore. Command line only."""

from itertools import groupby

from mcore.errors import EXIT_CONFLICT, EXIT_NOTHING, EXIT_OK, EXIT_SETUP
from mcore.operation import Operation, param
from mcore.render import counted, in_line, note_lines

_SHOWN = 10  # findings of one sort in text; --json has all
_DOCTOR_EXIT = {"healthy": EXIT_OK, "findings": EXIT_NOTHING, "broken": EXIT_SETUP}


def _doctor(app, args):
    from mcore.doctor import examine

    return examine(app, args["fix"], args["deep"])


def _doctor_text(report):
    lines = [f"fixed: {done}" for done in report.fixed]
    for (severity, slug), group in groupby(report.findings, key=lambda each: (each.severity, each.slug)):
        group = list(group)
        for each in group[:_SHOWN]:
            place = f"{each.where}:{each.line}" if each.line else each.where
            lines += [f"{severity}  {slug}  {place}", f"    {each.message}"]
            lines += [f"    do:  {each.cure}"] if each.cure else []
        if len(group) > _SHOWN:
            lines.append(f"    and {len(group) - _SHOWN} more of this sort in memory doctor --json")
    lines += [""] if lines else []
    counts, machine = report.counts, report.machine
    lines.append(f"{counted(counts['files'], 'card file')}, {counts['cards']} in the index")
    lines.append(f"Python {machine.python}, SQLite {machine.sqlite}, {machine.system}")
    lines.append(f"{report.status}: " + ", ".join(counted(counts[name], name) for name in ("error", "warning", "note")))
    return "\n".join([*map(in_line, lines), *note_lines(report.warnings)])


DOCTOR = Operation(
    name="doctor",
    tool=None,
    title="Check everything",
    summary="look for anything wrong, and name its cure; reads only",
    description="",
    params=(
        param("fix", "boolean", "mend what is derived (index, left-over temporary files); never a card", default=False),
        param("deep", "boolean", "compare every word of a large index too with the files", default=False),
    ),
    run=_doctor,
    text=_doctor_text,
    exit_code=lambda report: _DOCTOR_EXIT[report.status],
    read_only=False,
    destructive=False,
    idempotent=True,
    output={},
)


def _selftest(app, args):
    from mcore.selftest import selftest

    return selftest(app, args["seed"], args["samples"])


def _selftest_text(result):
    lines = [f"{'script':10}  queries  expected  found   recall"]
    for each in result.scripts:
        lines.append(f"{each.script:10}  {each.queries:7}  {each.expected:8}  {each.found:5}  {each.recall:7.4f}")
    for miss in result.misses[:_SHOWN]:
        lines.append(f"MISS  {miss.script}  {miss.query!r}  {miss.path}: {miss.why}")
    if len(result.misses) > _SHOWN:
        lines.append(f"and {len(result.misses) - _SHOWN} more in memory selftest --json --seed {result.seed}")
    lines.append(
        f"recall {result.recall:.4f} of {result.queries} queries on {counted(result.cards, 'card')} "
        f"({result.seconds:.1f} s); --seed {result.seed} asks the same again"
    )
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


SELFTEST = Operation(
    name="selftest",
    tool=None,
    title="Test the search",
    summary="compare what search finds with a plain scan of your files",
    description="",
    params=(
        param("seed", "integer", "draw the words of a former run again", minimum=0),
        param("samples", "integer", "queries of each script", default=20, minimum=1, maximum=1000, clamp=True),
    ),
    run=_selftest,
    text=_selftest_text,
    exit_code=lambda result: EXIT_OK if result.cards and not result.misses else EXIT_NOTHING,
    read_only=False,
    destructive=False,
    idempotent=True,
    output={},
)


def _backup(app, args):
    from mcore.backup import backup

    return backup(app, args["file"])


def _backup_text(result):
    if result.status == "conflict":
        return in_line(f"conflict: {result.path} exists and stays as it is; choose another name")
    lines = [
        f"created: {result.path}  {counted(result.archive_bytes, 'byte')}, read back and compared",
        f"{counted(result.files, 'file')} of the vault ({counted(result.bytes, 'byte')}), "
        f"reading counts of {counted(result.reading_counts, 'card')}, settings",
        f"sha256 {result.sha256}",
    ]
    for what, entries in (("not in it", result.skipped), ("UNREAD", result.unread)):
        lines += [f"{what}: {entry.path} ({entry.reason})" for entry in entries[:_SHOWN]]
        if len(entries) > _SHOWN:
            lines.append(f"{what}: {len(entries) - _SHOWN} more")
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


def _backup_exit(result):
    if result.status == "conflict":
        return EXIT_CONFLICT
    return EXIT_NOTHING if result.unread else EXIT_OK


BACKUP = Operation(
    name="backup",
    tool=None,
    title="Back up",
    summary="one archive of vault, reading counts and settings, read back and compared",
    description="",
    params=(param("file", help="the archive to make (.tar.gz); one that exists is never replaced", required=True,
                  positional=True),),
    run=_backup,
    text=_backup_text,
    exit_code=_backup_exit,
    read_only=False,
    destructive=False,
    idempotent=False,
    output={},
)  # fmt: skip


def _restore(app, args):
    from mcore.backup import restore

    return restore(app, args["file"])


def _restore_text(result):
    lines = [
        f"restored: {counted(result.files, 'file')} ({counted(result.bytes, 'byte')}) into {result.vault}",
        f"data root {result.home}: reading counts of {counted(result.reading_counts, 'card')}, "
        f"{counted(result.cards, 'card')} in the index",
    ]
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


def _is_archive(words):
    """Whether the words after `memory restore` name an archive rather than a card."""
    import os

    from mcore.card import CARD_SUFFIXES

    return any(
        name.casefold().endswith((".tar.gz", ".tgz")) or os.path.isfile(name) and not name.endswith(CARD_SUFFIXES)
        for name in words
        if not name.isdecimal()
    )


RESTORE_BACKUP = Operation(
    name="restore",
    tool=None,
    title="Restore a backup",
    summary="put a backup into an empty data root; everything is checked first",
    description="",
    params=(param("file", help="an archive that memory backup made", required=True, positional=True),),
    run=_restore,
    text=_restore_text,
    exit_code=lambda result: EXIT_OK,
    read_only=False,
    destructive=False,
    idempotent=False,
    output={},
    claims=_is_archive,
)
