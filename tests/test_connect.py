"""`memory setup` and `memory hook` from the command line, on a home of their own."""

import json
import os
import sys

import pytest

from mcore.cli import main
from mcore.connect import server_command


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("MEMORY_AGENT_HOME", "MEMORY_AGENT_DB", "MEMORY_AGENT_VAULT", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(capsys, *argv):
    code = main(list(argv))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_setup_shows_the_change_and_writes_nothing(home, capsys):
    code, out, _ = run(capsys, "setup", "claude-code")
    assert code == 0 and '+    "memory": {' in out and "--apply" in out
    assert not (home / ".claude.json").exists()


def test_apply_writes_absolute_paths_and_remove_takes_them_out(home, capsys):
    before = '{"theme": "dark", "mcpServers": {"other": {"command": "x"}}}\n'
    (home / ".claude.json").write_text(before)
    assert run(capsys, "setup", "claude-code", "--apply")[0] == 0
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["memory"]
    assert entry["command"] == os.path.abspath(sys.executable)
    program, word, flag, vault = entry["args"]
    assert os.path.isabs(program) and (word, flag) == ("mcp", "--vault") and os.path.isabs(vault)
    assert run(capsys, "setup", "claude-code", "--apply", "--json")[1].count('"changed": false') == 1
    assert run(capsys, "setup", "claude-code", "--remove", "--apply")[0] == 0
    assert (home / ".claude.json").read_text() == before


def test_a_vault_and_an_index_of_ones_own_are_written_into_the_entry(home, capsys, tmp_path):
    notes, db = tmp_path / "my notes", tmp_path / "x.db"
    _, out, _ = run(capsys, "setup", "--print", "--vault", str(notes), "--db", str(db))
    args = json.loads(out)["mcpServers"]["memory"]["args"]
    assert args[-4:] == ["--vault", str(notes), "--db", str(db)]


def test_list_says_which_clients_are_here_and_connected(home, capsys):
    (home / ".claude").mkdir()
    run(capsys, "setup", "claude-code", "--apply")
    found = {c["name"]: c for c in json.loads(run(capsys, "setup", "--list", "--json")[1])["clients"]}
    assert found["claude-code"]["connected"] and not found["zed"]["connected"]
    assert len(found) >= 17


def test_an_unknown_client_is_told_what_is_near(home, capsys):
    code, _, err = run(capsys, "setup", "claude-cod")
    assert code == 2 and "claude-code" in err


def test_a_broken_configuration_is_named_with_its_line_and_left_alone(home, capsys):
    (home / ".claude.json").write_text('{\n  "mcpServers": {{\n')
    code, _, err = run(capsys, "setup", "claude-code", "--apply")
    assert code == 2 and ".claude.json" in err and "2" in err
    assert (home / ".claude.json").read_text() == '{\n  "mcpServers": {{\n'


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "qwen"])
def test_hook_gives_the_model_its_text_in_the_clients_form(home, capsys, client):
    code, out, _ = run(capsys, "hook", "--format", client)
    text = json.loads(out)["hookSpecificOutput"]["additionalContext"]
    assert code == 0 and len(text) <= 2000 and "memory_search" in text and "up to date" in text


def test_hook_counts_no_forgotten_card(home, capsys):
    for title in ("one", "two"):
        run(capsys, "capture", "--title", title, "--body", "a fact of more than twenty characters")
    run(capsys, "forget", "03-Knowledge/one.md")
    assert "A local memory with 1 card (knowledge 1) is connected." in run(capsys, "hook", "--format", "plain")[1]


def test_hook_fails_open(home, capsys):
    (home / ".memory_agent").mkdir()
    (home / ".memory_agent" / "config.json").write_text("{broken")
    code, out, err = run(capsys, "hook", "--format", "claude")
    assert code == 0 and err == ""
    assert out == "" or json.loads(out)


def test_hook_that_setup_writes_is_a_command_this_program_takes(home, capsys):
    run(capsys, "setup", "claude-code", "--hooks", "--apply")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    line = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    words = line.split()
    assert words[0].strip('"') == os.path.abspath(sys.executable)
    assert main(words[2:]) == 0
    assert "hookSpecificOutput" in capsys.readouterr().out


def test_server_command_starts_with_this_interpreter(home):
    from mcore.app import App

    command = server_command(App())
    assert command[0] == os.path.abspath(sys.executable) and "mcp" in command
