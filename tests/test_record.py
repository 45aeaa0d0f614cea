"""mcore.record: our named tuples behave as those of the standard library."""

import collections
import pickle

import pytest

from mcore.record import namedtuple

Ours = namedtuple("Ours", "a b c", defaults=(2, 3))
Theirs = collections.namedtuple("Ours", "a b c", defaults=(2, 3))

MADE = [((1,), {}), ((1, 5), {}), ((1, 5, 6), {}), ((), {"a": 1}), ((1,), {"c": 9}), ((), {"c": 1, "b": 2, "a": 3})]
REFUSED = [((), {}), ((1, 2, 3, 4), {}), ((1,), {"a": 2}), ((1,), {"d": 2}), ((), {"b": 1})]


@pytest.mark.parametrize("args, named", MADE)
def test_it_is_made_as_one_of_the_standard_library(args, named):
    ours, theirs = Ours(*args, **named), Theirs(*args, **named)
    assert ours == theirs and repr(ours) == repr(theirs)
    assert (ours.a, ours.b, ours.c) == tuple(theirs)
    assert list(ours._asdict().items()) == list(theirs._asdict().items())
    assert ours._replace(b=7) == theirs._replace(b=7) and type(ours._replace(b=7)) is Ours


@pytest.mark.parametrize("args, named", REFUSED)
def test_wrong_arguments_are_refused_as_there(args, named):
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*args, **named)


def test_a_field_that_is_not_there_can_be_neither_replaced_nor_set():
    with pytest.raises((TypeError, ValueError)):
        Ours(1)._replace(d=2)
    with pytest.raises(AttributeError):
        Ours(1).a = 2
    with pytest.raises(AttributeError):
        Ours(1).d = 2


def test_it_tells_its_fields_and_their_defaults():
    assert (Ours._fields, Ours._field_defaults) == (Theirs._fields, Theirs._field_defaults)


def test_it_goes_through_a_pickle_and_a_match():
    assert pickle.loads(pickle.dumps(Ours(1), pickle.HIGHEST_PROTOCOL)) == Ours(1)
    assert type(pickle.loads(pickle.dumps(Ours(1)))) is Ours
    match Ours(1):
        case Ours(a, b, c=3):
            assert (a, b) == (1, 2)
        case _:
            raise AssertionError
