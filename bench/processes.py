"""Runs programs and says what they cost: CPU of the process and all its children, wall time, peak memory of all."""

import os
import subprocess
import sys
import threading
import time
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEMORY = [sys.executable, os.path.join(ROOT, "memory.py")]
LOOK_EVERY = 0.05  # seconds between two looks at the memory of a program's processes

Ran = namedtuple("Ran", "cpu wall peak_mb out code")
Ran.__doc__ = "Seconds of CPU (user + system) and of wall time, MB, standard output as text, exit code."


def run(command, home, given="", expected=(0, 1), folder=None, **variables):
    """The Ran of one command that reads `given`, in a `folder` and with environment `variables` if named.

    Ends the program when the exit code is not `expected` (empty: any is).
    Byte code is cached as on any ordinary machine, whatever the environment says.
    """
    env = {**os.environ, "MEMORY_AGENT_HOME": home, **variables}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=folder)
    watch = _MemoryWatch(process.pid)
    fault = []
    reader = threading.Thread(target=lambda: fault.append(process.stderr.read().decode(errors="replace")))
    reader.start()
    try:
        process.stdin.write(given.encode())
        process.stdin.close()
    except BrokenPipeError:
        pass
    out = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    reader.join()
    process.stdout.close()
    process.stderr.close()
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if expected and code not in expected:
        raise SystemExit(f"{command} failed with {code}: {fault[0]}")
    return Ran(usage.ru_utime + usage.ru_stime, wall, max(watch.stop(), usage.ru_maxrss / 1024), out, code)


class _MemoryWatch:
    """Adds up the resident memory of a process and its children again and again (Linux; elsewhere 0).

    Pages that two of them share count for each: the sum is no less than what they use.
    """

    def __init__(self, pid):
        self._pid = pid
        self._peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while not self._over.wait(LOOK_EVERY):
            self._peak = max(self._peak, sum(map(_resident_mb, _family(self._pid))))

    def stop(self):
        self._over.set()
        self._thread.join()
        return self._peak


def _family(pid):
    yield pid
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as handle:
                for child in handle.read().split():
                    yield from _family(int(child))
    except OSError:
        return


def _resident_mb(pid):
    try:
        with open(f"/proc/{pid}/statm") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except (OSError, ValueError, IndexError):
        return 0


def size_of(folder):
    """Bytes of all files below a folder."""
    return sum(os.path.getsize(os.path.join(base, name)) for base, _, names in os.walk(folder) for name in names)
