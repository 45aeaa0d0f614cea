"""mcore.postings: what is packed comes back, whichever form it takes; damage is told."""

import random

import pytest

from mcore.postings import DENSE, DamagedList, Few, among, each, length_code, length_of, pack, unpack


def held(unpacked):
    return {doc: count for doc, count in each(unpacked) if count}


def drawn(n, last, seed=1):
    rng = random.Random(seed)
    return {doc: rng.choice((1, 1, 2, 7, 255)) for doc in sorted(rng.sample(range(1, last + 1), n))}


LISTS = {
    "dense": (drawn(500, 1000), 1000, b"V"),
    "just dense": (drawn(1000 // DENSE + 1, 1000), 1000, b"V"),
    "narrow steps": (drawn(300, 6000), 6000, b"B"),
    "wide steps": (drawn(100, 900_000), 900_000, b"H"),
    "a gap beyond one byte": ({1: 3, 2: 1, **{doc: 1 for doc in range(3000, 3060)}}, 3060, b"B"),
    "a gap beyond two bytes": ({5: 2, 800_000: 9}, 900_000, b"H"),
    "one card": ({7: 1}, 7_000, b"H"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_comes_back_in_each_form(name):
    counts, last, letter = LISTS[name]
    blob = pack(list(counts), counts.values(), last)
    assert blob[:1] == letter and held(unpack(blob)) == counts


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("many", [False, True])
def test_the_cards_looked_for_are_found_and_no_others(name, many):
    """Few are looked up one by one, many by walking the list; both see the same."""
    counts, last, _ = LISTS[name]
    some = set(list(counts)[::7]) | set(random.Random(2).sample(range(1, last + 1), min(last, 1000 if many else 3)))
    some |= {last + 1, last + 50}
    assert dict(among(unpack(pack(list(counts), counts.values(), last)), some)) == {
        doc: count for doc, count in counts.items() if doc in some
    }


def test_counts_stop_at_255():
    assert held(unpack(pack([1, 2], [256, 100_000], 2))) == {1: 255, 2: 255}


def test_pieces_of_a_wide_step_are_no_cards():
    unpacked = unpack(pack([1, 2, *range(3000, 3060)], [1] * 62, 3060))
    assert isinstance(unpacked, Few) and len(unpacked.docs) > 62 and len(held(unpacked)) == 62


@pytest.mark.parametrize("blob", [
    b"", b"V", b"Vgarbage", b"B", b"B\x05\x00\x00\x00ab", b"X\x00\x00\x00\x00", b"Bgarbage of all sorts", None, 7,
    pack([1, 2], [1, 1], 2)[:-3], pack([1, 900], [1, 1], 900)[:-3], pack([1, 900], [1, 1], 900).replace(b"H", b"B", 1),
])  # fmt: skip
def test_damage_is_told(blob):
    with pytest.raises(DamagedList):
        unpack(blob)


def test_lengths_keep_their_order_and_nearly_their_size():
    assert [length_code(n) for n in (0, 1, 2)] == sorted({length_code(n) for n in (0, 1, 2)})
    for tokens in (30, 470, 5000, 100_000):
        assert abs(length_of(length_code(tokens)) / tokens - 1) < 0.03
    assert length_code(10**9) == 255
