"""Names that would not travel."""

import pytest

from mcore.portable import MAX_PATH_UNITS, collisions, path_faults


@pytest.mark.parametrize(
    "path",
    ["a.md", "03-Knowledge/nginx-站点根目录.md", "con-fig/prn2.md", ".agents/x.md", "a b/c (1) [2] & 'd'.md", "é.md"],
)
def test_an_ordinary_name_travels(path):
    assert path_faults(path) == []


@pytest.mark.parametrize(
    "path, words",
    [
        ("a:b.md", "':' is forbidden"),
        ("a/b?/c.md", "'?' is forbidden"),
        ("a\\b.md", "is forbidden"),
        ("a\nb.md", "control character"),
        ("notes./a.md", "at the end"),
        ("trail /a.md", "at the end"),
        ("con.md", "reserves"),
        ("AUX/a.md", "reserves"),
        ("nul.tar.md", "reserves"),
        ("com¹.md", "reserves"),
        ("字" * 90 + ".md", "bytes"),
        ("/".join(["folder"] * 40) + ".md", "260"),
    ],
)
def test_a_name_that_would_not_travel_is_told_why(path, words):
    faults = path_faults(path)
    assert len(faults) == 1 and words in faults[0]


def test_the_length_counts_as_windows_counts():
    assert path_faults("/".join(["𠮷" * 5] * (MAX_PATH_UNITS // 11))) == []
    assert path_faults("/".join(["𠮷" * 5] * (MAX_PATH_UNITS // 11 + 2)))


def test_names_that_fall_together_are_grouped():
    paths = ["Case.md", "case.md", "x/Cafe\u0301.md", "x/Caf\u00e9.md", "x/other.md", "straße.md", "STRASSE.md"]
    expected = [["Case.md", "case.md"], ["STRASSE.md", "straße.md"], ["x/Cafe\u0301.md", "x/Caf\u00e9.md"]]
    assert collisions(paths) == expected


def test_of_colliding_folders_only_the_folders_are_named():
    assert collisions(["Notes/a.md", "notes/a.md", "notes/b.md", "other/a.md"]) == [["Notes", "notes"]]
