"""What a caller gives for a card, checked before anything is written: title, kind, fields, credentials."""

from mcore import hidden, secretscan, validity
from mcore import scope as scopes
from mcore.card import KIND_FOLDERS, MAX_TITLE_CHARS
from mcore.cardfile import one_line
from mcore.errors import UsageError, warning
from mcore.frontmatter import number, timestamp
from mcore.record import namedtuple
from mcore.render import scrub

Secret = namedtuple("Secret", "kind start end where")

TIMES = ("valid_from", "valid_to", "review_by")
LISTS = ("tags", "aliases", "questions")
FIELDS = ("title", "kind", "source", *LISTS, "priority", "confidence", "scope", *TIMES, "ttl", "pinned")


def clean_title(title):
    """The title on one line, without lone surrogates. Raises UsageError when nothing is left."""
    title = one_line(scrub(title))
    if not title:
        raise UsageError("the title is empty", hint="give --title a few words that name the fact")
    if len(title) > MAX_TITLE_CHARS:
        raise UsageError(f"the title has over {MAX_TITLE_CHARS} characters", hint="put the text into the body")
    return title


def known_kind(kind):
    if kind not in KIND_FOLDERS:
        raise UsageError(f"there is no kind {one_line(scrub(kind))[:60]!r}", hint="one of: " + ", ".join(KIND_FOLDERS))
    return kind


def clean_tags(tags):
    return [tag for tag in (" ".join(scrub(t).split()).lstrip("# ") for t in tags) if tag]


def checked(given):
    """Field -> value for those of FIELDS that are given (not None); None stands for taking a field out.

    Empty text and an empty list take a field out. Raises UsageError, naming the field.
    """
    fields = {}
    for name in FIELDS:
        value = given.get(name)
        if value is not None:
            fields[name] = _checked(name, value)
    start, end = (timestamp(fields.get(name)) for name in ("valid_from", "valid_to"))
    if start is not None and end is not None and end <= start:
        raise UsageError("valid_to is not after valid_from", hint="a card holds from valid_from on, before valid_to")
    return fields


def _checked(name, value):
    if name == "title":
        return clean_title(value)
    if name == "pinned":
        return True if value else None
    if name == "tags":
        return clean_tags(value) or None
    if name in LISTS:
        return list(dict.fromkeys(filter(None, (one_line(scrub(item)) for item in value)))) or None
    text = one_line(scrub(value))
    if not text:
        return None
    if name == "kind":
        return known_kind(text)
    if name == "scope":
        return _scope(text)
    if name in TIMES and validity.is_left_open(text) or name == "ttl" and validity.is_endless(text):
        return None
    if name in TIMES and timestamp(text) is None:
        raise UsageError(f"{name} {text[:60]!r} is no date", hint="such as 2026-12-01 or 2026-12-01T08:30:00Z")
    if name == "ttl" and validity.length(text) is None:
        raise UsageError(f"ttl {text[:60]!r} is no length of time", hint="such as 30d, 12h, 2w or 6 months")
    if name in ("priority", "confidence") and number(text) is not None and not text.startswith("0x"):
        return number(text)
    return text


def _scope(text):
    found = scopes.normalized(text)
    if found is None:
        near = scopes.meant(text)
        hint = f"did you mean {near}?" if near else f"it is {scopes.FORMS}"
        raise UsageError(f"{text[:60]!r} is no scope", hint=hint)
    return found


# ---- what the text holds -------------------------------------------------------------------------


def _places(fields, body):
    """(where, text) of what a card says in words; the items of a list are joined by ", "."""
    places = [("title", fields.get("title") or ""), ("body", body or "")]
    places += [(name, ", ".join(fields.get(name) or ())) for name in LISTS]
    return [*places, ("source", fields.get("source") or "")]


def find_secrets(fields, body):
    """Every Secret of a card; in a list its span counts in the items joined by ", "."""
    return [
        Secret(f.kind, f.start, f.end, where) for where, text in _places(fields, body) for f in secretscan.scan(text)
    ]


def secret_warnings(secrets):
    return [
        warning(
            "secret",
            f"{s.where}, characters {s.start} to {s.end}: looks like a credential ({s.kind})",
            "keep it in a password store and write where it is; change it if this card is shared",
        )
        for s in secrets
    ]


def hidden_warnings(fields, body):
    """Says that text holds characters that can hide or reorder words (prompt injection, bidi tricks), or that
    stand for bytes of another encoding, whose text is lost."""
    warnings, places = [], _places(fields, body)
    found = [(text, place) for _, text in places for place in hidden.scan(text)]
    if found:
        count = sum(place.end - place.start for _, place in found)
        points = hidden.names("".join(text[place.start : place.end] for text, place in found))
        message = f"the text holds {count} invisible, control or direction-changing characters ({points})"
        warnings.append(warning("invisible", message, "check where the text came from"))
    lost = sum(text.count("\ufffd") for _, text in places)
    if lost:
        message = f"the text holds U+FFFD ({lost} times), which stands for bytes that were not UTF-8"
        warnings.append(warning("not-utf8", message, "convert the text (iconv -t UTF-8) and write it again"))
    return warnings
