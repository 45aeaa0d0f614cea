"""mcore.prepare: rows are the same whoever prepares them, and a helper that fails costs nothing but time."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from conftest import ROOT

from mcore import prepare as module
from mcore.prepare import File, helpers_for, prepare, prepare_batches

POSIX = os.name == "posix"
MOST = 1 << 20
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")


@pytest.fixture
def files(write_note):
    """Files of every sort: plain, Chinese, not UTF-8, binary, gone, too large."""
    notes = {f"{n}.md": f"---\ntitle: 卡片 {n}\ntags: [a, b]\n---\n\n阿里云 getUserName {n}\n" for n in range(600)}
    notes |= {"bad.md": b"\xff\xfe\xfa text", "binary.md": b"\x00\x01\x80" * 9, "large.md": "x" * (MOST + 1)}
    given = [File(name, write_note(name, text), None, None) for name, text in notes.items()]
    os.unlink(given[0].path)
    return given


def prepared(files, helpers):
    with closing(prepare_batches(files, MOST, helpers)) as batches:
        found = [one for batch in batches for one in batch]
    return comparable(found)


def comparable(found):
    """What does not depend on the moment; a helper gives the columns as UTF-8."""
    return [one._replace(row=one.row and one.row._replace(indexed_at="", racy=0, columns=texts(one))) for one in found]


def texts(one):
    columns = (text if isinstance(text, str) else text.decode() for text in one.row.columns)
    return tuple(columns)


@pytest.mark.parametrize("helpers", [1, 2])
def test_helpers_give_what_this_process_gives_in_the_same_order(files, helpers, monkeypatch):
    monkeypatch.setattr(module, "BATCH_CARDS", 20)
    alone = prepared(files, 0)
    assert [one.rel_path for one in alone] == [file.rel_path for file in files]
    assert sum(one.row is None for one in alone) == 3
    assert alone[1].row.columns[2].split()[:3] == [
        "阿里",
        "里云",
        "云",
    ]
    assert prepared(files, helpers) == alone


def test_helpers_that_cannot_be_started_are_done_without(files, monkeypatch):
    monkeypatch.setattr(sys, "executable", os.path.join(ROOT, "no-such-python"))
    assert prepared(files, 2) == prepared(files, 0)


@pytest.mark.skipif(not POSIX, reason="signals")
@pytest.mark.parametrize("delay", [0, 0.2])
def test_a_helper_that_dies_is_replaced(files, delay):
    """Before it is asked, or in the middle of its work, where it is kept until then."""
    helper = module._Helper(MOST)
    os.kill(helper._process.pid, signal.SIGSTOP)
    timer = threading.Timer(delay, helper._process.kill)
    timer.start()
    if not delay:
        timer.join()
    for _ in range(2):
        assert comparable(helper.do(files)) == prepared(files, 0)


@needs_proc
def test_stopping_early_leaves_no_process(files):
    batches = prepare_batches(files * 4, MOST, 2)
    next(batches)
    assert len(helpers_of_this_process()) == 2
    batches.close()
    assert helpers_of_this_process() == []


def helpers_of_this_process():
    with open(f"/proc/self/task/{os.getpid()}/children") as handle:
        mine = handle.read().split()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as handle:
            mine += handle.read().split()
    return sorted(set(mine))


@needs_proc
def test_helpers_end_with_a_killed_parent():
    code = (
        f"import sys, time; sys.path.insert(0, {ROOT!r}); from mcore.prepare import _Helper;"
        "print(_Helper(1)._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert parent.stdout.read() == ""  # the helper does not hold the parent's stdout open
    parent.stdout.close()
    for _ in range(100):
        if not is_running(pid):
            return
        time.sleep(0.1)
    pytest.fail("the helper goes on without its parent")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as handle:
            return handle.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_one_large_card_does_not_wait_for_249_others(write_note, monkeypatch):
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    given = [File(f"{n}.md", write_note(f"{n}.md", "x" * 60), None, module.vault.Stamp(60, 0, 0, 0)) for n in range(5)]
    assert [len(batch) for batch in prepare_batches(given, MOST, 0)] == [2, 2, 1]


@pytest.mark.parametrize("count, most", [(0, 0), (1999, 0), (2000, 2), (10**6, 2)])
def test_few_files_are_not_worth_a_helper(count, most):
    assert helpers_for(count) <= most


def test_a_card_keeps_what_its_file_says(write_note):
    text = "---\ntitle: 部署\ntags: [运维, nginx]\nsource: me\n---\n\nbody \0 text\n"
    row = prepare(File("a.md", write_note("a.md", text), None, None), MOST).row
    assert (row.title, row.source, row.tags) == ("部署", "me", '["运维", "nginx"]')
    assert row.columns.title.split() == ["部署", "署"] and "\0" not in row.columns.body
