"""The calls on their way: lanes for writing and for reading, and who may go next.

Each lane is a thread with a worker of its own (a SQLite connection belongs to one thread). This
module knows order and cancellation; what a call does is the worker's, what it says the session's.
"""

import threading
import time

# Seconds that a call may hold up those behind it. A capture takes milliseconds, so a search sent
# right after it finds the new card; a rebuild takes longer, and a search then goes past it.
PATIENCE = 1.0

# A second lane keeps one slow search from holding up the next, and a rebuild a capture; each costs an open index.
LANES = 2


class Task:
    """One call on its way, from the moment it is read until it is answered or withdrawn.

    `deliver` takes the line of the answer, or None when there will be none, and is called once.
    """

    def __init__(self, call, deliver):
        self.call = call
        self.writing = not call.operation.read_only
        self.started = None
        self.cancelled = False
        self.over = False
        self.lock = threading.Lock()
        self._deliver = deliver

    def is_cancelled(self):
        """True when nobody waits for the answer any more."""
        return self.cancelled

    def finish(self, line):
        """Sends `line`, unless the call was withdrawn; nothing is sent for this task afterwards."""
        with self.lock:
            if self.over:
                return
            self.over = True
            self._deliver(None if self.cancelled else line)


def next_task(waiting, running, writing, now, patience=PATIENCE):
    """The task that a free lane (`writing` or not) may start at `now`, or None.

    Writes run alone and in order; reads run beside each other. A task waits for those of the other
    kind that came before it, so that a client that sends a capture and a search in one go gets
    what it expects. But once a running task has taken `patience` seconds nothing waits for it any more:
    a search is answered and a card captured while an index is rebuilt.
    """
    slow = [task for task in running if now - task.started > patience]
    holding = [task for task in running if task not in slow and (writing or task.writing)]
    for task in waiting:
        if task.writing == writing:
            return None if holding else task
        if not any(other.writing == task.writing for other in slow):
            return None
    return None


class Lanes:
    """Starts threads when there is work for them, and hands every task to one.

    `make_worker` is called in each new thread and gives an object with `carry_out(task)` and
    `close()`; it and its work must not raise.
    """

    def __init__(self, make_worker, clock=time.monotonic):
        self.patience = PATIENCE
        self._make_worker = make_worker
        self._clock = clock
        self._change = threading.Condition()
        self._waiting = []
        self._running = []
        self._free = {True: 0, False: 0}
        self._threads = {True: [], False: []}
        self._closed = False

    def submit(self, call, deliver):
        """Puts a new task behind all others."""
        task = Task(call, deliver)
        kind = task.writing
        with self._change:
            same = sum(other.writing == kind for other in self._waiting)
            if same >= self._free[kind] and len(self._threads[kind]) < LANES:
                self._start(kind)
            self._waiting.append(task)
            self._change.notify_all()

    def _start(self, kind):
        thread = threading.Thread(target=self._lane, args=(kind,), daemon=True)
        thread.start()
        self._threads[kind].append(thread)
        self._free[kind] += 1

    def _lane(self, kind):
        """The life of one thread."""
        worker = self._make_worker()
        while (task := self._take(kind)) is not None:
            worker.carry_out(task)
            self._leave(task)
        worker.close()

    def _take(self, kind):
        """The next task of this kind, waiting for it; None when the lanes are closed."""
        with self._change:
            while not self._closed:
                task = next_task(self._waiting, self._running, kind, self._clock(), self.patience)
                if task is not None:
                    self._waiting.remove(task)
                    task.started = self._clock()
                    self._running.append(task)
                    self._free[kind] -= 1
                    return task
                # Time itself lets a task pass a slow one, and nobody tells that one has begun to run: so no notice
                # is waited for while there are tasks.
                self._change.wait(0.1 if self._waiting else None)
        return None

    def _leave(self, task):
        with self._change:
            self._running.remove(task)
            self._free[task.writing] += 1
            self._change.notify_all()

    def cancel(self, id_):
        """Withdraws the task with this id: one that waits is dropped, one that runs is told."""
        with self._change:
            dropped = [task for task in self._waiting if task.call.id == id_]
            for task in dropped:
                self._waiting.remove(task)
            for task in dropped + self._running:
                if task.call.id == id_:
                    task.cancelled = True
            self._change.notify_all()
        for task in dropped:
            task.finish(None)

    def unfinished(self):
        """How many tasks wait or run whose answer somebody waits for."""
        with self._change:
            return len(self._waiting) + sum(not task.cancelled for task in self._running)

    def close(self, seconds):
        """Withdraws everything and ends the threads; True when all had ended within `seconds`."""
        with self._change:
            self._closed = True
            self._waiting.clear()
            for task in self._running:
                task.cancelled = True
            self._change.notify_all()
            threads = self._threads[True] + self._threads[False]
        until = self._clock() + seconds
        for thread in threads:
            thread.join(max(0, until - self._clock()))
        return not any(thread.is_alive() for thread in threads)
