"""Card files -> the rows that the index stores of them: read, parsed and cut. Source files are only read.

Many files are prepared in helper processes, while the caller stores what is ready and prepares some itself when
nothing is; the lists of frequent terms are made the same way. There is a helper less than there are processors:
three processes on two of them took a sixth more CPU. A helper is a plain child with a pipe each way, driven by a
thread of a `concurrent.futures` pool. multiprocessing's pool was left out: its workers outlive a killed parent
and hold its stdout open (an MCP client would wait for ever), spawned ones run an unguarded main script again,
forked ones are unsafe beside the server's threads. These helpers end with their input, and start the same way on
every system.
"""

import errno
import json
import os
import sys
import time
from collections import deque
from contextlib import contextmanager
from functools import lru_cache

from mcore import validity, vault
from mcore.card import content_hash
from mcore.cardfile import read_card
from mcore.errors import CardError
from mcore.record import namedtuple
from mcore.render import scrub
from mcore.store import NO_LIFE, Row, list_part
from mcore.termlists import Part
from mcore.tokenize import columns

RACY_NS = 2_000_000_000  # FAT keeps two seconds; other file systems 1 to 10 ms
BATCH_CARDS, BATCH_BYTES = 500, 4_000_000  # of one batch, whichever comes first
HELPERS_ABOVE = 20_000  # files; handing rows over takes a tenth more CPU, which waiting for fewer is not worth
CARDS_A_HELPER = 40_000  # as many are worth one more
MAX_HELPERS = 2  # storing takes about as long as preparing, so that more would wait
AHEAD = 3  # batches that are ready or on their way, beyond one for each helper
PIPE_BYTES = 1 << 20  # as much as Linux allows; a pipe of 64 KB makes a helper wait for this process again and again

_encode = json.JSONEncoder(ensure_ascii=False).encode

File = namedtuple("File", "rel_path path raw_name stamp")
File.__doc__ = """A card file to be prepared: `path` opens it, `raw_name` is its real name (bytes) where
`rel_path` cannot hold it, `stamp` the Stamp a walk saw, if one was made."""

Prepared = namedtuple("Prepared", "rel_path row reason stamp")
Prepared.__doc__ = "A file ready to be stored; without a `row`, `reason` says why there is none."


