"""mcore.nearest: slips of one or two characters."""

import pytest

from mcore.nearest import nearest, slips


@pytest.mark.parametrize("left, right, distance", [
    ("redis", "redis", 0), ("redis", "rediss", 1), ("redis", "reds", 1), ("redis", "radis", 1), ("redis", "rdeis", 1),
    ("bakcup", "backup", 1), ("databsae", "databases", 2), ("redis", "nginx", 3), ("ab", "abcdef", 3), ("", "ab", 2),
    ("数剧库", "数据库", 1),
])  # fmt: skip
def test_slips_are_counted_up_to_a_limit(left, right, distance):
    assert slips(left, right, 2) == slips(right, left, 2) == distance


def test_the_nearest_come_first_and_far_words_do_not():
    words = ["backup", "backups", "nginx", "bakery", "back", "lackup"]
    assert nearest("bakcup", words, 5) == ["backup", "backups", "lackup"]
    assert nearest("bakcup", words, 1) == ["backup"]


def test_a_short_word_may_hold_one_slip_only():
    assert nearest("cat", ["car", "dog", "cart", "card"], 5) == ["car", "cart"]
