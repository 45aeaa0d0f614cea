"""When a card is true: what its frontmatter says, which card closes which, what is in force at a time. Pure.

A card is in force at T when it is neither forgotten nor retracted, `valid_from` <= T < `valid_to`, and
no newer card that `supersedes` it has begun. Every end is derived: the link stands in the newer card
alone. Times are seconds since 1970 UTC. A value that cannot be read as what it should be is left out and
named in `notes`: a card is never lost over a date.
"""

from mcore import scope as scopes
from mcore.card import os_stem
from mcore.frontmatter import boolean, text_list, timestamp
from mcore.pattern import Pattern
from mcore.record import namedtuple

CURRENT, EXPIRED, FUTURE = "current", "expired", "future"
SUPERSEDED, RETRACTED, FORGOTTEN = "superseded", "retracted", "forgotten"

Life = namedtuple(
    "Life", "scope valid_from valid_to ttl review_by supersedes retracts retracted forgotten pinned confidence notes"
)
Life.__doc__ = """What a card's frontmatter says of its life.

`scope` is None without one; the four times are seconds, `ttl` a length in seconds; `supersedes` and
`retracts` are links as written; `retracted` and `forgotten` are true or false; `notes` say what could
not be read.
"""
PLAIN = Life(None, None, None, None, None, (), (), False, False, False, None, ())

Link = namedtuple("Link", "path starts target wrong")
Link.__doc__ = """The card `path` closes the card `target` from `starts` on; with `wrong` it was never true."""
Closing = namedtuple("Closing", "path at wrong")

ALWAYS = -1e15  # before any date a card can hold: what was wrong was never in force

FIELDS = frozenset(
    "scope valid_from valid_to valid_until ttl expires review_by supersedes retracts retracted retracted_at "
    "forgotten forgotten_at pinned confidence".split()
)

_UNITS = {
    "s": 1, "sec": 1, "second": 1, "秒": 1, "秒钟": 1, "秒间": 1, "초": 1,
    "m": 60, "min": 60, "minute": 60, "分": 60, "分钟": 60, "分间": 60, "분": 60,
    "h": 3600, "hr": 3600, "hour": 3600, "小时": 3600, "时": 3600, "时间": 3600, "시간": 3600,
    "d": 86400, "day": 86400, "天": 86400, "日": 86400, "日间": 86400, "일": 86400,
    "w": 604800, "wk": 604800, "week": 604800,
    "周": 604800, "周间": 604800, "星期": 604800, "주": 604800, "주일": 604800,
    "mo": 2592000, "month": 2592000, "月": 2592000, "个月": 2592000, "个月间": 2592000, "달": 2592000, "개월": 2592000,
    "y": 31536000, "yr": 31536000, "year": 31536000, "年": 31536000, "年间": 31536000, "년": 31536000,
}  # fmt: skip
# Traditional and Japanese spellings, as the simplified ones above.
_SPELT = str.maketrans("週間時鐘個箇ヶヵケカか兩", "周间时钟个个个个个个个两")
_NUMERAL = "[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九半]"
_DIGITS = {char: at for at, char in enumerate("零一二三四五六七八九")} | {"两": 2, "半": 0.5}
_PART = Pattern(
    rf"([0-9]+(?:\.[0-9]+)?|{_NUMERAL})[ ]*([a-z]+|[^\W\d_a-z一二两三四五六七八九十半]*)[ ]*(?:(?:,|and\b)[ ]*)?"
)
_CAPITAL_M = Pattern(r"(?<=[0-9 ])M(?![A-Za-z])")  # months; taken for minutes, it would hide a card at once
_ISO = Pattern(
    r"p(?:([0-9]+)y)?(?:([0-9]+)m)?(?:([0-9]+)w)?(?:([0-9]+)d)?(?:t(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?)?"
)
_ISO_UNITS = (31536000, 2592000, 604800, 86400, 3600, 60, 1)
_OPEN = {"", "none", "null", "never", "forever", "永久", "永不"}
_NEVER = _OPEN | {"0", "permanent"}
_WIKILINK = Pattern(r"!?\[\[([^\]|#]+)(?:#[^\]|]*)?(?:\|[^\]]*)?\]\]")
_MARKDOWN_LINK = Pattern(r"\[[^\]]*\]\(<?([^)>]+)>?\)")


