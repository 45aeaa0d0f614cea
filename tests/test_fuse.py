"""mcore.fuse: reciprocal rank fusion."""

import pytest

from mcore.fuse import fuse


def test_the_score_is_the_sum_of_reciprocal_ranks():
    fused = fuse([["a", "b"], ["b", "c"]])
    assert [key for key, _, _ in fused] == ["b", "a", "c"]
    assert [score for _, score, _ in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])
    assert [number for _, _, number in fused] == [1, 0, 1]


def test_equal_scores_keep_the_order_of_the_lists():
    assert [key for key, _, _ in fuse([["a"], ["b"]])] == ["a", "b"]
    assert fuse([]) == fuse([[], []]) == []
