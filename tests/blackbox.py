"""Runs one black-box case of tests/data/cases.jsonl against the command line, as a stranger would.

A case is a JSON object: id, area, level (must: follows from the SPEC or is a safety rule; goal: quality
beyond it), expect (in plain words), files, steps, and if need be needs, slow, mutates, home_absent.

A file: {path | path_b64, content | content_b64 | gen | symlink | dir | fifo, encoding, mode, mtime, many}.
Paths are relative to the vault, or "home:x", "out:x". A value is text with {VAULT} {HOME} {OUT} {DB}
{id:CARD-PATH} in it, or {join}, {repeat, count, prefix, suffix}, {terms, prefix}, {b64}.

A step is one of
  {args, stdin, env, fsize, timeout, check}    a command; `fsize` bytes is the largest file it may write
  {mcp, init, env, timeout, check}             a server session: all lines, then the end of input
  {parallel, times, check}                     several commands at once, each checked
  {kill_sweep: {args, n, max_ms}}              a command killed at n moments
  {do: write | delete | move | swap | sleep | chmod | db, ...}    what other people and programs do
  {assert: {...}}                              what must stand on the disk

Of every command it is checked, asked or not: it ends in time and by itself, its status is one that is
documented, no traceback, one JSON value in UTF-8 with --json (nothing at all only with status 2). At the end
of every case: no file that the case wrote has changed (unless it says `mutates`) and nothing beside the data
root appeared, vanished or changed.

As a script: python tests/blackbox.py [CASES.jsonl] [--only K0*,Q15] [--area A] [--slow] [--command "memory"].
"""

import argparse
import base64
import contextlib
import fnmatch
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = os.path.join(ROOT, "tests", "data", "cases.jsonl")
COMMAND = [sys.executable, os.path.join(ROOT, "memory.py")]
TIMEOUT = 60  # seconds for one command

# Taken once: cases run in threads, and the tests beside them change os.environ.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_AGENT")}
STATUSES = (0, 1, 2, 3)
RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {f"{p}{n}" for p in ("com", "lpt") for n in range(10)}
FORBIDDEN = set('<>:"/\\|?*\x7f') | set(map(chr, range(32)))
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
PLACE = re.compile(r"\{(VAULT|HOME|OUT|DB|id:[^}]*)\}")
# Sets a limit, then becomes the command: a hook between fork and exec may hang in a process with threads.
LIMITED = "import os, resource, sys; n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)); "
LIMITED += "os.execv(sys.argv[2], sys.argv[2:])"

Ended = namedtuple("Ended", "code out err took")
Ended.__doc__ = "How a command ended: status, both streams as bytes, wall seconds."


class CaseFailed(AssertionError):
    """A check of a case did not hold."""


class CaseSkipped(Exception):
    """This machine cannot run the case: no links, no FIFOs, root where permissions must bind."""


