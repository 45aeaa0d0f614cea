"""Change a card that exists: update, retract, forget, restore, supersede, purge.

Every change is one atomic write of one file, after the former text was kept durably under `.history/`.
Only the fields that change are edited; all else stays as its writer put it, and the path never changes.
`expected_revision` (the name of the text the caller has read) guards against losing another's change;
without it the change is made to whatever the card holds by then.
"""

import os
import time

from mcore import draft, history, validity, vault
from mcore import scope as scopes
from mcore.capture import MIN_BODY_CHARS, indexed_now, write_new
from mcore.card import CARD_SUFFIXES, KIND_FOLDERS, content_hash, revision_of
from mcore.cardfile import read_card
from mcore.errors import CardChanged, CardError, NotFound, SetupError, UsageError, warning
from mcore.frontmatter import text_list, timestamp
from mcore.frontmatter.edit import Uneditable, edited
from mcore.prepare import utc_now
from mcore.record import namedtuple
from mcore.render import scrub
from mcore.show import address, card_bytes, find

RETRIES = 5  # an edit by hand may come between reading and writing; each try takes milliseconds
MAX_DIFF_LINES = 20_000
SETTLE_SECONDS = 60.0  # of taking in changed files before it is decided who succeeds a card

Revised = namedtuple(
    "Revised", "status path id revision former_revision history_path fields indexed secrets_found warnings"
)
Revised.__doc__ = """What became of a card.

`status` is updated, retracted, forgotten, restored, unchanged, rejected or conflict (another
revision than the expected one: nothing was written). `revision` names the text the card holds now,
`former_revision` the one before, which stands at `history_path`; `fields` are those that changed.
"""

Superseded = namedtuple(
    "Superseded",
    "status path id revision supersedes valid_from retracts existing_path indexed secrets_found similar warnings",
)
Superseded.__doc__ = """A new card and the one it closes (`supersedes`), from `valid_from` on.

`status` is created, unchanged, rejected or conflict; `existing_path` names the successor that the old
card has already.
"""

Purged = namedtuple("Purged", "status path files bytes read_count unreachable warnings")
Purged.__doc__ = """What a purge would erase (`status` preview) or has erased (purged): files, with their bytes in all.

`unreachable` says where the text may still be.
"""

_MARKS = ("forgotten_at", "forgotten", "retracted_at", "retracted", "retracted_reason")
_UPDATED_KEYS = ("updated", "updated_at", "modified", "lastmod")


def update(app, card, given, body=None, expected_revision=None, reject_secrets=False):
    """Corrects a card: the fields `given` (see `draft`; empty takes out) and the body, if any; the Revised.

    Raises NotFound, UsageError, CardError for a card whose form cannot be edited, SetupError.
    """
    fields = draft.checked(given)
    if "title" in fields and fields["title"] is None or not fields and body is None:
        raise UsageError("update needs something to change", hint="give a title, a body or a field")
    body = None if body is None else scrub(body)
    secrets = draft.find_secrets(fields, body)
    warnings = draft.secret_warnings(secrets) + draft.hidden_warnings(fields, body)
    refused = _refused(body, secrets, reject_secrets)
    if refused:
        return Revised("rejected", None, None, None, None, None, [], False, secrets, [*warnings, refused])

    def change(text):
        now = edited(text, fields, body)
        return now if now == text else edited(now, _dated(text))

    result = _rewritten(app, card, change, "updated", expected_revision)
    return result._replace(secrets_found=secrets, warnings=[*warnings, *result.warnings])


def _refused(body, secrets, reject_secrets):
    if body is not None and len(body.strip()) < MIN_BODY_CHARS:
        return warning("short-body", f"the body has under {MIN_BODY_CHARS} characters", "say the whole fact")
    if reject_secrets and secrets:
        return warning("secret", "it looks like it holds a credential", "write where the credential is kept instead")
    return None


def _dated(text):
    """The change to `updated` in a card that keeps such a time (it has one, or `created`)."""
    names = {key.casefold() for key in read_card("", text).fields}
    key = next((key for key in _UPDATED_KEYS if key in names), "updated" if "created" in names else None)
    return {key: utc_now()} if key else {}


