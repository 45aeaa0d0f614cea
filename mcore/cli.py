"""The command line: argv -> operation -> text or JSON on stdout. Adds nothing to an operation.

What only this door can offer stands here: `--db`, `--vault`, `--json`, a body from standard input, a
progress line. Only the parser of the command asked for is built: building all of them costs more
than a search.
"""

import os
import sys

from mcore import __version__
from mcore.errors import EXIT_INTERRUPTED, EXIT_OK, CardError, McoreError, UsageError

_GLOBAL_VALUES = ("--db", "--vault", "--home")


class OutputError(McoreError):
    """The answer cannot be written to standard output: a full disk, a closed descriptor."""

    slug = "output"


HOOK_SECONDS = 0.3  # a hook stands between a person and the agent: all of it takes under a second
# Which tools a server offers: those that only read, those that erase nothing, or all.
_TOOLS = {
    "read": lambda operation: operation.read_only,
    "write": lambda operation: not operation.destructive,
    "all": lambda operation: True,
}
_MCP_HELP = "serve the same operations to an MCP client over standard input and output"


def main(argv=None):
    """Runs one command and returns its exit status; prints nothing but the answer on stdout."""
    argv = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in argv[: argv.index("--")] if "--" in argv else "--json" in argv
    try:
        return _told(argv, as_json)
    except BrokenPipeError:
        return _closed_pipe()
    except OutputError as error:
        return EXIT_OK if _is_hook(argv) else _fail(error, as_json=False)


def _told(argv, as_json):
    """The exit status of one command, every failure said; raises only when stdout cannot be written."""
    try:
        return _run(argv)
    except (BrokenPipeError, OutputError):
        raise
    except McoreError as error:
        return EXIT_OK if _is_hook(argv) else _fail(error, as_json)
    except KeyboardInterrupt:
        _say("memory: interrupted; the index is whole, nothing was half written")
        return EXIT_INTERRUPTED
    except SystemExit as done:  # argparse, after it has printed a help text
        return done.code or EXIT_OK
    except Exception as error:  # the last line of defence: a fault of ours, said as such
        return EXIT_OK if _is_hook(argv) else _own_fault(error, argv, as_json)


def _is_hook(argv):
    """A hook fails open: whatever goes wrong, the client goes on and is told nothing."""
    return _command_word(argv) == "hook"


def _run(argv):
    word = _command_word(argv)
    if word is None:
        if "--version" in argv:
            return _write(f"memory-agent {__version__}")
        if not argv or {"-h", "--help"} & set(argv):
            return _write(_overview())
        raise UsageError("no command is given", hint="memory --help lists them")
    if word == "help":
        rest = _without_command(argv)
        if _command_word(rest) in (None, "help"):
            return _write(_overview())
        return _run([*rest, "--help"])
    if word == "mcp":
        return _serve(argv)
    from mcore.ops import OPERATIONS

    for operation in OPERATIONS:
        if operation.name == word and (operation.claims is None or operation.claims(list(_plain_words(argv))[1:])):
            return _operate(operation, argv)
    raise UsageError(f"there is no command {word!r}", hint=_like(word, [o.name for o in OPERATIONS] + ["mcp"]))


def _plain_words(argv):
    """The arguments in turn that are neither flags nor the values of the flags that every command has."""
    skip = False
    for arg in argv:
        if skip:
            skip = False
        elif arg in _GLOBAL_VALUES:
            skip = True
        elif not arg.startswith("-"):
            yield arg


def _command_word(argv):
    """The first plain word, if there is one."""
    return next(_plain_words(argv), None)


def _without_command(argv):
    """The arguments without the command's word (a flag's value may be the same word)."""
    word = _command_word(argv)
    for at, arg in enumerate(argv):
        if arg == word and (not at or argv[at - 1] not in _GLOBAL_VALUES):
            return argv[:at] + argv[at + 1 :]
    return argv


