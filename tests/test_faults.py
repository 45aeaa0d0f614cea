"""The programs of bench/faults, each in a small form: what a kill, a damaged index or a failing disk must not lose."""

import importlib
import os
import sys

import pytest
from conftest import ROOT

FOLDER = os.path.join(ROOT, "bench", "faults")
sys.path.insert(0, FOLDER)

SMALL = {
    "damage": "--seeds 6 --notes 12",
    "failing_calls": "--commands capture,repair,purge,forget --errors EIO,killed --every 97",
    "fuzz": "--cards 150 --queries 100 --lines 60 --configs 100 --slow 30",
    "hostile_vaults": "--seeds 9 --cards 60",
    "lifecycle_kills": "--kills 3 --changes 0",
    "kills": "--captures 4 --served 4 --rebuilds 2 --repairs 3",
    "power_loss": "--captures 2 --changes 1",
    "random_edits": "--sequences 1 --edits 12",
    "rebuild_searches": "--searches 60 --cards 60",
    "safety_lines": "--only terminal",
    "writers": "--processes 3 --titles 3 --rounds 1 --servers 1 --seconds 1 --limit 60 --below .",
}


@pytest.mark.skipif(os.name != "posix", reason="signals and file systems of POSIX")
@pytest.mark.parametrize("program", SMALL)
def test_nothing_is_lost(program, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert importlib.import_module(program).main(SMALL[program].split()) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals and file systems of POSIX")
def test_a_backup_on_a_failing_disk_is_an_error_with_its_reason(monkeypatch, tmp_path):
    """Folders that cannot be listed and a name that cannot be made durable ended in a fault of the program."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert importlib.import_module("failing_calls").main("--commands backup --errors EIO --every 12".split()) == 0


def test_every_program_has_a_small_form():
    programs = {name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py")}
    assert programs - {"harness", "calls", "changes"} == set(SMALL)


def test_every_safety_line_stands_once_in_its_file():
    from safety_lines import LINES

    for line in LINES:
        with open(os.path.join(ROOT, "mcore", line.file), encoding="utf-8") as handle:
            assert handle.read().count(line.old) == 1, line.name


def test_a_loss_is_told_and_ends_in_status_1(capsys):
    from harness import Tally

    tally = Tally("trials")
    assert tally.trial("one", []) and not tally.trial("other", ["it is gone"])
    assert tally.end() == 1
    assert capsys.readouterr().out.startswith("other: it is gone\ntrials: tried 2, survived 1, lost 1 (")
