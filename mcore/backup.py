"""One archive of vault, reading counts and settings; and back, into an empty place only.

A backup is written beside its name, synced, read back and compared, and only then given its name. A
restore checks every byte before it writes any, builds everything beside its place and puts it there
by a rename. The index is left out: it is built anew.
"""

import json
import os
import re
import sys

from mcore import __version__, archive, portable, vault
from mcore.errors import ArchiveError, CardError, McoreError, SetupError, UsageError, warning
from mcore.paths import check_config, open_regular
from mcore.prepare import utc_now
from mcore.record import namedtuple
from mcore.store import is_sane_id, looking, open_store, salvage

CARDS, CONFIG, QUERIES, COUNTS = "vault/", "config.json", "bench_queries.json", "reading_counts.json"
# What can be fetched or made again. Trash and histories are not among it.
LEFT_OUT = frozenset(
    ".git .hg .svn .jj .stfolder .cache .venv .tox .mypy_cache .pytest_cache .ruff_cache .dropbox.cache "
    "node_modules __pycache__".split()
)
AT_ONCE = 64 << 20  # bytes of a file that is read before it is packed
TRIES = 3
RESTORE_MARK = ".restore-"

Backup = namedtuple("Backup", "status path files bytes archive_bytes sha256 reading_counts skipped unread warnings")
Backup.__doc__ = """A backup: `status` is created, or conflict when the name is taken (nothing is written then).

`files` and `bytes` are those of the vault, `sha256` that of the archive; `skipped` names what is not in
it on purpose, `unread` what should be and could not be read.
"""
Restored = namedtuple("Restored", "status home vault files bytes reading_counts cards left_out warnings")
Restored.__doc__ = """What a restore put where; `left_out` names the settings that belong to the other machine."""


# ---- out -----------------------------------------------------------------------------------------


def backup(app, path):
    """Writes the archive at `path`; the Backup. Raises SetupError, UsageError, StoreError."""
    settings, target = app.settings, os.path.abspath(os.path.expanduser(path))
    _check_target(settings, target)
    empty = Backup("conflict", target, 0, 0, 0, None, 0, [], [], [])
    if os.path.lexists(target):
        return empty
    try:
        counts, warnings = _reading_counts(app.db_path)
        with vault.temp_beside(target) as temp:
            with open(temp, "xb", opener=_private) as stream:
                writer, skipped, unread = _pack(settings, stream, counts, app.progress)
                stream.flush()
                os.fsync(stream.fileno())
            digest = _verified(temp, writer.entries)
            size = os.path.getsize(temp)
            if not vault.claim(temp, target):
                return empty
    except OSError as error:
        hint = "free space or fix permissions, or choose another place"
        raise SetupError(f"cannot write the backup {target}", error.strerror or str(error), hint) from None
    try:
        vault.sync_folder(os.path.dirname(target))
    except OSError as error:
        told = f"the backup {target} is whole, but its name may be lost when the power goes"
        raise SetupError(told, error.strerror or str(error), "make another in a sound place") from None
    cards = [entry.size for name, entry in writer.entries.items() if name.startswith(CARDS)]
    if unread:
        note = f"what could not be read is not in the backup: {unread[0].path}"
        note += f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        warnings.append(warning("unread", note, "mend their permissions and make another"))
    return Backup("created", target, len(cards), sum(cards), size, digest, len(counts), skipped, unread, warnings)


def _check_target(settings, target):
    root = settings.vault.path
    if not vault.is_scannable(root):
        raise SetupError(
            f"the vault {root} does not exist", "there is nothing to back up", "memory paths says where it is"
        )
    if vault.is_inside(os.path.realpath(target), os.path.realpath(root)):
        raise UsageError("the backup would be inside the vault", hint="choose a place outside of it")
    if not os.path.isdir(os.path.dirname(target)):
        raise SetupError(f"cannot write {target}", "there is no such folder", "make the folder first")


def _private(path, flags):
    return os.open(path, flags, 0o600)


def _reading_counts(db_path):
    """(rows of reading counts, warnings); what a damaged index still gives."""
    try:
        with looking(db_path) as store:
            return (store.every_count() if store else []), []
    except McoreError as error:
        rows = salvage(db_path)[1] if os.path.isfile(db_path) else []
        note = f"the index cannot be used ({error.message}); {len(rows)} reading counts could be read from it"
        return rows, [warning("index", note, error.hint)]


