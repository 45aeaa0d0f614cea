"""The cards that answer a question or describe a project, inside a budget of characters.

Pinned cards first, then those in force by how well they answer (without a question: the last changed
first, the project's own before global ones). A card goes in whole or not at all; what was left out is
said, and why. The same vault and the same call give the same text.
"""

import time

from mcore import scope as scopes
from mcore import vault
from mcore.budget import Block, compact, pack
from mcore.cardfile import read_card
from mcore.errors import CardError, UsageError, warning
from mcore.frontmatter import lookup
from mcore.importer import stale_warning
from mcore.prepare import utc_now
from mcore.record import namedtuple
from mcore.render import counted, in_line
from mcore.tokenize import split_query

DEFAULT_CHARS, QUESTION_CHARS = 2000, 6000
MIN_CHARS = 200
MAX_CARDS = 50  # looked at
PINNED = 20
NAMED = 20  # left out, by name

Context = namedtuple("Context", "query scope view text cards left_out max_chars freshness warnings")
Context.__doc__ = """A text of at most `max_chars` characters. `cards` are in it, in its order; `left_out` are not."""
Used = namedtuple("Used", "id path title pinned revision chars")
LeftOut = namedtuple("LeftOut", "path title reason chars")


def context(app, query=None, scope=None, kind=None, max_chars=None, view="auto", sync=True):
    """The Context for a question, or of a scope. `view` is full, compact or auto (compact without a
    question, but for pinned cards).

    Raises UsageError for a budget under MIN_CHARS or what is no scope.
    """
    query = (query or "").strip()
    max_chars = max_chars or (QUESTION_CHARS if query else DEFAULT_CHARS)
    if max_chars < MIN_CHARS:
        raise UsageError(f"a budget of {max_chars} characters holds no card", hint=f"give {MIN_CHARS} at least")
    freshness = app.freshness(sync)
    searcher, store = app.searcher, app.store
    limits, warnings = searcher.limits(scope)
    pinned = store.chosen(limits, kind, PINNED, pinned=True)
    if query:
        found = searcher.search(query, 20, kind, None, False, "auto", scope)
        rest = found.hits
        warnings = [*found.warnings, *(_hidden_note(name, count) for name, count in found.hidden.items())]
        if not rest:
            warnings.append(warning("no-hit", "no card answers the query", "try names, identifiers, another scope"))
    else:
        rest = _latest(store, limits, kind)
    rows = {row.id: row for row in [*pinned, *rest]}
    pins = {row.id for row in pinned}
    whole = pins if view == "auto" else ()
    view = view if view != "auto" else "full" if query else "compact"
    terms = split_query(query)[0] if query else ()
    shown = _shown(app, list(rows.values())[:MAX_CARDS], limits, view, terms, whole)
    text, used, left = _filled(shown, max_chars)
    cards = [Used(s.id, s.path, s.title, s.id in pins, s.revision, len(s.text)) for s in shown if s.path in used]
    if freshness.stale:
        warnings.append(stale_warning(freshness.stale))
    return Context(query, list(limits.scopes or ()), view, text, cards, left, max_chars, freshness, warnings)


def _hidden_note(name, count):
    hint = {"scope": "give a scope, or all", "validity": "search with as_of any shows them"}.get(name)
    hint = hint or f"try again without {name}"
    return warning("hidden", f"left aside for their {name}: {counted(count, 'more card')} that would answer", hint)


def _latest(store, limits, kind):
    """The last changed cards, those of the scope itself before global ones."""
    names = limits.scopes or ()
    if len(names) < 2:
        return store.chosen(limits, kind, MAX_CARDS)
    own = store.chosen(limits._replace(scopes=names[:1]), kind, MAX_CARDS)
    return own + store.chosen(limits._replace(scopes=(scopes.GLOBAL,)), kind, MAX_CARDS)


_Shown = namedtuple("_Shown", "id path title revision text")


def _shown(app, rows, limits, view, terms, whole):
    """Each card as the context would hold it, those with an id in `whole` in full; what cannot be read is
    passed over."""
    ids = [row.id for row in rows]
    lives, names = app.store.lives(ids, limits.ranges), app.store.real_names(ids)
    shown = []
    for row in rows:
        path = getattr(row, "rel_path", None) or row.path
        try:
            data, _ = vault.read_bytes(vault.file_path(app.settings.vault.path, names[row.id]),
                                       app.settings.max_card_bytes)  # fmt: skip
            card = read_card(path, vault.decode(data)[0])
        except CardError:
            continue
        life = lives[row.id]
        full = view == "full" or row.id in whole
        body = card.body.strip() if full else compact(card.body, terms)
        marks = _qualifiers(path, card, life, getattr(row, "missing", ()))
        text = f"## {in_line(card.title)}\n{in_line(marks)}\n\n{body}"
        shown.append(_Shown(row.id, path, card.title, life.content_hash[:8].hex(), text))
    return shown


def _qualifiers(path, card, life, missing):
    """The line under a title: where the card is, and everything that says how far it can be relied on."""
    parts = [path, card.kind]
    if life.scope != scopes.GLOBAL:
        parts.append(life.scope)
    if missing:
        parts.append(f"LOOSE MATCH, without {', '.join(missing)}")
    if life.confidence:
        parts.append(f"confidence {life.confidence}")
    status = lookup(card.fields, "status")
    if isinstance(status, str) and status:
        parts.append(f"status {status}")
    for name in ("valid_from", "valid_to", "review_by"):
        seconds = getattr(life, name)
        if seconds is not None:
            late = " (due)" if name == "review_by" and seconds <= time.time() else ""
            parts.append(f"{name} {utc_now(seconds)}{late}")
    return " | ".join(parts)


def _filled(shown, max_chars):
    """(text, paths in it, LeftOut entries): the blocks that fit with a last line about those that do not."""
    blocks = [Block(s.path, s.text) for s in shown]
    packed = pack(blocks, max_chars)
    if packed.left_out:  # room for the line that says so
        packed = pack(blocks, max_chars - len(_note(packed.left_out, len(blocks))) - 20)
    titles = {s.path: s.title for s in shown}
    left = [LeftOut(path, titles[path], "over the budget", chars) for path, chars in packed.left_out]
    parts = [block.text for block in packed.blocks]
    if left:
        parts.append(_note(packed.left_out, len(blocks)))
    return "\n\n".join(parts), {block.key for block in packed.blocks}, left[:NAMED]


def _note(left_out, total):
    least = min(chars for _, chars in left_out)
    return f"[{len(left_out)} of {total} cards left out: over the budget; the smallest needs {least} characters]"
