"""Carries out calls, one after another, in the thread it was made in. Owns that thread's App."""

import os
import time

from mcore.errors import Cancelled, CardError, McoreError, NotFound, UsageError
from mcore.jsonrpc import INTERNAL_ERROR, MAX_ANSWER, encode, error, is_id, notification
from mcore.mcp_server.answers import failure, success
from mcore.mcp_server.wires import complain
from mcore.operation import bind, carry_out

# Seconds between two progress notes of one call; people cannot read faster, and clients log each.
PROGRESS_PAUSE = 0.1

_NEVER = float("-inf")

# After these the index is as good as before; after anything else it is opened anew for the next call.
_HARMLESS = (UsageError, NotFound, CardError, Cancelled)


class Worker:
    """`app_factory()` gives an App, when the first call needs one; `answer(call, value)` the message
    that answers a call; `send(line)` takes progress notes; `kept` goes to the App.
    """

    def __init__(self, app_factory, answer, send, kept=None):
        self._app_factory = app_factory
        self._kept = kept
        self._answer = answer
        self._send = send
        self._app = None
        self._nameless = None

    def carry_out(self, task):
        """Runs the call and finishes the task; a failure of any kind is an answer too."""
        try:
            line = self._line(task)
        except BaseException as fault:
            complain(f"{task.call.operation.tool}: {_place(fault)}")
            line = encode(error(task.call.id, INTERNAL_ERROR, "Internal error"))
        task.finish(line)

    def close(self):
        """Closes the App; a fault on the way out harms nobody and is only told."""
        app, self._app = self._app, None
        if app is None:
            return
        try:
            app.close()
        except Exception as fault:
            complain(f"close: {_place(fault)}")

    def _line(self, task):
        """The line that answers `task`."""
        call = task.call
        try:
            line = encode(self._answer(call, self._run(task)))
            if len(line) <= MAX_ANSWER:
                return line
            value = failure(
                "too-long",
                f"The answer has {len(line)} bytes, more than MCP clients take",
                hint="ask for less: a smaller limit or max_chars, or one page after another with offset",
            )
        except McoreError as fault:
            if not isinstance(fault, _HARMLESS):
                self.close()
            value = failure(fault.slug, fault.message, fault.why, fault.hint)
        except BaseException as fault:
            self.close()
            complain(f"{call.operation.tool}: {_place(fault)}")
            value = failure(
                "internal",
                f"{call.operation.tool} could not finish: {type(fault).__name__}, a fault in memory-agent",
                hint="the server goes on; try another call, and report this with the line on its stderr",
            )
        return encode(self._answer(call, value))

    def _run(self, task):
        """The result of the call as MCP shows it."""
        call = task.call
        args = bind(call.operation, call.arguments)
        if self._app is None:
            self._app = self._app_factory()
            self._app.kept = self._kept
            self._nameless = self._app.client
        app = self._app
        app.client = call.client or self._nameless
        app.cancelled = task.is_cancelled
        app.progress = None if call.token is None else Progress(task, self._send)
        return success(call.operation, carry_out(call.operation, app, args))


class Progress:
    """Tells the client how far a call is: rising values only, not too many, none after the answer."""

    def __init__(self, task, send, clock=time.monotonic):
        self._task = task
        self._send = send
        self._clock = clock
        self._last = _NEVER
        self._quiet_until = _NEVER

    def __call__(self, done, total=None, message=None):
        """`done` of `total` (None: unknown) units; may be called as often as one likes."""
        now = self._clock()
        if not is_id(done) or isinstance(done, str) or done <= self._last or now < self._quiet_until:
            return
        params = {"progressToken": self._task.call.token, "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        with self._task.lock:
            if not self._task.over and not self._task.cancelled:
                self._send(encode(notification("notifications/progress", params)))
        self._last, self._quiet_until = done, now + PROGRESS_PAUSE


def _place(fault):
    """The kind of `fault` and where it arose. Not its text, which may repeat what a card holds."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(fault).__name__
    name = os.path.basename(trace.tb_frame.f_code.co_filename)
    return f"{type(fault).__name__} at {name}:{trace.tb_lineno}"
