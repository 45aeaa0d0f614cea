"""Write one new card, then index that card only. Nothing that exists is ever overwritten."""

import os
import time
import unicodedata

from mcore import draft, secretscan, validity, vault
from mcore import scope as scopes
from mcore.card import DEFAULT_KIND, KIND_FOLDERS, content_hash, file_stem, name_key, revision_of
from mcore.cardfile import new_card_text, one_line, read_card
from mcore.errors import CardError, McoreError, SetupError, StoreError, warning
from mcore.prepare import utc_now
from mcore.record import namedtuple
from mcore.render import scrub
from mcore.similar import similar
from mcore.store import Limits

MIN_BODY_CHARS = 20
SIMILAR, SIMILAR_CHARS = 3, 200

Captured = namedtuple(
    "Captured",
    "status path id indexed conflict existing_path collision_paths secrets_found similar revision warnings",
)
Captured.__doc__ = """What a capture did.

`status` is created, unchanged, rejected or conflict; `path` the card's rel_path (None when nothing
stands there); `existing_path` the card that already has the title, `collision_paths` every card
whose name the new one had to avoid; `secrets_found` kinds and spans, never text.
"""

Similar = namedtuple("Similar", "path title kind score")

_Existing = namedtuple("_Existing", "name title body life revision")

_EMPTY = Captured("", None, None, False, False, None, [], [], [], None, [])


def capture(
    app, title, body, kind=DEFAULT_KIND, tags=(), source=None, on_conflict="suffix", reject_secrets=False, more=None
):
    """Writes one card into the vault and indexes it; the Captured. `more` are further fields, see `draft`.

    The card counts as created once it is on disk: a fault of the index is a warning. Raises
    UsageError for a title or field that cannot be used, SetupError when the vault cannot be written.
    """
    title, body = draft.clean_title(title), scrub(body)
    kind, source = draft.known_kind(kind), one_line(scrub(source)) if source else None
    tags = draft.clean_tags(tags)
    more = {name: value for name, value in draft.checked(more or {}).items() if value is not None}
    return write_new(app, {"title": title, "kind": kind, "source": source, "tags": tags, **more}, body,
                     on_conflict, reject_secrets)  # fmt: skip


def write_new(app, fields, body, on_conflict="suffix", reject_secrets=False):
    """Writes a card of checked fields (title and kind among them), then indexes it; the Captured."""
    result = _EMPTY._replace(secrets_found=draft.find_secrets(fields, body))
    hidden = draft.hidden_warnings(fields, body)
    result = result._replace(warnings=draft.secret_warnings(result.secrets_found) + hidden)
    if len(body.strip()) < MIN_BODY_CHARS:
        return _rejected(result, "short-body", f"the body has under {MIN_BODY_CHARS} characters", "say the whole fact")
    if reject_secrets and result.secrets_found:
        return _rejected(
            result, "secret", "it looks like it holds a credential", "write where the credential is kept instead"
        )
    extra = {name: value for name, value in fields.items() if name not in ("title", "kind", "source", "tags")}
    text = new_card_text(fields["title"], fields["kind"], fields["source"], fields["tags"], utc_now(), body, extra)
    most = app.settings.max_card_bytes
    if len(text.encode()) > most:
        hint = "split it, or raise max_card_bytes in config.json"
        return _rejected(result, "long-body", f"a card of over {most} bytes would not be read again", hint)
    root = app.settings.vault.path
    folder_name = KIND_FOLDERS[fields["kind"]]
    folder = vault.ensure_folder(root, folder_name)
    try:
        with vault.folder_lock(folder, app.settings.home.path):
            result = _write(result, folder, folder_name, fields, body, text, on_conflict)
            vault.clear_stale_temps(folder, time.time())
    except OSError as error:
        raise SetupError(
            f"cannot write the card into {folder}",
            error.strerror or str(error),
            "free space or fix permissions, then capture again",
        ) from None
    return _indexed(app, result, fields, body)


def _rejected(result, slug, message, hint):
    return result._replace(status="rejected", warnings=[*result.warnings, warning(slug, message, hint)])


def _write(result, folder, folder_name, fields, body, text, on_conflict):
    """Chooses a free name and publishes the card there, or finds that it exists already."""
    title, data = fields["title"], text.encode("utf-8")
    stem = file_stem(secretscan.redact(title))
    while True:
        names = os.listdir(folder)  # may be 100,000: folded as one text, since no name holds a "/"
        taken = dict(zip(name_key("/".join(names)).split("/"), names, strict=True)) if names else {}
        existing = _existing(folder, stem, taken)
        same_title = [card for card in existing if card.title and _plain(card.title) == _plain(title)]
        for card in same_title:
            if _same_text(card.body, body) and _same_life(card.life, fields):
                return result._replace(status="unchanged", path=f"{folder_name}/{card.name}", revision=card.revision)
        paths = [f"{folder_name}/{card.name}" for card in existing]
        if same_title:
            result = result._replace(conflict=True, existing_path=f"{folder_name}/{same_title[0].name}")
            if on_conflict == "reject":
                return result._replace(status="conflict", collision_paths=paths)
        name = _free_name(stem, taken)
        if vault.publish(folder, name, data):
            return result._replace(
                status="created",
                path=f"{folder_name}/{name}",
                revision=revision_of(content_hash(data)),
                collision_paths=paths,
            )


