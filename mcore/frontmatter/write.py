"""The text of a new card. A card that exists is never written back through here: its block keeps its form."""

from mcore.frontmatter.quoting import quote

_LINE_WIDTH = 100  # a list that fits stays on its key's line
# Plain words that some reader types: YAML 1.1 (y, yes, on), YAML 1.2 (true, null), both (inf, nan).
_TYPED = frozenset("true false yes no on off y n null nil none nan inf".split())
# A text of these only may be a number, a date, a time or a base-60 number to some reader.
_NUMERIC = frozenset("0123456789abcdefABCDEFxXoOtTzZ_.,:+- ")


def compose(fields, body):
    """The text of a card: a `---` block with `fields` in their order, an empty line, `body`.

    Values are str, bool, int, None, and lists or dicts of them. Reading it back gives the same
    fields, save that an int comes back as its text and a None in a list is left out. The body
    comes back exactly, whatever it starts or ends with: nothing is added after it, so the file
    ends with a newline when the body does (with an empty body it ends with the block).
    """
    lines = ["---"]
    for key, value in fields.items():
        lines.extend(_entry(_text(str(key), is_flow=False), value))
    lines.append("---\n")
    block = "\n".join(lines)
    return f"{block}\n{body}" if body else block


def entry_lines(key, value):
    """The lines of one field of a YAML block; `value` as for `compose`."""
    return _entry(_text(key, is_flow=False), value)


def _entry(key, value):
    if value is None:
        return [f"{key}:"]
    if isinstance(value, (list, tuple)):
        line = f"{key}: {_flow(value)}"
        items = [item for item in value if item is not None]
        if len(line) <= _LINE_WIDTH or not items:
            return [line]
        return [f"{key}:", *(f"  - {_inline(item, is_flow=False)}" for item in items)]
    return [f"{key}: {_inline(value, is_flow=False)}"]


def _inline(value, is_flow):
    if isinstance(value, str):
        return _text(value, is_flow)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, dict)):
        return _flow(value)
    return "null" if value is None else str(value)


def _flow(value):
    if isinstance(value, dict):
        pairs = (f"{quote(str(key))}: {_inline(item, is_flow=True)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return "[" + ", ".join(_inline(item, is_flow=True) for item in value if item is not None) + "]"


def _text(text, is_flow):
    return text if _is_plain(text, is_flow) else quote(text)


def _is_plain(text, is_flow):
    """Whether every reader takes the bare text for this same text; when in doubt it is quoted."""
    first = text[:1]
    if not (first.isalpha() or first == "_" or (first and first in "0123456789")):
        return False
    if not text.isprintable() or text[-1] == " " or text.casefold() in _TYPED:
        return False
    if ": " in text or " #" in text or text[-1] == ":":
        return False
    if not (first.isalpha() or first == "_") and _NUMERIC.issuperset(text):
        return False
    return not (is_flow and any(mark in text for mark in ",[]{}:?"))