def read_cases(path=CASES):
    """Every case of a JSON-lines file, in its order."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def run_case(spec, command=None, timeout=TIMEOUT, kills=1.0, warm=None):
    """Runs one case to its end. Raises CaseFailed or CaseSkipped; `kills` scales down kill sweeps.

    With `warm` (a WarmStart) commands that ask nothing of the interpreter's start are run by it.
    """
    case = Case(spec, command or COMMAND, timeout, kills, warm)
    where = "files"
    try:
        for file in spec["files"]:
            case.write(file)
        for number, step in enumerate(spec["steps"], 1):
            where = f"step {number}"
            case.take(step)
        where = "end"
        case.check_untouched()
    except CaseFailed as failed:
        raise CaseFailed(f"{spec['id']} ({spec['expect']}) {where}: {failed}") from None
    finally:
        case.close()


class Case:
    """One case at work: its folders, the bytes it wrote, the ids it saw."""

    def __init__(self, spec, command, timeout, kills, warm=None):
        self.spec, self.command, self.timeout, self.kills, self.warm = spec, command, timeout, kills, warm
        self.root = tempfile.mkdtemp(prefix="memory-case-")
        self.home = os.path.join(self.root, "home")
        self.vault = os.path.join(self.home, "vault")
        self.out = os.path.join(self.root, "out")
        self.db = os.path.join(self.home, "memory.db")
        self.places = {"VAULT": self.vault, "HOME": self.home, "OUT": self.out, "DB": self.db}
        self.written, self.ids, self.said, self.locks = {}, {}, [], []
        self._needs(spec.get("needs", ()))
        os.makedirs(self.out)
        if not spec.get("home_absent"):
            os.makedirs(self.vault)
        for name in ("hello.txt", "secret.md"):
            with open(os.path.join(self.out, name), "w", encoding="utf-8") as handle:
                handle.write(f"OUTSIDE-SENTINEL zebrafish 外部哨兵文件 {name}\n")
        self.out_before = tree(self.out)

    def _needs(self, needs):
        if "posix" in needs and os.name != "posix":
            raise CaseSkipped("POSIX alone")
        if "case-sensitive" in needs:
            with tempfile.NamedTemporaryFile(prefix="PROBE-", dir=self.root) as probe:
                if os.path.exists(os.path.join(self.root, os.path.basename(probe.name).lower())):
                    raise CaseSkipped("names of another case are the same here")

    def take(self, step):
        """Runs one step, whichever kind it is."""
        for kind, run in (
            ("args", self.run), ("mcp", self.serve), ("parallel", self.run_together), ("kill_sweep", self.kill_often),
            ("do", self.do), ("assert", lambda step: check_disk(self, step["assert"])),
        ):
            if kind in step:
                return run(step)
        raise ValueError(f"no such step: {sorted(step)}")

    def close(self):
        """Ends a lock and takes the folders away, also those that a case has locked up."""
        for release in self.locks:
            release()
        for base, folders, _ in os.walk(self.root):
            for name in folders:
                path = os.path.join(base, name)
                if not os.path.islink(path):
                    with contextlib.suppress(OSError):
                        os.chmod(path, 0o700)
        shutil.rmtree(self.root, ignore_errors=True)

    # ---- values and files ------------------------------------------------------------------------

    def value(self, value):
        """A case's value as text or bytes."""
        if isinstance(value, dict):
            return self._made(value)
        if not isinstance(value, str):
            return value

        def place(match):
            name = match[1]
            if not name.startswith("id:"):
                return self.places[name]
            if name[3:] not in self.ids:
                raise CaseFailed(f"no search returned {name[3:]} before, so its id is unknown")
            return str(self.ids[name[3:]])

        return PLACE.sub(place, value)

    def _made(self, form):
        if "join" in form:
            return "".join(map(self.value, form["join"]))
        if "repeat" in form:
            return form.get("prefix", "") + form["repeat"] * form["count"] + form.get("suffix", "")
        if "terms" in form:
            return " ".join(f"{form.get('prefix', 't')}{n}" for n in range(form["terms"]))
        if "b64" in form:
            return base64.b64decode(form["b64"])
        raise ValueError(f"no such form of a value: {sorted(form)}")

    def path(self, name):
        """The absolute path of "x" (in the vault), "home:x" or "out:x"."""
        if isinstance(name, bytes):
            return os.path.join(os.fsencode(self.vault), name)
        for prefix, folder in (("home:", self.home), ("out:", self.out)):
            if name.startswith(prefix):
                return os.path.join(folder, name[len(prefix) :])
        return os.path.join(self.vault, name)

    def write(self, file):
        """Makes one file, folder, link or pipe; many of them when the case says so."""
        if "many" in file:
            one = {key: value for key, value in file.items() if key != "many"}
            for number in range(file["many"]):
                self.write({k: v.replace("{i}", str(number)) if isinstance(v, str) else v for k, v in one.items()})
            return
        path = self.path(base64.b64decode(file["path_b64"]) if "path_b64" in file else file["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            if file.get("dir"):
                os.makedirs(path, exist_ok=True)
            elif "symlink" in file:
                os.symlink(self.value(file["symlink"]), path)
            elif file.get("fifo"):
                os.mkfifo(path)
            else:
                self._write_bytes(path, file)
        except (OSError, AttributeError, NotImplementedError) as error:
            raise CaseSkipped(f"this file system refuses {file.get('path')!r}: {error}") from None

    def _write_bytes(self, path, file):
        if "content_b64" in file:
            data = base64.b64decode(file["content_b64"])
        else:
            data = self.value(file.get("gen", file.get("content", "")))
        if isinstance(data, str):
            data = data.encode(file.get("encoding", "utf-8"), "surrogatepass")
        with open(path, "wb") as handle:
            handle.write(data)
        if "mode" in file:
            os.chmod(path, int(file["mode"], 8))
        if "mtime" in file:
            os.utime(path, (file["mtime"], file["mtime"]))
        self.written[path] = digest(data)

    # ---- what others do --------------------------------------------------------------------------

    def do(self, step):
        """A change made by somebody else between two commands."""
        {
            "write": self._do_write, "delete": self._do_delete, "move": self._do_move, "swap": self._do_swap,
            "sleep": lambda step: time.sleep(step["seconds"]), "chmod": self._do_chmod, "db": self._do_db,
        }[step["do"]](step)

    def _do_write(self, step):
        for file in step["files"]:
            self.write(file)

    def _do_delete(self, step):
        for name in step["paths"]:
            path = self.path(name)
            self.written.pop(path, None)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)

    def _do_move(self, step):
        old, new = self.path(step["from"]), self.path(step["to"])
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.rename(old, new)
        for path in [path for path in self.written if path == old or path.startswith(old + os.sep)]:
            self.written[new + path[len(old) :]] = self.written.pop(path)

    def _do_swap(self, step):
        one, other = self.path(step["a"]), self.path(step["b"])
        os.rename(one, one + ".swap")
        os.rename(other, one)
        os.rename(one + ".swap", other)
        self.written[one], self.written[other] = self.written[other], self.written[one]

    def _do_chmod(self, step):
        if not hasattr(os, "geteuid") or os.geteuid() == 0:
            raise CaseSkipped("permissions do not bind root")
        os.chmod(self.path(step["path"]), int(step["mode"], 8))

    def _do_db(self, step):
        """Damages, replaces or locks the index."""
        how = step["how"]
        sides = [self.db + end for end in ("-wal", "-shm", "-journal") if os.path.exists(self.db + end)]
        if how == "sql":
            with contextlib.closing(sqlite3.connect(self.db)) as connection:
                connection.executescript(step["sql"])
                connection.commit()
            return
        if how == "lock":
            self.locks.append(hold_lock(self.db, step["seconds"]))
            return
        for path in sides:
            os.remove(path)
        if how == "truncate":
            os.truncate(self.db, max(1, int(os.path.getsize(self.db) * step.get("keep", 0.5))))
        elif how == "flip":
            flip_bytes(self.db, step.get("every", 97))
        else:
            self._replace_db(how)

    def _replace_db(self, how):
        if os.path.isdir(self.db):
            shutil.rmtree(self.db)
        elif os.path.exists(self.db):
            os.remove(self.db)
        if how == "dir":
            os.makedirs(self.db)
        elif how != "delete":
            data = {"garbage": os.urandom(8192), "text": b"not a database\n" * 50, "empty": b""}[how]
            with open(self.db, "wb") as handle:
                handle.write(data)

    # ---- commands --------------------------------------------------------------------------------

    def start(self, args, step):
        """The started process of one command, in a data root of its own."""
        argv = [*self.command, *map(self.value, args)]
        if os.name == "nt" and any(isinstance(arg, bytes) for arg in argv):
            raise CaseSkipped("arguments of raw bytes")
        if "fsize" in step:
            if os.name != "posix":
                raise CaseSkipped("no limit of file size")
            argv = [sys.executable, "-c", LIMITED, str(step["fsize"]), *argv]
        own = {name: self.value(value) for name, value in step.get("env", {}).items()}
        env = {**ENVIRONMENT, "MEMORY_AGENT_HOME": self.home, **own}
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=self.root)
        except (ValueError, OSError) as error:
            raise CaseSkipped(f"these arguments cannot be passed: {error}") from None

    def wait(self, process, data, limit):
        """The Ended of a process, whose output is remembered."""
        started = time.monotonic()
        try:
            out, err = process.communicate(data, timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise CaseFailed(f"no end after {limit} s") from None
        self.said += [out, err]
        return Ended(process.returncode, out, err, time.monotonic() - started)

    def run(self, step):
        """One command, checked."""
        stdin = self.value(step.get("stdin", ""))
        stdin = stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin
        limit = step.get("timeout", self.timeout)
        argv = [self.value(arg) for arg in step["args"]]
        if self.warm and not {"env", "fsize"} & set(step) and all(map(_can_be_passed, argv)):
            ended = self.run_warm(argv, stdin, limit)
        else:
            ended = self.wait(self.start(step["args"], step), stdin, limit)
        answer = self.accept(ended, step["args"])
        for hit in hits_of(answer):
            path = self.rel_path(hit.get("path"))
            if path and "id" in hit:
                self.ids[path] = hit["id"]
        check_answer(self, step.get("check", {}), ended, answer)

    def run_warm(self, argv, stdin, limit):
        """The Ended of one command that the warm process runs."""
        started = time.monotonic()
        try:
            ended = self.warm.run(argv, stdin, {**ENVIRONMENT, "MEMORY_AGENT_HOME": self.home}, self.root, limit)
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"no end after {limit} s") from None
        self.said += ended[1:]
        return Ended(*ended, time.monotonic() - started)

    def accept(self, ended, args):
        """The JSON answer (None without --json) of a command that behaved as every one must."""
        if ended.code < 0:
            raise CaseFailed(f"killed by signal {-ended.code}")
        if b"Traceback (most recent call last)" in ended.out + ended.err:
            raise CaseFailed(f"traceback: {ended.err.decode('utf-8', 'replace').strip().splitlines()[-1][:140]}")
        if ended.code not in STATUSES:
            raise CaseFailed(f"undocumented status {ended.code}")
        if "--json" not in args or (ended.code == 2 and not ended.out.strip()):
            return None
        try:
            return json.loads(ended.out.decode("utf-8"))
        except ValueError as error:
            raise CaseFailed(f"--json is not one JSON value in UTF-8: {str(error)[:100]}") from None

    def rel_path(self, path):
        """A hit's path relative to the vault, with "/", composed."""
        if not isinstance(path, str):
            return None
        path = path.replace("\\", "/").removeprefix(self.vault.replace("\\", "/") + "/")
        return unicodedata.normalize("NFC", path)

    def run_together(self, step):
        """Several commands at once; each must pass the step's check."""
        batch = [args for args in step["parallel"] for _ in range(step.get("times", 1))]
        started = [(self.start(args, step), args) for args in batch]
        faults = []

        def follow(process, args):
            try:
                ended = self.wait(process, b"", step.get("timeout", 2 * self.timeout))
                check_answer(self, step.get("check", {}), ended, self.accept(ended, args))
            except CaseFailed as failed:
                faults.append(str(failed))

        threads = [threading.Thread(target=follow, args=each) for each in started]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise CaseFailed(f"{len(faults)} of {len(batch)} commands at once: {faults[0]}")

    def kill_often(self, step):
        """Runs a command again and again, killed a little later each time."""
        sweep = step["kill_sweep"]
        count = max(5, round(sweep["n"] * self.kills))
        for number in range(count):
            args = [arg.replace("{n}", str(number)) if isinstance(arg, str) else arg for arg in sweep["args"]]
            process = self.start(args, step)
            try:
                process.communicate(b"", timeout=(number + 1) * sweep["max_ms"] / 1000 / count)
            except subprocess.TimeoutExpired:
                process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
                process.communicate()

    # ---- the server ------------------------------------------------------------------------------

    def serve(self, step):
        """One server session: every line at once, then the end of input; replies by id."""
        lines = [self._line(message) for message in step["mcp"]]
        if step.get("init", True):
            lines[:0] = [json.dumps(message).encode() for message in HANDSHAKE]
        process = self.start(["mcp"], step)
        ended = self.wait(process, b"\n".join(lines) + b"\n", step.get("timeout", self.timeout))
        if ended.code < 0:
            raise CaseFailed(f"the server was killed by signal {-ended.code}")
        replies, count = replies_of(ended.out)
        if step.get("init", True) and '"init"' not in replies:
            raise CaseFailed(f"initialize was not answered: {ended.err[-160:].decode('utf-8', 'replace')}")
        check_replies(self, step.get("check", {}), replies, count, (ended.out + ended.err).decode("utf-8", "replace"))

    def _line(self, message):
        if isinstance(message, dict) and "raw" in message:
            message = self.value(message["raw"])
        elif isinstance(message, dict):
            message = json.dumps(message)
        return message if isinstance(message, bytes) else message.encode("utf-8", "surrogatepass")

    # ---- the end ---------------------------------------------------------------------------------

    def check_untouched(self):
        """The case's own files and everything beside the data root are as they were."""
        if not self.spec.get("mutates"):
            for path, before in self.written.items():
                self._check_same(path, before)
        after, expected = tree(self.out), dict(self.out_before)
        for path in map(os.fsdecode, self.written):
            if path.startswith(self.out + os.sep):
                for part in parents(os.path.relpath(path, self.out)):
                    expected[part] = after.get(part)
        if after != expected:
            changed = sorted(set(after.items()) ^ set(expected.items()))
            raise CaseFailed(f"changed outside the data root: {changed[:4]}")
        stray = set(os.listdir(self.root)) - {"home", "out"}
        if stray:
            raise CaseFailed(f"stray files in the working folder: {sorted(stray)[:4]}")

    def _check_same(self, path, before):
        try:
            with open(path, "rb") as handle:
                after = digest(handle.read())
        except PermissionError:
            return
        except OSError as error:
            raise CaseFailed(f"a source file is lost: {error}") from None
        if after != before and not os.fsdecode(path).startswith(self.db):
            raise CaseFailed(f"a source file changed: {os.fsdecode(path)[len(self.root):]}")


