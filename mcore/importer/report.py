"""What is told of an index run or of a look at the files."""

import time

from mcore import vault
from mcore.errors import warning
from mcore.importer.links import link_faults
from mcore.record import namedtuple
from mcore.render import counted

Report = namedtuple("Report", "added updated moved removed unchanged total skipped seconds warnings")
Report.__doc__ = "What an index run did: counts of cards, `skipped` files with reasons, wall `seconds`."

Freshness = namedtuple("Freshness", "checked changed stale unreadable unchecked", defaults=(0,))
Freshness.__doc__ = """How true an answer is to the files at the moment it was asked.

`checked` files were looked at (0: no look was taken), `changed` of them were taken in now, `stale`
are known to differ from the index and could not be taken in, `unreadable` card files are in no answer,
`unchecked` cards lie in folders that there was no time to look into.
"""


def stale_warning(files):
    """Says how many changed files an answer lacks."""
    are = "is" if files == 1 else "are"
    return warning("stale", f"{counted(files, 'changed file')} {are} not in this answer yet", "run: memory index")


def report_of(store, files, skipped, counts, started):
    """The Report of a run that began at `started` (of time.monotonic) and passed over the `skipped` of its walk."""
    unreadable = store.known_unreadable()
    skipped = sorted([*skipped, *(vault.Skipped(path, reason) for path, (reason, _) in unreadable.items())])
    warnings = [warning("not-utf8", f"{path}: {remark}", "save the file as UTF-8") for path, remark in store.remarks()]
    warnings += [
        warning("field", f"{path}: {note}", "mend the field")
        for path, notes in store.life_notes()
        for note in notes.split("\n")
    ]
    warnings += [warning("link", f"{path}: {text}", "mend the link") for path, text in link_faults(store)]
    warnings += files.vault_warnings()
    return Report(
        **counts,
        total=store.total(),
        skipped=skipped,
        seconds=round(time.monotonic() - started, 3),
        warnings=warnings,
    )
