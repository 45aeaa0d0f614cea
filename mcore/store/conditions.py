"""Which cards may answer, as SQL: kind, source, scope, and the time they hold at."""

from mcore.scope import GLOBAL
from mcore.validity import FORGOTTEN


def scope_sql(ranges):
    """(SQL, values) of a card's scope: its own, else that of its folder, else global."""
    if not ranges:
        return f"coalesce(cards.scope, '{GLOBAL}')", []
    cases = " ".join("WHEN cards.rel_path >= ? AND cards.rel_path < ? THEN ?" for _ in ranges)
    values = [value for name, first, end in ranges for value in (first, end, name)]
    return f"coalesce(cards.scope, CASE {cases} ELSE '{GLOBAL}' END)", values


def in_scope(limits):
    """(SQL, values) that is true for a card in one of the scopes."""
    if limits.scopes is None:
        return "1", []
    scope, names = scope_sql(limits.ranges)
    return f"({scope} IN ({', '.join('?' * len(limits.scopes))}))", [*names, *limits.scopes]


def in_force(at):
    """(SQL, values) that is true for a card in force at a time, or for one that is not forgotten."""
    if at is None:
        return f"(cards.special = 0 OR cards.mark <> '{FORGOTTEN}')", []
    return (
        "(cards.special = 0 OR (cards.mark = '' AND (cards.valid_from IS NULL OR cards.valid_from <= ?) "
        "AND (cards.valid_to IS NULL OR cards.valid_to > ?) AND (cards.closed_at IS NULL OR cards.closed_at > ?)))"
    ), [at] * 3


def filters(kind, source, limits=None):
    """(SQL, values) of the conditions, each with AND before it, for cards of a kind, a source and within Limits."""
    where, values = "", []
    if limits is not None:
        for condition, more in (in_force(limits.at), in_scope(limits)):
            where += f" AND {condition}"
            values += more
    for column, value in (("kind", kind), ("source", source)):
        if value is not None:
            where += f" AND cards.{column} = ? COLLATE NOCASE"
            values.append(value)
    return where, values
