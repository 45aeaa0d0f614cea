"""Keeps the index fresh in a thread of its own, so that calls do not wait for a look at a large vault.

As long as a look is quick, every call takes its own. Once one was slow, a thread looks again and again while
calls come, with pauses that keep it to a tenth of one core, and a call is content with its last look. When no call has
come for a while the thread rests, and the next call takes a look of its own again.
"""

import threading
import time

from mcore.errors import McoreError
from mcore.mcp_server.wires import complain

QUICK_SECONDS = 0.1  # about 20,000 files
PAUSE_SHARE, MIN_PAUSE = 10, 1.0  # times the length of the last look; seconds
REST_SECONDS = 600.0  # without a call


class Keeper:
    """`app_factory()` gives the App for the thread, when it is needed."""

    def __init__(self, app_factory, clock=time.monotonic):
        self._app_factory = app_factory
        self._clock = clock
        self._change = threading.Condition()
        self._thread = None
        self._closed = False
        self._called = self._began = float("-inf")
        self._seconds, self._last = 0.0, None

    def freshness(self, look):
        """The Freshness for a call: of the thread's last look if that is recent, else what `look()` gives."""
        with self._change:
            self._called = self._clock()
            if self._seconds > QUICK_SECONDS:
                self._keep_looking()
                if self._called - self._began <= self._pause() + 2 * self._seconds:
                    return self._last
        return self._timed(look)

    def close(self):
        """Ends the thread after the piece of work it is at."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _timed(self, look):
        """What a look gives; remembers it, when it began and how long it took."""
        began = self._clock()
        found = look()
        with self._change:
            self._began, self._seconds, self._last = began, self._clock() - began, found
        return found

    def _pause(self):
        return max(MIN_PAUSE, PAUSE_SHARE * self._seconds)

    def _keep_looking(self):
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._change.notify_all()

    def _run(self):
        app = self._app_factory()
        try:
            while self._is_wanted():
                self._timed(lambda: app.indexer.refresh(app.store))
        except McoreError:
            pass  # the next call takes its own look, and says what is wrong
        except Exception as fault:
            complain(f"looking for changed files: {type(fault).__name__}")
        finally:
            app.close()
            with self._change:
                self._thread, self._began = None, float("-inf")

    def _is_wanted(self):
        """Waits for the time of the next look; False when the thread is to end."""
        with self._change:
            due = self._began + self._pause()
            while not self._closed and (left := due - self._clock()) > 0:
                self._change.wait(left)
            return not self._closed and self._clock() - self._called < REST_SECONDS
