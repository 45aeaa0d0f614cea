"""bench/: the programs that measure say what is worse, and draw what they measured."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from conftest import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))

import growth  # noqa: E402
import peers  # noqa: E402
import performance  # noqa: E402
import processes  # noqa: E402


@pytest.mark.parametrize("ratio, is_worse", [(2.0, False), (2.4, False), (2.6, True), (1.0, False)])
def test_a_ratio_is_worse_beyond_a_quarter_more_than_the_saved_one(ratio, is_worse):
    rows = [{"name": "index", "ratio": ratio}, {"name": "new line", "ratio": 9.0}, {"name": "no ratio"}]
    assert bool(performance.worse(rows, {"index": 2.0, "gone": 1.0})) is is_worse


def test_a_chart_is_well_formed_and_has_a_point_for_each_figure():
    rows = [{"cards": 10**n} | {name: 0.01 * n + at for at, (name, _) in enumerate(growth.LINES, 1)} for n in (3, 4, 5)]
    root = ElementTree.fromstring(growth.chart(rows))
    named = [element.tag.rpartition("}")[2] for element in root]
    assert named.count("polyline") == len(growth.LINES) and named.count("circle") == 3 * len(growth.LINES)
    heights = [float(circle.get("cy")) for circle in root if circle.tag.endswith("circle")][:3]
    assert heights == sorted(heights, reverse=True)  # more time is further up


def test_the_chart_in_the_repository_is_one_of_this_program():
    text = open(growth.OUT, encoding="utf-8").read()
    assert all(f">{name}</text>" in text for name, _ in growth.LINES) and ElementTree.fromstring(text) is not None


def test_a_program_s_children_count_in_its_cost(tmp_path):
    child = "x = bytearray(60_000_000); import time; t = time.process_time()\nwhile time.process_time() < t + .3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    ran = processes.run([sys.executable, "-c", parent], str(tmp_path))
    assert ran.cpu > 0.3 and ran.peak_mb > 55 and ran.code == 0


def test_a_program_that_fails_ends_the_bench_with_its_words(tmp_path):
    with pytest.raises(SystemExit, match="no such thing"):
        processes.run([sys.executable, "-c", "import sys; sys.exit('no such thing')"], str(tmp_path), expected=(0,))


def test_peers_are_asked_what_the_vault_answers(tmp_path, write_note):
    for number in range(5):
        write_note(f"{number}.md", f"# okapi number {number}\n")
    vault = str(tmp_path / "vault")
    queries = peers.drawn_queries(vault, 3)
    assert len(queries) == 3 and all(query.startswith("okapi number") for query, _ in queries)
    rows = peers.measure(vault, queries, str(tmp_path))
    assert rows[0]["name"] == "memory-agent" and rows[0]["found"] == 3
    assert all(row["found"] == 3 for row in rows if row["name"].startswith("grep"))


def programs_below(folder):
    return sorted(name for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith(".py"))


@pytest.mark.parametrize("name", [name for name in programs_below("bench") if name != "processes.py"])
def test_every_program_says_what_it_does(name):
    path = os.path.join(ROOT, "bench", name)
    ran = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and name in ran.stdout


def test_the_readme_of_the_bench_names_every_program():
    with open(os.path.join(ROOT, "bench", "README.md"), encoding="utf-8") as handle:
        text = handle.read()
    assert [name for name in programs_below("bench") + programs_below("bench/faults") if f"`{name}`" not in text] == []
