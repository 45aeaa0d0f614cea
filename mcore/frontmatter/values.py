"""What a frontmatter value means: numbers and truth, tags, names, and the text worth searching.

Fields keep the text that was written (`8.10`, `007`, `2024-01-05`, `yes`); the functions here give
the number or truth in it when someone asks (`dates` the time). All are pure and none raises.
"""

import math
from operator import itemgetter

from mcore.pattern import Pattern

_NAN = float("nan")
_INTEGER = Pattern(r"[-+]?[0-9]+(?:_[0-9]+)*")
_FLOAT = Pattern(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_MAX_DIGITS = 300  # far below the 4,300 at which Python 3.11 refuses a text
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

TAG_KEYS = ("tags", "tag", "keywords", "categories", "category", "topics", "labels")
_SEPARATOR = Pattern("[,，、]")
# Fields with a column of their own, and bookkeeping no one searches for by its value.
_NOT_SEARCHED = frozenset(
    TAG_KEYS
    + ("title", "kind", "source", "scope", "priority", "ttl", "confidence", "revision", "supersedes")
    + ("created", "created_at", "updated", "updated_at", "modified", "date", "lastmod", "published")
    + ("date created", "date modified", "valid_from", "valid_to", "valid_until", "expires", "review_by")
    + ("retracts", "retracted_at", "forgotten_at", "forgotten", "pinned", "id", "uid", "uuid")
)


def number(value):
    """The int or float a value is written as, else None; `true` and `1.2.3` are no numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value if isinstance(value, int) or math.isfinite(value) else None
    if not isinstance(value, str) or len(value) > _MAX_DIGITS:
        return None
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    result = float(text) if _FLOAT.fullmatch(text) else _NAN
    return result if math.isfinite(result) else None


def boolean(value):
    """True or False of a field declared boolean: true/yes/on, false/no/off in any case; else None."""
    if isinstance(value, bool):
        return value
    return _TRUTH.get(value.strip().lower()) if isinstance(value, str) else None


def lookup(fields, *names):
    """The value of the first of `names` that is a key, in any case; None if none is.

    A key written exactly so wins over one in another case.
    """
    folded = None
    for name in names:
        if name in fields:
            return fields[name]
        if folded is None:
            folded = {str(key).casefold(): value for key, value in fields.items()}
        if name.casefold() in folded:
            return folded[name.casefold()]
    return None


def text_list(value):
    """The texts of a value that may be a list, one text or nothing, as for aliases; `true` is "true"."""
    return [text for text in (leaf.strip() for leaf in _leaves(value)) if text]


def tags(fields):
    """The tags of a card, each once: those of TAG_KEYS in that order, in any case of the key.

    A text is split at `,`, `，` and `、`, and at spaces when every piece starts with `#`; an item
    of a list is one tag. Leading `#` go, NFC is applied, and of spellings that differ only in
    case the first stays.
    """
    told = [(str(key).casefold(), value) for key, value in fields.items()]
    told = [(TAG_KEYS.index(key), value) for key, value in told if key in TAG_KEYS]
    found = {}
    for _, value in sorted(told, key=itemgetter(0)):
        for tag in map(_tag, _pieces(value)):
            if tag:
                found.setdefault(tag.casefold(), tag)
    return list(found.values())


def _pieces(value):
    if not isinstance(value, str):
        yield from _leaves(value)
        return
    for piece in _SEPARATOR.split(value):
        words = piece.split()
        if all(word.startswith("#") for word in words):
            yield from words
        else:
            yield piece


def _tag(text):
    tag = text.strip().lstrip("#").strip()
    if tag.isascii():
        return tag
    import unicodedata

    return unicodedata.normalize("NFC", tag)


def searchable(fields):
    """The text values of the fields, one a line, for the index.

    Keys are left out, and so are fields that have a column of their own or keep books (title,
    tags, kind, source, times, ids): see _NOT_SEARCHED.
    """
    texts = []
    for key, value in fields.items():
        if str(key).casefold() not in _NOT_SEARCHED:
            texts.extend(leaf for leaf in _leaves(value, with_bools=False) if leaf.strip())
    return "\n".join(texts)


def _leaves(value, with_bools=True):
    """The texts in a value, in order, however nested; recursion ends at the readers' MAX_DEPTH."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item, with_bools)
    elif isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, str):
                yield item
            else:
                yield from _leaves(item, with_bools)
    elif isinstance(value, bool):
        if with_bools:
            yield "true" if value else "false"
    elif value is not None:
        yield str(value)
