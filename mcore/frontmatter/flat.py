"""The commonest YAML block, read in one pass: flat keys with plain or double-quoted text or a list of plain items.

95 of 100 real blocks are flat keys; reading those without the full reader halves the time of an
index run's parsing. Whatever is not certain to read the same there is left to it: `read` returns None.
"""

from mcore.frontmatter.yamlflow import scalar
from mcore.pattern import Pattern

# A key, then nothing or a value: plain text (no `: `, ` #` or closing colon inside, no sign of YAML's
# in front), a quoted text without escapes, or a list of plain items on one line or one below the other.
_PLAIN = r"[^\s'\"\[\]{}>|*&!%@`#,?:=<~\-](?:[^\n\r\t:#]|:(?=[^\s])|(?<=[^\s])#)*"
_ITEM = r"[^\s'\"\[\]{}>|*&!%@`#,?:=<~\-](?:[^\n\r\t:#,\[\]{}'\"]|:(?=[^\s,\]])|(?<=[^\s])#)*"
_VALUE = rf" (?:({_PLAIN})|\"([^\"\\\n\r]*)\"|\[ *((?:{_ITEM}(?:, *{_ITEM})*)?)\]) *\n"
_ENTRY = Pattern(rf"([A-Za-z_][A-Za-z0-9_-]*):(?:{_VALUE}| *\n(( *)- {_ITEM}\n(?:\6- {_ITEM}\n)*))")


def read(text, start, end):
    """The fields of the block `text[start:end]`, or None when the full reader is needed."""
    fields, at = {}, start
    match = _ENTRY.match
    while at < end:
        found = match(text, at, end)
        if not found:
            return None
        key, plain, quoted, items, lines, indent = found.groups()
        if key in fields:
            return None
        if plain is not None:
            fields[key] = scalar(plain.rstrip(" "))
        elif quoted is not None:
            fields[key] = quoted
        else:
            if lines:
                pieces = lines[len(indent) + 2 : -1].split("\n" + indent + "- ")
            else:
                pieces = items.split(",") if items else []
            values = [scalar(item.strip(" ")) for item in pieces]
            fields[key] = [value for value in values if value is not None]
        at = found.end()
    return fields or None
