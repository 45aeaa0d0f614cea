"""JSON-RPC 2.0 as lines: bytes in, messages out, and back. No I/O, no clock, no thread.

One message is one line of UTF-8 that ends in byte 0x0A. What a method means, and which protocol
revision is spoken, belongs to `mcp_server`; this module only knows what a well-formed message is.
"""

import json

from mcore.record import namedtuple
from mcore.render import scrub

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

# Twice the largest message that clients were seen to send (8 MB); what is longer is dropped unread.
MAX_LINE = 16 * 1024 * 1024

# Bytes of one line. The TypeScript SDK closes the connection at 10 MiB, unread bytes behind it included.
MAX_ANSWER = 10_000_000

# Characters; clients use a few dozen, and an id is echoed in every answer and every error.
MAX_ID = 10_000

Request = namedtuple("Request", "id method params")
Request.__doc__ = "Wants exactly one answer with the same `id` (str, int or float). `params` is a dict."

Notification = namedtuple("Notification", "method params")
Notification.__doc__ = "Has no id: whatever it says, it is never answered. `params` is a dict."

Invalid = namedtuple("Invalid", "id code message")
Invalid.__doc__ = "To be answered with this error; `id` is None where none could be trusted."


class RpcError(Exception):
    """A request that is answered with an error object. `data` (None: left out) is any JSON value."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Lines:
    """Cuts a stream of bytes into lines, at byte 0x0A only.

    U+2028, U+0085 and the like are text inside a message, so `splitlines` would be wrong. A line
    longer than `limit` bytes comes out as None, once, and its bytes are not kept.
    """

    def __init__(self, limit=MAX_LINE):
        self.limit = limit
        self._pieces = []
        self._size = 0

    def feed(self, chunk):
        """The lines that `chunk` completes, without their line end."""
        *ends, tail = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._keep(end)
            lines.append(self.rest())
        self._keep(tail)
        return lines

    def rest(self):
        """What has arrived of the line that is not ended, and forgets it (None: it was too long)."""
        line = None if self._size > self.limit else b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return line

    def _keep(self, piece):
        self._size += len(piece)
        if self._size > self.limit:
            self._pieces = []
        elif piece:
            self._pieces.append(piece)


def read(line):
    """What one line says: Request, Notification, Invalid, None, or a list of these (a batch).

    None means there is nothing to do: a blank line, or the peer's response to a request that was
    never sent. `line` None is a line that was too long. Never raises.
    """
    if line is None:
        return Invalid(None, INVALID_REQUEST, f"Invalid Request: a message of more than {MAX_LINE} bytes")
    line = line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r")
    if not line:
        return None
    try:
        value = _parse(line)
    except (ValueError, RecursionError, MemoryError) as fault:
        return Invalid(None, PARSE_ERROR, f"Parse error: {_reason(fault)}")
    if isinstance(value, list):
        return [_sort(item) for item in value]
    return _sort(value)


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


_DECODE = json.JSONDecoder(parse_constant=_refuse_constant).decode
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _parse(line):
    """The JSON value of `line`; ValueError or RecursionError when it has none we could hold."""
    text = line.decode("utf-8")
    value = _DECODE(text)
    # Decoding UTF-8 leaves no lone surrogate behind; only a \uD8.. escape can bring one in.
    return _scrubbed(value) if "\\ud" in text or "\\uD" in text else value


def _scrubbed(value, top=True):
    """`value` with U+FFFD for every lone surrogate, but for the ids, which must not change.

    No file and no index can hold a lone surrogate, so none gets past this point; a message whose
    id has one is refused by `_sort`.
    """
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(item, top) for item in value]
    if isinstance(value, dict):
        return {scrub(key): item if top and key == "id" else _scrubbed(item, False) for key, item in value.items()}
    return value


def _reason(fault):
    """Why a line is no JSON, in words that repeat none of it."""
    if isinstance(fault, UnicodeDecodeError):
        return f"not UTF-8 at byte {fault.start}"
    if isinstance(fault, json.JSONDecodeError):
        return f"{fault.msg} at character {fault.pos}"
    if isinstance(fault, RecursionError):
        return "nested too deeply"
    return "a number or a value that cannot be held"


def _sort(value):
    """Which kind of message a JSON value is; None for a response, which nobody here waits for."""
    if not isinstance(value, dict):
        return Invalid(None, INVALID_REQUEST, "Invalid Request: a message is an object")
    method, params = value.get("method"), value.get("params")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    if "id" not in value:
        if isinstance(method, str):
            return Notification(method, params if isinstance(params, dict) else {})
        return Invalid(None, INVALID_REQUEST, "Invalid Request: neither an id nor a method that is a text")
    id_ = value["id"]
    if not is_id(id_):
        return Invalid(None, INVALID_REQUEST, "Invalid Request: id must be a short text or a number")
    if value.get("jsonrpc") != "2.0":
        return Invalid(id_, INVALID_REQUEST, 'Invalid Request: jsonrpc must be "2.0"')
    if not isinstance(method, str):
        return Invalid(id_, INVALID_REQUEST, "Invalid Request: method must be a text")
    if params is not None and not isinstance(params, dict):
        return Invalid(id_, INVALID_PARAMS, "Invalid params: params must be an object")
    return Request(id_, method, params or {})


def is_id(value):
    """True for what may be echoed: a text without lone surrogates, or a finite number (True is none)."""
    if isinstance(value, str):
        return len(value) <= MAX_ID and scrub(value) == value
    if isinstance(value, float):
        return value - value == 0
    return isinstance(value, int) and not isinstance(value, bool)


def result(id_, value):
    """The response that carries `value`."""
    return {"jsonrpc": "2.0", "id": id_, "result": value}


def error(id_, code, message, data=None):
    """The response that says what was wrong; `data` is left out when None."""
    fault = {"code": code, "message": message}
    if data is not None:
        fault["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": fault}


def notification(method, params):
    """A message that wants no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


# JSON allows these three inside a text, but line readers of several clients split on them.
_SPLITTERS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def encode(message):
    """One line: compact JSON in UTF-8 with its line end. ValueError when it holds NaN or infinity.

    Lone surrogates become U+FFFD: as an escape they make one client drop the line, and as bytes
    they end another client's session.
    """
    text = _ENCODE(message)
    for char, escape in _SPLITTERS:
        if char in text:
            text = text.replace(char, escape)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return scrub(text).encode("utf-8") + b"\n"
