"""mcore.pattern: what is put off gives what is compiled at once."""

import re

from mcore.pattern import Characters, Pattern, runs_of
from mcore.tokenize import UNSPACED

RANGES = "a-f\u00e9\u4e00-\u9fffx-z\u3005\U00020000-\U0003ffff"


def test_a_pattern_does_what_a_compiled_one_does():
    late, now = Pattern(r"(\d+)-(\d+)"), re.compile(r"(\d+)-(\d+)")
    for text in ("1-2 and 30-40", "none"):
        assert late.findall(text) == now.findall(text) and late.sub("x", text) == now.sub("x", text)


def test_characters_are_those_of_the_character_class():
    for ranges in (RANGES, UNSPACED):
        characters, pattern = Characters(ranges), re.compile(f"[{ranges}]")
        for code in [*range(0x3400), *range(0x4DF0, 0x4E10), *range(0x9FF0, 0xAC10), *range(0xD700, 0x10000),
                     *range(0x1AFF0, 0x1B180), 0x1FFFF, 0x20000, 0x3FFFF, 0x40000]:  # fmt: skip
            assert (chr(code) in characters) == bool(pattern.match(chr(code))), hex(code)


def test_a_short_text_and_a_long_one_are_looked_through_alike():
    for text in ("", "gh", "gha", "\u4e00"):
        for longer in (text, text + "-" * 1000, "-" * 1000 + text):
            assert Characters(RANGES).any_in(longer) == bool(re.search(f"[{RANGES}]", longer))


def test_runs_are_those_of_the_character_class():
    for ranges in (RANGES, UNSPACED, "\0-\x1f", "b-\U0010ffff"):
        text = "".join(map(chr, [*range(0x3400), *range(0x4DF0, 0x4E10), *range(0xD700, 0x10000), 0x1FFFF, 0x20000]))
        assert re.findall(runs_of(ranges), text) == re.findall(f"[{ranges}]+", text)
