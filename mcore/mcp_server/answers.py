"""An operation as MCP shows it: the tool entry, a call's result, a call's failure. No I/O.

Some clients give their model only `content`, others only `structuredContent`; so each of the two
is complete by itself.
"""

from mcore.operation import input_schema
from mcore.render import plain


def tool_entry(operation):
    """The entry of `operation` in tools/list: the same in every process and every era.

    `outputSchema` names no required property: a failure carries `error` in its place, and one SDK
    checks failures against the schema too.
    """
    return {
        "name": operation.tool,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": input_schema(operation),
        "outputSchema": {"type": "object", "properties": operation.output or {}},
        "annotations": {
            "title": operation.title,
            "readOnlyHint": bool(operation.read_only),
            "destructiveHint": bool(operation.destructive),
            "idempotentHint": bool(operation.idempotent),
            "openWorldHint": False,
        },
    }


def success(operation, result):
    """The result of a call that was carried out, also when it found or changed nothing."""
    return {"content": [_text_block(operation.text(result))], "structuredContent": plain(result)}


def failure(slug, message, why="", hint=""):
    """The result of a call that could not be carried out: a text that a model can act on.

    An argument that is refused may be a credential, given in the wrong place; it is not repeated.
    """
    from mcore.secretscan import redact

    message, why, hint = redact(message), redact(why), redact(hint)
    lines = [message] + [f"{word}: {part}" for word, part in (("why", why), ("do", hint)) if part]
    both = f"{message}: {why}" if why else message  # as the command line has it
    return {
        "content": [_text_block("\n".join(lines))],
        "structuredContent": {"error": {"slug": slug, "message": both, "hint": hint}},
        "isError": True,
    }


def _text_block(text):
    return {"type": "text", "text": text}
