"""mcore.paths: flag > environment > config.json > default, and a broken config.json is never ignored."""

import os
from itertools import product

import pytest

from mcore.errors import SetupError
from mcore.paths import ENV_DB, ENV_HOME, ENV_VAULT, MAX_CARD_BYTES, SYNC_SECONDS, read_config, resolve


@pytest.fixture
def settle(tmp_path):
    """settle(config text or bytes, **arguments) -> the Settings with this config.json in the data root."""

    def settle(config=None, env=None, **flags):
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        if config is not None:
            (home / "config.json").write_bytes(config if isinstance(config, bytes) else config.encode())
        return resolve(env={ENV_HOME: str(home), **(env or {})}, **flags)

    return settle


@pytest.mark.parametrize("flag, variable, key", list(product([True, False], repeat=3)))
def test_flag_before_environment_before_config_before_default(settle, tmp_path, flag, variable, key):
    """SPEC: "Flag > environment > config.json > default"."""
    settings = settle(
        '{"db": "/config/x.db", "vault": "/config/v"}' if key else None,
        env={ENV_DB: "/env/x.db", ENV_VAULT: "/env/v"} if variable else {},
        flag_db="/flag/x.db" if flag else None,
        flag_vault="/flag/v" if flag else None,
    )
    origin = "flag" if flag else "environment" if variable else "config" if key else "default"
    start = {"flag": "/flag", "environment": "/env", "config": "/config"}.get(origin)
    expected = (f"{start}/x.db", f"{start}/v") if start else (tmp_path / "home/memory.db", tmp_path / "home/vault")
    assert (settings.db.origin, settings.vault.origin) == (origin, origin)
    assert (settings.db.path, settings.vault.path) == tuple(os.path.abspath(path) for path in expected)


def test_each_path_is_decided_by_itself(settle):
    settings = settle('{"vault": "/config/v"}', env={ENV_DB: "/env/x.db"})
    assert (settings.home.origin, settings.db.origin, settings.vault.origin) == ("environment", "environment", "config")


