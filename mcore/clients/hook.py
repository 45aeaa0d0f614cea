"""What a session hook says: the discipline of remembering, and the state of the index. Pure text.

The contract of `memory hook`, which calls this, is *fail open*. A hook stands between a person and
their agent, so whatever goes wrong (no index, a locked one, a broken config.json, an unknown
format) it exits 0 and prints either a valid answer or nothing: never exit 2 (which blocks a prompt
in most clients), never a traceback, never plain text where a client parses JSON. It ends within a
second, reads only what is at hand (no vault walk), ignores its standard input if there is none, and
says at most `max_chars` characters.
"""

import json

from mcore.render import scrub

# Claude Code takes 10,000 characters whole (measured by others, 20 runs); 2,000 is about 500 tokens.
DEFAULT_CHARS = 2000
# Kimi Code has no session channel: its hook runs, and is paid for, with every prompt.
CHARS = {"kimi": 500}

SEARCH = (
    "Search first: before you answer about earlier work, decisions, hosts, paths, versions or an error seen "
    "before, call memory_search with the names and identifiers themselves rather than a whole question, then "
    "memory_get for the card you rely on. No hit means nothing is stored, not that it never happened."
)
WORTH = (
    "Worth a card (memory_capture, one fact each, under a title that names it): durable facts about the user or "
    "the project; a decision with its reason and what was rejected; a mistake with its cause and its fix; the "
    "environment: hosts, paths, ports, versions, commands that are known to work."
)
NOT_WORTH = (
    "Not worth a card: the state of the moment, secrets (note where they are kept instead), what the code or its "
    "history already says, guesses. When a card turns out wrong, correct it (memory_update); when the fact has "
    "changed since, replace it (memory_supersede)."
)
SHORT = (
    "Search memory_search before answering about past work; memory_capture durable facts, decisions with "
    "reasons, mistakes with fixes, hosts, paths, versions; never secrets or passing state."
)


def hook_text(stats, freshness_line, max_chars=DEFAULT_CHARS):
    """The text for the model: what is stored, when to search, what to remember and what not.

    `stats` is the result of `memory stats` (`total`, `kinds`) as a tuple or dict, or None when the
    index could not be read; `freshness_line` one line on the index's age, or "". Whole paragraphs
    are left out, the last first, until the text fits `max_chars` (0 or less gives "").
    """
    head = " ".join(part for part in (_counts(stats), (freshness_line or "").strip()) if part)
    for paragraphs in ((head, SEARCH, WORTH, NOT_WORTH), (head, SEARCH, WORTH), (head, SHORT), (SHORT,), (head,)):
        text = scrub("\n".join(paragraphs))
        if len(text) <= max_chars:
            return text
    return scrub(head)[: max(0, max_chars - 1)] + "…" if max_chars > 0 else ""


def _counts(stats):
    """A sentence with the number of cards, in all and of the commonest kinds."""
    total = _field(stats, "total")
    if not isinstance(total, int):
        return "A local memory is connected; its index could not be read (memory_stats says why)."
    if not total:
        return "A local memory is connected; it holds no cards yet."
    kinds = _field(stats, "kinds")
    kinds = kinds if isinstance(kinds, dict) else {}
    top = sorted(((count, kind) for kind, count in kinds.items() if isinstance(count, int)), reverse=True)[:4]
    named = ", ".join(f"{kind} {count}" for count, kind in top)
    cards = "1 card" if total == 1 else f"{total} cards"
    return f"A local memory with {cards}{f' ({named})' if named else ''} is connected."


def _field(stats, name):
    return stats.get(name) if isinstance(stats, dict) else getattr(stats, name, None)


def hook_output(text, format, event="SessionStart"):
    """`text` as standard output in the way that `format` carries it to the model.

    An empty `text` gives the smallest answer the client takes. An unknown format is treated as
    plain. JSON is pure ASCII, so that no code page of a console can spoil it.
    """
    text = scrub(text)
    if format == "cline":
        return _json({"cancel": False, "contextModification": text, "errorMessage": ""})
    if format == "cursor":
        return _json({"additional_context": text} if text else {})
    if format in ("claude", "codex", "gemini", "qwen"):
        if not text:
            return _json({})
        return _json({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
    return text + "\n" if text else ""


def _json(value):
    return json.dumps(value) + "\n"
