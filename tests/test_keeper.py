"""mcore/mcp_server/keeper.py: calls on a large vault do not wait for a look at it, and still see edits."""

import time

import pytest

from mcore.importer import Freshness
from mcore.mcp_server import keeper
from mcore.mcp_server.keeper import Keeper


class Calls:
    """A caller with an App of its own that counts the looks it had to take itself."""

    def __init__(self, app, kept):
        self.app, self.kept, self.own = app, kept, 0
        app.kept = lambda look: kept.freshness(lambda: self._count(look))

    def _count(self, look):
        self.own += 1
        return look()

    def search(self, query):
        return self.app.searcher.search(query)


@pytest.fixture
def calls(make_app, write_note):
    write_note("a.md", "okapi")
    kept = Keeper(make_app_for_thread(make_app))
    yield Calls(make_app(), kept)
    kept.close()


def make_app_for_thread(make_app):
    """The thread closes its App itself, since a SQLite connection belongs to one thread."""
    from mcore.app import App

    settings = make_app().settings
    return lambda: App(None, settings.vault.path)


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_each_call_looks_itself_while_that_is_quick(calls):
    for expected in (Freshness(1, 1, 0, 0), Freshness(1, 0, 0, 0)):
        assert calls.search("okapi").freshness == expected
    assert calls.own == 2


def test_calls_on_a_large_vault_do_not_look_and_see_an_edit(calls, write_note, monkeypatch):
    monkeypatch.setattr(keeper, "QUICK_SECONDS", 0.0)
    calls.search("okapi")
    write_note("b.md", "zebra")
    calls.search("okapi")
    wait_for(lambda: calls.kept._last.checked == 2)  # a call that finds the thread late would look itself
    found = calls.search("zebra")
    assert ([hit.path for hit in found.hits], found.freshness.checked) == (["b.md"], 2)
    assert calls.own == 1, "only the first call took a look of its own"


def test_after_a_rest_a_call_looks_itself(calls, monkeypatch):
    monkeypatch.setattr(keeper, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(keeper, "REST_SECONDS", -1.0)  # the thread ends at once
    calls.search("okapi")
    calls.search("okapi")
    assert calls.own == 1
    wait_for(lambda: calls.kept._thread is None)
    calls.search("okapi")
    assert calls.own == 2


def test_the_thread_ends_with_the_server(calls, monkeypatch):
    monkeypatch.setattr(keeper, "QUICK_SECONDS", 0.0)
    calls.search("okapi")
    calls.search("okapi")
    thread = calls.kept._thread
    calls.kept.close()
    thread.join(20)
    assert not thread.is_alive()
