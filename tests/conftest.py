"""Factories for tests: notes in a folder of their own, an App over them, the command line in process.

Real files, real SQLite, nothing shared between tests: each factory works below the test's tmp_path, with
the vault in `tmp_path/vault` and the data root in `tmp_path/home`.
"""

import os
import sys
from collections import namedtuple

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

Ran = namedtuple("Ran", "code out err")


@pytest.fixture(autouse=True)
def own_data_root(tmp_path, monkeypatch):
    """No test sees this machine's settings or memory."""
    monkeypatch.setenv("MEMORY_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MEMORY_AGENT_DB", raising=False)
    monkeypatch.delenv("MEMORY_AGENT_VAULT", raising=False)


@pytest.fixture
def write_note(tmp_path):
    """write_note("a/b.md", "text or bytes") -> its path; folders are made."""

    def write(name, text="", vault="vault"):
        path = os.path.join(tmp_path, vault, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        with open(path, "wb") as handle:
            handle.write(data)
        return path

    return write


@pytest.fixture
def make_app(tmp_path):
    """make_app() -> an App over tmp_path/vault, closed after the test; `db` and `vault` are the flags."""
    from mcore.app import App

    made = []

    def make(db=None, vault=None):
        app = App(str(db) if db else None, str(vault or tmp_path / "vault"))
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()


@pytest.fixture
def memory(tmp_path, monkeypatch, capsys):
    """memory("search", "word", "--json") -> Ran(code, out, err), in process, over tmp_path/vault."""
    from mcore.cli import main

    monkeypatch.setenv("MEMORY_AGENT_VAULT", str(tmp_path / "vault"))

    def run(*argv):
        capsys.readouterr()
        code = main([str(arg) for arg in argv])
        return Ran(code, *capsys.readouterr())

    return run


def paths_of(result):
    """The rel_paths of a search's hits, best first."""
    return [hit.path for hit in result.hits]
