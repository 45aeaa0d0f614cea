"""Operations that connect a client: setup, hook. Command line only."""

from mcore.errors import EXIT_OK
from mcore.operation import Operation, param


def _setup(app, args):
    from mcore.connect import setup

    return setup(app, args["client"], apply=args["apply"], remove=args["remove"], show=args["print"],
                 listing=args["list"], hooks=args["hooks"], project=args["project"])  # fmt: skip


def _setup_text(result):
    if result.clients:
        width = max(len(client.name) for client in result.clients)
        lines = []
        for client in result.clients:
            state = "connected" if client.connected else "found" if client.installed else "-"
            lines.append(f"{client.name:{width}}  {state:9}  {client.detail or client.path}")
        return "\n".join([*lines, "", "memory setup CLIENT shows what would change; --apply writes it."])
    if result.snippet:
        return result.snippet.rstrip("\n")
    lines = [result.diff.rstrip("\n")] if result.diff else []
    if result.written:
        lines += [f"written: {path}" for path in result.written]
        lines += [f"former text kept in: {path}" for path in result.backups]
    elif result.changed:
        lines.append("Nothing is written yet: the same command with --apply writes it.")
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


SETUP = Operation(
    name="setup",
    tool=None,
    title="Connect a client",
    summary="connect an MCP client; shows the change, --apply writes it",
    description="",
    params=(
        param("client", help="the client, such as claude-code (--list names all)", positional=True),
        param("list", "boolean", "which clients are on this machine, and whether they are connected", default=False),
        param("apply", "boolean", "write the change (the former text is kept beside the file)", default=False),
        param("remove", "boolean", "take our entries out again", default=False),
        param("print", "boolean", "print the snippet for a client, or for any other one", default=False),
        param("hooks", "boolean", "also run `memory hook` when a session starts", default=False),
        param("project", help="the folder of a project whose own file is meant"),
    ),
    run=_setup,
    text=_setup_text,
    exit_code=lambda result: EXIT_OK,
    read_only=False,
    destructive=False,
    idempotent=True,
    output={},
)


def _hook(app, args):
    from mcore.connect import hook

    return hook(app, args["format"])


HOOK = Operation(
    name="hook",
    tool=None,
    title="Session hook",
    summary="what a client's session-start hook prints",
    description="",
    params=(
        param(
            "format",
            help="whose hook it is: claude, codex, gemini, qwen, cursor, kimi, cline or plain",
            default="plain",
        ),
    ),
    run=_hook,
    text=lambda result: result.output.rstrip("\n"),
    exit_code=lambda result: EXIT_OK,
    read_only=True,
    destructive=False,
    idempotent=True,
    output={},
)