def _pack(settings, stream, counts, progress):
    """(the closed Writer, skipped, unread) after everything was put into the archive."""
    writer = archive.Writer(stream)
    try:
        return writer, *_fill(writer, settings, counts, progress)
    except BaseException:
        writer.abandon()
        raise


def _fill(writer, settings, counts, progress):
    """(skipped, unread) after everything was put into the archive and it was closed."""
    skipped, unread = [], []
    files = sorted(_walk(settings, skipped, unread))
    for done, (name, path) in enumerate(files):
        if progress:
            progress(done, len(files))
        try:
            _pack_file(writer, CARDS + name, path)
        except CardError as error:
            if vault.stamp_of(path):  # what went away meanwhile is no loss
                unread.append(vault.Skipped(vault.printable(name), error.message))
    for name, place in ((CONFIG, settings.config), (QUERIES, settings.bench_queries)):
        if os.path.isfile(place.path):
            _pack_file(writer, name, place.path)
    rows = [{"path": p, "read_count": n, "last_read_at": at} for p, n, at in counts]
    writer.add_bytes(COUNTS, json.dumps(rows, indent=1).encode("ascii"), 0)
    left = [entry._asdict() for entry in skipped + unread]
    writer.close({"created": utc_now(), "program": __version__, "skipped": left})
    return sorted(skipped), sorted(unread)


def _walk(settings, skipped, unread):
    """(name below the vault, path) of every file of a vault that is memory; the rest goes to `skipped`, and
    folders that cannot be looked into to `unread`."""
    root = settings.vault.path

    def note(error):
        if error.filename in (root, None, ""):
            hint = "check its permissions"
            raise SetupError(f"cannot look into the vault {root}", error.strerror or "", hint)
        unread.append(vault.Skipped(vault.printable(os.path.relpath(error.filename, root)), error.strerror or ""))

    index = {os.path.realpath(settings.db.path + side) for side in ("", "-wal", "-shm", "-journal")}
    for base, folders, names in os.walk(root, onerror=note):
        inner = os.path.relpath(base, root).replace(os.sep, "/")
        prefix = "" if inner == "." else inner + "/"
        for name in list(folders):
            path = os.path.join(base, name)
            if name in LEFT_OUT or os.path.islink(path):
                folders.remove(name)
                reason = "link" if os.path.islink(path) else "folder of a program, not memory"
                skipped.append(vault.Skipped(vault.printable(prefix + name), reason))
        for name in names:
            path = os.path.join(base, name)
            if name.startswith(vault.TEMP_PREFIX) or os.path.realpath(path) in index:
                continue
            if vault.stamp_of(path) is None:
                if os.path.lexists(path):
                    skipped.append(vault.Skipped(vault.printable(prefix + name), "link or not a regular file"))
                continue
            yield prefix + name, path


def _pack_file(writer, name, path):
    """Packs a file as it was at one moment: one that changes while it is read is read again."""
    for _ in range(TRIES):
        before = vault.stamp_of(path)
        if before is None:
            raise CardError("gone while the backup was made")
        if before.size > AT_ONCE:
            with open_regular(path) as source:
                return writer.add(name, source, before.size, before.mtime_ns)
        data, _ = vault.read_bytes(path, AT_ONCE)
        if vault.stamp_of(path) == before and len(data) == before.size:
            break
    writer.add_bytes(name, data, before.mtime_ns)


def _verified(path, entries):
    """The SHA-256 of an archive that was read back and holds what was put in. Raises ArchiveError."""
    with open(path, "rb") as stream:
        if archive.read(stream)[1] != entries:
            raise ArchiveError("the backup was not written", "read back it is not what was put in", "try another disk")
        stream.seek(0)
        return archive.sha256(stream)


def left_overs(settings, now):
    """Folders beside data root and vault that a killed restore left (an hour without a change)."""
    for place in dict.fromkeys((settings.home.path, settings.vault.path)):
        folder, name = os.path.split(place)
        pattern = re.escape(name + RESTORE_MARK) + "[0-9]+-[0-9a-f]{8}"
        yield from filter(os.path.isdir, vault.stale_entries(folder, pattern, now))


# ---- back ----------------------------------------------------------------------------------------


