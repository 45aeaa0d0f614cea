"""The calls that one command makes to the operating system and to SQLite: counted, failing, fatal or noted.

The command runs in a forked child of the fault program, which wraps the calls there and nowhere else. A
`Calls` is given `decide(number, name, arguments)`, asked before each call: it returns None, or the error to
raise in its place, or kills the process. What SQLite itself asks of the system is not seen.
"""

import builtins
import errno
import fcntl
import io
import os
import pickle
import sqlite3
import sys
import tempfile
from collections import namedtuple
from contextlib import suppress

SYSTEM = (
    "open close read write fsync fstat stat lstat mkdir rmdir listdir scandir link rename replace unlink chmod flock"
).split()
SQL = "sql"

Run = namedtuple("Run", "code out err calls noted")
Run.__doc__ = """How a forked command ended (as `harness.Ended`), how many calls it made of those counted, and
what was noted (by default each call that failed, with its first argument); None for both when it was killed."""


class Calls:
    """Wraps the calls of this process, of the operating system (`names` of os) and of SQLite if it has "sql"."""

    def __init__(self, names, decide):
        self.names, self.decide = names, decide
        self.count, self.noted = 0, []

    def at(self, name, *arguments):
        """One call is about to be made: counts it, and raises what is decided."""
        if name in self.names:
            self.count += 1
            error = self.decide(self.count, name, arguments)
            if error is not None:
                self.noted.append((name, *map(str, arguments[:1])))
                raise error

    def install(self):
        for name in SYSTEM:
            module = fcntl if name == "flock" else os
            setattr(module, name, self._wrapped(name, getattr(module, name)))
        os.sync = self._wrapped("sync", os.sync)
        builtins.open = os.fdopen = self._open(builtins.open)
        sqlite3.connect = self._connect(sqlite3.connect)

    def _wrapped(self, name, call):
        def wrapped(*arguments, **more):
            try:
                self.at(name, *arguments)
            except OSError:
                if name == "close":
                    call(*arguments)  # a descriptor is gone even when closing it fails
                raise
            result = call(*arguments, **more)
            self.note(name, arguments, result)
            return result

        return wrapped

    def _open(self, call):
        calls = self

        class File(io.FileIO):
            def write(self, data):
                with suppress(InterruptedError):  # io repeats an interrupted write until it is done
                    calls.at("write", self.fileno(), bytes(data))
                calls.note("write", (self.fileno(), bytes(data)), None)
                return super().write(data)

            def close(self):
                if not self.closed:
                    calls.note("close", (self.fileno(),), None)
                super().close()

        def opened(file, mode="r", buffering=-1, *rest, opener=None, **more):
            if not isinstance(file, int):
                self.at("open", file, mode)
            if "b" in mode and set(mode) & set("wxa") and (isinstance(file, int) or opener):
                raw = File(file, mode, opener=opener)
                return raw if buffering == 0 else io.BufferedWriter(raw)
            return call(file, mode, buffering, *rest, opener=opener, **more)

        return opened

    def _connect(self, call):
        calls = self

        class Connection(sqlite3.Connection):
            def execute(self, sql, *values):
                calls.at(SQL, sql)
                return super().execute(sql, *values)

            def executemany(self, sql, values):
                calls.at(SQL, sql)
                return super().executemany(sql, values)

        return lambda *arguments, **more: call(*arguments, factory=Connection, **more)

    def note(self, name, arguments, result):
        """Told of each call of the operating system that was made; a subclass may keep it in `noted`."""


def forked(place, argv, calls, text=""):
    """Runs a command in a forked child with its calls wrapped; the Run."""
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        names = [os.path.join(folder, name) for name in ("in", "out", "err", "report")]
        with open(names[0], "w", encoding="utf-8") as handle:
            handle.write(text)
        child = os.fork()
        if not child:
            try:
                code = _run(place, argv, calls, *names)
            except BaseException:
                code = 99
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out, err, report = (_content(name) for name in names[1:])
        return Run(status, out, err, *(pickle.loads(report) if report else (None, None)))


def _run(place, argv, calls, stdin, stdout, stderr, report):
    """What the child does; its exit status."""
    os.environ.update(place.environment)
    for descriptor, name, flags in ((0, stdin, os.O_RDONLY), (1, stdout, os.O_WRONLY), (2, stderr, os.O_WRONLY)):
        os.dup2(os.open(name, flags | os.O_CREAT, 0o600), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, closefd=False) for fd, mode in ((0, "r"), (1, "w"), (2, "w")))
    from mcore.cli import main

    kept = {"report": os.open(report, os.O_WRONLY | os.O_CREAT, 0o600), "write": os.write}
    calls.install()
    code = main(list(argv))
    sys.stdout.flush()
    sys.stderr.flush()
    kept["write"](kept["report"], pickle.dumps((calls.count, calls.noted)))
    return code


def _content(name):
    try:
        with open(name, "rb") as handle:
            return handle.read()
    except FileNotFoundError:
        return b""


def system_error(name):
    """The OSError of an errno's name."""
    number = getattr(errno, name)
    return OSError(number, os.strerror(number))