def utc_now(seconds=None):
    """A time (seconds since 1970, now by default) as UTC text, such as 2026-11-30T21:35:00Z."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return ""  # a file dated beyond what the system's calendar knows


_second = lru_cache(maxsize=2)(utc_now)


def is_racy(stamp, read_ns):
    """Whether a file changed so shortly before it was read that its stamp may hide a later edit.

    A modification time far in the future was set by hand and tells nothing.
    """
    since = read_ns - RACY_NS
    return stamp.ctime_ns > since or since < stamp.mtime_ns < read_ns + RACY_NS


def prepare(file, max_bytes):
    """The Prepared of one File; one of over `max_bytes` is not read."""
    now = time.time_ns()
    try:
        data, stamp = vault.read_bytes(file.path, max_bytes)
        text, remark = vault.decode(data)
    except CardError as error:
        stamp = file.stamp or vault.Stamp(0, 0, 0, 0)
        if is_racy(stamp, now) or _may_pass(error.__context__):
            stamp = stamp._replace(ctime_ns=0)  # differs from the file's, so that it is tried again
        return Prepared(file.rel_path, None, error.message, stamp)
    card = read_card(file.rel_path, text)
    row = Row(
        None,
        file.rel_path,
        file.raw_name,
        *_head_columns(card),
        content_hash(data),
        *stamp,
        int(is_racy(stamp, now)),
        remark,
        _second(now // 1_000_000_000),
        *(NO_LIFE if card.life is validity.PLAIN else _life_columns(card, stamp)),
        columns(*searched_texts(card)),
    )
    return Prepared(file.rel_path, row, "", stamp)


def told(card):
    """What is stored of a Card as it says it itself, in the order of `store.TOLD`."""
    plain = card.life is validity.PLAIN
    life = NO_LIFE if plain else _life_columns(card, vault.Stamp(0, 0, 0, 0))
    _, _, _, _, review_by, pinned, confidence, links, notes, _ = life
    return (*_head_columns(card), review_by, pinned, confidence, links, notes)


def _json_list(texts):
    """A list of texts as JSON; most need no escapes."""
    joined = '", "'.join(texts)
    if joined.count('"') != 2 * max(0, len(texts) - 1) or "\\" in joined or not joined.isprintable():
        return _encode(texts)
    return f'["{joined}"]' if texts else "[]"


def searched_texts(card):
    """(title, labels, body) of a Card as the full text gets them: nothing of a forgotten one."""
    if card.life.forgotten:
        return "", "", ""
    return _storable(card.title), _storable(card.labels), card.body.replace("\0", " ")  # decoded: no lone surrogate


def _head_columns(card):
    """The columns `title` to `length` of a card."""
    return (
        _storable(card.title),
        _storable(card.kind),
        _storable(card.source),
        _json_list([_storable(tag) for tag in card.tags]),
        _storable(card.priority),
        _storable(card.ttl),
        _storable(card.created),
        _storable(card.updated),
        len(card.body),
    )


def _life_columns(card, stamp):
    """The columns `scope` to `special` of a card whose frontmatter says something of its life."""
    life = card.life
    mark = validity.FORGOTTEN if life.forgotten else validity.RETRACTED if life.retracted else ""
    start, end = validity.interval(life, card.created, card.updated, stamp.mtime_ns / 1e9)
    links = [(target, False) for target in life.supersedes] + [(target, True) for target in life.retracts]
    if life.retracted:  # forgotten too, its mark does not say so; what it closed is open again
        links = []
    return (
        _storable(life.scope),
        mark,
        start,
        end,
        life.review_by,
        int(life.pinned),
        _storable(life.confidence),
        _storable(_encode(links)) if links else None,
        _storable("\n".join(life.notes)),
        1,
    )


def _may_pass(fault):
    """Whether what kept a file from being read may be over without a trace on the file (too many open
    files, a network disk that was away); a right that is missing shows when it is given."""
    return isinstance(fault, OSError) and fault.errno not in (errno.EACCES, errno.EPERM, errno.ELOOP)


def _storable(text):
    """Text that SQLite stores whole: no NUL, no lone surrogate; None stays."""
    return text if not text or text.isprintable() else scrub(text).replace("\0", " ")


# ---- many files ----------------------------------------------------------------------------------


def prepare_batches(files, max_bytes, helpers):
    """Lists of Prepared for Files, in their order, from `helpers` other processes (0: from this one).

    Close the generator to stop early. A helper that fails is replaced by this process.
    """
    if not helpers:
        yield from ([prepare(file, max_bytes) for file in batch] for batch in _batches(files))
        return
    prepared = _shared(_batches(files), max_bytes, helpers)
    next(prepared)
    yield from prepared


def list_parts(jobs, path, helpers):
    """The termlists.Part of each job over the index at `path`, in their order, from `helpers` other processes too.

    They begin at once, on a copy: while this process does not ask for the first part, it may merge the index.
    """
    parts = _list_parts(jobs, path, helpers)
    next(parts)
    return parts


def _list_parts(jobs, path, helpers):
    """The same, behind a None."""
    copy = f"{path}.build-0"
    try:
        is_copied = _copied(path, copy)
        if not is_copied:
            yield None
        early = helpers + AHEAD if is_copied else 0
        parts = _shared([(copy if at < early else path, job) for at, job in enumerate(jobs)], 0, helpers)
        if not is_copied:
            next(parts)
        yield from parts
    finally:
        _remove(copy)


def _copied(path, copy):
    """Copies an index for one's own eyes only; whether there was room."""
    from shutil import copyfile

    try:
        os.close(os.open(copy, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
        copyfile(path, copy)
    except OSError:
        _remove(copy)  # what the lists are written to needs the room
        return False
    return True


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def _shared(tasks, max_bytes, helpers):
    """None once the first tasks are given out; then what `_done` makes of each task, in their order: worked on by
    helpers, and here instead of waiting for them."""
    from concurrent.futures import Future, ThreadPoolExecutor

    tasks, is_told = iter(tasks), False
    with _crew(helpers, max_bytes) as ask, ThreadPoolExecutor(helpers) as pool:
        waiting = deque()  # (Future of what comes of a task, the task)
        try:
            while True:
                while len(waiting) < helpers + AHEAD and (task := next(tasks, None)) is not None:
                    waiting.append((pool.submit(ask, task), task))
                if not is_told:
                    is_told = True
                    yield None
                if not waiting:
                    return
                first = waiting[0][0]
                at = None if first.done() else next((at for at, (one, _) in enumerate(waiting) if one.cancel()), None)
                if at is None:
                    waiting.popleft()
                    yield first.result()
                else:
                    task = waiting[at][1]
                    waiting[at] = Future(), task
                    waiting[at][0].set_result(_done(task, max_bytes))
        finally:
            for future, _ in waiting:
                future.cancel()


def helpers_for(count):
    """How many helpers `count` files are worth on this machine."""
    if count < HELPERS_ABOVE or not sys.executable or getattr(sys, "frozen", False):
        return 0
    try:
        processors = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every system
        processors = os.cpu_count() or 1
    return min(MAX_HELPERS, processors - 1, 1 + count // CARDS_A_HELPER)


def _batches(files):
    """Lists of up to BATCH_CARDS Files and about BATCH_BYTES."""
    batch, size = [], 0
    for file in files:
        batch.append(file)
        size += file.stamp.size if file.stamp else 0
        if len(batch) == BATCH_CARDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _done(task, max_bytes):
    """The Prepared of each File in a list, or the Part of an index (path, job)."""
    return list_part(*task) if isinstance(task, tuple) else [prepare(file, max_bytes) for file in task]


def _plain(answer):
    """What `_done` gave as values that marshal takes; texts for FTS5 as the UTF-8 that SQLite makes of them anyway."""
    if isinstance(answer, Part):
        return tuple(answer)
    return [
        (rel_path, row and (*row[:-1], tuple([text.encode() for text in row.columns])), reason, tuple(stamp))
        for rel_path, row, reason, stamp in answer
    ]


def _named(answer):
    """The other way round; the `columns` of a row stay bytes."""
    if isinstance(answer, tuple):
        return Part(*answer)
    return [Prepared(path, row and Row(*row), reason, vault.Stamp(*stamp)) for path, row, reason, stamp in answer]


@contextmanager
def _crew(number, max_bytes):
    """Starts helpers; gives a function from a task to what `_done` makes of it, for `number` threads."""
    from queue import SimpleQueue

    free, crew = SimpleQueue(), [_Helper(max_bytes) for _ in range(number)]
    for helper in crew:
        free.put(helper)

    def ask(task):
        helper = free.get()
        try:
            return helper.do(task)
        finally:
            free.put(helper)

    try:
        yield ask
    finally:
        for helper in crew:
            helper.stop()


_HELPER = "import sys; sys.path.insert(0, sys.argv[1]); from mcore.prepare import serve; serve()"


class _Helper:
    """Another process that does tasks; this one does them, when that cannot be started or died."""

    def __init__(self, max_bytes):
        import subprocess

        self._max_bytes = max_bytes
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        # -I and -S: no foreign code, half the start. The coding of file names must be the same on both sides.
        switches = ["-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *switches, "-c", _HELPER, root, str(max_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError:
            self._process = None
        else:
            _widen(self._process.stdout)

    def do(self, task):
        if self._process:
            try:
                return self._asked(task)
            except Exception:  # it died, or its answer is cut short
                self.stop()
        return _done(task, self._max_bytes)

    def _asked(self, task):
        import marshal  # half the cost of pickle, which matters for the texts of all cards
        import pickle

        pickle.dump(task, self._process.stdin)
        self._process.stdin.flush()
        read = self._process.stdout.read
        return _named(marshal.loads(read(int.from_bytes(read(8), "little"))))

    def stop(self):
        """Ends the process; what it was asked for last is lost."""
        process, self._process = self._process, None
        if process:
            process.kill()
            process.wait()
            process.stdout.close()
            try:
                process.stdin.close()
            except OSError:
                pass  # what was not written yet has no reader


def _widen(pipe):
    """Gives a pipe more room, where the system can."""
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        pass


def serve():
    """The whole life of a helper: does the tasks that come on stdin until there are no more."""
    import gc
    import marshal
    import pickle
    import signal

    gc.set_threshold(20_000)  # a batch lives and dies as a whole
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, whose end is the end of stdin
    max_bytes = int(sys.argv[2])
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer = marshal.dumps(_plain(_done(task, max_bytes)))
        sys.stdout.buffer.write(len(answer).to_bytes(8, "little"))
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