def test_the_data_root_is_in_the_home_folder_by_default(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert resolve(env={}).home == (str(tmp_path / ".memory_agent"), "default")


@pytest.mark.parametrize(
    "flag, config, cwd, expected",
    [
        ("notes", None, "/there", "/there/notes"),
        ("./notes/", None, "/there", "/there/notes"),
        ("../n//x/.", None, "/there", "/n/x"),
        ("/abs/", None, "/there", "/abs"),
        ("/", None, "/there", "/"),
        (None, "notes", "/there", "{home}/notes"),
        (None, "../notes", "/there", "{home}/../notes"),
        ("", "notes", "/there", "{home}/notes"),
        (None, "", "/there", "{home}/vault"),
    ],
)
def test_a_relative_path_starts_where_it_was_written(settle, tmp_path, flag, config, cwd, expected):
    text = None if config is None else f'{{"vault": "{config}"}}'
    settings = settle(text, flag_vault=flag, cwd=cwd)
    assert settings.vault.path == os.path.abspath(expected.format(home=tmp_path / "home"))


@pytest.mark.parametrize("place", ["flag", "environment", "config"])
def test_a_tilde_is_the_home_folder(settle, monkeypatch, tmp_path, place):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    settings = settle(
        '{"vault": "~/n"}' if place == "config" else None,
        env={ENV_VAULT: "~/n"} if place == "environment" else {},
        flag_vault="~/n" if place == "flag" else None,
    )
    assert settings.vault.path == str(tmp_path / "n")


BROKEN = [
    ('{"vault": 1}', "line 1", "text"),
    ('{"vault": ["a"]}', "line 1", "text"),
    ('{"vault": true}', "line 1", "text"),
    ('{"db": {}}', "line 1", "text"),
    ('{\n "x": 1,\n "ignore": "drafts"\n}', "line 3", "list"),
    ('{"ignore": [1]}', "line 1", "list"),
    ('{"ignore": [""]}', "line 1", "list"),
    ('{"ignore": ["a\\u0000"]}', "line 1", "list"),
    ('{"max_card_bytes": 1.5}', "line 1", "whole number"),
    ('{"max_card_bytes": true}', "line 1", "whole number"),
    ('{"max_card_bytes": -1}', "line 1", "negative"),
    ('{"max_card_bytes": 1e999}', "line 1", "whole number"),
    ('{"max_card_bytes": %s}' % ("9" * 5_000), "line 1", ""),
    ('{"sync_seconds": "2"}', "line 1", "number"),
    ('{"sync_seconds": NaN}', "line 1", "negative"),
    ('{"sync_seconds": Infinity}', "line 1", "large"),
    ('{"sync_seconds": false}', "line 1", "number"),
    ('{"vault": "a\\u0000b"}', "line 1", "NUL"),
    ('{"vault": "\\ud800"}', "line 1", "surrogate"),
    ("[]", "line 1", "object"),
    ('"text"', "line 1", "object"),
    ("null", "line 1", "object"),
    ('{"vault": "a",}', "line 1", "JSON"),
    ('{\n\n"vault" "a"}', "line 3", "JSON"),
    ("{'vault': 'a'}", "line 1", "JSON"),
    ("[" * 100_000, "line 1", "JSON"),
    ('{"a":' * 100_000, "line 1", "JSON"),
    (b'{\n"vault": "\xff"}', "line 2", "UTF-8"),
    (b"\xff\xfe{\x00}\x00", "line 1", "UTF-8"),
    (b"{}" + b" " * (1 << 20), "", "1 MiB"),
]


@pytest.mark.parametrize("config, line, reason", BROKEN, ids=[ascii(config[:24]) for config, _, _ in BROKEN])
def test_a_broken_config_is_named_with_its_line_and_reason(settle, tmp_path, config, line, reason):
    """SPEC: "A broken config.json is exit 2 with the file, line and reason; it is never ignored"."""
    with pytest.raises(SetupError) as caught:
        settle(config)
    error = caught.value
    assert str(tmp_path / "home" / "config.json") in error.message and error.hint and error.exit_code == 2
    assert line in error.why and reason in error.why


@pytest.mark.parametrize("config", [None, "", "  \n", "{}", "\ufeff{}", '{"vault": null, "later_key": [1]}'])
def test_an_empty_config_leaves_the_defaults(settle, config):
    settings = settle(config)
    assert settings.vault.origin == settings.db.origin == "default"
    assert (settings.ignore, settings.max_card_bytes, settings.sync_seconds) == ((), MAX_CARD_BYTES, SYNC_SECONDS)


def test_the_other_settings_are_read(settle):
    settings = settle('{"ignore": ["drafts", "*.tmp.md"], "max_card_bytes": 1000, "sync_seconds": 0}')
    assert settings.ignore == ("drafts", "*.tmp.md")
    assert (settings.max_card_bytes, settings.sync_seconds) == (1000, 0.0)


def test_a_config_that_cannot_be_read_is_said(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(SetupError, match="cannot read"):
        read_config(str(tmp_path / "config.json"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_in_place_of_a_config_is_said_and_not_waited_for(settle, tmp_path):
    (tmp_path / "home").mkdir()
    os.mkfifo(tmp_path / "home/config.json")
    with pytest.raises(SetupError) as caught:
        settle()
    assert caught.value.why == "not a regular file"


def test_a_file_in_place_of_the_data_root_is_said(tmp_path):
    (tmp_path / "home").write_text("x")
    with pytest.raises(SetupError, match="not a folder"):
        resolve(env={ENV_HOME: str(tmp_path / "home")})


@pytest.mark.parametrize("name", [ENV_HOME, ENV_DB, ENV_VAULT])
def test_a_path_with_a_nul_is_said(name):
    with pytest.raises(SetupError, match="NUL|not a usable path"):
        resolve(env={ENV_HOME: "/nowhere", name: "a\0b"})
