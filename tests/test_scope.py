"""mcore.scope: one spelling of a scope, folders, near misses."""

import pytest

from mcore.scope import asked, folder_ranges, meant, nearest, normalized


@pytest.mark.parametrize("text, expected", [
    ("global", "global"), ("GLOBAL ", "global"),
    ("project/My App", "project/my-app"), ("Project/my_app", "project/my-app"),
    ("project/ｍｙ－ａｐｐ", "project/my-app"), ("domain/支付", "domain/支付"), ("project/a/b", "project/a/b"),
    ("project/", None), ("project", None), ("team/x", None), ("", None), ("project/a\nb", None), (None, None),
    ("project/" + "x" * 300, None),
])  # fmt: skip
def test_spellings_of_one_scope_are_one(text, expected):
    assert normalized(text) == expected


def test_an_id_alone_means_the_only_scope_of_that_id():
    known = ["project/shop", "domain/pay", "project/pay"]
    assert asked("shop", known) == "project/shop"
    assert asked("pay", known) is None and asked("other", known) is None
    assert asked("all", known) == "all" and asked("project/new", known) == "project/new"


def test_a_near_miss_is_answered_with_what_there_is():
    known = ["project/memory-agent", "domain/payments", "global"]
    assert nearest("project/memroy-agent", known)[0] == "project/memory-agent"
    assert nearest("memory agent", known)[0] == "project/memory-agent"
    assert nearest("project/payment", known)[0] == "domain/payments"
    assert nearest("project/zzz", known) == []
    for text in ("project:memory-agent", "Projects/memory_agent", "proj/memory-agent", "项目：memory agent"):
        assert normalized(text) is None and nearest(text, known) == ["project/memory-agent"]


@pytest.mark.parametrize("text, scope", [
    ("project:Shop", "project/shop"), ("projects/shop", "project/shop"), ("proj\\shop", "project/shop"),
    ("domain：支付", "domain/支付"), ("领域/支付", "domain/支付"), ("项目 商城", "project/商城"),
    ("shop", "project/shop"), ("team/x", None), ("project:", None), ("../../x", None), ("", None),
])  # fmt: skip
def test_what_is_no_scope_may_be_meant_for_one(text, scope):
    assert meant(text) == scope


def test_a_card_has_the_scope_of_the_deepest_mapped_folder():
    ranges = folder_ranges({"project/Shop": ["02-Projects/shop/"], "domain/pay": ["02-Projects/shop/pay", "pay"]})
    for path, expected in {
        "02-Projects/shop/a.md": "project/shop",
        "02-Projects/shop/pay/a.md": "domain/pay",
        "02-Projects/shop-old/a.md": "global",
        "pay/x/y.md": "domain/pay",
        "a.md": "global",
    }.items():
        fit = [name for name, first, end in ranges if first <= path < end]
        assert (fit or ["global"])[0] == expected
