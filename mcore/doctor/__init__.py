"""Looks at everything memory depends on and names a cure for each thing found; `fix` mends what is derived.

`cards` reads the vault, `index` the SQLite file, `machine` the rest; none of them changes anything.
A card file is never touched, whatever is asked for: what is wrong with it is its owner's to mend.
"""

import os
import sys
import time
from collections import Counter

from mcore import vault
from mcore.doctor.cards import check_vault
from mcore.doctor.findings import SEVERITIES
from mcore.doctor.index import check_index
from mcore.doctor.machine import check_clients, check_config, check_left_overs, check_permissions, check_sqlite
from mcore.errors import McoreError, warning
from mcore.record import namedtuple

Report = namedtuple("Report", "status findings counts machine fixed warnings")
Report.__doc__ = """What the doctor found.

`status` is healthy, findings (a warning at least) or broken (an error). `findings` are sorted, errors
first. `counts` has the number of files, of cards in the index, and of findings by severity; `fixed`
says what `--fix` did.
"""

SMALL_VAULT = 2000  # cards; to compare the words of 10,000 costs four times as much as all the rest
_REBUILT = {"index-damaged", "index-missing", "index-differs"}
_INDEXED = {"not-indexed", "stale", "not-in-vault", "index-outdated"}


def examine(app, fix=False, deep=False):
    """The Report. With `fix` the index and left-over temporary files are mended first; with `deep` every word of
    a large index too is compared with the files."""
    report = _look(app, deep)
    if not fix:
        return report
    fixed, warnings = _mend(app, report.findings)
    return _look(app, deep)._replace(fixed=fixed, warnings=warnings)


def _look(app, deep):
    found, trusted = check_config(app)
    settings = app.settings
    machine, more = check_sqlite()
    found += more
    seen = check_vault(settings, app.progress, machine.fts5 and (sys.maxsize if deep else SMALL_VAULT))
    # Without its config.json nothing says where this machine's vault is.
    found += [each for each in seen.findings if trusted or each.slug != "no-vault"]
    db_path, cards = settings.db.path, 0
    if machine.fts5:
        db_path, cards, more = check_index(app, seen)
        found += [each for each in more if trusted or each.slug != "index-missing"]
    found += check_permissions(settings, db_path)
    found += check_left_overs(settings)
    found += check_clients(app) if trusted else []
    found.sort(key=lambda each: (SEVERITIES.index(each.severity), each.slug, each.where, each.line or 0))
    severities = Counter(each.severity for each in found)
    counts = {"files": len(seen.files), "cards": cards, **{name: severities[name] for name in SEVERITIES}}
    status = "broken" if counts["error"] else "findings" if counts["warning"] else "healthy"
    return Report(status, found, counts, machine, [], [])


def _mend(app, findings):
    """(what was done, what could not be) about findings on what is derived."""
    from mcore.importer.build import clear_stale_builds

    slugs, fixed, warnings = {each.slug for each in findings}, [], []
    for path in [each.where for each in findings if each.slug == "stale-temp"]:
        vault.clear_stale_temps(os.path.dirname(path), time.time())
        if not os.path.lexists(path):
            fixed.append(f"removed {path}")
    try:
        if "stale-build" in slugs:
            clear_stale_builds(app.db_path)
            fixed.append("removed what killed index runs left")
        if not slugs & {"vault", "vault-away", "config-broken"}:
            fixed += _indexed(app, slugs)
    except McoreError as error:
        warnings.append(warning("not-fixed", f"{error.message}: {error.why}", error.hint))
    return fixed, warnings


def _indexed(app, slugs):
    """Mends the index; one that is whole is brought up to date, another built anew."""
    if slugs & _REBUILT:
        report = app.indexer.rebuild(app.rebuild_path())
        done = [f"rebuilt the index: {report.total} cards"]
    elif slugs & _INDEXED:
        report = app.indexer.index(app.store)
        counts = ", ".join(f"{getattr(report, name)} {name}" for name in ("added", "updated", "moved", "removed"))
        done = [f"brought the index up to date: {counts}"]
    else:
        return []
    app.close()
    return done
