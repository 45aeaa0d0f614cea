"""What the doctor looks at in the index: opened for reading alone, never made, never changed."""

import os
import shlex

from mcore.changes import AWAY_CURE, is_away
from mcore.doctor.findings import ERROR, NOTE, WARNING, finding, from_error
from mcore.errors import SetupError, StoreBusy, StoreDamaged, StoreError, StoreNewer, StoreOutdated
from mcore.importer import link_faults
from mcore.importer.build import stale_builds
from mcore.render import counted
from mcore.store import checking, looking
from mcore.vault import is_walked, names_in

WAIT_SECONDS = 1.0
_WORDS = "the full text has other words than the file of"


def check_index(app, seen):
    """(path of the index, number of cards in it, findings); `seen` is the Vault as its files are."""
    update = _command(app.settings, "index")
    try:
        path = app.index_path(WAIT_SECONDS)
    except SetupError as error:
        path = app.settings.db.path
        return path, 0, [from_error("index-foreign", ERROR, path, error)]
    found = [
        finding("stale-build", WARNING, build, "left by an index run that was killed", "memory doctor --fix")
        for build in stale_builds(path)
    ]
    found += _set_aside(path)
    try:
        try:
            total, more = _look(app, path, seen, update)
        except StoreBusy:  # written to while it was looked at
            total, more = _look(app, path, seen, update)
    except StoreBusy as error:
        total, more = 0, [from_error("index-busy", WARNING, path, error)]
    except StoreOutdated as error:
        message = f"{error.message}: {error.why}; the next command that needs it builds it anew"
        total, more = 0, [finding("index-outdated", WARNING, path, message, update)]
    except StoreDamaged as error:
        total, more = 0, [from_error("index-damaged", ERROR, path, error)]
    except StoreNewer as error:
        total, more = 0, [from_error("index-newer", ERROR, path, error)]
    except SetupError as error:
        total, more = 0, [from_error("index-foreign", ERROR, path, error)]
    except StoreError as error:
        total, more = 0, [from_error("index-unreadable", ERROR, path, error)]
    return path, total, found + more


def _command(settings, *words):
    """The command line that does something to just this vault and index: flags given here go along."""
    flags = []
    for name in ("home", "db", "vault"):
        place = getattr(settings, name)
        if place.origin == "flag":
            flags += [f"--{name}", shlex.quote(place.path)]
    return " ".join(["memory", *words, *flags])


def _look(app, path, seen, update):
    """(number of cards in the index, findings); `update` is the command that brings it up to date."""
    rebuild = f"{update} --rebuild"
    with looking(path, WAIT_SECONDS) as store:
        if store is None:
            severity = WARNING if seen.files else NOTE
            message = f"there is no index yet of {counted(len(seen.files), 'card file')}"
            return 0, [finding("index-missing", severity, path, message, update)]
        faults = checking.faults(store)
        if faults:
            return store.total(), [finding("index-damaged", ERROR, path, fault, rebuild) for fault in faults]
        owner = store.vault()
        if owner not in (None, app.real_vault()) and app.settings.db.origin != "default":
            cure = f"choose another file with --db, or take it over: {rebuild}"
            return store.total(), [finding("index-other-vault", ERROR, path, f"it was made for {owner}", cure)]
        found = _compared(store, path, seen, app.settings, update)
        found += [finding("link", WARNING, card, text, "mend the link") for card, text in link_faults(store)]
        return store.total(), found + (_postings(store, path, seen, rebuild) if seen.sums else [])


def _compared(store, path, seen, settings, update):
    """Findings on cards that are not in the index, and the reverse."""
    root = settings.vault.path
    indexed = store.hashes(store.paths())
    unreadable = store.known_unreadable()
    if indexed and not seen.files and (not os.path.isdir(root) or is_away(root, len(indexed))):
        known = counted(len(indexed), "card")
        message = f"it is not there, or there is nothing in it, and the index {path} has {known}"
        return [finding("vault-away", ERROR, root, message, AWAY_CURE)]
    if any(each.slug == "vault" for each in seen.findings):
        return []  # it cannot be looked into: nothing is known of its cards
    found = []
    for card, digest in seen.digests.items():
        if card not in indexed:
            found.append(finding("not-indexed", WARNING, card, "the index does not have it yet", update))
        elif indexed[card][1] != digest:
            found.append(finding("stale", WARNING, card, "it has changed since it was indexed", update))
    for card in indexed:
        # A card may have been captured since the files were looked at.
        if card not in seen.files and not is_walked(root, card, settings.ignore):
            found.append(finding("not-in-vault", WARNING, card, "the index has it, and there is no such file", update))
    for card in unreadable:
        if card in seen.digests and card not in indexed:
            found.append(finding("stale", WARNING, card, "the index lists it as unreadable; it can be read", update))
    return found


def _postings(store, path, seen, rebuild):
    """Findings where the index says otherwise than the files, or one part of it than another: SQLite itself would
    not notice."""
    docs, sums, indexed, told = store.docs(), checking.posting_sums(store), store.hashes(seen.digests), store.told()
    same = [card for card, (_, digest) in indexed.items() if digest == seen.digests[card]]
    differs = {
        _WORDS: [c for c in same if sums.get(docs[c], 0) != seen.sums[c]],
        "the index says otherwise than the file of": [c for c in same if hash(told[c]) != seen.told[c]],
    }
    faults = [f"{what} {counted(len(c), 'card')}, such as {c[0]}" for what, c in differs.items() if c]
    if not differs[_WORDS]:
        others = checking.word_faults(store)
        faults += [f"the records beside the full text differ from it ({fault})" for fault in others]
    cause = "damage, or another version made it"
    return [finding("index-differs", WARNING, path, f"{fault}: {cause}", rebuild) for fault in faults]


def _set_aside(path):
    folder, name = os.path.split(path)
    for entry in names_in(folder):
        if entry.startswith(name + ".damaged") and not entry.endswith(("-wal", "-shm", "-journal")):
            message = "a damaged index that a rebuild set aside; nothing uses it"
            yield finding("set-aside", NOTE, os.path.join(folder, entry), message, "remove it when you like")