def restore(app, path):
    """Puts a backup into this data root and vault, which must be empty or absent; the Restored.

    Raises ArchiveError, SetupError. Until everything is there nothing is: a failure leaves no file.
    """
    settings, path = app.settings, os.path.abspath(os.path.expanduser(path))
    _check_empty(settings)
    try:
        with open_regular(path) as stream:
            kept = {}
            _, entries = archive.read(stream, _keeper(kept))
            plan = _checked(entries, kept, settings)
            left_out = _put(stream, entries, plan, settings)
    except OSError as error:
        raise SetupError(
            f"cannot restore {path}",
            error.strerror or str(error),
            "check that the file is there, that there is space, and that you may write to the data root",
        ) from None
    cards, warnings = _index(app, plan.counts)
    warnings += _told(settings, left_out)
    sizes = [entry.size for name, entry in entries.items() if name.startswith(CARDS)]
    return Restored(
        "restored", settings.home.path, settings.vault.path, len(sizes), sum(sizes), len(plan.counts), cards, left_out,
        warnings,
    )  # fmt: skip


_Plan = namedtuple("_Plan", "config counts")


def _check_empty(settings):
    """Raises SetupError unless the data root, the vault and the index are empty or absent."""
    home, root, db = settings.home.path, settings.vault.path, settings.db.path
    own = {os.path.basename(root)} if os.path.dirname(root) == home else set()  # an empty vault in the data root
    for place, path, may_hold in (("vault", root, set()), ("data root", home, own)):
        if not os.path.lexists(path):
            continue
        if os.path.islink(path) or not os.path.isdir(path) or set(os.listdir(path)) - may_hold:
            raise SetupError(
                f"cannot restore into {path}",
                f"the {place} is not empty",
                "a backup is only restored into an empty place: name one with --home (and --vault), or move this away",
            )
    if os.path.lexists(db):
        raise SetupError(f"cannot restore: {db} exists", "a restore makes its own index", "move it away, or name --db")


def _checked(entries, kept, settings):
    """The _Plan of an archive whose files may all be written here. Raises ArchiveError, SetupError."""
    strange = [name for name in entries if not name.startswith(CARDS) and name not in (CONFIG, QUERIES, COUNTS)]
    if strange:
        raise _refused(strange[0], "it is nothing that a backup holds")
    names = [name for name in entries if name.startswith(CARDS)]
    folders = {name[:at] for name in names for at, char in enumerate(name) if char == "/"}
    for name in names:
        if name in folders:
            raise _refused(name, "it is a file and a folder")
        if os.name == "nt" and portable.path_faults(name):
            raise _refused(name, portable.path_faults(name)[0])
    if _folds_names(settings.home.path):
        for group in portable.collisions(names):
            raise _refused(group[0], f"it has the same name here as {group[1]!r}")
    _check_space(settings.vault.path, sum(entry.size for entry in entries.values()))
    if CONFIG in kept:
        check_config(f"{CONFIG} of the archive", kept[CONFIG])
    return _Plan(kept.get(CONFIG), _counts(kept.get(COUNTS, b"[]")))


def _refused(name, why):
    return ArchiveError("cannot restore the archive", f"{name[:200]!r}: {why}", "nothing was written")


def _folds_names(path):
    """Whether the disk below a path takes names for one that differ in case or in Unicode form."""
    if os.name == "nt" or sys.platform == "darwin":
        return True
    path = _existing_parent(path)
    folder, name = os.path.split(path)
    other = os.path.join(folder, name.swapcase())
    return other != path and os.path.exists(other) and os.path.samefile(path, other)


