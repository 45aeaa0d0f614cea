"""A date as people write it -> seconds since 1970 UTC. Pure, and nothing here raises.

Read are forms of which every reader makes the same day. `1/5/2024` is none of them, nor is a month or a
year alone: as an end it may mean the first day or the last.
"""

from mcore.pattern import Pattern

_CLOCK = (
    r"(?=[0-9]{1,2}:|[0-9]{4})([0-9]{1,2}):?([0-9]{2})(?::?([0-9]{2})(?:[.,]([0-9]{1,18}))?)?"
    r"(?:[ \t]*([ap])\.?m\.?)?"
)
_ZONE = r"[ \t]*(?:z|(?:utc|gmt)?(?:([-+])([0-9]{1,2})(?::?([0-9]{2}))?)?)"
_DATE = Pattern(
    r"([0-9]{4})(?:-([0-9]{1,2})-([0-9]{1,2})|/([0-9]{1,2})/([0-9]{1,2})|\.[ ]?([0-9]{1,2})\.[ ]?([0-9]{1,2})\.?"
    rf"|([0-9]{{2}})([0-9]{{2}}))(?:(?:t|,?[ \t]+)(?:{_CLOCK}){_ZONE})?"
)
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?,?[ \t]+)?"
_TIME = rf"(?:(?:,?[ \t]+(?:at[ \t]+)?|t){_CLOCK}{_ZONE})?"
# `5 January 2024`, `Jan 5, 2024`, and what `date` and `ctime` print: `Fri Jan  5 10:30:15 UTC 2024`.
_NAMED = (
    (Pattern(rf"{_WEEKDAY}{_DAY}[ \t-]+(?:of[ \t]+)?([a-z]{{3,9}})\.?[ \t,-]+([0-9]{{4}}){_TIME}"), (3, 2, 1)),
    (Pattern(rf"{_WEEKDAY}([a-z]{{3,9}})\.?[ \t]+{_DAY}(?:,[ \t]*|[ \t]+)([0-9]{{4}}){_TIME}"), (3, 1, 2)),
)
_PRINTED = Pattern(
    rf"{_WEEKDAY}([a-z]{{3,9}})[ \t]+([0-9]{{1,2}})[ \t]+{_CLOCK}(?:[ \t]+(?:utc|gmt))?[ \t]+([0-9]{{4}}){_ZONE}"
)
_EPOCH = Pattern(r"[0-9]{10}(?:[0-9]{3})?")
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_OF = {name: at for at, month in enumerate(_MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MAX_CHARS = 60
# Chinese, Japanese and Korean signs, as the ASCII that stands for them.
_SIGNS = (
    (Pattern(r"\s*[年년月월]\s*"), "-"),
    (Pattern(r"\s*[日号號일]\s*"), " "),
    (Pattern(r"\s*(?:[时時点點시]|[分분](?=\s*[0-9]))\s*"), ":"),
    (Pattern(r"\s*[分분秒초]$"), ""),
)


def timestamp(value):
    """Seconds since 1970-01-01 UTC as a float, or None for what is no time or no date of the calendar.

    Reads `2024-01-05`, `2024/1/5`, `2024.1.5`, `20240105`, `2024年1月5日`, `2024년 1월 5일`, `5 January 2024` and
    `Jan 5, 2024`, alone or with a clock (`T` or a space, `10:30`, `10:30:15.25`, `10:30 PM`, `10点30分`) and a zone
    (`Z`, `UTC`, `+08:00`, `+0800`, `+08`); without a zone it is UTC. Epochs have 10 digits (seconds) or 13
    (milliseconds). Full-width signs are the usual ones.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if 0 <= value < 10**13 else ""
    if not isinstance(value, str) or len(value) > _MAX_CHARS:
        return None
    text = _plain(value)
    if _EPOCH.fullmatch(text):
        return float(text) if len(text) == 10 else int(text) / 1000
    found = _DATE.fullmatch(text)
    if found:
        year, *parts = found.group(*range(1, 10))
        month, day = (int(part) for part in parts if part)
        return _seconds(int(year), month, day, found.groups()[9:])
    return _named(text)


def _plain(value):
    """A date's text in lower case and ASCII signs."""
    text = value.strip().lower()
    if text.isascii():
        return text
    import unicodedata

    text = unicodedata.normalize("NFKC", text)
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    return text.strip()


def _named(text):
    """Seconds of a date with the name of its month, or None."""
    for pattern, order in _NAMED:
        found = pattern.fullmatch(text)
        if found:
            year, month, day = (found[at] for at in order)
            return _seconds(int(year), _MONTH_OF.get(month, 0), int(day), found.groups()[3:])
    found = _PRINTED.fullmatch(text)
    if not found:
        return None
    month, day, *clock, year, sign, zone_hour, zone_minute = found.groups()
    return _seconds(int(year), _MONTH_OF.get(month, 0), int(day), (*clock, sign, zone_hour, zone_minute))


def _seconds(year, month, day, clock):
    days, of_day = _days(year, month, day), _clock(*clock)
    return None if days is None or of_day is None else days * 86400 + of_day


def _days(year, month, day):
    """Days from 1970-01-01 to a date of the Gregorian calendar, None if there is no such day."""
    if year < 1 or not 1 <= month <= 12:
        return None
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _MONTH_DAYS[month - 1] + (is_leap and month == 2):
        return None
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400
    in_year = sum(_MONTH_DAYS[: month - 1]) + (is_leap and month > 2) + day - 1
    return before * 365 + leap_days + in_year - 719_162


def _clock(hour, minute, second, fraction, half, sign, zone_hour, zone_minute):
    """Seconds since midnight UTC as a float, from texts or None; None for a part out of range."""
    hour, minute, second = int(hour or 0), int(minute or 0), int(second or 0)
    zone_hour, zone_minute = int(zone_hour or 0), int(zone_minute or 0)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    if max(hour, zone_hour) > 23 or max(minute, second, zone_minute) > 59:
        return None
    shift = zone_hour * 3600 + zone_minute * 60
    local = hour * 3600 + minute * 60 + second + float(f"0.{fraction or 0}")
    return local + shift if sign == "-" else local - shift
