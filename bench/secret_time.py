"""Seconds each secret rule needs on 1 MB of its own worst prefix, and the ratio for twice the input.

    python bench/secret_time.py [--quick]

For every rule many texts are built from its keywords, the characters its pattern may run over and an
ending that makes the match fail late; the slowest on 8,000 characters is then measured at full size.
Exit 1 when a rule needs more than 1 s for 1,000,000 characters or twice the text takes more than 2.5
times as long. CPU time, best of up to nine rounds: a busy machine makes single figures wrong by half,
which is also why the ratio is not judged where even twice the text takes less than half the limit.
`--quick` uses a tenth of the size and of the limit.
"""

import argparse
import itertools
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mcore.secretscan import RULES, rule_spans, scan, table_spans

RATIO = 2.5
TRIAL = 8_000
LEADS = ("", "_")
FILLERS = ("a", "A1", "1", ":", "-", "a1.", " ", "=", ": a1", "='a1", '="a1', "`", "/", "\n", "_a", "=b4-1.")
COUNTS = (1, 10, 200)
TAILS = ("", "\u4e2d", "!")


def fill(unit, size):
    return (unit * (size // len(unit) + 1))[:size]


def units(rule):
    """Texts to repeat: a keyword as the pattern spells it, what the pattern may run over, a late end."""
    # The keywords of a long list cost about the same each: first, shortest and longest stand for all.
    keywords = rule.keywords
    if len(keywords) > 7:
        keywords = dict.fromkeys((keywords[0], min(keywords, key=len), max(keywords, key=len)))
    plain = rule.pattern.replace("\\", "")
    for keyword in keywords:
        spelled = re.search(re.escape(keyword), plain, re.IGNORECASE)
        forms = (spelled[0],) if spelled else (keyword, keyword.upper())
        for form, lead, tail in itertools.product(forms, LEADS, TAILS):
            yield lead + form + tail
            for filler, count in itertools.product(FILLERS, COUNTS):
                yield lead + form + filler * count + tail


def once(work, text):
    start = time.process_time()
    work(text)
    return time.process_time() - start


def growth(work, unit, size, limit):
    """Best seconds for `size` and for twice as many characters, in rounds until both limits are kept."""
    single = double = float("inf")
    for _ in range(9):
        single = min(single, once(work, fill(unit, size)))
        double = min(double, once(work, fill(unit, 2 * size)))
        if single <= limit and double <= RATIO * single:
            break
    return single, double


def of_rule(rule):
    return lambda text: sum(1 for _ in rule_spans(rule, text, text.lower()))


def subjects():
    """(name, work, units of text) of every rule, of the table search and of the whole scan."""
    for rule in RULES:
        yield rule.kind, of_rule(rule), units(rule)
    row = "|password" * 100 + "|\n" + "|---" * 100 + "|\n"
    wide, tall = row + ("|a1" * 100 + "|\n") * 40, "|密码|\n|-|\n" + "|b4cdef|\n" * 99
    tables = (row, wide, tall, "|--\n", "|密码|\n|-|\n", "|-" * 60, "-" * 200 + "\n", "|")
    yield "markdown table", lambda text: sum(1 for _ in table_spans(text)), tables
    words = [keyword for rule in RULES for keyword in rule.keywords]
    dense = (":token", ":pwd1", "pass:", "pwd:r8_", "key:" * 9 + "a1B-", "atatt3sk\u79c1\u94a5\u4e3a -p")
    yield "whole scan", scan, (" ".join(words), "a1 ".join(words), "password=key-sk-eyJ.", "a", "\u4e2d", *dense)


def main(argv):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="a tenth of the text, a tenth of the time")
    size, limit = (100_000, 0.1) if options.parse_args(argv).quick else (1_000_000, 1.0)
    failed = []
    print(f"{'kind':22}{'s at ' + str(size):>14}{'s at 2 x':>10}{'ratio':>7}  slowest unit")
    for name, work, texts in subjects():
        ranked = sorted(((once(work, fill(unit, TRIAL)), unit) for unit in set(texts)), reverse=True)[:3]
        _, unit = max((once(work, fill(unit, size)), unit) for _, unit in ranked)
        single, double = growth(work, unit, size, limit)
        ratio = double / single
        wrong = single > limit or (ratio > RATIO and double > limit / 2)
        failed += [name] * wrong
        shown = repr(unit if len(unit) < 40 else unit[:24] + "..." + unit[-8:])
        figures = f"{name:22}{single:14.3f}{double:10.3f}{ratio:7.2f}"
        print(figures, shown + "  OVER" * wrong, sep="  ", flush=True)
    print("over the limits: " + ", ".join(failed) if failed else "all within the limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