def _existing_parent(path):
    """The nearest folder above that is there; the topmost one where the disk tells of none."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _check_space(path, need):
    import shutil

    free = shutil.disk_usage(_existing_parent(path)).free
    if need > free:
        raise SetupError(f"cannot restore into {path}", f"it needs {need} bytes and {free} are free", "free some space")


def _keeper(kept):
    """A `take` that keeps the small files which are checked before anything is written."""

    def take(name, chunks):
        if name in (CONFIG, COUNTS):
            kept[name] = b"".join(chunks)
        else:
            archive.drop(name, chunks)

    return take


def _counts(data):
    """Rows of reading counts. Raises ArchiveError when they are none."""
    try:
        rows = [(row["path"], row["read_count"], row["last_read_at"]) for row in json.loads(data)]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _refused(COUNTS, "it is not a list of reading counts") from None
    if not all(isinstance(path, str) and is_sane_id(count) and isinstance(at, str) for path, count, at in rows):
        raise _refused(COUNTS, "it is not a list of reading counts")
    return rows


def _put(stream, entries, plan, settings):
    """Writes everything beside its place, then puts it there; the settings that were left out."""
    import shutil

    home, root = settings.home.path, settings.vault.path
    mark = f"{RESTORE_MARK}{os.getpid()}-{os.urandom(4).hex()}"
    new_home = home + mark
    new_root = os.path.join(new_home, os.path.relpath(root, home)) if vault.is_inside(root, home) else root + mark
    try:
        vault.make_folder(os.path.dirname(home))
        vault.make_folder(os.path.dirname(root) if new_root == root + mark else os.path.dirname(home))
        vault.make_folder(new_home)
        vault.make_folder(new_root)
        stream.seek(0)
        if archive.read(stream, _unpacker(entries, new_home, new_root))[1] != entries:
            raise ArchiveError("cannot restore the archive", "it changed while it was read", "nothing was restored")
        left_out = _write_config(plan.config, os.path.join(new_home, CONFIG))
        if vault.is_inside(settings.db.path, home):
            _new_index(os.path.join(new_home, os.path.relpath(settings.db.path, home)), root, plan.counts)
        _sync(new_home, new_root)
        if new_root == root + mark:
            _rename(new_root, root)
        _rename(new_home, home, root if os.path.dirname(root) == home else None)
    except BaseException:
        shutil.rmtree(new_home, ignore_errors=True)
        shutil.rmtree(new_root, ignore_errors=True)
        raise
    return left_out


def _unpacker(entries, new_home, new_root):
    """A `take` that writes the files of the archive below two new folders."""

    def take(name, chunks):
        if name in (CONFIG, COUNTS):
            return archive.drop(name, chunks)
        path = os.path.join(new_home, name)
        if name.startswith(CARDS):
            path = os.path.join(new_root, *name[len(CARDS) :].split("/"))
            vault.make_folder(os.path.dirname(path))
        with open(path, "xb", opener=_private) as target:
            for chunk in chunks:
                target.write(chunk)
            if not hasattr(os, "sync"):
                target.flush()
                os.fsync(target.fileno())
        _set_time(path, entries[name].mtime_ns)

    return take


def _set_time(path, mtime_ns):
    try:
        os.utime(path, ns=(mtime_ns, mtime_ns))
    except (OSError, OverflowError):
        pass  # a time that this disk cannot hold


def _write_config(data, path):
    """Writes config.json without the paths of the machine it comes from; the keys that were left out."""
    if data is None:
        return []
    config = check_config(path, data)
    own = [key for key in ("vault", "db") if key in config]
    if own:
        data = json.dumps({key: value for key, value in config.items() if key not in own}, indent=2).encode() + b"\n"
    with open(path, "xb", opener=_private) as target:
        target.write(data)
    return own


def _new_index(path, root, counts):
    """An index with no card in it yet, and the reading counts."""
    store = open_store(path)
    try:
        with store.writing():
            store.set_vault(os.path.realpath(root))
            store.set_counts(counts)
    finally:
        store.close()


def _sync(*folders):
    """Makes all that was written durable: one call for the whole system is far quicker than one a file."""
    if hasattr(os, "sync"):
        os.sync()
    for folder in folders:
        vault.sync_folder(folder)


def _rename(new, place, inner=None):
    """Puts a folder in the place of one that is absent, empty, or holds the empty folder `inner` alone."""
    try:
        for folder in (inner, place):
            if folder and os.path.isdir(folder):
                os.rmdir(folder)
        os.rename(new, place)
    except OSError as error:
        raise SetupError(
            f"cannot restore into {place}", f"it was filled meanwhile ({error.strerror})", "nothing was put there"
        ) from None
    vault.sync_folder(os.path.dirname(place))


def _index(app, counts):
    """(number of cards in the index, warnings): the cards are there, whatever befalls the index."""
    try:
        app.close()
        settings = app.settings
        if not vault.is_inside(settings.db.path, settings.home.path):
            _new_index(settings.db.path, settings.vault.path, counts)
        return app.indexer.index(app.store).total, []
    except McoreError as error:
        note = f"everything is restored, the index is not built yet: {error.message} ({error.why})"
        return 0, [warning("not-indexed", note, "run: memory index")]


def _told(settings, left_out):
    """What a caller has to know of the settings."""
    notes = []
    if left_out:
        keys = ", ".join(left_out)
        notes.append(warning("settings", f"left out of config.json, being paths of the other machine: {keys}"))
    for name in ("home", "vault", "db"):
        place = getattr(settings, name)
        if place.origin == "flag":
            notes.append(warning("flags", f"this data lies where --{name} says: give --{name} from now on, or set it"))
    return notes
