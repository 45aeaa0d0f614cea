"""Operations that write cards: capture."""

from mcore.card import DEFAULT_KIND, KIND_FOLDERS
from mcore.errors import EXIT_CONFLICT, EXIT_NOTHING, EXIT_OK
from mcore.operation import Operation, param
from mcore.ops.lifecycle import FIELD_NAMES, REJECT, field_params
from mcore.render import in_line, note_lines

_EXIT = {"created": EXIT_OK, "unchanged": EXIT_OK, "rejected": EXIT_NOTHING, "conflict": EXIT_CONFLICT}


def _capture(app, args):
    from mcore.capture import capture

    return capture(
        app,
        args["title"],
        args["body"],
        args["kind"],
        args["tags"],
        args["source"] or app.client,
        args["on_conflict"],
        args["reject_secrets"],
        {name: args[name] for name in (*FIELD_NAMES, "priority")},
    )


def _capture_text(result):
    lines = [f"{result.status}: {result.path}" if result.path else result.status]
    if result.id is not None:
        lines[0] += f"  id {result.id}  revision {result.revision}"
    if result.conflict:
        lines.append(f"a card with this title exists: {result.existing_path}")
    for card in result.similar:
        lines.append(f"similar: {card.title}  {card.path}")
    return "\n".join([*map(in_line, lines), *note_lines(result.warnings)])


CAPTURE = Operation(
    name="capture",
    tool="memory_capture",
    title="Save a card",
    summary="write one card and index it",
    description=(
        "Save one durable fact as a card: a decision and why, a host, path or version, a mistake and its fix, a "
        "preference. The body must stand alone (20+ characters). No secrets: write where they are kept. Search "
        "first; the answer names similar cards."
    ),
    params=(
        param("title", help="short", required=True),
        param("body", help="the fact, Markdown", required=True),
        param("kind", help="kind of fact", default=DEFAULT_KIND, choices=tuple(KIND_FOLDERS), brief="kind"),
        param("tags", "array", "tags", default=(), brief="words"),
        *field_params(),
        param("priority", "scalar", help="as you use it", door="cli"),
        param("source", help="who says so (default: the client's name)", door="cli"),
        param(
            "on_conflict",
            help="same title, other body: second card, or refuse",
            default="suffix",
            choices=("suffix", "reject"),
            brief="same title",
        ),
        REJECT,
    ),
    run=_capture,
    text=_capture_text,
    exit_code=lambda result: _EXIT[result.status],
    read_only=False,
    destructive=False,
    idempotent=True,
    output={
        "status": {"type": "string"},
        "indexed": {"type": "boolean"},
        "conflict": {"type": "boolean"},
        "secrets_found": {"type": "array", "items": {"type": "object"}},
        "similar": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array", "items": {"type": "object"}},
    },
)
