"""The change as a unified diff for reading. Pure text.

What is shown may end up in an agent's conversation, and configuration files hold other programs'
credentials: those are masked. So it is no patch, and `apply` never works from it.
"""

import os
import re

from mcore.secretscan import redact

# A longer line is a whole file on one line, and no help to a reader.
MAX_LINE = 400

_NAMED = re.compile(
    r"(?i)((?:api[-_]?key|[-_]key|token|secret|passw(?:or)?d|authorization|credentials?|cookie)\w*[\"']?"
    r"\s*[:=,]\s*[\"']?)([^\"'\n,}]{6,})"
)


def unified(path, before, after):
    """Unified diff of the file at `path`; None stands for no file. "" when nothing changes."""
    if before == after:
        return ""
    import difflib

    names = [path if text is not None else os.devnull for text in (before, after)]
    header, *rest = difflib.unified_diff(_lines(before), _lines(after), *names, lineterm="") or [""]
    return "\n".join([header, rest[0], *(_shown(line) for line in rest[1:])]) + "\n"


def _lines(text):
    """Lines as difflib compares them; a missing last line end is said the way diff says it."""
    lines = (text or "").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "\n\\ No newline at end of file"]


def _shown(line):
    line = _NAMED.sub(r"\1***", redact(line.rstrip("\r")))
    if len(line) <= MAX_LINE:
        return line
    half = MAX_LINE // 2
    return f"{line[:half]} ...({len(line) - MAX_LINE} characters)... {line[-half:]}"