def _overview():
    from mcore.ops import OPERATIONS

    width = max(len(o.name) for o in OPERATIONS)
    lines = ["usage: memory [--db FILE] [--vault FOLDER] COMMAND ...", "", "A local memory of Markdown cards.", ""]
    lines += [f"  {o.name:{width}}  {o.summary}" for o in OPERATIONS]
    lines.append(f"  {'mcp':{width}}  {_MCP_HELP}")
    lines += [
        "",
        "memory COMMAND --help explains one; --json makes any answer machine-readable.",
        "Exit status: 0 done, 1 nothing found or rejected, 2 could not run, 3 title taken and refused.",
    ]
    return "\n".join(lines)


# What other programs call it.
_ELSEWHERE = {
    "search": "find grep query recall ask lookup", "show": "get cat read open view",
    "capture": "add new save create write remember put insert note", "forget": "delete remove rm del",
    "stats": "ls list info status", "update": "edit change modify", "index": "reindex sync scan ingest",
    "setup": "install init connect", "mcp": "serve server", "doctor": "check diagnose", "history": "log versions",
}  # fmt: skip


def _like(word, names):
    import difflib

    known = [name for name, others in _ELSEWHERE.items() if word.casefold() in others.split()]
    near = known or difflib.get_close_matches(word, names, 1)
    return f"did you mean {near[0]!r}?" if near else "memory --help lists the commands"


# ---- one operation -------------------------------------------------------------------------------


def _operate(operation, argv):
    from mcore.app import App
    from mcore.operation import bind, carry_out

    options = _plain_options(operation, argv) or vars(_parser(operation).parse_intermixed_args(argv))
    options.pop("command")
    wait = HOOK_SECONDS if operation.name == "hook" else None
    app = App(options.pop("db"), options.pop("vault"), home=options.pop("home"), wait=wait)
    as_json, debug = options.pop("json"), options.pop("debug")
    raw = {name: value for name, value in options.items() if value is not None and value != []}
    needs_body = any(p.name == "body" and p.required for p in operation.params)
    if raw.get("body", "-" if needs_body else None) == "-":
        raw["body"] = _standard_input(operation)
    for p in operation.params:
        if p.positional and isinstance(raw.get(p.name), list):
            raw[p.name] = " ".join(raw[p.name])
    app.progress = _Progress() if sys.stderr and sys.stderr.isatty() else None
    try:
        result = carry_out(operation, app, bind(operation, raw, door="cli"))
    except McoreError as error:
        if debug:
            _say_traceback(error)
        raise
    finally:
        if app.progress:
            app.progress.clear()
        app.close()
    return _answer(operation, result, as_json)


def _answer(operation, result, as_json):
    from mcore.render import for_terminal, to_json

    _write(to_json(result) if as_json else for_terminal(operation.text(result)))
    return operation.exit_code(result)


def _plain_options(operation, argv):
    """What argparse makes of an ordinary command line; None for any other, which it has to judge.

    Ordinary are known flags, values that do not begin with a dash, and as many words as the operation takes.
    argparse costs 4 ms, a tenth of a search.
    """
    params = [p for p in operation.params if p.door != "mcp"]
    flags = {name: (p.name, p.type != "boolean") for p in params if not p.positional for name in _flags(p)}
    flags.update((name, (name[2:], name in _GLOBAL_VALUES)) for name in (*_GLOBAL_VALUES, "--json", "--debug"))
    options = {p.name: None for p in params} | {name[2:]: None for name in _GLOBAL_VALUES}
    options |= {"json": False, "debug": False}
    words, args = [], iter(argv)
    for arg in args:
        if arg[:1] != "-":
            words.append(arg)
            continue
        name, takes_value = flags.get(arg, ("", False))
        value = next(args, "-") if takes_value else True
        if not name or takes_value and value[:1] == "-":
            return None
        options[name] = value
    options["command"], *words = words
    places = [p for p in params if p.positional]
    if len(places) != 1 or not (words or places[0].name == "query" and not places[0].required):
        return options if not places and not words else None
    if places[0].name != "query" and len(words) > 1:
        return None
    options[places[0].name] = words if places[0].name == "query" else words[0]
    return options


def _flags(p):
    """The flags that set a parameter (to true, if it is a boolean)."""
    return (*p.flags, "--" + p.name.replace("_", "-"))


