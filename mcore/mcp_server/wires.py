"""The two descriptors of the wire, kept apart from everything else that reads and prints."""

import os
import threading
import time


class Outbox:
    """Lines on their way to the client, written by one thread, so that no other ever blocks on it."""

    def __init__(self, fd, on_broken):
        self.unsent = 0
        self._fd = fd
        self._on_broken = on_broken
        self._lines = []
        self._filled = threading.Condition()
        threading.Thread(target=self._write_all, daemon=True).start()

    def put(self, line):
        """Sends `line` after those before it; None is nothing to send."""
        if line is None:
            return
        with self._filled:
            self._lines.append(line)
            self.unsent += len(line)
            self._filled.notify()

    def _write_all(self):
        try:
            while True:
                with self._filled:
                    while not self._lines:
                        self._filled.wait()
                    chunk = b"".join(self._lines)
                    self._lines.clear()
                self._write(chunk)
        except OSError:
            # EPIPE, or EINVAL on Windows: the client is gone, and there is nobody to tell.
            self._on_broken()

    def _write(self, chunk):
        rest = memoryview(chunk)
        while rest:
            try:
                size = os.write(self._fd, rest)
            except BlockingIOError:
                # Somebody made the pipe non-blocking, and the client is slow to read.
                time.sleep(0.01)
                continue
            rest = rest[size:]
            with self._filled:
                self.unsent -= size


def occupy_standard_descriptors():
    """Opens the null device as each of 0, 1 and 2 that is closed.

    Otherwise the next file that is opened, the index for one, would get that number, and a stray
    print or a dying child would write into it.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def private(fd):
    """A copy of `fd` that no child inherits; the original then leads nowhere near the protocol.

    Reading from 0 gives an end of file (a child that waits for input must not eat requests), and
    what a library or a child prints to 1 goes to stderr.
    """
    copy = os.dup(fd)
    if fd == 0:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
    elif fd == 1:
        os.dup2(2, 1)
    if os.name == "nt":
        import msvcrt

        msvcrt.setmode(copy, os.O_BINARY)
    else:
        os.set_blocking(copy, True)
    return copy


def complain(text):
    """One line on stderr; a closed stderr is no reason to stop."""
    try:
        os.write(2, f"memory mcp: {text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
