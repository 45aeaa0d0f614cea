"""Frontmatter, both ways: the text of a note -> its fields and body; fields and body -> a card's text.

Owns what counts as a block and which of three readers gets it (`yamlread`, `tomlread`, JSON here),
what the values mean (`values`, `dates`) and how a new card is written (`write`). Pure text: no files, no
clock, no cards. Nothing here raises on any input, and every reader is linear in its length.

The choices, where YAML's own rules would lose what the writer meant:
- a scalar keeps its written text (`8.10`, `007`, `2024-01-05`, `yes`); only true/false become bool
  and null/~/nothing None. `number`, `boolean` and `timestamp` read the text when asked;
- null items of a list are dropped (`tags:` above a bare `-` is an empty list);
- a line that does not parse makes the rest of the line its key's value; a duplicate key: last wins;
- a block that never closes, or holds no key at all, is body.
"""

from mcore.frontmatter import flat, tomlread, yamlread
from mcore.frontmatter.dates import timestamp
from mcore.frontmatter.quoting import whole_characters
from mcore.frontmatter.values import boolean, lookup, number, searchable, tags, text_list
from mcore.frontmatter.write import compose
from mcore.frontmatter.yamlflow import MAX_DEPTH
from mcore.pattern import Pattern
from mcore.record import namedtuple

__all__ = [
    "Document", "Split", "boolean", "compose", "lookup", "number", "parse", "searchable", "split", "tags",
    "text_list", "timestamp", "unclosed",
]  # fmt: skip

Split = namedtuple("Split", "block style body body_start")
Split.__doc__ = """A note cut in two, both parts as they are written (line ends too).

`block` is the text between the fences or the JSON object, None without frontmatter. `style` is
"yaml", "toml", "json" or None. `body` starts at character `body_start` of the text: after the
closing line and at most one blank line, or after a BOM when there is no frontmatter.
"""

Document = namedtuple("Document", "fields body style warnings")
Document.__doc__ = """What a note says. `fields`: name -> str, bool, None, list or dict of these.

`warnings` holds (line number in the file, message) pairs: every place where the block was read
otherwise than its format says, at most 100.
"""

_Place = namedtuple("_Place", "style start end body_start")
_LONG_NAME = 40  # characters

_OPENER = Pattern(
    r"\ufeff?(?:[^\S\r\n]*(?:\r\n|\n|\r))*"
    r"(?:(---)(?:yaml|yml|json)?|\+\+\+)[^\S\r\n]*(?:\r\n|\n|\r)"
)
_YAML_CLOSER = Pattern(r"(?<=[\r\n])(?:---|\.\.\.)[^\S\r\n]*(?=[\r\n]|\Z)")
_TOML_CLOSER = Pattern(r"(?<=[\r\n])\+\+\+[^\S\r\n]*(?=[\r\n]|\Z)")
_FIRST_KEY = Pattern(r"[A-Za-z_][\w-]*[ \t]*[:=](?=\s|\Z)")
_OBJECT = Pattern(r"\ufeff?\s*(?=\{\s*\")")
_AFTER = Pattern(r"[^\S\r\n]*(?:\r\n|\n|\r|\Z)(?:[^\S\r\n]*(?:\r\n|\n|\r))?")
_LINE = Pattern(r"\r\n|\n|\r")


def split(text):
    """The frontmatter block and the body of a note's decoded text, as a `Split`."""
    place = _located_quickly(text) or _locate(text)
    block = None if place.style is None else text[place.start : place.end]
    return Split(block, place.style, text[place.body_start :], place.body_start)


def parse(text):
    """The fields and the body of a note's decoded text, as a `Document`."""
    if text.startswith("---\n"):
        end = text.find("\n---\n", 3)
        fields = flat.read(text, 4, end + 1) if end > 0 else None
        if fields is not None:
            return Document(fields, text[_AFTER.match(text, end + 4).end() :], "yaml", [])
    place = _locate(text)
    body = text[place.body_start :]
    if place.style is None:
        return Document({}, body, None, [])
    first_line = 1 + len(_LINE.findall(text, 0, place.start))
    block = text[place.start : place.end]
    if place.style == "json":
        fields, warnings = _decoded(block)[0], []
        fields = _settled(fields, 1, lambda message: warnings.append((first_line, message)))
    else:
        reader = tomlread if place.style == "toml" else yamlread
        fields, warnings = reader.read(block, first_line)
    return Document(fields, body, place.style, warnings)


