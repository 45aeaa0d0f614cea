"""The process around the protocol: descriptors, the reading loop, signals, and the end.

The main thread reads and answers what is quick (handshake, ping, lists); calls run in lanes; one
thread writes. So nothing that runs or blocks keeps a ping or a cancellation from being read.
Nothing of the vault or the index is touched here.
"""

import os
import signal
import threading
import time

import mcore
from mcore.jsonrpc import INTERNAL_ERROR, MAX_ANSWER, Lines, Request, encode, error, read
from mcore.mcp_server.session import Answer, Batch, Call, Cancel, Session
from mcore.mcp_server.wires import Outbox, complain, occupy_standard_descriptors, private

try:
    from select import POLLIN, POLLNVAL, poll
except ImportError:  # Windows
    poll = None

# Seconds after the end of input that a client is given the answers still owed to it, counted anew
# with each answer. The SDKs terminate a server after 2 s, and our own promise is one second.
DRAIN = 0.5

# The same for input that ended with its last message, as when a script pipes its requests in: there
# nobody is leaving, so the answers are worth waiting for.
DRAIN_SCRIPT = 10.0

# Input that ends this soon (seconds) after all before it was handled ended with its last message.
SCRIPT_GAP = 0.05

# Seconds for a write under way to end in good order, once the process is to go.
LAST_CALL = 0.35

# Bytes of answers that nobody has read, before reading stops too.
MAX_UNSENT = 64 * 1024 * 1024


def serve(app_factory, operations_loader, stdin_fd=0, stdout_fd=1, accept=None):
    """Serves MCP until the input ends, a signal comes or the client is gone; the exit code, 0.

    `app_factory()` gives the App of one worker thread, `operations_loader()` the operations; neither
    is called before the client lists or calls a tool. `accept(operation)` says which tools to offer
    (None: all). Takes over descriptors 0 to 2 and the signals, so it is the last thing a process
    does; when a call cannot be ended in time it ends the process itself, with status 0.
    """

    def operations():
        return [op for op in operations_loader() if op.tool and (accept is None or accept(op))]

    occupy_standard_descriptors()
    session = Session(operations, getattr(mcore, "__version__", "0"))
    return Shell(session, app_factory, private(stdin_fd), private(stdout_fd)).run()