def retract(app, card, reason=None, expected_revision=None):
    """Marks a card as having been wrong: in force at no time, told apart from superseded; the Revised."""
    marks = {"retracted_at": utc_now(), "retracted_reason": " ".join(scrub(reason).split()) if reason else None}
    return _marked(app, card, marks, "retracted", expected_revision)


def forget(app, card, expected_revision=None):
    """Takes a card out of every search; its file, history and path stay; the Revised."""
    result = _marked(app, card, {"forgotten_at": utc_now()}, "forgotten", expected_revision)
    closed = app.store.closed_by([result.path]) if result.indexed else []
    if closed:
        hint = f"if {result.path} was wrong, restore and retract it: then they hold again"
        text = "it had replaced " + ", ".join(path for path, _ in closed) + ", which stays closed"
        result = result._replace(warnings=[*result.warnings, warning("still-closed", text, hint)])
    return result


def _marked(app, card, marks, status, expected_revision):
    def change(text):
        life = read_card("", text).life
        if getattr(life, status):
            return text
        return edited(text, {name: value for name, value in marks.items() if value})

    return _rewritten(app, card, change, status, expected_revision)


def restore(app, card, revision=None, expected_revision=None):
    """Brings back a forgotten or retracted card, or the text that it had at `revision`; the Revised.

    A card whose file is gone comes back from its newest former text.
    """
    app.freshness()
    try:
        find(app.store, *address(card))
    except NotFound:
        again = _recreated(app, card, revision)
        if again is None:
            raise
        return again

    def change(text, name):
        if revision is None:
            return edited(text, dict.fromkeys(_MARKS))
        for entry in history.former(app.settings.vault.path, name):
            if entry.revision.startswith(_revision(revision)):
                return history.read(app.settings.vault.path, entry)
        raise NotFound(f"the card has no revision {revision[:40]!r}", "", "history lists them")

    return _rewritten(app, card, change, "restored", expected_revision, with_name=True)


def _recreated(app, card, revision):
    """Writes a card anew whose file is gone, from its former texts; None when there are none."""
    root, name = app.settings.vault.path, card.replace("\\", "/").removeprefix("./")
    if not name.endswith(CARD_SUFFIXES) or not vault.leads_inside(root, name):
        return None
    kept = [e for e in history.former(root, name) if revision is None or e.revision.startswith(_revision(revision))]
    if not kept:
        return None
    data = history.read(root, kept[0])
    folder, _, base = name.rpartition("/")
    path = vault.ensure_folder(root, folder) if folder else root
    try:
        if not vault.publish(path, base, data):
            raise CardChanged(f"{name} is there again", "its file came back meanwhile", "read it with show")
    except OSError as error:
        raise _unwritable(name, error) from None
    now = revision_of(content_hash(data))
    return _indexed(app, Revised("restored", name, None, now, None, kept[0].path, [], False, [], []))


# ---- one write -----------------------------------------------------------------------------------


def _revision(text):
    """A revision as given, comparable: at least 8 of its hex digits. Raises UsageError."""
    text = text.strip().casefold()
    if not 8 <= len(text) <= 16 or not all(char in "0123456789abcdef" for char in text):
        raise UsageError(f"{text[:40]!r} is no revision", hint="it has 16 hex digits, as show and search give it")
    return text


def _rewritten(app, card, change, status, expected_revision=None, with_name=False):
    """Carries out `change(text)` (text or bytes) on a card's file; the Revised, indexed."""
    expected = _revision(expected_revision) if expected_revision else None
    app.freshness()
    detail = find(app.store, *address(card))
    path, _ = card_bytes(app, detail)
    name = os.path.relpath(path, app.settings.vault.path).replace(os.sep, "/")
    result = Revised("", detail.rel_path, detail.id, None, None, None, [], False, [], [])
    for _ in range(RETRIES):
        try:
            with vault.folder_lock(os.path.dirname(path), app.settings.home.path):
                vault.clear_stale_temps(os.path.dirname(path), time.time())
                done = _written(app, detail, name, (lambda text: change(text, name)) if with_name else change, expected)
        except CardChanged:
            continue
        except OSError as error:
            raise _unwritable(detail.rel_path, error) from None
        result = result._replace(**done)
        if result.status != "done":
            return result
        return _indexed(app, result._replace(status=status))
    raise CardChanged(f"{detail.rel_path} is being edited", "it changed each time it was read", "try again later")


