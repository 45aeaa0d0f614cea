"""Write one new card, then index that card only. Nothing that exists is ever overwritten."""

import os
import re
import time
import unicodedata
from collections import namedtuple

from mcore import secretscan, vault
from mcore.card import DEFAULT_KIND, KIND_FOLDERS, file_stem, name_key
from mcore.cardfile import new_card_text, one_line, read_card
from mcore.errors import CardError, McoreError, SetupError, StoreError, UsageError, warning
from mcore.prepare import utc_now
from mcore.render import scrub
from mcore.similar import similar

MIN_BODY_CHARS = 20
MAX_TITLE_CHARS = 10_000
SIMILAR, SIMILAR_CHARS = 3, 200

Captured = namedtuple(
    "Captured",
    "status path id indexed conflict existing_path collision_paths secrets_found similar warnings",
)
Captured.__doc__ = """What a capture did.

`status` is created, unchanged, rejected or conflict; `path` the card's rel_path (None when nothing
stands there); `existing_path` the card that already has the title, `collision_paths` every card
whose name the new one had to avoid; `secrets_found` kinds and spans, never text.
"""

Secret = namedtuple("Secret", "kind start end where")
Similar = namedtuple("Similar", "path title kind score")

_Existing = namedtuple("_Existing", "name title body")

_EMPTY = Captured("", None, None, False, False, None, [], [], [], [])


def capture(app, title, body, kind=DEFAULT_KIND, tags=(), source=None, on_conflict="suffix", reject_secrets=False):
    """Writes one card into the vault and indexes it; the Captured.

    The card counts as created once it is on disk: a fault of the index is a warning. Raises
    UsageError for a title or kind that cannot be used, SetupError when the vault cannot be written.
    """
    title, body = _clean_title(title), scrub(body)
    kind, source = _known_kind(kind), one_line(scrub(source)) if source else None
    tags = [tag for tag in (" ".join(scrub(t).split()).lstrip("# ") for t in tags) if tag]
    result = _EMPTY._replace(secrets_found=_secrets(title, body, tags, source))
    result = result._replace(warnings=_secret_warnings(result.secrets_found) + _invisible_warnings(title, body))
    if len(body.strip()) < MIN_BODY_CHARS:
        return _rejected(result, "short-body", f"the body has under {MIN_BODY_CHARS} characters", "say the whole fact")
    if reject_secrets and result.secrets_found:
        return _rejected(
            result, "secret", "it looks like it holds a credential", "write where the credential is kept instead"
        )
    text, most = new_card_text(title, kind, source, tags, utc_now(), body), app.settings.max_card_bytes
    if len(text.encode()) > most:
        hint = "split it, or raise max_card_bytes in config.json"
        return _rejected(result, "long-body", f"a card of over {most} bytes would not be read again", hint)
    root = app.settings.vault.path
    folder_name = KIND_FOLDERS[kind]
    folder = vault.ensure_folder(root, folder_name)
    try:
        with vault.folder_lock(folder, app.settings.home.path):
            result = _write(result, folder, folder_name, title, body, text, on_conflict)
            vault.clear_stale_temps(folder, time.time())
    except OSError as error:
        raise SetupError(
            f"cannot write the card into {folder}",
            error.strerror or str(error),
            "free space or fix permissions, then capture again",
        ) from None
    return _indexed(app, result, title, body)


def _clean_title(title):
    """The title on one line, without lone surrogates. Raises UsageError when nothing is left."""
    title = one_line(scrub(title))
    if not title:
        raise UsageError("the title is empty", hint="give --title a few words that name the fact")
    if len(title) > MAX_TITLE_CHARS:
        raise UsageError(f"the title has over {MAX_TITLE_CHARS} characters", hint="put the text into the body")
    return title


def _known_kind(kind):
    if kind not in KIND_FOLDERS:
        raise UsageError(f"there is no kind {one_line(scrub(kind))[:60]!r}", hint="one of: " + ", ".join(KIND_FOLDERS))
    return kind


def _secrets(title, body, tags, source):
    """Every Secret of a card; in the tags its span counts in the tags joined by ", "."""
    places = (("title", title), ("body", body), ("tags", ", ".join(tags)), ("source", source or ""))
    return [Secret(f.kind, f.start, f.end, where) for where, text in places for f in secretscan.scan(text)]


def _secret_warnings(secrets):
    return [
        warning(
            "secret",
            f"{s.where}, characters {s.start} to {s.end}: looks like a credential ({s.kind})",
            "keep it in a password store and write where it is; change it if this card is shared",
        )
        for s in secrets
    ]


_HIDDEN = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def _invisible_warnings(title, body):
    """Says that text holds characters that can hide or reorder words (prompt injection, bidi tricks)."""
    found = _HIDDEN.findall(title + body)
    if not found:
        return []
    names = sorted({f"U+{ord(c):04X}" for c in found})[:5]
    return [
        warning(
            "invisible",
            f"the text holds {len(found)} invisible or direction-changing characters ({', '.join(names)})",
            "check where the text came from",
        )
    ]


def _rejected(result, slug, message, hint):
    return result._replace(status="rejected", warnings=[*result.warnings, warning(slug, message, hint)])


def _write(result, folder, folder_name, title, body, text, on_conflict):
    """Chooses a free name and publishes the card there, or finds that it exists already."""
    stem = file_stem(secretscan.redact(title))
    while True:
        names = os.listdir(folder)  # may be 100,000: folded as one text, since no name holds a "/"
        taken = dict(zip(name_key("/".join(names)).split("/"), names, strict=True)) if names else {}
        existing = _existing(folder, stem, taken)
        same_title = [card for card in existing if card.title and _plain(card.title) == _plain(title)]
        for card in same_title:
            if _same_text(card.body, body):
                return result._replace(status="unchanged", path=f"{folder_name}/{card.name}")
        paths = [f"{folder_name}/{card.name}" for card in existing]
        if same_title:
            result = result._replace(conflict=True, existing_path=f"{folder_name}/{same_title[0].name}")
            if on_conflict == "reject":
                return result._replace(status="conflict", collision_paths=paths)
        name = _free_name(stem, taken)
        if vault.publish(folder, name, text.encode("utf-8")):
            return result._replace(status="created", path=f"{folder_name}/{name}", collision_paths=paths)


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
        return _Existing(name, None, "")
    return _Existing(name, card.title, card.body)


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


def _plain(text):
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.strip()


def _indexed(app, result, title, body):
    """Indexes the card, and looks for similar ones; any fault of the index becomes a warning."""
    if result.status not in ("created", "unchanged"):
        return result
    try:
        id = app.indexer.index_one(app.store, result.path)
        near = similar(app.store, title, body[:SIMILAR_CHARS], SIMILAR, result.path)
    except Exception as error:  # the card is on disk: whatever befalls the index is a remark
        error = error if isinstance(error, McoreError) else StoreError("a fault in memory-agent", type(error).__name__)
        note = warning(
            "not-indexed", f"the card is saved, the index was not updated: {error.message} ({error.why})", error.hint
        )
        return result._replace(indexed=False, warnings=[*result.warnings, note])
    found = [Similar(card.rel_path, card.title, card.kind, round(card.score, 4)) for card in near]
    return result._replace(id=id, indexed=True, similar=found)