def _located_quickly(text):
    """Where a YAML block stands that begins with a lower-case word and holds no doubt; else None."""
    end = text.find("\n---\n", 3) if text.startswith("---\n") else -1
    word = text[4 : text.find(":", 4, 4 + _LONG_NAME)]
    after = text[4 + len(word) : 6 + len(word)]
    if end < 0 or not (word.isascii() and word.isidentifier() and word.islower() and after in (": ", ":\n")):
        return None
    if any(text.find(sign, 3, end) >= 0 for sign in ("\n---", "\n...", "\r")):
        return None
    rest = text[end + 5 : end + 6]
    if rest.isspace() and rest != "\n":
        return None
    return _Place("yaml", 4, end + 1, end + 5 + (rest == "\n"))


def _locate(text):
    """The style of the frontmatter and where it stands; style None when the whole text is body."""
    opener = _OPENER.match(text)
    if not opener:
        return _locate_object(text)
    is_yaml = opener.group(1)
    closer = (_YAML_CLOSER if is_yaml else _TOML_CLOSER).search(text, opener.end())
    if closer:
        start, end = opener.end(), closer.start()
        style = _style(text[start:end], is_yaml)
        if style:
            return _Place(style, start, end, _AFTER.match(text, closer.end()).end())
    return _no_frontmatter(text)


def _no_frontmatter(text):
    return _Place(None, 0, 0, 1 if text.startswith("\ufeff") else 0)


def unclosed(text):
    """The line on which a note begins with fields whose block never closes (all of it is body); else None."""
    opener = _OPENER.match(text)
    if not opener or not _FIRST_KEY.match(text, opener.end()):
        return None
    if (_YAML_CLOSER if opener.group(1) else _TOML_CLOSER).search(text, opener.end()):
        return None
    return len(_LINE.findall(text, 0, opener.end()))


def _style(block, is_yaml):
    if not is_yaml:
        return "toml" if tomlread.is_mapping(block) else None
    if block.lstrip()[:1] == "{":
        found = _decoded(block)
        if found and not block[found[1] :].strip():
            return "json"
    return "yaml" if yamlread.is_mapping(block) else None


def _locate_object(text):
    """A JSON object at the very top, alone on its last line, with one key at least."""
    opening = _OBJECT.match(text)
    found = _decoded(text, opening.end()) if opening else None
    after = _AFTER.match(text, found[1]) if found else None
    if not after:
        return _no_frontmatter(text)
    return _Place("json", opening.end(), found[1], after.end())


def _decoded(text, start=None):
    """(the JSON object at `start`, its end) or None; objects are `_Pairs`, numbers are text."""
    import json  # rare: 5 of 86,001 notes

    if start is None:
        start = len(text) - len(text.lstrip())
    decoder = json.JSONDecoder(
        object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str, strict=False
    )
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, _Pairs) else None


class _Pairs(list):
    """The pairs of a JSON object, kept as pairs so that a duplicate key can be told."""


def _settled(value, depth, warn):
    """A decoded JSON value under the rules of frontmatter values; what is nested too deep becomes text."""
    if isinstance(value, str):
        return whole_characters(value) if not value.isascii() else value
    if not isinstance(value, list):
        return value
    if depth > MAX_DEPTH:
        warn(f"nested deeper than {MAX_DEPTH} levels, kept as text")
        return _leaf_text(value)
    if not isinstance(value, _Pairs):
        return [_settled(item, depth + 1, warn) for item in value if item is not None]
    fields = {}
    for key, item in value:
        if key in fields:
            warn(f"duplicate key {key!r}, the last one counts")
        fields[key] = _settled(item, depth + 1, warn)
    return fields


def _leaf_text(value):
    """All texts in a decoded value, keys too; without recursion, since json nests up to 10,000 deep."""
    texts = []
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, (list, tuple)):
            rest.extend(reversed(item))
        elif isinstance(item, str):
            texts.append(item)
    return whole_characters(" ".join(texts))
