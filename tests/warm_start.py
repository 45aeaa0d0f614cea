"""Runs commands in forks of a process that has the program loaded: what a start costs is paid once, not each time.

Each command is a process of its own all the same, with its own environment, folder and streams. What depends on how
an interpreter starts (variables it heeds, limits, a server, a kill) is no work for this.
"""

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = "app ops importer search capture revise show context stats doctor selftest backup benchmark connect".split()
IS_POSSIBLE = hasattr(os, "fork") and hasattr(socket, "send_fds")


class WarmStart:
    """The process that forks; may be asked from several threads. Use as a context manager."""

    def __enter__(self):
        self._link, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, os.path.abspath(__file__), str(theirs.fileno())]
            self._server = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self._link.close()
        self._server.wait()

    def run(self, argv, data, env, folder, limit):
        """(status, stdout, stderr) of `memory argv...`; the status of one that was killed is -9.

        `argv` are texts or bytes, `data` goes to its standard input. Raises TimeoutExpired after `limit` seconds.
        """
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(4)]
            for file, content in zip(files, (pickle.dumps((argv, env, folder)), data), strict=False):
                file.write(content)
                file.seek(0)
            ours, theirs = os.pipe()
            try:
                socket.send_fds(self._link, [b"x"], [*(file.fileno() for file in files), theirs])
            finally:
                os.close(theirs)
            with open(ours, "rb", buffering=0) as said:
                pid, status = int(said.readline()), b""
                if not select.select([said], [], [], limit)[0]:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(argv, limit)
                status = said.read()
            for file in files[2:]:
                file.seek(0)
            return int(status or -9), files[2].read(), files[3].read()


def serve(number):
    """Forks for every request that comes over the socket with this descriptor, until it is closed."""
    import importlib

    for name in WORK:
        importlib.import_module(f"mcore.{name}")
    with socket.socket(fileno=number) as link:
        while True:
            message, descriptors, *_ = socket.recv_fds(link, 1, 5)
            if not message:
                return reap()
            if os.fork() == 0:
                link.close()
                carry_out(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            reap()


def reap():
    """Takes leave of the children that have ended; what they cost counts as this process's then."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def carry_out(request, stdin, stdout, stderr, said):
    """Does one command and ends the process."""
    os.write(said, b"%d\n" % os.getpid())
    with open(request, "rb") as handle:
        argv, env, folder = pickle.load(handle)
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    from mcore.cli import main

    code = main([os.fsdecode(arg) for arg in argv])
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(said, b"%d" % code)
    os._exit(code)


if __name__ == "__main__":
    sys.path.insert(0, ROOT)
    serve(int(sys.argv[1]))
