"""Which cards may answer: a call's words for scope and time, and the docs that they let pass."""

import time

from mcore import scope as scopes
from mcore.errors import UsageError, warning
from mcore.frontmatter import timestamp
from mcore.search.answer import ANY_TIME
from mcore.store import Limits


def limits_of(store, ranges, scope=None, scope_only=False, as_of=None):
    """(Limits, warnings) from a call's words; `ranges` are the mapped folders.

    Raises UsageError for what is no scope or no time.
    """
    at = _seconds(as_of)
    if not scope:
        return Limits(at, (scopes.GLOBAL,), ranges), []
    name, warnings = scopes.normalized(scope), []
    if name is None or name != scopes.GLOBAL and not store.has_scope(name, ranges):
        known = store.scopes(ranges)
        name = scopes.asked(scope, known)
        near = scopes.nearest(scope, known) or list(filter(None, [name is None and scopes.meant(scope)]))
        hint = "did you mean " + ", ".join(near) + "?" if near else "memory stats lists the scopes"
        if name is None:
            raise UsageError(f"{scope[:60]!r} is no scope: it is {scopes.FORMS}, or all", "", hint)
        if name == scopes.ALL:
            return Limits(at, None, ranges), []
        if name not in known:
            warnings.append(warning("unknown-scope", f"no card has the scope {name}", hint))
    with_global = () if scope_only or name == scopes.GLOBAL else (scopes.GLOBAL,)
    return Limits(at, (name, *with_global), ranges), warnings


def _seconds(as_of):
    """The time meant by `as_of`, in seconds; None for any time."""
    if not as_of or as_of == "now":
        return time.time()
    if as_of == ANY_TIME:
        return None
    seconds = timestamp(as_of)
    if seconds is None:
        raise UsageError(f"as_of {as_of[:60]!r} is no date", hint="such as 2026-12-01, 2026-12-01T08:30:00Z, or any")
    return seconds


def passing_docs(store, kind, source, limits):
    """(the docs that pass, as something that knows what is in it, None for all; the Outside of the limits)."""
    if limits.scopes is not None and scopes.GLOBAL not in limits.scopes:  # then plain global cards are outside too
        wider = store.outside(limits._replace(scopes=(*limits.scopes, scopes.GLOBAL)))
        return store.docs_of(kind, source, limits), wider
    outside = store.outside(limits)
    if kind is not None or source is not None:
        return store.docs_of(kind, source, limits), outside
    return _AllBut(outside.docs) if outside.docs else None, outside


class _AllBut:
    """Every doc except some."""

    def __init__(self, docs):
        self._docs = docs

    def __contains__(self, doc):
        return doc not in self._docs