def _written(app, detail, name, change, expected):
    """One try: reads the card, keeps its text, writes the changed one; what of the Revised it settles."""
    root = app.settings.vault.path
    path, data = card_bytes(app, detail)
    former = revision_of(content_hash(data))
    if expected and not former.startswith(expected):
        hint = f"read the card again; its revision is {former}"
        note = warning("conflict", f"the card is not what it was at revision {expected}: nothing was written", hint)
        return {"status": "conflict", "revision": former, "warnings": [note]}
    text, encode = vault.exact_text(data)
    try:
        changed = change(text)
    except Uneditable as fault:
        raise CardError(f"cannot change {detail.rel_path}", str(fault), "edit the file by hand") from None
    new = changed if isinstance(changed, bytes) else encode(changed)
    if new == data:
        return {"status": "unchanged", "revision": former}
    if len(new) > app.settings.max_card_bytes:
        hint = "split it, or raise max_card_bytes in config.json"
        raise CardError(f"cannot change {detail.rel_path}", "it would be too large to be read again", hint)
    kept = history.keep(root, name, data, time.time())
    vault.replace(path, data, new)
    return {
        "status": "done",
        "revision": revision_of(content_hash(new)),
        "former_revision": former,
        "history_path": kept.path,
        "fields": changed_fields(data, new),
    }


def changed_fields(one, other):
    """The names of what differs between two texts of a card: frontmatter fields, and `body`."""
    before, after = (read_card("", vault.decode(data)[0]) for data in (one, other))
    names = [*before.fields, *(name for name in after.fields if name not in before.fields)]
    changed = [name for name in names if before.fields.get(name) != after.fields.get(name)]
    return changed + ["body"] * (before.body.strip() != after.body.strip())


def _unwritable(rel_path, error):
    hint = "free space or fix permissions, then try again; the card is whole, its former or its new self"
    return SetupError(f"cannot write {rel_path}", error.strerror or str(error), hint)


def _indexed(app, result):
    """Indexes the written card; a fault of the index is a remark."""
    id, notes = indexed_now(app, result.path)
    return result._replace(id=id or result.id, indexed=id is not None, warnings=[*result.warnings, *notes])


# ---- supersede -----------------------------------------------------------------------------------


def supersede(app, card, given, body, valid_from=None, wrong=False, expected_revision=None, reject_secrets=False):
    """Writes a new card that closes an old one; the Superseded. The old file is not touched.

    Title, kind, tags, aliases, questions, scope and pin that are not `given` are the old card's. With `wrong`
    the old card was never right (a retraction with the right fact). One successor a card: a second one
    is a conflict that names the first. Raises NotFound, UsageError, SetupError.
    """
    fields, body = draft.checked({**given, "valid_from": valid_from}), scrub(body)
    root, expected = app.settings.vault.path, _revision(expected_revision) if expected_revision else None
    app.freshness()
    detail = find(app.store, *address(card))
    try:
        with vault.folder_lock(root, app.settings.home.path, "supersede.lock"):
            if app.indexer.refresh(app.store, SETTLE_SECONDS).stale:
                app.indexer.index(app.store)  # who succeeds the card must be known for certain
            detail = find(app.store, *address(card))
            _, data = card_bytes(app, detail)
            old = read_card(detail.rel_path, vault.decode(data)[0])
            life = app.store.lives([detail.id], app.settings.scopes)[detail.id]
            link = "retracts" if wrong else "supersedes"
            inherited = _inherited(old, life, fields)
            begins = inherited.setdefault("valid_from", utc_now())
            inherited[link] = [detail.rel_path]
            result = Superseded("", None, None, None, detail.rel_path, begins, wrong, None, False, [], [], [])
            refusal = _not_superseded(app, result, detail, life, data, expected, inherited, body)
            if refusal:
                return refusal
            done = write_new(app, inherited, body, "suffix", reject_secrets)
    except OSError as error:  # of the lock: what a new card meets is a SetupError
        raise _unwritable(detail.rel_path, error) from None
    notes = list(done.warnings)
    if life.valid_from is not None and timestamp(begins) <= life.valid_from and not wrong:
        notes.append(warning("never-held", f"{detail.rel_path} begins no earlier: it is in force at no time", ""))
    return result._replace(status=done.status, path=done.path, id=done.id, revision=done.revision, warnings=notes,
                           indexed=done.indexed, secrets_found=done.secrets_found,
                           similar=[s for s in done.similar if s.path != detail.rel_path])  # fmt: skip


