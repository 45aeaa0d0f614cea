"""Operations that keep cards true: update, supersede, forget, restore, retract, purge, history.

Forget, restore, retract and purge are one tool over MCP (`action` says which), four commands here.
"""

from mcore.card import KIND_FOLDERS
from mcore.errors import EXIT_CONFLICT, EXIT_NOTHING, EXIT_OK
from mcore.operation import Operation, param
from mcore.render import counted, in_line, note_lines

_EXIT = {"rejected": EXIT_NOTHING, "conflict": EXIT_CONFLICT}

CARD = param("card", "card", "id or path", required=True, positional=True)
EXPECTED = param("expected_revision", help="the revision you read; another is a conflict", brief="revision you read")
REJECT = param("reject_secrets", "boolean", "refuse text that looks like a credential", default=False, brief="refuse")


def field_params(told=True):
    """The optional fields of a card, as capture, update and supersede take them; `told`: the first explained."""
    return (
        param("aliases", "array", "other names for it", brief="other names" if told else "names"),
        param("questions", "array", "questions it answers", brief="as asked" if told else "asked"),
        param("scope", help="global, project/<id>, domain/<id>", brief="project/<id>" if told else "scope"),
        param("valid_from", "scalar", help="date from which it is true", brief="date"),
        param("valid_to", "scalar", help="date from which it is not true any more", brief="date"),
        param("ttl", "scalar", help="how long it is true, such as 30d", brief="30d"),
        param("review_by", "scalar", help="date to check it again", brief="date"),
        param("confidence", "scalar", help="how sure, such as high or 0.6", brief="how sure"),
        param("pinned", "boolean", "first in every context", brief="first"),
    )


FIELD_NAMES = tuple(p.name for p in field_params())


def _exit_code(result):
    return _EXIT.get(result.status, EXIT_OK)


def _changed_text(result):
    """The text of a Revised or a Purged."""
    if hasattr(result, "unreachable"):
        return _purged_text(result)
    lines = [f"{result.status}: {result.path}" if result.path else result.status]
    if result.revision:
        lines[0] += f"  revision {result.revision}"
    if result.fields:
        lines.append("changed: " + ", ".join(result.fields))
    if result.history_path:
        lines.append(f"the former text: {result.history_path}")
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


def _purged_text(result):
    done = result.status == "purged"
    what = f"{counted(len(result.files), 'file')}, {result.bytes} bytes, {counted(result.read_count, 'reading')}"
    lines = [f"{'purged' if done else 'would be erased for good'}: {result.path} ({what})"]
    lines += [f"  {path}" for path in result.files]
    lines.append("not reached: " + "; ".join(result.unreachable))
    if not done:
        lines.append("Nothing is erased yet: the same with yes (--yes) erases it.")
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


_REVISED_OUTPUT = {
    "status": {"type": "string"},
    "indexed": {"type": "boolean"},
    "warnings": {"type": "array", "items": {"type": "object"}},
}


def _operation(name, title, summary, description, params, run, text=_changed_text, **more):
    """An operation that changes a card and can be undone."""
    record = {
        "tool": f"memory_{name}", "read_only": False, "destructive": False, "idempotent": True,
        "exit_code": _exit_code, "output": _REVISED_OUTPUT, **more,
    }  # fmt: skip
    return Operation(name=name, title=title, summary=summary, description=description, params=params, run=run,
                     text=text, **record)  # fmt: skip


# ---- update --------------------------------------------------------------------------------------


def _update(app, args):
    from mcore.revise import update

    return update(app, args["card"], args, args["body"], args["expected_revision"], args["reject_secrets"])


UPDATE = _operation(
    "update",
    "Correct a card",
    "correct a card; its former text is kept",
    "Correct a card. Give only what changes; empty removes. If the fact itself changed, use memory_supersede.",
    (
        CARD,
        EXPECTED,
        param("title", help="the new title", brief="new"),
        param("body", help="the whole new body", brief="text"),
        param("kind", brief="kind", help="one of " + ", ".join(KIND_FOLDERS)),
        param("tags", "array", "the tags in all", brief="words"),
        param("source", help="who says so", brief="who"),
        param("priority", "scalar", help="as you use it", brief="any"),
        *field_params(told=False),
        REJECT._replace(door="cli"),
    ),
    _update,
)


# ---- supersede -----------------------------------------------------------------------------------


def _supersede(app, args):
    from mcore.revise import supersede

    given = {name: args.get(name) for name in ("title", "kind", "tags", *FIELD_NAMES)}
    given["source"] = args["source"] or app.client
    return supersede(app, args["card"], given, args["body"], args["valid_from"], args["wrong"],
                     args["expected_revision"], args["reject_secrets"])  # fmt: skip


