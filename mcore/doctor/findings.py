"""A finding: what is not as it should be, where, and the cure."""

import re

from mcore.record import namedtuple
from mcore.secretscan import redact

ERROR, WARNING, NOTE = SEVERITIES = ("error", "warning", "note")

Finding = namedtuple("Finding", "slug severity where line message cure")
Finding.__doc__ = """One thing that was found.

`severity`: error (memory does not work until it is mended), warning (it works, and something is
wrong) or note (worth knowing). `where` is a card's rel_path or the path of another file or folder,
`line` a line number in it or None, `cure` what to do: a command where one helps.
"""

_LINE = re.compile(r"line ([0-9]+)")


def finding(slug, severity, where, message, cure, line=None):
    """A Finding; whatever looks like a credential is taken out of its texts."""
    return Finding(slug, severity, redact(where), line, redact(message), cure)


def from_error(slug, severity, where, error):
    """The Finding that an McoreError stands for."""
    text = f"{error.message}: {error.why}" if error.why else error.message
    return finding(slug, severity, where, text, error.hint, line_in(error.why))


def line_in(text):
    """The line number that a message names, or None."""
    found = _LINE.search(text)
    return int(found[1]) if found else None
