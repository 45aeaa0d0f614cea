"""Former texts of cards, kept as Markdown in the vault: `.history/<rel_path>/<n>-<time>-<revision>.md`.

A person can read, compare and copy them with any tool; no walk looks there. The time in the name is
when the text was replaced, the revision the one it had. Nothing here changes a card.
"""

import os
import re
import time
from collections import namedtuple

from mcore import vault
from mcore.card import content_hash, revision_of

Former = namedtuple("Former", "number replaced_at revision path")
Former.__doc__ = """One kept text: `number` counts from 1, `path` is relative to the vault."""

MAX_BYTES = 1 << 30  # what was a card can be read again, whatever the limit is by now

_NAME = re.compile(r"([0-9]{4,})-([0-9]{8}T[0-9]{6}Z)-([0-9a-f]{16})\.md")


def folder_of(name):
    """The folder of a card's former texts; `name` is its real name below the vault."""
    return f"{vault.HISTORY_FOLDER}/{name}"


def former(root, name):
    """The Former texts of a card, newest first; none for a name that leads out of the vault."""
    folder = folder_of(name)
    if not vault.leads_inside(root, folder):
        return []
    try:
        names = os.listdir(vault.file_path(root, folder))
    except OSError:
        return []
    found = []
    for entry in names:
        parts = _NAME.fullmatch(entry)
        if parts:
            at = time.strptime(parts[2], "%Y%m%dT%H%M%SZ")
            found.append(Former(int(parts[1]), time.strftime("%Y-%m-%dT%H:%M:%SZ", at), parts[3], f"{folder}/{entry}"))
    return sorted(found, reverse=True)


def keep(root, name, data, now):
    """Publishes a card's text among its former ones, durably; the Former. The caller holds the card's lock.

    A text that is the newest one there already is not kept twice (a kill came after keeping it).
    Raises OSError, SetupError.
    """
    revision = revision_of(content_hash(data))
    known = former(root, name)
    if known and known[0].revision == revision:
        return known[0]
    folder = vault.ensure_folder(root, folder_of(name))
    vault.clear_stale_temps(folder, now)
    number = known[0].number + 1 if known else 1
    while True:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        entry = f"{number:04}-{stamp}-{revision}.md"
        if vault.publish(folder, entry, data):
            break
        number += 1
    return former(root, name)[0]


def read(root, entry):
    """The bytes of a Former text. Raises CardError."""
    return vault.read_bytes(vault.file_path(root, entry.path), MAX_BYTES)[0]


def erase(root, name):
    """Removes all former texts of a card and the folders that are empty then; how many there were."""
    found = former(root, name)
    for entry in found:
        vault.erase(vault.file_path(root, entry.path))
    folder = vault.file_path(root, folder_of(name))
    top = vault.file_path(root, vault.HISTORY_FOLDER)
    while vault.is_inside(folder, top):
        vault.clear_stale_temps(folder, float("inf"))
        try:
            os.rmdir(folder)
        except FileNotFoundError:  # a purge was killed here before
            pass
        except OSError:
            break
        folder = os.path.dirname(folder)
    vault.sync_folder(folder)
    return len(found)