def _inherited(old, life, fields):
    """The new card's fields: those given, else the old card's."""
    kind = old.kind if old.kind in KIND_FOLDERS else "knowledge"
    questions = text_list(next((v for k, v in old.fields.items() if k.casefold() == "questions"), None))
    before = {
        "title": old.title,
        "tags": old.tags,
        "aliases": old.aliases,
        "questions": questions,
        "scope": life.scope if life.scope != scopes.GLOBAL else None,
        "pinned": old.life.pinned,
    }
    merged = {name: value for name, value in {**before, **fields}.items() if value}  # given as None: taken out
    return {"kind": kind, "source": None, "tags": [], **merged}


def _not_superseded(app, result, detail, life, data, expected, fields, body):
    """The answer when nothing is to be written: another revision, a successor already, a forgotten card."""
    now = revision_of(content_hash(data))
    if expected and not now.startswith(expected):
        text, hint = f"the card is not what it was at revision {expected}", f"read it again; its revision is {now}"
        return result._replace(status="conflict", warnings=[warning("conflict", text, hint)])
    if life.mark == validity.FORGOTTEN:
        note = warning("forgotten", f"{detail.rel_path} is forgotten", "restore it first, or capture a new card")
        return result._replace(status="rejected", warnings=[note])
    if not life.closed_by:
        return None
    successor = find(app.store, None, life.closed_by)
    _, text = card_bytes(app, successor)
    card = read_card(successor.rel_path, vault.decode(text)[0])
    if card.body.strip() == body.strip() and card.title == fields["title"]:
        same = result._replace(status="unchanged", path=successor.rel_path, id=successor.id, indexed=True)
        return same._replace(revision=revision_of(content_hash(text)), existing_path=successor.rel_path)
    text = f"{detail.rel_path} is superseded already, by {successor.rel_path}: nothing was written"
    note = warning("conflict", text, f"supersede or update {successor.rel_path} instead")
    return result._replace(status="conflict", existing_path=successor.rel_path, warnings=[note])


# ---- what a card was -----------------------------------------------------------------------------

History = namedtuple("History", "path id title revisions total replaces replaced_by warnings")
History.__doc__ = """The texts that a card had, newest first; `total` counts them all."""
Revision = namedtuple("Revision", "revision current replaced_at title state fields path diff")
Revision.__doc__ = """One text: `fields` are those that differ from the text before it, `path` where it stands,
`replaced_at` when it gave way (None: it is the current one), `diff` a unified diff against the text before it."""


def revisions(app, card, diff=False, limit=20):
    """The History of a card, of a deleted one too; at most `limit` Revisions. Raises NotFound."""
    app.freshness()
    root = app.settings.vault.path
    try:
        detail = find(app.store, *address(card))
        path, data = card_bytes(app, detail)
        name = os.path.relpath(path, root).replace(os.sep, "/")
        head = (detail.rel_path, detail.id, detail.title)
        texts = [(None, detail.rel_path, data)]
        life = app.store.lives([detail.id])[detail.id]
        links = ([old for old, _ in app.store.closed_by([detail.rel_path])], life.closed_by)
    except NotFound:
        if not history.former(root, str(card)):
            raise
        name, head, texts, links = card, (card, None, ""), [], ([], None)
    kept = history.former(root, name)
    total = len(texts) + len(kept)
    texts += [(entry.replaced_at, entry.path, history.read(root, entry)) for entry in kept[:limit]]
    shown = [_revision_entry(text, before, diff) for text, before in zip(texts, [*texts[1:], None], strict=True)]
    return History(*head, shown[:limit], total, *links, [])


