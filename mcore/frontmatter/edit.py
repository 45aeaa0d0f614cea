"""Changes single fields of a note's text and leaves every other character as its writer put it. Pure.

The edit is made on lines, then read back: unless exactly the wanted fields differ, it is tried with
more lines, and at last refused. So a block that is odder than this module knows is never damaged.
"""

import json
import re

from mcore.frontmatter.quoting import quote
from mcore.frontmatter.write import compose, entry_lines

MAX_TRIES = 200  # lines that one value may take beyond what it looks like
TRIED_CHARS = 4_000_000  # of blocks read back while looking for the end of a value; a few seconds at worst

_TOML_TABLE = re.compile(r"[ \t]*\[")


class Uneditable(Exception):
    """The block cannot be changed safely; the text says why."""


def edited(text, changes, body=None):
    """`text` with the fields of `changes` set (None: taken out), and with another body if one is given.

    Values are str, bool, int, float or a list of str. A field keeps the key and the place it has (keys
    match in any case); a new one comes last. Line ends, a byte order mark and all other fields stay.
    Raises Uneditable.
    """
    from mcore.frontmatter import parse, split

    place, before = split(text), parse(text).fields
    newline = _newline(text)
    wanted, keys = _wanted(before, changes)
    head, rest = text[: place.body_start], text[place.body_start :]
    if keys:
        head = _new_head(text, place, keys, wanted, newline)
    if body is not None:
        rest = _new_body(rest, body, newline)
        if place.style is not None and rest and head and not head.endswith(("\n", "\r")):
            head += newline
    result = head + rest
    document = parse(result)
    if keys and document.fields != wanted or not keys and document.fields != before:
        raise Uneditable("its frontmatter is written in a way that cannot be changed field by field")
    if body is None and document.body != rest.replace("\r\n", "\n") and document.body != rest:
        raise Uneditable("its body would not stay as it is")
    return result


def _newline(text):
    """The line end that a text uses most."""
    crlf = text.count("\r\n")
    if crlf * 2 > text.count("\n"):
        return "\r\n"
    return "\r" if not crlf and "\n" not in text and "\r" in text else "\n"


def _wanted(before, changes):
    """(the fields as they should read afterwards, key as written -> new value for what differs)."""
    by_name = {}
    for key in before:
        by_name.setdefault(key.casefold(), key)
    wanted, keys = dict(before), {}
    for name, value in changes.items():
        key = by_name.get(name.casefold(), name)
        if value is None:
            if key in wanted:
                del wanted[key]
                keys[key] = None
        elif key not in wanted or wanted[key] != _read_back(value):
            wanted[key] = _read_back(value)
            keys[key] = value
    return wanted, keys


def _read_back(value):
    """What a value reads as once it is written: numbers come back as their text."""
    if isinstance(value, (list, tuple)):
        return [_read_back(item) for item in value]
    return value if isinstance(value, (bool, str)) else str(value)


def _new_body(old, body, newline):
    """`body` with the note's own line ends; one line end at the end where the old body had one, or was empty."""
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if (not old or old.endswith(("\n", "\r"))) and not body.endswith("\n"):
        body += "\n"
    return body.replace("\n", newline)