def read(by_name):
    """The Life in a card's fields, `by_name` being casefolded name -> value; PLAIN when there is none of it."""
    if FIELDS.isdisjoint(by_name):
        return PLAIN
    notes = []

    def time(*names):
        for name in names:
            value = _single(by_name.get(name))
            if value is None or isinstance(value, str) and is_left_open(value):
                continue
            seconds = timestamp(value)
            if seconds is not None:
                return seconds
            notes.append(f"{name} {_shown(value)} is no date, so it is not heeded")
        return None

    return Life(
        _scope(by_name.get("scope"), notes),
        time("valid_from"),
        time("valid_to", "valid_until", "expires"),
        _length(by_name.get("ttl"), notes),
        time("review_by"),
        _links(by_name.get("supersedes")),
        _links(by_name.get("retracts")),
        _is_set(by_name, "retracted", "retracted_at"),
        _is_set(by_name, "forgotten", "forgotten_at"),
        bool(boolean(by_name.get("pinned"))),
        _confidence(by_name.get("confidence")),
        tuple(notes),
    )


def _shown(value):
    return repr(value if isinstance(value, str) else str(value))[:80]


def _scope(value, notes):
    value = _single(value)
    if value in (None, ""):
        return None
    found = scopes.normalized(value)
    if found is None:
        notes.append(f"scope {_shown(value)} is not {scopes.FORMS}, so the card is global")
    return found


def is_left_open(text):
    """Whether a text says that there is no end: `never`, `永久`, nothing."""
    return text.strip().casefold() in _OPEN


def is_endless(ttl):
    """The same of a length of time, which may be `0` or `permanent` too."""
    return ttl.strip().casefold() in _NEVER


