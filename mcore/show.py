"""Read one card: find it by id or path, read its file, cut a page out of it."""

import os
import time

from mcore import validity, vault
from mcore.card import content_hash, name_key, os_stem, revision_of
from mcore.cardfile import read_card
from mcore.errors import CardError, NotFound, StoreError, UsageError, warning
from mcore.prepare import utc_now
from mcore.readtext import page
from mcore.record import namedtuple
from mcore.store.checking import check_rows

Shown = namedtuple(
    "Shown",
    "id path title kind source tags created updated fields text offset length returned has_more next_offset "
    "freshness revision scope state valid_from valid_to replaces replaced_by warnings",
)
Shown.__doc__ = """A page of one card: `text` is its body, `fields` the frontmatter as read.

`revision` names the whole text of the file, for `expected_revision`; `state` says whether the card is
current; `replaces` are the cards it closes, `replaced_by` its successor.
"""

_OWN_FIELDS = {"title", "kind", "source", "tags", "created", "updated"}
COUNT_WAIT_SECONDS = 0.5  # a reading is not worth a longer wait for another writer


def show(app, card=None, id=None, path=None, offset=0, max_chars=20_000, full=False, sync=True):
    """The Shown of a card given by `id`, by `path`, or by `card` (either). Counts the reading.

    Raises NotFound when the vault has no such card. The text is read from the file itself.
    """
    freshness = app.freshness(sync)
    detail = _named(app.store, card, id, path)
    _, data = card_bytes(app, detail)
    text, remark = vault.decode(data)
    content = read_card(detail.rel_path, text)
    part = page(content.body, offset, 0 if full else max_chars)
    warnings = [warning("frontmatter", f"line {line}: {message}") for line, message in content.warnings]
    if remark:
        warnings.append(warning("not-utf8", remark, "save the file as UTF-8"))
    warnings += [warning("field", note, "mend the field") for note in content.life.notes]
    life, state, end = _life(app, detail)
    if state != validity.CURRENT:
        warnings.append(_state_note(life, state))
    if offset == 0:
        _count(app.store, detail.rel_path)
    return Shown(
        detail.id,
        detail.rel_path,
        content.title,
        content.kind,
        content.source,
        content.tags,
        content.created,
        content.updated,
        {key: value for key, value in content.fields.items() if key.casefold() not in _OWN_FIELDS},
        *part,
        freshness,
        revision_of(content_hash(data)),
        life.scope,
        state,
        None if life.valid_from is None else utc_now(life.valid_from),
        None if end is None else utc_now(end),
        [old for old, _ in app.store.closed_by([detail.rel_path])],
        life.closed_by,
        warnings,
    )


def _named(store, card, id, path):
    """The Detail of the card that is asked for; a hit's id and its path may be given together."""
    if card in (None, "") and id is not None and path not in (None, ""):
        detail, other = find(store, id, None), find(store, None, path)
        if detail.id != other.id:
            named = f"id {id} is {detail.rel_path}, and the path names {other.rel_path}"
            raise UsageError("show needs one card", named, "give its id or its path, as search returns them")
        return detail
    return find(store, *address(card, id, path))


def _life(app, detail):
    """(LifeRow, state by now, end of validity) of a card."""
    life = app.store.lives([detail.id], app.settings.scopes)[detail.id]
    state = validity.state(time.time(), life.mark, life.valid_from, life.valid_to, life.closed_at)
    return life, state, validity.end(life.valid_to, life.closed_at)


def _state_note(life, state):
    by = f" by {life.closed_by}" if state in (validity.SUPERSEDED, validity.RETRACTED) and life.closed_by else ""
    return warning("not-in-force", f"this card is {state}{by}", "it is shown because it was asked for by name")


def address(card, id=None, path=None):
    """(id, path) from whichever the door offers; exactly one is set."""
    given = [value for value in (card, id, path) if value not in (None, "")]
    if len(given) != 1:
        raise UsageError("show needs one card", hint="give its id or its path, as search returns them")
    if card not in (None, ""):
        return (int(card), None) if card.isdecimal() and len(card) < 19 else (None, card)
    return id, path


def find(store, id, path):
    """The card's Detail. A path is taken as written, else as macOS or Windows would match it."""
    if id is not None:
        detail = store.by_id(id) if abs(id) < 1 << 63 else None
        if detail is None:
            check_rows(store)
            raise NotFound(f"there is no card with the id {id}", "ids are the ones search returned", "search again")
        return detail
    wanted = path.replace("\\", "/").removeprefix("./")
    for name in (path, wanted):
        detail = store.by_path(name) if "\0" not in name else None
        if detail:
            return detail
    paths = store.paths()
    key = name_key(wanted)
    for candidate in paths:
        if name_key(candidate) == key:
            return store.by_path(candidate)
    unreadable = store.known_unreadable()
    if wanted in unreadable:
        reason = unreadable[wanted][0]
        cure = "raise max_card_bytes in config.json" if reason.startswith("larger than") else "mend the file"
        raise CardError(f"cannot read {wanted[:200]}", reason, f"{cure}, then run: memory index")
    check_rows(store)
    near = _near(wanted[:4096], paths)
    hint = "search for it; memory index names the files that are left out"
    raise NotFound(
        f"there is no card {wanted[:200]!r} in the vault",
        "a card is named by the path that search returns, relative to the vault",
        "did you mean " + ", ".join(near) + "?" if near else hint,
    )


_MOST_COMPARED = 10_000  # paths, in 0.1 s


def _near(wanted, paths):
    """Up to three paths that may be meant: of the same file name (as after the path of the vault, or without
    folder or suffix), else spelt alike."""
    name = name_key(wanted.rstrip("/").rsplit("/", 1)[-1])
    stem = os_stem(name)
    same = [path for path in paths if name and name_key(path.rsplit("/", 1)[-1]) in (name, stem + ".md")]
    if same:
        return sorted(same, key=lambda path: (not name_key(wanted).endswith("/" + name_key(path)), path))[:3]
    import difflib

    return difflib.get_close_matches(wanted[:200], paths, 3, 0.6) if len(paths) <= _MOST_COMPARED else []


def card_bytes(app, detail):
    """(path, bytes) of a card's file, which must still be inside the vault and hold text."""
    root = app.settings.vault.path
    name = os.fsdecode(detail.raw_name) if detail.raw_name else detail.rel_path
    path = vault.file_path(root, name)
    if not vault.is_inside(os.path.realpath(path), os.path.realpath(root)):
        raise CardError(f"{detail.rel_path} leads out of the vault through a link", "", "it is not read")
    try:
        data, _ = vault.read_bytes(path, app.settings.max_card_bytes)
        vault.decode(data)
        return path, data
    except CardError as error:
        if vault.stamp_of(path) is None:
            raise NotFound(
                f"{detail.rel_path} is not in the vault any more", "its file is gone", "search again"
            ) from None
        raise CardError(f"cannot read {detail.rel_path}", error.message, error.hint) from None


def _count(store, rel_path):
    try:
        with store.writing(COUNT_WAIT_SECONDS):
            store.count_read(rel_path, utc_now())
    except StoreError:
        pass  # a card that can be read is worth more than its count
