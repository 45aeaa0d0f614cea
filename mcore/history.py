"""Former texts of cards, kept as Markdown in the vault: `.history/<rel_path>/<n>-<time>-<revision>.md`.

A person can read, compare and copy them with any tool; no walk looks there. The time in the name is
when the text was replaced, the revision the one it had. Nothing here changes a card.
"""

import errno
import os
import re
import time

from mcore import vault
from mcore.card import CARD_SUFFIXES, content_hash, revision_of
from mcore.errors import SetupError
from mcore.record import namedtuple

Former = namedtuple("Former", "number replaced_at revision path")
Former.__doc__ = """One kept text: `number` counts from 1, `path` is relative to the vault."""

MAX_BYTES = 1 << 30  # what was a card can be read again, whatever the limit is by now

_NAME = re.compile(r"([0-9]{4,})-([0-9]{8}T[0-9]{6}Z)-([0-9a-f]{16})\.md")


def folder_of(name):
    """The folder of a card's former texts; `name` is its real name below the vault."""
    return f"{vault.HISTORY_FOLDER}/{name}"


def former(root, name):
    """The Former texts of a card, newest first; none for a name that leads out of the vault.

    Raises SetupError when they cannot be looked at: taken for none, a new one would get a number that there is.
    """
    folder = folder_of(name)
    if not vault.leads_inside(root, folder):
        return []
    try:
        names = os.listdir(vault.file_path(root, folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        why = error.strerror or str(error)
        raise SetupError(f"cannot look into {folder}", why, "check its permissions and the disk") from None
    found = []
    for entry in names:
        parts = _NAME.fullmatch(entry)
        if parts:
            at = time.strptime(parts[2], "%Y%m%dT%H%M%SZ")
            found.append(Former(int(parts[1]), time.strftime("%Y-%m-%dT%H:%M:%SZ", at), parts[3], f"{folder}/{entry}"))
    return sorted(found, reverse=True)


def begin(root, name):
    """The folder of a card's former texts, made if need be, durably. Raises SetupError."""
    return vault.ensure_folder(root, folder_of(name))


def is_kept(root, name):
    """Whether a card has a folder of former texts (it may be empty: a purge was killed); not outside the vault."""
    folder = folder_of(name)
    is_ours = name.endswith(CARD_SUFFIXES) and vault.leads_inside(root, folder)
    return is_ours and os.path.isdir(vault.file_path(root, folder))


def keep(root, name, data, now):
    """Publishes a card's text among its former ones, durably; the Former. The caller holds the card's lock.

    A text that is the newest one there already is not kept twice (a kill came after keeping it).
    Raises OSError, SetupError.
    """
    revision = revision_of(content_hash(data))
    known = former(root, name)
    if known and known[0].revision == revision:
        return known[0]
    folder = begin(root, name)
    vault.clear_stale_temps(folder, now)
    number = known[0].number + 1 if known else 1
    while True:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        entry = f"{number:04}-{stamp}-{revision}.md"
        if vault.publish(folder, entry, data):
            break
        number += 1
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return Former(number, at, revision, f"{folder_of(name)}/{entry}")


def read(root, entry):
    """The bytes of a Former text. Raises CardError."""
    return vault.read_bytes(vault.file_path(root, entry.path), MAX_BYTES)[0]


def erase(root, name):
    """Removes all former texts of a card and the folders that are empty then; how many there were. Raises OSError."""
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
        except OSError as error:
            if folder.endswith(CARD_SUFFIXES) and error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # its name is the card's
            break
        folder = os.path.dirname(folder)
    vault.sync_folder(folder)
    return len(found)
