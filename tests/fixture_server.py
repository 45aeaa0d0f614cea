"""A server on the real protocol engine with operations made to be slow, to fail and to misbehave.

`python tests/fixture_server.py` serves it on stdio; with `reading` it offers only the tools that read, with
`broken` its catalogue cannot be loaded. tests/test_mcp.py drives it where the product's
own operations are too fast or too well behaved to show what the engine does.
"""

import os
import subprocess
import sys
import time
from collections import namedtuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mcore.errors import Cancelled, NotFound, SetupError, StoreError  # noqa: E402
from mcore.operation import Operation, param  # noqa: E402

SECRET = "sesame-4711"
NOTES = []

Told = namedtuple("Told", "text notes client app")


class App:
    """Stands where the product's App stands: opened late, one for each thread, told of each call."""

    opened = 0

    def __init__(self):
        App.opened += 1
        self.number = App.opened
        self.client = "nobody"
        self.cancelled = None
        self.progress = None

    def close(self):
        """Nothing is held."""


def told(app, text):
    """The result that all operations here give."""
    return Told(text, list(NOTES), app.client, app.number)


def find(app, args):
    return told(app, f"{args['query']} {args['limit']} {','.join(args['tags'])}")


def add(app, args):
    time.sleep(0.05)
    NOTES.append(args["title"])
    return told(app, "added")


def slow(app, args):
    """Counts to 100 in `seconds`; a stubborn one does not look whether it is cancelled."""
    for step in range(100):
        time.sleep(args["seconds"] / 100)
        if app.progress is not None:
            app.progress(step, 100, f"step {step}")
            app.progress(step - 1, 100, "a step back, which must not be sent")
        if app.cancelled() and not args["stubborn"]:
            raise Cancelled("withdrawn")
    NOTES.append("slow")
    return told(app, "counted")


def fail(app, args):
    """Fails in the way `how` names."""
    how = args["how"]
    if how == "crash":
        raise KeyError(SECRET)
    if how == "exit":
        sys.exit(7)
    if how == "nan":
        return told(app, float("nan"))
    if how == "huge":
        return told(app, "x" * 12_000_000)
    if how == "odd":
        return told(app, "lone \ud800 \udfff, line \u2028 paragraph \u2029 next \x85 nul \0")
    kinds = {"store": StoreError, "missing": NotFound, "setup": SetupError}
    raise kinds[how]("it is so", "because", "do that")


def chatter(app, args):
    """Does everything a careless library does to the standard descriptors."""
    print("printed")
    os.write(1, b"written\n")
    child = "import sys; print('a child wrote this'); sys.exit(len(sys.stdin.read()))"
    done = subprocess.run([sys.executable, "-c", child], timeout=20)
    return told(app, f"the child read {done.returncode} characters")


def operation(name, run, *params, read_only=True):
    """A record as the product has them."""
    return Operation(
        name=name,
        tool=f"fixture_{name}",
        title=name.capitalize(),
        summary=name,
        description=f"Fixture operation: {name}.",
        params=params,
        run=run,
        text=lambda result: str(result.text),
        exit_code=lambda result: 0,
        read_only=read_only,
        destructive=False,
        idempotent=read_only,
        output={"text": {"type": "string"}, "notes": {"type": "array", "items": {"type": "string"}}},
    )


_SECONDS = param("seconds", "integer", "How long it takes", default=3, minimum=1, maximum=60, clamp=True)
_STUBBORN = param("stubborn", "boolean", "Do not look at the cancellation", default=False)

OPERATIONS = (
    operation(
        "find",
        find,
        param("query", help="What to look for", required=True),
        param("limit", "integer", "At most so many", default=5, minimum=1, maximum=20, clamp=True),
        param("tags", "array", "Labels", default=()),
    ),
    operation("list", lambda app, args: told(app, "listed")),
    operation("add", add, param("title", help="Its name", required=True), read_only=False),
    operation("slow", slow, _SECONDS, _STUBBORN, read_only=False),
    operation("slow_read", slow, _SECONDS, _STUBBORN),
    operation(
        "fail",
        fail,
        param(
            "how",
            help="In which way",
            required=True,
            choices=("crash", "exit", "nan", "huge", "odd", "store", "missing", "setup"),
        ),
    ),
    operation("chatter", chatter),
)


if __name__ == "__main__":
    from mcore.mcp_server import serve

    def load():
        if "broken" in sys.argv:
            raise ImportError(SECRET)
        return OPERATIONS

    def reads(operation):
        return operation.read_only

    sys.exit(serve(App, load, accept=reads if "reading" in sys.argv else None))
