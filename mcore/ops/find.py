"""Operations that read cards: search, context, show."""

from mcore.errors import EXIT_NOTHING, EXIT_OK
from mcore.operation import Operation, param
from mcore.render import counted, in_line, note_lines

_TIER_WORDS = {
    "all": "every term",
    "all-prefix": "every term, as the start of a word",
    "any": "LOW CONFIDENCE: only some of the terms",
    "any-prefix": "LOW CONFIDENCE: terms only as the start of a word or in another form",
}


def _search(app, args):
    return app.searcher.search(
        args["query"], args["limit"], args["kind"], args["source"], not args["no_sync"], args["match"], args["scope"],
        args["scope_only"], args["as_of"], args["query_variants"], args["offset"], args["explain"],
    )  # fmt: skip


def _search_text(result):
    from mcore.search import telling
    from mcore.snippet import mark
    from mcore.tokenize import split_query

    lines = [_headline(result)]
    terms = telling(split_query(" ".join(asked.query for asked in result.retrieval.queries))[0])
    for number, hit in enumerate(result.hits, 1 + result.retrieval.offset):
        share = f"  coverage {hit.coverage:.0%}" if hit.matched.startswith("any") else ""
        lines.append(in_line(f"{number}. {hit.title}  [{hit.kind}]  id {hit.id}  {hit.path}{share}{_life_words(hit)}"))
        if hit.replaces:
            lines.append(in_line("   replaces " + ", ".join(hit.replaces)))
        if hit.snippet:
            lines.append("   " + mark(hit.snippet, terms))
    if result.retrieval.next_offset is not None:
        lines.append(f"[more may follow: offset {result.retrieval.next_offset}]")
    if result.explained:
        from mcore.explain import lines as explained_lines

        lines += map(in_line, explained_lines(result.explained))
    lines += note_lines(result.warnings)
    return "\n".join(lines)


def _life_words(hit):
    """What limits a hit: its scope, its state where it is not current, its confidence, a review that is due."""
    words = [hit.scope] if hit.scope != "global" else []
    if hit.state != "current":
        words.append(f"{hit.state.upper()}" + (f" by {hit.replaced_by}" if hit.replaced_by else ""))
    words += [f"confidence {hit.confidence}"] if hit.confidence else []
    words += ["review due"] if hit.review_due else []
    return "".join(f"  {word}" for word in words)


_HIDING = {
    "scope": "in other scopes: name one with scope, or all",
    "validity": "not in force (superseded, expired, retracted or to come): as_of any shows them",
}


def _hidden_lines(result):
    for name, hits in result.hidden.items():
        if name in _HIDING:
            yield f"Hidden: {counted(hits, 'hit')} {_HIDING[name]}."
        else:
            yield f"The filter {name.replace('_', ' ')} hides {counted(hits, 'hit')}: try again without it."


def _headline(result):
    """What was found and how sure it is; for an empty answer what was searched and what to try."""
    count, n = len(result.hits), result.searched
    if result.hits:
        words = _TIER_WORDS[result.matched]
        whole = sum(hit.matched.startswith("all") for hit in result.hits)
        if 0 < whole < count:
            words += f" in {whole}; LOW CONFIDENCE where a coverage stands"
        return "\n".join([f"{counted(count, 'hit')} ({words}) in {counted(n, 'card')}", *_hidden_lines(result)])
    if result.retrieval.reason == "offset_beyond_pool":
        return f"No hits from offset {result.retrieval.offset} on: {counted(result.retrieval.pool, 'card')} were found."
    unread = counted(result.freshness.unreadable, "card file")
    lines = [f"Nothing found in {counted(n, 'card')} ({unread} could not be read)."]
    if result.retrieval.reason == "empty_scope" and n:
        lines.append("No card passes the filters of this search.")
    lines += _hidden_lines(result)
    for card in result.outdated:
        now = f"; now: {card.replaced_by}" if card.replaced_by else ""
        lines.append(in_line(f"{card.state}: {card.title}  {card.path}{now}"))
    if result.nearest:
        lines.append("The vault has these words: " + ", ".join(result.nearest))
    elif not (n or result.freshness.stale or result.freshness.unreadable):
        lines.append(
            "The vault has no card that is read: capture one, or point --vault at a folder of notes "
            "(memory index names what is left out)."
        )
    elif not result.hidden:
        lines.append("Try fewer or other words: names, identifiers, the other language.")
    return "\n".join(lines)