def _parser(operation):
    """The argparse parser of one operation, made from its record."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message):
            hint = f"memory {operation.name} --help shows its arguments"
            if "expected one argument" in message:
                hint += "; a value that begins with a dash is given as --name=VALUE"
            elif "required" in message or "unrecognized arguments: -" in message:
                hint += "; words that begin with a dash come after --"
            elif "unrecognized arguments" in message and any(p.positional for p in operation.params):
                hint += "; text with spaces is put in quotes"
            elif "unrecognized arguments" in message:
                hint += "; every value follows its flag (a folder of cards: --vault FOLDER)"
            raise UsageError(f"{operation.name}: {message}", hint=hint)

        def _print_message(self, message, file=None):
            if message:
                _write(message.rstrip("\n"))

    parser = Parser(
        prog="memory",
        usage=f"memory {operation.name} [options]"
        + "".join(f" {p.name.upper()}" for p in operation.params if p.positional),
        description=operation.summary,
        # A given width spares argparse the import of shutil (3 ms) to ask the terminal.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=_help_width()),
        allow_abbrev=False,
    )
    parser.add_argument("command", metavar=operation.name, help=argparse.SUPPRESS)
    for p in operation.params:
        if p.door != "mcp":
            _add_argument(parser, argparse, p)
    parser.add_argument("--json", action="store_true", help="answer with one JSON object")
    parser.add_argument("--db", metavar="FILE", help="the index file")
    parser.add_argument("--vault", metavar="FOLDER", help="the folder of cards")
    parser.add_argument("--home", metavar="FOLDER", help="the data root")
    parser.add_argument("--debug", action="store_true", help="show a traceback when something fails")
    return parser


def _help_width():
    try:
        return max(60, min(120, int(os.environ.get("COLUMNS", 100))))
    except ValueError:
        return 100


def _add_argument(parser, argparse, p):
    if p.positional:
        many = p.name == "query"
        nargs = ("+" if p.required else "*") if many else None if p.required else "?"
        parser.add_argument(p.name, nargs=nargs, help=p.help)
        return
    *_, flag = _flags(p)
    text = p.help + (f" (default {p.default})" if p.default not in (None, False, ()) else "")
    if p.type == "boolean":
        parser.add_argument(*p.flags, flag, dest=p.name, action="store_const", const=True, help=text)
        if p.default is None:  # a mark that a card has can be taken away
            no = flag.replace("--", "--no-", 1)
            parser.add_argument(no, dest=p.name, action="store_const", const=False, help=f"not {flag[2:]}")
    else:
        parser.add_argument(*p.flags, flag, dest=p.name, metavar=_metavar(p), help=text.replace("%", "%%"))


def _metavar(p):
    if p.choices:
        return "{" + ",".join(p.choices) + "}"
    return {"integer": "N", "array": "A,B"}.get(p.type, "TEXT")


def _standard_input(operation):
    """The body from standard input: UTF-8 whatever the console's code page, or marked UTF-16 and UTF-32.

    What is not UTF-8 comes as U+FFFD, which every operation that writes warns of.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"{operation.name} needs a body", hint="give --body TEXT, or pipe the text into the command")
    from mcore.vault import decode

    try:
        return decode(sys.stdin.buffer.read())[0]
    except CardError as error:
        raise UsageError(f"standard input cannot be a body: {error.message}", hint="pipe in text in UTF-8") from None


def _serve(argv):
    from mcore.mcp_server import serve

    rest = _without_command(argv)
    if {"-h", "--help"} & set(rest):
        usage = "usage: memory mcp [--db FILE] [--vault FOLDER] [--home FOLDER] [--tools read|write|all]"
        return _write(f"{usage}\n\n{_MCP_HELP}")
    flags = {**dict.fromkeys(_GLOBAL_VALUES), "--tools": "all"}
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in flags or not (equals or rest):
            hint = "memory mcp takes --db, --vault, --home and --tools"
            raise UsageError(f"memory mcp: cannot use {name!r}", hint=hint)
        flags[name] = value if equals else rest.pop(0)
    if flags["--tools"] not in _TOOLS:
        raise UsageError(f"there is no set of tools {flags['--tools'][:40]!r}", hint="one of: " + ", ".join(_TOOLS))

    def operations():
        from mcore.ops import OPERATIONS

        return OPERATIONS

    def app():
        from mcore.app import App  # after the first answer

        return App(flags["--db"], flags["--vault"], client="mcp", home=flags["--home"])

    status = serve(app, operations, accept=_TOOLS[flags["--tools"]])
    # Nothing is left to save, and tearing the interpreter down costs 5 ms of every client's start.
    os._exit(status)