HANDSHAKE = [
    {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "cases", "version": "0"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


# ---- checks of an answer -------------------------------------------------------------------------


def check_answer(case, check, ended, answer):
    """Every check of one command; the plain ones first, then those for its status."""
    text = ended.out.decode("utf-8", "replace")
    everything = text + "\n" + ended.err.decode("utf-8", "replace")
    if "exit" in check:
        wanted = check["exit"] if isinstance(check["exit"], list) else [check["exit"]]
        if ended.code not in wanted:
            raise CaseFailed(f"status {ended.code}, not {wanted}: {everything.strip()[-200:]}")
    _check_hits(case, check, hits_of(answer))
    _check_fields(check, answer)
    strings = "\n".join(strings_of(answer))
    for name, present, held in (
        ("stdout_has", True, text),
        ("text_has", True, strings),
        ("text_not", False, strings),
        ("output_not", False, everything),
    ):
        for piece in map(case.value, check.get(name, ())):
            if (piece in held) != present:
                raise CaseFailed(f"{name}: {piece[:60] if present else piece[:12]!r}")
    if check.get("no_esc") and CONTROL.search(text.replace("\r\n", "\n")):
        raise CaseFailed("control characters reach the terminal")
    if "max_s" in check and ended.took > check["max_s"]:
        raise CaseFailed(f"took {ended.took:.1f} s, not {check['max_s']}")
    more = check.get("when_ok" if ended.code == 0 else "when_bad")
    if more:
        check_answer(case, more, ended, answer)


def _check_hits(case, check, hits):
    paths = [case.rel_path(hit.get("path")) or "" for hit in hits]

    def is_among(path, among):
        path = unicodedata.normalize("NFC", path)
        return any(other == path or other.endswith("/" + path) for other in among)

    for path in check.get("found", ()):
        if not is_among(path, paths):
            raise CaseFailed(f"{path} is not found, but {paths[:5]}")
    for path in check.get("not_found", ()):
        if is_among(path, paths):
            raise CaseFailed(f"{path} is found")
    if "first" in check and not is_among(check["first"], paths[:1]):
        raise CaseFailed(f"the first hit is {paths[:1]}, not {check['first']}")
    least, most = check.get("count_min", 0), check.get("count_max", len(hits))
    if not least <= check.get("count", len(hits)) == len(hits) <= most:
        raise CaseFailed(f"{len(hits)} hits")
    if "found_or_named" in check:
        path = check["found_or_named"]
        said = b"".join(case.said).decode("utf-8", "replace")
        if not is_among(path, paths) and os.path.basename(path) not in said:
            raise CaseFailed(f"{path} is neither found nor named in any message")


def _check_fields(check, answer):
    for key, wanted in check.get("json", {}).items():
        if dig(answer, key) != wanted:
            raise CaseFailed(f"{key} is {dig(answer, key)!r}, not {wanted!r}")
    for key in check.get("json_nonempty", ()):
        if not dig(answer, key):
            raise CaseFailed(f"{key} is empty: {dig(answer, key)!r}")
    for key in check.get("json_empty", ()):
        if dig(answer, key):
            raise CaseFailed(f"{key} is not empty: {dig(answer, key)!r}")
    if "status" in check and dig(answer, "status") != check["status"]:
        raise CaseFailed(f"the status is {dig(answer, 'status')!r}, not {check['status']!r}")


def _can_be_passed(arg):
    """Whether the system passes an argument for certain: not too long, no NUL, nothing that cannot be encoded."""
    try:
        data = os.fsencode(arg)
    except UnicodeEncodeError:
        return False
    return len(data) < 100_000 and b"\0" not in data


def hits_of(answer):
    """The hits in an answer of search; [] in any other."""
    hits = answer.get("hits") if isinstance(answer, dict) else None
    return [hit for hit in hits or () if isinstance(hit, dict)]


def dig(answer, dotted):
    """answer["a"][0]["b"] for "a.0.b"; None where there is nothing."""
    for part in dotted.split("."):
        if isinstance(answer, list) and part.isdigit() and int(part) < len(answer):
            answer = answer[int(part)]
        elif isinstance(answer, dict) and part in answer:
            answer = answer[part]
        else:
            return None
    return answer


def strings_of(value):
    """Every text inside a JSON value; texts that are JSON themselves are opened too."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            with contextlib.suppress(ValueError, RecursionError):
                yield from strings_of(json.loads(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from strings_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)


# ---- checks of a session -------------------------------------------------------------------------


def replies_of(out):
    """(replies by the JSON text of their id, number of replies) of what a server wrote."""
    replies, count = {}, 0
    if b"Traceback" in out:
        raise CaseFailed("traceback on the protocol channel")
    for line in out.splitlines():
        if not line.strip():
            continue
        try:
            message = json.loads(line.decode("utf-8"))
        except ValueError:
            raise CaseFailed(f"a line of stdout is not JSON: {line[:80]!r}") from None
        for reply in message if isinstance(message, list) else [message]:
            if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0":
                raise CaseFailed(f"not JSON-RPC 2.0: {line[:80]!r}")
            count += 1
            replies.setdefault(json.dumps(reply.get("id")), []).append(reply)
    return replies, count


def check_replies(case, check, replies, count, everything):
    """Every check of one session."""
    if check.get("n_replies", count) != count:
        raise CaseFailed(f"{count} replies, not {check['n_replies']}")
    for id, wanted in check.get("replies", {}).items():
        if len(replies.get(id, ())) != 1:
            raise CaseFailed(f"request {id} was answered {len(replies.get(id, ()))} times")
        _check_reply(case, id, wanted, replies[id][0])
    for piece in map(case.value, check.get("output_not", ())):
        if piece in everything:
            raise CaseFailed(f"the output repeats {piece[:12]!r}...")


def _check_reply(case, id, wanted, reply):
    result, error = reply.get("result"), reply.get("error") or {}
    failed = "error" in reply or (isinstance(result, dict) and result.get("isError"))
    if failed and wanted.get("ok") or not failed and wanted.get("err"):
        raise CaseFailed(f"request {id} {'failed' if failed else 'did not fail'}: {json.dumps(reply)[:200]}")
    codes = wanted.get("code", error.get("code"))
    if error.get("code") not in (codes if isinstance(codes, list) else [codes]):
        raise CaseFailed(f"request {id}: code {error.get('code')}, not {codes}")
    text = "\n".join(strings_of(reply))
    for name, present in (("text_has", True), ("text_not", False)):
        for piece in map(case.value, wanted.get(name, ())):
            if (piece in text) != present:
                raise CaseFailed(f"request {id}: {name} {piece[:60] if present else piece[:12]!r}")


# ---- checks of the disk --------------------------------------------------------------------------


def check_disk(case, wanted):
    """Every check of an `assert` step."""
    cards = cards_below(case.vault)
    names = [name for name, _ in cards]
    if len(cards) != wanted.get("cards", len(cards)) or len(cards) > wanted.get("cards_max", len(cards)):
        raise CaseFailed(f"{len(cards)} cards: {names[:6]}")
    for text, count in wanted.get("cards_with", {}).items():
        found = sum(text.encode() in data for _, data in cards)
        if found != count:
            raise CaseFailed(f"{found} cards hold {text[:40]!r}, not {count}")
    for name, there in [(n, True) for n in wanted.get("exists", ())] + [(n, False) for n in wanted.get("absent", ())]:
        if os.path.lexists(case.path(name)) != there:
            raise CaseFailed(f"{name} {'is missing' if there else 'exists'}")
    if "in_folder" in wanted and any(not name.startswith(wanted["in_folder"] + "/") for name in names):
        raise CaseFailed(f"a card outside {wanted['in_folder']}: {names}")
    if "complete" in wanted:
        _check_complete(cards, wanted["complete"])
    if wanted.get("names_ok"):
        check_names(names)
    if "sql" in wanted:
        _check_sql(case.db, wanted["sql"])
    for name, most in wanted.get("mode_max", {}).items() if os.name == "posix" else ():
        mode = stat.S_IMODE(os.stat(case.path(name)).st_mode)
        if mode & ~int(most, 8):
            raise CaseFailed(f"{name} has the mode {mode:o}, more than {most}")


def cards_below(vault):
    """(rel_path, bytes) of every visible card file of a vault, sorted."""
    cards = []
    for base, folders, names in os.walk(vault):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(base, name)
            if name.startswith(".") or not name.lower().endswith(".md") or os.path.islink(path):
                continue
            if os.path.isfile(path):
                with open(path, "rb") as handle:
                    cards.append((os.path.relpath(path, vault).replace(os.sep, "/"), handle.read()))
    return sorted(cards)


def _check_complete(cards, wanted):
    head, tail = wanted["head"].encode(), wanted["tail"].encode()
    for name, data in cards:
        if not data.strip():
            raise CaseFailed(f"an empty card: {name}")
        if (head in data) != (tail in data) or (wanted.get("all") and head not in data):
            raise CaseFailed(f"half a card: {name} ({len(data)} bytes)")


def check_names(names):
    """Raises CaseFailed unless every name can stand on Linux, macOS and Windows, beside the others."""
    seen = {}
    for name in names:
        for part in name.split("/"):
            if len(os.fsencode(part)) > 255:
                raise CaseFailed(f"a name of over 255 bytes: {part[:20]}...")
            if set(part) & FORBIDDEN or part != part.rstrip(". ") or part.startswith(("-", " ")):
                raise CaseFailed(f"a name that is not portable: {part!r}")
            if part.split(".")[0].rstrip(" ").casefold() in RESERVED:
                raise CaseFailed(f"a name that Windows reserves: {part!r}")
            if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\u200c\u200d" for c in part):
                raise CaseFailed(f"an invisible character in the name {part!r}")
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        if key in seen:
            raise CaseFailed(f"one name on macOS or Windows: {seen[key]!r} and {name!r}")
        seen[key] = name


def _check_sql(db, wanted):
    try:
        with contextlib.closing(sqlite3.connect(db)) as connection:
            value = connection.execute(wanted["q"]).fetchone()[0]
    except sqlite3.Error as error:
        raise CaseFailed(f"sql: {error}") from None
    if value < wanted["min"]:
        raise CaseFailed(f"{wanted['q']} gives {value!r}, less than {wanted['min']!r}")


# ---- files ---------------------------------------------------------------------------------------


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tree(folder):
    """{path below it: digest of a file, or type} of a folder; links are not followed."""
    found = {}
    for base, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(base, name)
            kind = stat.S_IFMT(os.lstat(path).st_mode)
            if stat.S_ISREG(kind):
                with open(path, "rb") as handle:
                    kind = digest(handle.read())
            found[os.path.relpath(path, folder)] = str(kind)
    return found


def parents(path):
    """"a/b/c" -> ["a", "a/b", "a/b/c"]."""
    parts = path.split(os.sep)
    return [os.sep.join(parts[:end]) for end in range(1, len(parts) + 1)]


def flip_bytes(path, every):
    """Changes every so many bytes of a file, from the hundredth on."""
    with open(path, "r+b") as handle:
        data = bytearray(handle.read())
        for at in range(100, len(data), every):
            data[at] ^= 0x5A
        handle.seek(0)
        handle.write(data)


def hold_lock(db, seconds):
    """Holds a database exclusively for some seconds; returns what releases it at once."""
    connection = sqlite3.connect(db, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("CREATE TABLE tester_lock (x)")

    def release():
        timer.cancel()
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        connection.close()

    timer = threading.Timer(seconds, release)
    timer.start()
    return release


# ---- as a script ---------------------------------------------------------------------------------


def main(argv=None):
    """Runs cases and prints a line for each that fails; 1 when one did."""
    parser = argparse.ArgumentParser(description="Black-box cases against the command line.")
    parser.add_argument("cases", nargs="?", default=CASES)
    parser.add_argument("--only", default="*", help="ids or shell patterns, with commas between")
    parser.add_argument("--area", default="*")
    parser.add_argument("--slow", action="store_true", help="also the cases marked slow")
    parser.add_argument("--command", default=shlex.join(COMMAND))
    options = parser.parse_args(argv)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for spec in read_cases(options.cases):
        wanted = any(fnmatch.fnmatch(spec["id"], pattern) for pattern in options.only.split(","))
        if not wanted or not fnmatch.fnmatch(spec["area"], options.area) or (spec.get("slow") and not options.slow):
            continue
        try:
            run_case(spec, shlex.split(options.command))
            counts["passed"] += 1
        except CaseSkipped as why:
            counts["skipped"] += 1
            print(f"skipped {spec['id']}: {why}")
        except CaseFailed as failed:
            counts["failed"] += 1
            print(f"FAILED {ascii(str(failed))}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
