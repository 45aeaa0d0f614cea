"""README: "No input ends in a traceback": every nasty card of a seeded vault is found, named or left out."""

import os

import pytest
from hostile_vault import build, survey

CARDS = 330  # each front once, each body once, and some hundred pairs of them


@pytest.mark.parametrize("seed", [1, 2])  # bench/faults/hostile_vaults.py tries as many as one likes
def test_every_nasty_card_is_found_or_named(seed, tmp_path, make_app):
    items = build(tmp_path / "vault", seed, CARDS)
    outcome = survey(make_app(), items)
    assert outcome.lost == []
    assert outcome.tried >= CARDS


def test_every_nasty_card_can_be_shown_and_drives_no_terminal(tmp_path, memory):
    build(tmp_path / "vault", 1, 10)
    memory("index")
    for base, _, names in os.walk(tmp_path / "vault"):
        for name in names:
            path = os.path.relpath(os.path.join(base, name), tmp_path / "vault").replace(os.sep, "/")
            ran = memory("show", "--no-sync", "--max-chars", "3000", f"./{path}")
            assert ran.code in (0, 1) or "cannot read" in ran.err, (path, ran.err)
            assert not set(ran.out + ran.err) & set("\x07\x08\x1b\x9b\x85\u202e\u2066"), path


def test_equal_seeds_give_equal_vaults(tmp_path):
    for name in ("one", "other"):
        build(tmp_path / name, 7, 200)
    one, other = (_contents(tmp_path / name) for name in ("one", "other"))
    assert one == other and len(one) >= 190


def _contents(folder):
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as handle:
                    found[os.path.relpath(path, folder)] = handle.read()
    return found