def _superseded_text(result):
    lines = [f"{result.status}: {result.path}" if result.path else result.status]
    if result.id is not None:
        lines[0] += f"  id {result.id}  revision {result.revision}"
    if result.path:
        verb = "retracts" if result.retracts else "supersedes"
        lines.append(f"{verb}: {result.supersedes}" + ("" if result.retracts else f" from {result.valid_from} on"))
    if result.existing_path:
        lines.append(f"the successor that stands: {result.existing_path}")
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


SUPERSEDE = _operation(
    "supersede",
    "Replace a card",
    "write a new card that closes an old one",
    "A new fact replaces a card: writes the new card, the old one leaves searches. What is not given (title, kind, "
    "tags, scope) is the old card's.",
    (
        CARD,
        param("body", help="the new fact, Markdown", required=True, brief="text"),
        param("title", help="the new title", brief="new"),
        param("valid_from", "scalar", help="default now"),
        param("wrong", "boolean", "the old card was never true", default=False, brief="old was never true"),
        EXPECTED._replace(brief="yours"),
        param("kind", help="kind of fact", door="cli"),
        param("tags", "array", "the tags in all", brief="words"),
        param("source", help="who says so", door="cli"),
        *(p._replace(door="cli") for p in field_params() if p.name != "valid_from"),
        REJECT._replace(door="cli"),
    ),
    _supersede,
    _superseded_text,
    output={**_REVISED_OUTPUT, "supersedes": {"type": "string"}},
)


# ---- out of use, and back ------------------------------------------------------------------------


def _forget(app, args):
    from mcore.revise import forget

    return forget(app, args["card"], args["expected_revision"])


def _restore(app, args):
    from mcore.revise import restore

    return restore(app, args["card"], args["revision"], args["expected_revision"])


def _retract(app, args):
    from mcore.revise import retract

    return retract(app, args["card"], args["reason"], args["expected_revision"])


def _purge(app, args):
    from mcore.revise import purge

    return purge(app, args["card"], args["yes"])


_EXPECTED = EXPECTED._replace(brief="yours")

FORGET = _operation(
    "forget",
    "Forget a card",
    "take a card out of every search; history stays",
    "out of searches, can be restored.",
    (CARD, _EXPECTED),
    _forget,
)
RESTORE = _operation(
    "restore",
    "Restore a card",
    "bring back a forgotten, retracted or deleted card, or a former text",
    "back, or its text at a revision.",
    (CARD, param("revision", help="for restore: a revision from history", brief="to restore"), _EXPECTED),
    _restore,
    tool="memory_forget",
)
RETRACT = _operation(
    "retract",
    "Retract a card",
    "mark a card as having been wrong",
    "it was never true.",
    (CARD, param("reason", help="why it is wrong", brief="why"), _EXPECTED),
    _retract,
    tool="memory_forget",
)
PURGE = _operation(
    "purge",
    "Purge a card",
    "erase a card and its history for good; shows what, --yes erases",
    "erases card and history; a preview unless yes.",
    (CARD, param("yes", "boolean", "erase, not just show what would be", default=False, brief="erase")),
    _purge,
    tool="memory_forget",
    destructive=True,
)


# ---- history -------------------------------------------------------------------------------------


def _history(app, args):
    from mcore.revise import revisions

    return revisions(app, args["card"], args["diff"], args["limit"])


def _history_text(result):
    lines = [f"{result.path}  {counted(result.total, 'revision')}"]
    if result.replaced_by:
        lines.append(f"superseded by: {result.replaced_by}")
    if result.replaces:
        lines.append("replaces: " + ", ".join(result.replaces))
    lines = list(map(in_line, lines))
    for entry in result.revisions:
        when = "now" if entry.current else f"until {entry.replaced_at}"
        state = f"  {entry.state}" if entry.state else ""
        changed = f"  changed {', '.join(entry.fields)}" if entry.fields else ""
        lines.append(in_line(f"{entry.revision}  {when}{state}{changed}  {entry.path}"))
        if entry.diff:
            lines += ["    " + in_line(line) for line in entry.diff.split("\n")]
    left = result.total - len(result.revisions)
    if left:
        lines.append(f"[{counted(left, 'older revision')}: raise limit]")
    return "\n".join([*lines, *note_lines(result.warnings)])


HISTORY = _operation(
    "history",
    "History of a card",
    "the texts a card had, newest first",
    "Revisions of a card, newest first, and what changed.",
    (
        CARD,
        param("diff", "boolean", "with a diff of each", default=False, brief="show"),
        param("limit", "integer", "revisions at most", default=20, minimum=1, maximum=200, clamp=True, brief="most"),
    ),
    _history,
    _history_text,
    read_only=True,
    exit_code=lambda result: EXIT_OK,
    output={"revisions": {"type": "array", "items": {"type": "object"}}, "total": {"type": "integer"}},
)