# ---- output --------------------------------------------------------------------------------------


def _write(text):
    """Writes text as UTF-8 bytes, whatever the locale says; returns 0."""
    from mcore.render import scrub

    data = (scrub(text) + "\n").encode("utf-8")
    if sys.stdout is None:
        raise OutputError("cannot write the answer", "standard output is closed", "the command itself was carried out")
    try:
        sys.stdout.flush()
        stream = getattr(sys.stdout, "buffer", None)
        if stream is None:  # a test's in-memory stdout
            sys.stdout.write(data.decode())
        else:
            stream.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _closed_pipe()
        raise OutputError(
            "cannot write the answer to standard output",
            error.strerror or str(error),
            "the command itself was carried out",
        ) from None
    return EXIT_OK


def _say(text):
    """A line on stderr that no console can refuse."""
    from mcore.render import for_terminal

    try:
        stream = getattr(sys.stderr, "buffer", None)
        data = (for_terminal(text) + "\n").encode("utf-8")
        stream.write(data) if stream else sys.stderr.write(data.decode())
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def _fail(error, as_json):
    """Says what happened, why and what to do; as one JSON object on stdout when asked."""
    from mcore.secretscan import redact

    # An argument that is refused may be a credential, given in the wrong place.
    message, why, hint = redact(error.message), redact(error.why), redact(error.hint)
    if as_json:
        from mcore.render import to_json

        both = f"{message}: {why}" if why else message
        _write(to_json({"error": {"slug": error.slug, "message": both, "hint": hint}}))
    else:
        _say(f"memory: {message}")
        if why:
            _say(f"  why: {why}")
        if hint:
            _say(f"  do:  {hint}")
    return error.exit_code


def _say_traceback(error):
    import traceback

    from mcore.secretscan import redact

    _say(redact("".join(traceback.format_exception(type(error), error, error.__traceback__))))


def _own_fault(error, argv, as_json):
    """A fault in this program: said as such, with the traceback only when debugging is asked for."""
    if "--debug" in argv:
        _say_traceback(error)
    return _fail(
        McoreError(
            f"a fault in memory-agent stopped this command ({type(error).__name__})",
            "",
            "run it again with --debug and report what it prints; no card was changed. Until then "
            "memory index --rebuild may help, in case the index is damaged",
        ),
        as_json,
    )


def _closed_pipe():
    """The reader went away: not our trouble. What is left unwritten cannot make Python complain at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
    return EXIT_OK


def _insist_on_utf8():
    """Starts over in UTF-8 mode where the locale would make Python refuse Chinese file names.

    `LC_ALL=C` alone is no trouble (PEP 538, PEP 540); it is with both of their switches turned off.
    """
    if os.name == "posix" and sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


class _Progress:
    """One line on a terminal that is written over: cards done, rate, time left."""

    EVERY_SECONDS = 0.2

    def __init__(self):
        import time

        self._clock = time.monotonic
        self._started = self._last = self._clock()
        self._shown = False

    def __call__(self, done, total, message=None):
        now = self._clock()
        if now - self._last < self.EVERY_SECONDS or now - self._started < 2 * self.EVERY_SECONDS:
            return
        self._last, self._shown = now, True
        rate = done / (now - self._started)
        left = f"{(total - done) / rate:.0f} s left" if rate else ""
        sys.stderr.write(f"\r\x1b[K{done} of {total} cards, {rate:.0f}/s, {left}")
        sys.stderr.flush()

    def clear(self):
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def entry():
    """The console script: `memory`."""
    _insist_on_utf8()
    status = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream:
                stream.flush()
    except BrokenPipeError:
        status = _closed_pipe()
    except (OSError, ValueError):
        pass  # that the answer could not be written is told by now
    # Nothing is left to save or to close, and tearing the interpreter down is an eighth of a search.
    os._exit(status)