def _single(value):
    """The item of a list of one, which stands for itself; else the value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else None if value == [] else value


def _length(value, notes):
    value = _single(value)
    if value is None or isinstance(value, str) and is_endless(value):
        return None
    seconds = length(value)
    if seconds is None:
        notes.append(f"ttl {_shown(value)} is no length of time, so it is not heeded")
    return seconds


def length(text):
    """Seconds of a length of time: `30d`, `12 hours`, `2周`, `1h 30m`, `1M` (a month), `半年`, `P1M`, or `30` (days);
    None for none."""
    if not isinstance(text, str) or len(text) > 60:
        return None
    text = text.strip()
    if text[:1] not in ("P", "p"):
        text = _CAPITAL_M.sub("mo", text)
    text = text.casefold()
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFKC", text).translate(_SPELT)
    found = _ISO.fullmatch(text)
    if found and any(found.groups()):
        return float(sum(int(n or 0) * unit for n, unit in zip(found.groups(), _ISO_UNITS, strict=True)))
    return _sum_of_parts(text)


def _sum_of_parts(text):
    """Seconds of `1 week, 2 days`: numbers with a unit each; one number alone counts days."""
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if not part:
            return None
        number, unit = part.groups()
        if not unit and part.end() - at == len(text):
            unit = "d"
        if unit not in _UNITS and len(unit) > 2:
            unit = unit.removesuffix("s")
        if unit not in _UNITS:
            return None
        total += _amount(number) * _UNITS[unit]
        at = part.end()
    return total if at else None


def _amount(number):
    """The number written in digits or in Chinese numerals up to 99."""
    if number[0].isdecimal():
        return float(number)
    if "十" not in number:
        return _DIGITS[number]
    tens, _, ones = number.partition("十")
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)


def _links(value):
    """Links to cards as they are written: a path, `[[a wikilink]]` or `[text](path)`, one or a list."""
    links = []
    for text in text_list(value):
        found = _WIKILINK.fullmatch(text) or _MARKDOWN_LINK.fullmatch(text)
        link = (found[1] if found else text).strip().replace("\\", "/").removeprefix("./")
        if link:
            links.append(link)
    return tuple(dict.fromkeys(links))


def _is_set(by_name, *names):
    """Whether a mark is there: true, a date, a reason; `false`, `no` and nothing are no mark."""
    values = [by_name.get(name) for name in names]
    return any(value not in (None, "", [], {}) and boolean(value) is not False for value in values)


def _confidence(value):
    if value is None or isinstance(value, (list, dict)):
        return None
    return " ".join(str(value).split())[:60] or None


def interval(life, created, updated, changed):
    """(from, to) of a card by its own words; `created` and `updated` as written, `changed` in seconds.

    A `ttl` counts from the last time the card was confirmed (updated, created, else valid_from, else the
    file's own time); of two ends the earlier one holds.
    """
    start, end = life.valid_from, life.valid_to
    if life.ttl is not None:
        stamps = [seconds for seconds in (timestamp(updated), timestamp(created)) if seconds is not None]
        since = max(stamps) if stamps else start if start is not None else changed
        end = since + life.ttl if end is None else min(end, since + life.ttl)
    return start, end


def starts(valid_from, created, changed):
    """When a card begins to close the one it supersedes."""
    if valid_from is not None:
        return valid_from
    seconds = timestamp(created)
    return changed if seconds is None else seconds


def resolve(link, paths, by_name):
    """The rel_path that a link means: itself, with `.md`, else the only card of that file name; or None.

    `paths` holds every rel_path, `by_name` maps a casefolded file name without suffix to its rel_paths.
    """
    for path in (link, f"{link}.md"):
        if path in paths:
            return path
    stem = link.rsplit("/", 1)[-1].casefold().removesuffix(".md")
    found = by_name.get(stem, ())
    return found[0] if len(found) == 1 else None


def closings(links):
    """target -> Closing, for every card that a newer one closes: one successor each.

    The link that begins first wins (then the path that sorts first). What a wrong card closed is open
    again. A link by which cards would close each other in a ring is not heeded: one of them always stays.
    """
    closed = {}
    for link in sorted(links, key=lambda link: (not link.wrong, link.starts, link.path, link.target)):
        if link.target in closed or _leads_to(closed, link.path, link.target):
            continue
        if link.path in closed and closed[link.path].wrong:
            continue
        closed[link.target] = Closing(link.path, ALWAYS if link.wrong else link.starts, link.wrong)
    return closed


def link_faults(links, broken):
    """(path, sentence) for each link that leads nowhere, or is not heeded because another one holds.

    `links` are Links between cards that are there, `broken` (path, target as written) of the others.
    """
    closed = closings(links)
    faults = [(path, f"it supersedes {target!r}, and there is no such card") for path, target in broken]
    for link in links:
        if link.target not in closed:
            why = "itself is superseded by that or was never true"
        elif closed[link.target].path != link.path:
            why = f"{closed[link.target].path} does so already"
        else:
            continue
        faults.append((link.path, f"it supersedes {link.target}, and {why}"))
    return faults


def named(paths):
    """casefolded file name without suffix -> rel_paths, as `resolve` wants it."""
    by_name = {}
    for path in paths:
        by_name.setdefault(os_stem(path.rsplit("/", 1)[-1]).casefold(), []).append(path)
    return by_name


def _leads_to(closed, path, target):
    """Whether following successors from `path` comes to `target`."""
    while path != target:
        if path not in closed:
            return False
        path = closed[path].path
    return True


def end(valid_to, closed_at):
    """When a card ceases to hold: by its own words or when a newer one closes it, whichever is first; None: never."""
    return min((at for at in (valid_to, closed_at) if at is not None), default=None)


def state(at, mark, valid_from, valid_to, closed_at):
    """What a card is at the time `at`: current, future, expired, superseded, retracted or forgotten."""
    if mark:
        return mark
    if closed_at is not None and closed_at <= at:
        return RETRACTED if closed_at == ALWAYS else SUPERSEDED
    if valid_from is not None and valid_from > at:
        return FUTURE
    if valid_to is not None and valid_to <= at:
        return EXPIRED
    return CURRENT