class Shell:
    """One connection over two descriptors, which no one else writes to or reads from."""

    def __init__(self, session, app_factory, in_fd, out_fd):
        self._session = session
        self._app_factory = app_factory
        self._in, self._out = in_fd, out_fd
        self._stopping = False
        self._lines = Lines()
        self._outbox = Outbox(out_fd, self._stop)
        self._lanes = self._keeper = None
        self._wake_in, self._wake_out = os.pipe() if poll else (None, None)
        self._poll = self._watch() if poll else None

    def run(self):
        """Reads to the end, then closes; 0."""
        self._heed_signals()
        if os.isatty(self._in):
            complain("waiting for JSON-RPC on stdin; an MCP client starts this, see `memory setup --list`")
        patience = self._read_all()
        self._drain(patience)
        if self._keeper is not None:
            self._keeper.close()
        if self._lanes is not None and not self._lanes.close(LAST_CALL):
            os._exit(0)
        return 0

    # -- reading

    def _read_all(self):
        """Handles every message; gives the seconds to wait for the answers that are still owed."""
        while True:
            before = time.monotonic()
            chunk = self._receive()
            if not chunk:
                break
            for line in self._lines.feed(chunk):
                self._handle(line)
            while self._outbox.unsent > MAX_UNSENT and not self._stopping:
                time.sleep(0.01)
        piped = time.monotonic() - before < SCRIPT_GAP
        self._handle_rest()
        if piped and self._lanes is not None:
            self._lanes.patience = DRAIN_SCRIPT
        return DRAIN_SCRIPT if piped else DRAIN

    def _receive(self):
        """The next bytes; b"" when the input ended, the client is gone or a signal came."""
        if self._poll is not None:
            ready = [fd for fd, _ in self._poll.poll()]
            if self._wake_in in ready or self._out in ready:
                self._stopping = True
        if self._stopping:
            return b""
        try:
            return os.read(self._in, 65536)
        except OSError:
            return b""

    def _handle(self, line):
        """Does what one line asks for."""
        message = read(line)
        try:
            outcome = self._session.receive(message)
            self._act(outcome, self._outbox.put)
        except Exception as fault:
            complain(f"{type(fault).__name__} while handling a message")
            if isinstance(message, (Request, list)):
                self._outbox.put(encode(error(getattr(message, "id", None), INTERNAL_ERROR, "Internal error")))

    def _handle_rest(self):
        """Handles a last line without line end if it is whole; half a message is no message."""
        rest = self._lines.rest()
        if rest and not self._stopping and isinstance(read(rest), Request):
            self._handle(rest)

    def _act(self, outcome, deliver):
        if isinstance(outcome, Answer):
            deliver(encode(outcome.message))
        elif isinstance(outcome, Call):
            self._started_lanes().submit(outcome, deliver)
        elif isinstance(outcome, Cancel):
            if self._lanes is not None:
                self._lanes.cancel(outcome.id)
        elif isinstance(outcome, Batch):
            owed = sum(isinstance(part, (Answer, Call)) for part in outcome.outcomes)
            array = Array(owed, deliver)
            for part in outcome.outcomes:
                self._act(part, array.add)

    def _started_lanes(self):
        """The lanes, made for the first call: the handshake must not pay for their modules."""
        if self._lanes is None:
            from mcore.mcp_server.keeper import Keeper
            from mcore.mcp_server.lanes import Lanes
            from mcore.mcp_server.worker import Worker

            answer, send = self._session.call_answer, self._outbox.put
            self._keeper = Keeper(self._app_factory)
            self._lanes = Lanes(lambda: Worker(self._app_factory, answer, send, self._keeper.freshness))
        return self._lanes

    # -- the end

    def _watch(self):
        """Waits for input, for a wake-up, and (events 0: errors only) for the client to close stdout."""
        watched = poll()
        watched.register(self._in, POLLIN)
        watched.register(self._wake_in, POLLIN)
        watched.register(self._out, 0)
        if (self._out, POLLNVAL) in watched.poll(0):  # macOS cannot watch some devices
            watched.unregister(self._out)
        return watched

    def _heed_signals(self):
        """The three that ask a server to go, which is not an error. Windows has none to heed."""
        if poll is None or threading.current_thread() is not threading.main_thread():
            return
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            signal.signal(getattr(signal, name), self._stop)
        # A signal that comes between two instructions of Python and the start of poll() runs no handler
        # until poll() returns; only this makes poll() return (seen in 4 of 10 runs).
        os.set_blocking(self._wake_out, False)
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)

    def _stop(self, *_):
        """Ends the reading loop, from a signal handler or from the writing thread."""
        if poll is None:
            os._exit(0)
        self._stopping = True
        os.write(self._wake_out, b"!")

    def _client_gone(self):
        return self._poll is not None and any(fd == self._out for fd, _ in self._poll.poll(0))

    def _drain(self, patience):
        """Waits until all that was read is answered, but not longer than `patience` between answers."""
        owed, since = None, 0
        while not self._stopping and not self._client_gone():
            left = self._lanes.unfinished() if self._lanes else 0, self._outbox.unsent
            if left == (0, 0):
                return
            if left != owed:
                owed, since = left, time.monotonic()
            if time.monotonic() - since > patience:
                return
            time.sleep(0.005)


class Array:
    """The answers of a batch, sent together once `owed` of them are there; none at all sends nothing.

    Answers that would make one line too long for a client leave one by one instead.
    """

    def __init__(self, owed, deliver):
        self._owed = owed
        self._deliver = deliver
        self._lines = []
        self._lock = threading.Lock()

    def add(self, line):
        """Takes one answer; None is an answer withdrawn."""
        with self._lock:
            self._owed -= 1
            if line is not None:
                self._lines.append(line.rstrip(b"\n"))
            if self._owed == 0:
                self._send()

    def _send(self):
        if sum(map(len, self._lines)) > MAX_ANSWER:
            for line in self._lines:
                self._deliver(line + b"\n")
        elif self._lines:
            self._deliver(b"[" + b",".join(self._lines) + b"]\n")
