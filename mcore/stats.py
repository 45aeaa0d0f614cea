"""Overviews: what the vault holds, and where everything is."""

import time

from mcore import validity
from mcore.importer import stale_warning
from mcore.prepare import utc_now
from mcore.record import namedtuple

LATEST = 5

Stats = namedtuple(
    "Stats", "total kinds sources latest read_counts vault freshness scopes forgotten retracted warnings"
)
Stats.__doc__ = """Totals; forgotten cards are counted in `forgotten` alone. `scopes` maps each scope to its
total, active (in force now) and newest (UTC)."""
Latest = namedtuple("Latest", "id path title kind changed_at")
ReadCounts = namedtuple("ReadCounts", "cards readings most")
Paths = namedtuple("Paths", "home db vault config warnings")


def stats(app, sync=True):
    """Totals, by kind, by source, the cards changed last, and the reading counts."""
    freshness = app.freshness(sync)
    store = app.store
    cards, readings, most = store.read_counts(LATEST)
    warnings = []
    if freshness.stale:
        warnings.append(stale_warning(freshness.stale))
    forgotten = len(store.marked(validity.FORGOTTEN))
    total = store.total() - forgotten
    if not total:
        warnings += app.indexer.files.vault_warnings()
    return Stats(
        total,
        store.counts_by("kind"),
        store.counts_by("source"),
        [Latest(*row, utc_now(ns // 1_000_000_000)) for *row, ns in store.latest(LATEST)],
        ReadCounts(cards, readings, [{"path": p, "read_count": n, "last_read_at": at} for p, n, at in most]),
        app.settings.vault.path,
        freshness,
        {
            name: {"total": n, "active": active, "newest": utc_now(ns // 1_000_000_000)}
            for name, (n, active, ns) in store.scopes(app.settings.scopes, time.time()).items()
        },
        forgotten,
        len(store.marked(validity.RETRACTED)),
        warnings,
    )


def paths(app):
    """Each path in force with what decided it. Opens nothing for writing."""
    settings = app.settings
    places = {name: getattr(settings, name) for name in ("home", "db", "vault", "config")}
    places["db"] = places["db"]._replace(path=app.db_path)
    return Paths(**{name: {"path": p.path, "from": p.origin} for name, p in places.items()}, warnings=[])
