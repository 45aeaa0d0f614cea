"""What the doctor looks at inside the vault: every file is read once, none is changed."""

import os
import time

from mcore import frontmatter, hidden, portable, secretscan, vault
from mcore.card import GENERIC_STEMS, KIND_FOLDERS, content_hash, name_key, os_stem
from mcore.cardfile import read_card
from mcore.doctor.findings import ERROR, NOTE, WARNING, finding, from_error, line_in
from mcore.errors import CardError, SetupError
from mcore.prepare import searched_texts, told
from mcore.record import namedtuple
from mcore.render import counted
from mcore.store import expected_sums

Vault = namedtuple("Vault", "files digests sums told findings")
Vault.__doc__ = """A vault looked through: its card files, the content hash of every one that could be read as a card
(rel_path -> bytes), the sum over the postings it should have in the index, the hash of what the index should say
of it beside these, and what was found."""

_BATCH = 500  # cards whose postings are worked out at a time
_NAMED = 10  # cards of one title that are named
_CURES = {
    "binary data, not text": "save it as text in UTF-8, or name it under `ignore` in config.json",
    "cannot be opened": "check its permissions",
    "cannot be read": "check the disk and its permissions",
}
_DELIBERATE = ("folder is on the ignore list", "file name is on the ignore list")


def check_vault(settings, progress=None, sums_up_to=0):
    """The Vault at the place in force; a missing one has no files. One with more than `sums_up_to` cards
    has neither sums nor what is told."""
    root = settings.vault.path
    try:
        if not vault.is_scannable(root):
            return Vault({}, {}, {}, {}, [_missing(settings)])
        scan = vault.scan(root, settings.ignore)
    except SetupError as error:
        return Vault({}, {}, {}, {}, [from_error("vault", ERROR, root, error)])
    found, digests, sums, said, titles, closed, texts = [], {}, {}, {}, {}, set(), []
    for done, path in enumerate(sorted(scan.files)):
        if progress:
            progress(done, len(scan.files))
        try:
            data, _ = vault.read_bytes(vault.file_path(root, scan.raw_names.get(path, path)), settings.max_card_bytes)
            text, remark = vault.decode(data)
        except CardError as error:
            cure = error.hint or _CURES.get(error.message.partition(":")[0], "put a text file there, or `ignore` it")
            found.append(finding("unreadable", WARNING, path, error.message, cure))
            continue
        digests[path] = content_hash(data)
        card = read_card(path, text)
        closed.update((*card.life.supersedes, *card.life.retracts))
        if not card.life.forgotten:
            titles.setdefault(name_key(card.title), []).append(path)
        if remark:
            found.append(finding("not-utf8", WARNING, path, remark, "save it as UTF-8", line_in(remark)))
        found += _of_card(path, text, card)
        if len(scan.files) <= sums_up_to:
            texts.append((path, searched_texts(card)))
            said[path] = hash(told(card))
        if len(texts) == _BATCH:
            sums.update(_sums(texts))
            texts.clear()
    sums.update(_sums(texts))
    found += _left_out(scan)
    found += _names(scan)
    found += _duplicates(titles, closed)
    found += _stale_temps(root, scan.files)
    return Vault(scan.files, digests, sums, said, found)


def _sums(texts):
    """rel_path -> the sum over its postings."""
    by_number = expected_sums((number, *parts) for number, (_, parts) in enumerate(texts, 1))
    return {path: by_number.get(number, 0) for number, (path, _) in enumerate(texts, 1)}


def _missing(settings):
    root = settings.vault.path
    if settings.vault.origin == "default":
        return finding("no-vault", NOTE, root, "there is no vault yet", "capture a card, or name a folder with --vault")
    cure = "bring the folder back (a drive not mounted?), or correct the path; memory paths says where it comes from"
    return finding("no-vault", WARNING, root, "the vault does not exist", cure)


def _of_card(path, text, card):
    """Findings in the text of one card."""
    for line, message in card.warnings:
        yield finding("frontmatter", WARNING, path, message, "correct that line", line)
    line = frontmatter.unclosed(text)
    if line:
        message = "the frontmatter that begins here never closes: its fields are read as body"
        yield finding("frontmatter", WARNING, path, message, "end it with a line ---", line)
    for message in card.life.notes:
        yield finding("validity", WARNING, path, message, "correct that field")
    if not text.strip():
        yield finding("empty-card", NOTE, path, "there is nothing in it", "write it, or remove the file")
    for secret in secretscan.scan(text):
        cure = "keep it in a password store and write where it is; change it if the card was shared"
        yield finding("secret", WARNING, path, f"looks like a credential ({secret.kind})", cure, _line(text, secret))
    if secretscan.scan(path):
        message = "its name looks like it holds a credential"
        yield finding("secret", WARNING, path, message, "rename the file, and change the credential")
    yield from _hidden(path, text)


def _hidden(path, text):
    """One finding a card for characters that people do not see, from the first on."""
    places = hidden.scan(text)
    if not places:
        return
    grave = [place for place in places if place.kind in hidden.GRAVE]
    shown = grave or places
    points = hidden.names("".join(text[place.start : place.end] for place in shown))
    message = f"{counted(len(shown), 'place')} with characters that hide, reorder or control text ({points})"
    cure = "check where the text came from, and take them out"
    yield finding("hidden-text", WARNING if grave else NOTE, path, message, cure, _line(text, shown[0]))


def _line(text, place):
    return text.count("\n", 0, place.start) + 1


def _left_out(scan):
    for path, reason in scan.skipped:
        if reason in _DELIBERATE:
            continue
        odd = reason.startswith(("link", "not a regular"))
        cure = "put the file itself into the vault if it is memory" if odd else "rename it, or mend its permissions"
        yield finding("left-out", NOTE if odd else WARNING, path, f"it is not searched: {reason}", cure)


def _names(scan):
    """Findings on names that another system would not take, or would take for one."""
    cure = "rename it before the vault moves to another system"
    for path in scan.files:
        faults = portable.path_faults(path)
        if path in scan.raw_names:
            faults.append("the name is not valid UTF-8")
        if faults:
            yield finding("name", WARNING, path, "it would not travel: " + "; ".join(faults), cure)
    for group in portable.collisions(scan.files):
        message = "macOS and Windows take these for one name: " + ", ".join(group)
        yield finding("name-collision", WARNING, group[0], message, "rename all but one")


def _duplicates(titles, closed):
    """Findings on cards of one title; one that is forgotten, or that a newer card closes, is in nobody's way."""
    for paths in titles.values():
        paths = [path for path in paths if closed.isdisjoint((path, os_stem(path), os_stem(path.rpartition("/")[2])))]
        if not paths:
            continue
        stem = os_stem(paths[0].rsplit("/", 1)[-1]).casefold()
        if len(paths) > 1 and stem not in GENERIC_STEMS:
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            message = "the same title as: " + ", ".join(paths[1:_NAMED]) + more
            yield finding("duplicate-title", WARNING, paths[0], message, "merge them, or give each its own title")


def _stale_temps(root, files):
    folders = {path.rpartition("/")[0] for path in files} | {"", *KIND_FOLDERS.values()}
    for folder in sorted(folders):
        for path in vault.stale_temps(os.path.join(root, *folder.split("/")), time.time()):
            message = "left by a capture that was killed; no card"
            yield finding("stale-temp", WARNING, path, message, "memory doctor --fix")