def _new_head(text, place, keys, wanted, newline):
    """The text before the body, with the keys changed."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    if place.style is None:
        block = compose({key: value for key, value in keys.items() if value is not None}, "")
        return mark + block.replace("\n", newline) + newline
    end = text.rindex(place.block, 0, place.body_start) + len(place.block)
    start = end - len(place.block)
    if place.style == "json":
        block = _json_block(place.block, keys, newline)
    else:
        block = place.block
        for key, value in keys.items():
            block = _with_key(block, place.style, key, value, newline)
    if not wanted and block.strip() in ("", "{}"):  # nothing is left: the note is as it was without a block
        return mark
    return text[:start] + block + text[end : place.body_start]


def _json_block(block, keys, newline):
    fields = json.loads(block, strict=False)
    for key, value in keys.items():
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = list(value) if isinstance(value, tuple) else value
    lead = block[: len(block) - len(block.lstrip())]
    tail = block[len(block.rstrip()) :]
    indent = re.search(r"\n([ \t]+)\"", block)
    written = json.dumps(fields, ensure_ascii=False, indent=indent[1] if indent else None)
    return lead + written.replace("\n", newline) + tail


def _with_key(block, style, key, value, newline):
    """The block with one key set or taken out; of several ways to see its extent the one that reads right."""
    from mcore.frontmatter import tomlread, yamlread

    reader = tomlread if style == "toml" else yamlread
    before = reader.read(block, 1)[0]
    wanted = {name: item for name, item in before.items() if name != key or value is not None}
    if value is not None:
        wanted[key] = _read_back(value)
    for changed in _candidates(block, style, key, value, newline):
        if not wanted and not changed.strip() or reader.read(changed, 1)[0] == wanted:
            return changed
    raise Uneditable(f"its field {key!r} is written in a way that cannot be changed by itself")


def _candidates(block, style, key, value, newline):
    """Blocks with the key's lines replaced, from the fewest lines on."""
    lines = block.splitlines(keepends=True)
    column = next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip() and line.strip()[0] != "#"), 0)
    sign = "=" if style == "toml" else ":"
    names = "|".join(re.escape(name) for name in (key, quote(key), f"'{key}'"))
    opening = re.compile(rf"{' ' * column}(?:{names})[ \t]*{sign}")
    # Of a key that stands twice the last one counts.
    at = max((number for number, line in enumerate(lines) if opening.match(line)), default=None)
    if at is None:
        if value is not None:
            yield _inserted(lines, style, key, value, newline, column)
        return
    least = _extent(lines, at, column)
    tries = min(MAX_TRIES, TRIED_CHARS // max(1, len(block)))
    for end in range(least, min(len(lines), least + tries) + 1):
        new = [] if value is None else _written(style, key, value, newline, column, lines[at:end])
        yield "".join([*lines[:at], *new, *lines[end:]])


def _extent(lines, at, column):
    """The line after the last one that surely belongs to the key on line `at`."""
    end = at + 1
    for number in range(at + 1, len(lines)):
        line = lines[number]
        inner = len(line) - len(line.lstrip(" \t"))
        if not line.strip():
            continue
        if inner <= column and not (inner == column and re.match(r"-(?:\s|$)", line[inner:])):
            break
        end = number + 1
    return end


def _inserted(lines, style, key, value, newline, column):
    """The block with a new key in its last place (before the tables of TOML)."""
    at = len(lines)
    if style == "toml":
        at = next((number for number, line in enumerate(lines) if _TOML_TABLE.match(line)), at)
    new = _written(style, key, value, newline, column, [])
    head = "".join(lines[:at])
    if head and not head.endswith(("\n", "\r")):
        head += newline
    return head + "".join(new) + "".join(lines[at:])


def _written(style, key, value, newline, column, old):
    """The lines of a key with its value, in the form of its former lines where that is a list a line an item."""
    if style == "toml":
        return [f"{_toml_key(key)} = {_toml_value(value)}{newline}"]
    dash = next((re.match(r"([ \t]*)-(?:\s|$)", line) for line in old[1:] if line.strip()), None)
    if isinstance(value, (list, tuple)) and value and dash:
        first = entry_lines(key, None)[0]
        items = [entry_lines(key, [item])[0].split(": ", 1)[1][1:-1] for item in value]
        new = [first, *(f"{dash[1]}- {item}" for item in items)]
        return [" " * column + new[0] + newline, *(line + newline for line in new[1:])]
    return [" " * column + line + newline for line in entry_lines(key, value)]


def _toml_key(key):
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else quote(key)


def _toml_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(quote(item) for item in value) + "]"
    return quote(value) if isinstance(value, str) else str(value)
