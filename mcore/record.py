"""Named tuples that cost a fifth of `collections.namedtuple` to define, which compiles code for each class.

A search defines forty of them at its start: 2.5 ms of its 40. They behave alike (fields, `_replace`, `_asdict`,
defaults, pickles); only what nobody here asks of them is left out.
"""

import sys
from collections import _tuplegetter  # what namedtuple makes its fields of; in every CPython from 3.8 on
from operator import itemgetter

_new = tuple.__new__


def namedtuple(typename, field_names, *, defaults=()):
    """A class of tuples with the named fields; `defaults` belong to the last of them."""
    fields = tuple(field_names.split())
    size, filled, every = len(fields), tuple(defaults), set(fields)
    pick = itemgetter(*fields) if size > 1 else lambda named: tuple(named.values())

    def __new__(cls, *args, **named):
        if named or len(args) != size:
            if len(named) == size and not args and named.keys() == every:
                args = pick(named)
            else:
                args = _arranged(typename, fields, filled, args, named)
        return _new(cls, args)

    space = {
        "__slots__": (),
        "__new__": __new__,
        "__module__": sys._getframe(1).f_globals.get("__name__", "__main__"),  # so that it can be pickled
        "_fields": fields,
        "_field_defaults": dict(zip(fields[size - len(filled) :], filled, strict=True)),
        "_replace": _replace,
        "_asdict": _asdict,
        "__repr__": _repr,
        "__getnewargs__": _values,
        "__match_args__": fields,
    }
    for at, field in enumerate(fields):
        space[field] = _tuplegetter(at, "")
    return type(typename, (tuple,), space)


def _arranged(typename, fields, defaults, args, named):
    """All values in the order of the fields; TypeError as for a function with these arguments."""
    values = list(args)
    rest = fields[len(args) :]
    if len(args) > len(fields):
        raise TypeError(f"{typename}() takes {len(fields)} fields but {len(args)} were given")
    first_default = len(fields) - len(defaults)
    for at, field in enumerate(rest, len(args)):
        if field in named:
            values.append(named.pop(field))
        elif at >= first_default:
            values.append(defaults[at - first_default])
        else:
            raise TypeError(f"{typename}() lacks the field {field!r}")
    if named:
        raise TypeError(f"{typename}() has no free field {next(iter(named))!r}")
    return values


def _values(self):
    return tuple(self)


def _replace(self, /, **named):
    values = [named.pop(field, value) for field, value in zip(self._fields, self, strict=True)]
    if named:
        raise ValueError(f"{type(self).__name__} has no field {next(iter(named))!r}")
    return _new(type(self), values)


def _asdict(self):
    return dict(zip(self._fields, self, strict=True))


def _repr(self):
    shown = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"{type(self).__name__}({shown})"
