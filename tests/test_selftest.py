"""`memory selftest`: recall 1.0 on cards of every script, and every miss by name when the search loses one."""

import json
import sqlite3
from contextlib import closing

import pytest
from test_plainscan import TEXTS

from mcore.plainscan import SCRIPTS
from mcore.selftest import selftest

TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"


@pytest.fixture
def app(make_app, write_note):
    """A card of every script, some with marks of other systems around their words."""
    for number, (script, text) in enumerate(TEXTS.items()):
        write_note(f"{script}.md", f"---\ntitle: {text} {number}\ntags: [t{number}]\n---\n\n**{text}**🤖{text}🦀\n")
    return make_app()


def test_everything_a_plain_scan_finds_is_found(app):
    result = selftest(app, seed=7)
    assert (result.recall, result.misses, result.cards) == (1.0, [], len(SCRIPTS))
    assert [each.script for each in result.scripts] == list(SCRIPTS)
    assert result.queries == sum(each.queries for each in result.scripts) > 40
    assert all(each.expected >= each.queries > 0 for each in result.scripts)


def test_the_same_seed_asks_the_same(app):
    first, again, other = (selftest(app, seed=seed, samples=3)._replace(seconds=0) for seed in (5, 5, 6))
    assert first == again and first.scripts != other.scripts
    drawn = selftest(app, samples=3)
    assert selftest(app, seed=drawn.seed, samples=3).scripts == drawn.scripts


def test_a_card_that_search_lost_is_named(app, memory):
    selftest(app, seed=1)
    with closing(sqlite3.connect(app.db_path)) as other:
        other.execute("UPDATE cards SET doc = doc + 1000 WHERE rel_path = 'thai.md'")
        other.commit()
    result = selftest(app, seed=1)
    assert result.recall < 1 and {miss.path for miss in result.misses} == {"thai.md"}
    thai = next(each for each in result.scripts if each.script == "thai")
    assert (thai.found, thai.recall) == (0, 0.0)
    ran = memory("selftest", "--seed", 1, "--samples", 20)
    assert ran.code == 1 and "MISS  thai" in ran.out and "thai.md: not found" in ran.out


def test_a_new_card_is_taken_in_first(app, write_note):
    write_note("later.md", "写于刚才的一张卡片")
    assert selftest(app, seed=1).cards == len(SCRIPTS) + 1


def test_what_looks_like_a_credential_is_never_drawn(make_app, write_note, memory):
    write_note("alpha.md", f"token: {TOKEN}\n")
    ran = memory("selftest", "--json", "--seed", 3, "--samples", 100)
    answer = json.loads(ran.out)
    assert answer["queries"] == 1 and TOKEN not in ran.out  # the title alone


def test_without_a_card_there_is_nothing_to_test(memory):
    ran = memory("selftest")
    assert ran.code == 1 and "no card to draw words from" in ran.out


def test_a_card_that_is_not_searched_now_is_no_miss(make_app, write_note):
    write_note("old.md", "zebra of old 11")
    write_note("new.md", "---\nsupersedes: old.md\n---\nzebra of new 12")
    write_note("gone.md", "---\nforgotten_at: 2026-01-01\n---\nzebra of gone 13")
    write_note("theirs.md", "---\nscope: project/x\n---\nzebra of theirs 14")
    write_note("past.md", "---\nvalid_to: 2020-01-01\n---\nzebra of past 15")
    result = selftest(make_app(), seed=1)
    assert (result.recall, result.misses, result.cards) == (1.0, [], 4)
