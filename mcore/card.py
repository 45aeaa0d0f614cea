"""What a card is: kinds and their folders, title -> portable file name, content hash.

Pure: no disk, no SQL, no clock.
"""

import re
import unicodedata

from mcore.pattern import Pattern
from mcore.record import namedtuple

KIND_FOLDERS = {
    "system": "00-System",
    "project": "02-Projects",
    "knowledge": "03-Knowledge",
    "content": "04-Content",
    "prompt": "05-Prompts",
    "business": "06-Business",
    "tool": "07-Tools",
    "mistake": "08-Mistakes",
}
FOLDER_KINDS = {folder.casefold(): kind for kind, folder in KIND_FOLDERS.items()}
DEFAULT_KIND = "knowledge"

# Case matters: `NOTE.MDX` is not what any tool writes, `README.MD` is what Windows users have.
CARD_SUFFIXES = (".md", ".markdown", ".mdc", ".mdx", ".MD")

# Names that say nothing by themselves: such a card is called after its folder (312 of 86,001 real
# notes have neither a frontmatter title nor an H1 and one of these names).
GENERIC_STEMS = {"readme", "index", "_index", "skill", "claude", "agents", "memory"}

# A title stands in every hit, so it has to end somewhere: a heading may be the first line of a text
# without line ends, frontmatter may hold anything.
MAX_TITLE_CHARS = 10_000
MAX_HEADING_CHARS = 300

# 255 bytes is the limit of most file systems; ecryptfs allows 143, and "-12345.md" must still fit.
MAX_STEM_BYTES = 130

Card = namedtuple(
    "Card", "title kind source tags aliases created updated priority ttl fields body labels warnings life"
)
Card.__doc__ = """One card as read from its text.

`fields` is the whole frontmatter, `labels` the searchable words beside title and body (tags,
aliases, the file's own name, other frontmatter text), `warnings` a list of (line, message), `life`
when and where the card holds (see `validity`).
"""

_FORBIDDEN = Pattern(r'[<>:"/\\|?*\s]')
_RESERVED = Pattern(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9])$")


def content_hash(data):
    """16 bytes that name the content of a file (BLAKE2b); equal for equal bytes."""
    return _blake2b(data, 16).digest()


def revision_of(digest):
    """How a content hash is named to people and in calls: 16 hex digits."""
    return digest[:8].hex()


def _blake2b(data, size):
    import hashlib  # 4 ms of OpenSSL that a search of unchanged files does not need

    return hashlib.blake2b(data, digest_size=size)


def folder_kind(rel_path):
    """The kind that the first known kind folder of a path stands for, else the default kind."""
    for part in rel_path.split("/")[:-1]:
        kind = FOLDER_KINDS.get(part.casefold())
        if kind:
            return kind
    return DEFAULT_KIND


def file_stem(title):
    """A file name without suffix for a title: portable, never empty, equal for equal titles.

    Letters, digits and most signs stay (Chinese is kept as it is); white space and what Windows
    forbids become "-"; invisible characters go. At most MAX_STEM_BYTES bytes, cut between
    characters. A title without a letter, digit or symbol is named by a hash of itself.
    """
    text = unicodedata.normalize("NFC", title)
    text = "".join("-" if _FORBIDDEN.match(c) else c for c in text if not _invisible(c))
    text = re.sub("-{2,}", "-", text).strip(" .-~")
    text = _cut(text, MAX_STEM_BYTES)
    if not any(unicodedata.category(c)[0] in "LN" or unicodedata.category(c) == "So" for c in text):
        return "card-" + _blake2b(title.encode("utf-8", "surrogatepass"), 4).hexdigest()
    return "_" + text if is_reserved(text) else text


def is_reserved(name):
    """Whether Windows keeps a file name for a device, whatever its suffix (`nul.txt`)."""
    first = unicodedata.normalize("NFKC", name.split(".")[0]).rstrip(" ").casefold()
    return _RESERVED.match(first) is not None


def _invisible(char):
    """Control, format, surrogate, private and unassigned characters have no place in a name.

    White space among them (tab, newline) is left for the "-" rule.
    """
    return not char.isspace() and unicodedata.category(char)[0] == "C"


def _cut(text, limit):
    """The longest start of `text` within `limit` UTF-8 bytes that ends between whole characters."""
    if len(text.encode()) <= limit:
        return text
    text = text.encode()[:limit].decode("utf-8", "ignore")
    while text and unicodedata.combining(text[-1]):
        text = text[:-1]
    return text.rstrip(" .-~")


def name_key(name):
    """What two names share when macOS or Windows would take them for one file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def path_title(rel_path):
    """The title of a card that has none in its text: its file name, or its folder's for a README."""
    parts = rel_path.split("/")
    stem = os_stem(parts[-1])
    if stem.casefold() in GENERIC_STEMS and len(parts) > 1:
        return parts[-2]
    return stem


def os_stem(name):
    """A file name without its card suffix."""
    for suffix in CARD_SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


_FENCE = Pattern(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_H1 = Pattern(r" {0,3}#[ \t]+(?=[^ \t])")
_SETEXT = Pattern(r" {0,3}=+[ \t]*$")


def first_heading(body, limit=200):
    """The first level-1 heading outside code fences among the first `limit` lines, or "".

    At most MAX_HEADING_CHARS of it.
    """
    fence, before = None, ""
    for number, line in enumerate(body.split("\n")):
        if number >= limit:
            break
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence, before = mark[1], ""
            continue
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = None
            continue
        start = _H1.match(line)
        heading = _heading_text(line[start.end() :]) if start else ""
        if heading:
            return heading[:MAX_HEADING_CHARS]
        if _SETEXT.match(line) and before.strip() and not before.startswith("    "):
            return before.strip()[:MAX_HEADING_CHARS]
        before = line
    return ""


def _heading_text(text):
    """A heading without its closing signs, which stand apart: `Title ##` is Title, `C#` is C#."""
    text = text.rstrip(" \t")
    closed = text.rstrip("#")
    return closed.rstrip(" \t") if not closed or closed[-1] in " \t" else text