SEARCH = Operation(
    name="search",
    tool="memory_search",
    title="Search memory",
    summary="find cards",
    description=(
        "Search the user's saved memory cards (facts, hosts, decisions, mistakes). Use before answering about past "
        "work. Pass names and identifiers, not sentences. any/any-prefix = low confidence: some terms only. Empty = "
        "not in memory; see hidden, nearest. Read cards with memory_get."
    ),
    params=(
        param(
            "query",
            help="names, identifiers or words, any language",
            required=True,
            positional=True,
            brief="names, identifiers, words",
        ),
        param("limit", "integer", "1-20", default=10, minimum=1, maximum=20, clamp=True, flags=("-n",)),
        param("kind", help="only this kind", brief="kind"),
        param("source", help="only this source", brief="who"),
        param(
            "match",
            help="cascade: precise only; fill: best of all tiers; auto: as the query asks",
            default="auto",
            choices=("auto", "cascade", "fill"),
            brief="tiers",
        ),
        param(
            "scope",
            help="project/<id> or domain/<id>, with global; all; default global",
            brief="project/<id>, domain/<id>, all",
        ),
        param("scope_only", "boolean", "without global cards", default=False, brief="no global"),
        param("as_of", "scalar", help="date: what was true then; any: outdated too", brief="date, or any"),
        param("query_variants", "array", "up to 5 other wordings", default=(), brief="5 other wordings"),
        param("offset", "integer", "hits to pass over", default=0, minimum=0, clamp=True, brief="skip"),
        param("explain", "boolean", "say how each hit got its score", default=False, brief="why"),
        param("no_sync", "boolean", "do not look for changed files first", default=False, door="cli"),
    ),
    run=_search,
    text=_search_text,
    exit_code=lambda result: EXIT_OK if result.hits else EXIT_NOTHING,
    read_only=True,
    destructive=False,
    idempotent=True,
    output={
        "query": {"type": "string"},
        "hits": {"type": "array", "items": {"type": "object"}},
        "matched": {"type": "string"},
        "searched": {"type": "integer"},
        "hidden": {"type": "object"},
        "nearest": {"type": "array", "items": {"type": "string"}},
        "retrieval": {"type": "object"},
        "freshness": {"type": "object"},
        "explained": {"type": "object"},
        "warnings": {"type": "array", "items": {"type": "object"}},
    },
)


def _context(app, args):
    from mcore.context import context

    return context(
        app, args["query"], args["scope"], args["kind"], args["max_chars"], args["view"], not args["no_sync"]
    )


def _context_text(result):
    return "\n".join([result.text or "No card to show.", *note_lines(result.warnings)])


CONTEXT = Operation(
    name="context",
    tool="memory_context",
    title="Cards within a budget",
    summary="the cards that answer, whole, inside a budget of characters",
    description=(
        "Whole cards on a question or project within max_chars. Without query: what to know at a "
        "session's start."
    ),
    params=(
        param("query", help="names, identifiers or words", positional=True, brief="topic"),
        param("scope", help="as for search", brief="as search"),
        param("kind", help="only this kind", door="cli"),
        param("max_chars", "integer", "default 2000, with a query 6000", minimum=0, brief="2000, with query 6000"),
        param(
            "view",
            help="auto: compact without a query",
            default="auto",
            choices=("auto", "full", "compact"),
            brief="length",
        ),
        param("no_sync", "boolean", "do not look for changed files first", default=False, door="cli"),
    ),
    run=_context,
    text=_context_text,
    exit_code=lambda result: EXIT_OK if result.cards else EXIT_NOTHING,
    read_only=True,
    destructive=False,
    idempotent=True,
    output={
        "text": {"type": "string"},
        "cards": {"type": "array", "items": {"type": "object"}},
        "left_out": {"type": "array", "items": {"type": "object"}},
    },
)


def _show(app, args):
    from mcore.show import show

    return show(
        app,
        args["card"],
        args["id"],
        args["path"],
        args["offset"],
        args["max_chars"],
        args["full"],
        not args["no_sync"],
    )


def _show_text(shown):
    head = [f"# {in_line(shown.title)}", in_line(f"{shown.path}  id {shown.id}  kind {shown.kind}")]
    for name in ("source", "created", "updated"):
        if getattr(shown, name):
            head[-1] += f"  {name} {getattr(shown, name)}"
    head[-1] += f"  revision {shown.revision}"
    if shown.scope != "global":
        head.append(in_line(f"scope: {shown.scope}"))
    if shown.replaces:
        head.append(in_line("replaces: " + ", ".join(shown.replaces)))
    if shown.tags:
        head.append("tags: " + in_line(", ".join(shown.tags)))
    for name, value in shown.fields.items():
        text = value if isinstance(value, str) and in_line(value) == value else _compact(value)
        head.append(in_line(f"{name}: ") + text)
    tail = []
    if shown.has_more:
        left = shown.length - shown.next_offset
        tail = ["", f"[{left} more characters: go on with offset {shown.next_offset}]"]
    elif shown.offset and not shown.text:
        tail = [f"[offset {shown.offset} is past the end: the card has {shown.length} characters]"]
    return "\n".join([*head, "", shown.text, *tail, *note_lines(shown.warnings)])


def _compact(value):
    import json

    return json.dumps(value, ensure_ascii=False)


SHOW = Operation(
    name="show",
    tool="memory_get",
    title="Read a card",
    summary="read one card",
    description=(
        "Read one card by id or path. Long cards come in pages: when has_more, call again with offset = next_offset."
    ),
    params=(
        param("card", help="the id or path that search returned", positional=True, required=True, door="cli"),
        param("id", "integer", "card id", door="mcp", brief="card id"),
        param("path", help="card path", door="mcp", brief="or path"),
        param("offset", "integer", "first character", default=0, minimum=0, clamp=True),
        param("max_chars", "integer", "page size, 0 = all", default=20_000, minimum=0, clamp=True),
        param("full", "boolean", "the whole card, as --max-chars 0", default=False, door="cli"),
        param("no_sync", "boolean", "do not look for changed files first", default=False, door="cli"),
    ),
    run=_show,
    text=_show_text,
    exit_code=lambda result: EXIT_OK,
    read_only=True,
    destructive=False,
    idempotent=True,
    output={
        "id": {"type": "integer"},
        "path": {"type": "string"},
        "title": {"type": "string"},
        "text": {"type": "string"},
        "length": {"type": "integer"},
        "has_more": {"type": "boolean"},
        "warnings": {"type": "array", "items": {"type": "object"}},
    },
)