def _existing(folder, stem, taken):
    """The entries that stand at the names a card of this stem would have: stem, stem-2, stem-3, ...

    A gap in the numbers (a card was deleted) ends nothing.
    """
    start, numbers = name_key(stem) + "-", [1]
    for key in taken:
        digits = key[len(start) : -len(".md")]
        if key.startswith(start) and key.endswith(".md") and digits.isdecimal() and digits.isascii():
            numbers.append(int(digits[:18]))
    names = [taken.get(name_key(_numbered(stem, number))) for number in sorted(numbers)]
    return [_read_existing(folder, name) for name in names if name]


def _read_existing(folder, name):
    """The title and body that stand at a name; a folder or link there has neither."""
    try:
        data, _ = vault.read_bytes(os.path.join(folder, name), 1 << 24)
        card = read_card(name, vault.decode(data)[0])
    except CardError:
        return _Existing(name, None, "", None, None)
    return _Existing(name, card.title, card.body, card.life, revision_of(content_hash(data)))


def _numbered(stem, number):
    return f"{stem}.md" if number == 1 else f"{stem}-{number}.md"


def _free_name(stem, taken):
    number = 1
    while name_key(_numbered(stem, number)) in taken:
        number += 1
    return _numbered(stem, number)


def _same_text(one, other):
    """Whether two bodies say the same: line ends and outer white space do not matter."""
    return _plain(one) == _plain(other)


def _same_life(life, fields):
    """Whether a card that says the same also holds in the same place, and is not out of use."""
    links = (life.supersedes, life.retracts) == tuple(tuple(fields.get(n, ())) for n in ("supersedes", "retracts"))
    here = (life.scope or scopes.GLOBAL) == fields.get("scope", scopes.GLOBAL)
    return links and here and not (life.forgotten or life.retracted)


def _plain(text):
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.strip()


def _indexed(app, result, fields, body):
    """Indexes the card, and looks for similar ones; any fault of the index becomes a warning."""
    if result.status not in ("created", "unchanged"):
        return result
    id, notes = indexed_now(app, result.path)
    if id is None:
        return result._replace(warnings=[*result.warnings, *notes])
    found, notes = [], []
    try:
        limits = Limits(time.time(), None, app.settings.scopes)
        near = similar(app.store, fields["title"], body[:SIMILAR_CHARS], SIMILAR, result.path, limits)
        notes = _scope_warnings(app, fields.get("scope")) + _state_warnings(app.store, id, limits)
        found = [Similar(card.rel_path, card.title, card.kind, round(card.score, 4)) for card in near]
    except Exception as error:  # the card is on disk and indexed: what else might have been said is not worth a failure
        notes = [_index_note("looking for similar cards failed", error)]
    return result._replace(id=id, indexed=True, similar=found, warnings=[*result.warnings, *notes])


def indexed_now(app, rel_path):
    """(the id of a card that was just written, notes); id None when the index could not take it in.

    The card is on disk: whatever befalls the index is a remark.
    """
    try:
        return app.indexer.index_one(app.store, rel_path), []
    except Exception as error:
        return None, [_index_note("the card is saved, the index was not updated", error)]


def _index_note(what, error):
    if not isinstance(error, McoreError):
        error = StoreError("a fault in memory-agent", type(error).__name__)
    return warning("not-indexed", f"{what}: {error.message} ({error.why})", error.hint)


def _scope_warnings(app, scope):
    """Says that a scope is new here when others have nearly its name: five spellings of one project hide cards."""
    if scope in (None, scopes.GLOBAL):
        return []
    known = app.store.scopes(app.settings.scopes)
    near = scopes.nearest(scope, known) if known.get(scope, (0,))[0] <= 1 else []
    if not near:
        return []
    return [warning("new-scope", f"no other card has the scope {scope}", "did you mean " + ", ".join(near) + "?")]


def _state_warnings(store, id, limits):
    """Says that a card is not in force, so that no search shows it."""
    life = store.lives([id])[id]
    state = validity.state(limits.at, life.mark, life.valid_from, life.valid_to, life.closed_at)
    if state == validity.CURRENT:
        return []
    by = f" by {life.closed_by}" if life.closed_by and life.closed_at <= limits.at else ""
    return [warning("not-in-force", f"this card is {state}{by}: searches leave it out", "see it with as_of")]