def _revision_entry(text, before, diff):
    replaced_at, path, data = text
    card = read_card(path, vault.decode(data)[0])
    state = next((mark for mark in (validity.FORGOTTEN, validity.RETRACTED) if getattr(card.life, mark)), "")
    fields = changed_fields(before[2], data) if before else []
    shown = _diff(before[2], data) if diff and before else None
    return Revision(revision_of(content_hash(data)), replaced_at is None, replaced_at, card.title, state, fields, path,
                    shown)  # fmt: skip


def _diff(one, other):
    """A unified diff of two texts; long ones are compared line by line only as far as that is quick."""
    import difflib

    before, after = (vault.decode(data)[0].splitlines() for data in (one, other))
    if len(before) + len(after) > MAX_DIFF_LINES:
        return f"[over {MAX_DIFF_LINES} lines: compare the files]"
    return "\n".join(difflib.unified_diff(before, after, "before", "after", lineterm="", n=2))


# ---- purge ---------------------------------------------------------------------------------------


def purge(app, card, yes=False):
    """Erases a card, its history, its index rows and its reading count for good; a preview without `yes`.

    The Purged. A card whose file is gone is purged of what is left of it. Raises NotFound, SetupError.
    """
    app.freshness()
    root = app.settings.vault.path
    rel_path, path, name = _to_purge(app, card)
    former = history.former(root, name)
    files = ([rel_path] if path else []) + [entry.path for entry in former]
    size = sum(_size(vault.file_path(root, entry)) for entry in files[bool(path) :]) + (_size(path) if path else 0)
    closed = [old for old, _ in app.store.closed_by([rel_path])]
    notes = []
    if closed:
        notes.append(warning("in-force-again", "it had replaced " + ", ".join(closed), "these are in force again then"))
    result = Purged("preview", rel_path, files, size, app.store.reads_of(rel_path), _unreachable(app, name), notes)
    if not yes:
        return result
    try:
        if path:
            history.begin(root, name)  # known by it, a purge that was killed can be carried on
            with vault.folder_lock(os.path.dirname(path), app.settings.home.path):
                vault.erase(path)
        with app.store.writing():
            app.store.forget_reads(rel_path)
        # Words of removed cards stay in the full text until it is built anew.
        app.indexer.rebuild(app.rebuild_path(), wipe=True)
        history.erase(root, name)
    except OSError as error:
        raise SetupError(f"cannot erase {rel_path}", error.strerror or str(error), "fix it, then purge again") from None
    return result._replace(status="purged")


def _to_purge(app, card):
    """(rel_path, the file's path or None, its real name) of the card to purge, or of what is left of one."""
    root = app.settings.vault.path
    try:
        detail = find(app.store, *address(card))
    except NotFound:
        if not isinstance(card, str) or not history.is_kept(root, card):
            raise
        return card, None, card
    name = os.fsdecode(detail.raw_name) if detail.raw_name else detail.rel_path
    path = vault.file_path(root, name)
    if not vault.is_walked(root, name, app.settings.ignore):
        raise NotFound(f"{detail.rel_path} is not a card of this vault any more", "", "search again")
    return detail.rel_path, path, name


def _size(path):
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _unreachable(app, name):
    """Where a purged text may still be, as sentences."""
    found = ["backups and synchronised copies of the vault", "what a client or a model was told before"]
    folder = os.path.realpath(app.settings.vault.path)
    while True:
        for control in (".git", ".hg", ".svn", ".jj"):
            if os.path.exists(os.path.join(folder, control)):
                found.insert(0, f"the history of the version control in {os.path.join(folder, control)}")
        if os.path.dirname(folder) == folder:
            break
        folder = os.path.dirname(folder)
    title = name.rsplit("/", 1)[-1]
    return [*found, f"other cards that quote it (search for {title})", "freed space on the disk"]
