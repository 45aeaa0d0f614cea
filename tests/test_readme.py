"""The README is kept true: what it names exists, what exists it names, its first command does the job."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from mcore import errors
from mcore.card import KIND_FOLDERS
from mcore.clients import CLIENTS
from mcore.ops import OPERATIONS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as handle:
    README = handle.read()


def first_line(start):
    return next(line for line in README.splitlines() if line.startswith(start))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_every_command_has_a_row_and_every_option_is_named(operation):
    row = first_line(f"| `memory {operation.name}")
    for p in operation.params:
        if p.door != "mcp" and not p.positional and p.name not in ("title", "body", "no_sync"):
            assert "--" + p.name.replace("_", "-") in README or any(f"`{flag}`" in row for flag in p.flags), p.name


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.tool], ids=lambda o: o.tool)
def test_every_tool_has_a_row_with_its_arguments(operation):
    row = first_line(f"| `{operation.tool}`")
    for p in operation.params:
        if p.door != "cli":
            assert f"`{p.name}`" in row
    assert row.rstrip("| ").endswith("yes" if operation.read_only else "no")


def test_every_kind_and_its_folder_is_in_the_table():
    for kind, folder in KIND_FOLDERS.items():
        assert f"`{kind}`" in README and folder in README


def test_every_client_has_its_line():
    for client in CLIENTS:
        assert f"- **{client.title}**: `memory setup {client.name} --apply`" in README


def test_exit_codes_are_those_of_the_code():
    codes = {
        errors.EXIT_OK: "done",
        errors.EXIT_NOTHING: "nothing found",
        errors.EXIT_SETUP: "could not run",
        errors.EXIT_CONFLICT: "title taken",
        errors.EXIT_INTERRUPTED: "interrupted",
    }
    text = " ".join(README.split())
    for code, meaning in codes.items():
        assert f"{code} {meaning}" in text


def test_files_named_by_the_readme_exist():
    for path in re.findall(r"`((?:tests|bench|mcore|\.ci)/[\w./]+)`", README):
        assert os.path.exists(os.path.join(ROOT, path)), path


@pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")
def test_the_first_command_captures_a_card_and_finds_it_again(tmp_path):
    command = first_line("python3 memory.py capture").replace("python3", f'"{sys.executable}"')
    env = {**os.environ, "HOME": str(tmp_path)}
    env.pop("MEMORY_AGENT_HOME", None)
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env=env, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.startswith("created: ") and "1 hit" in done.stdout
    assert (tmp_path / ".memory_agent" / "vault").is_dir()


def test_the_test_command_makes_its_own_environment():
    assert first_line("python3 -m venv .venv").endswith(".venv/bin/python -m pytest")
