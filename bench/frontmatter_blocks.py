"""How many real frontmatter blocks read as they should.

    python bench/frontmatter_blocks.py BLOCKS.jsonl.gz

One JSON object a line: `block` (the text between the `---` lines), `ok` (whether PyYAML's pure
SafeLoader accepts it) and `value` (what it gives, as JSON; dates as ISO text). A block counts as
equal when its fields are PyYAML's value under the choices of mcore.frontmatter: scalars keep their
written text, null list items are dropped. Of a block PyYAML refuses, every key at the margin must
be read, and a plain one-line value must be there word for word. Exit 1 on any mismatch.
"""

import gzip
import json
import os
import re
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mcore.frontmatter import parse, tags, timestamp

# How YAML 1.1 tells a plain number, time or truth from text (yaml.org/type).
INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(:[0-5]?[0-9])*)")
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([Tt]|[ \t]+)?.*")
TRUTH = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
NULLS = (None, "", "~", "null", "Null", "NULL")

READABLE = re.compile(r"([^\W\d][\w .-]*?)[ \t]*:(?:[ \t]+(.*)|$)")
OPENS_TEXT = re.compile(r"[|>\[{\"'#&*!%@`-]")


def is_same(ours, theirs):
    """Whether a field's value is PyYAML's `theirs`, read from the text we keep."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and not differing(ours, theirs)
    if isinstance(theirs, list):
        kept = [item for item in theirs if item is not None]
        return isinstance(ours, list) and len(ours) == len(kept) and all(map(is_same, ours, kept))
    if theirs is None:
        return ours is None
    if isinstance(theirs, bool):
        return ours is theirs or (isinstance(ours, str) and TRUTH.get(ours.lower()) is theirs)
    if not isinstance(ours, str):
        return False
    if isinstance(theirs, int):
        return bool(INTEGER.fullmatch(ours)) and integer(ours) == theirs
    if isinstance(theirs, float):
        return floating(ours) == theirs
    return ours == theirs or (bool(DATE.fullmatch(ours)) and timestamp(ours) == timestamp(theirs) is not None)


def differing(ours, theirs):
    """The keys that are on one side only or have another value; the key `on` is PyYAML's true."""
    ours = {key if key in theirs else typed_key(key): item for key, item in ours.items()}
    theirs = {key.lower() if key in ("True", "False") else key: item for key, item in theirs.items()}
    shared = {key for key in ours if key in theirs and is_same(ours[key], theirs[key])}
    return [key for key in {**ours, **theirs} if key not in shared]


def typed_key(key):
    return str(TRUTH[key.lower()]).lower() if key.lower() in TRUTH else key


def integer(text):
    digits = text.replace("_", "")
    if ":" in digits:
        total = 0
        for part in digits.lstrip("+-").split(":"):
            total = total * 60 + int(part)
        return -total if digits[0] == "-" else total
    if re.fullmatch(r"[-+]?0[0-7]+", digits):
        return int(digits, 8)
    return int(digits, 0 if "x" in digits or "b" in digits else 10)


def floating(text):
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return None


def readable(block):
    """(key, its one-line plain value or None) of the lines at the margin that read as `key: value`."""
    lines = block.splitlines()
    for number, line in enumerate(lines):
        found = READABLE.fullmatch(line)
        if not found:
            continue
        value = (found.group(2) or "").strip(" \t")
        is_alone = number + 1 == len(lines) or bool(READABLE.fullmatch(lines[number + 1]))
        is_plain = value and not OPENS_TEXT.match(value) and " #" not in value and value.lower() not in TRUTH
        yield found.group(1), value if is_plain and is_alone and value not in NULLS else None


def main(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    equal = accepted = keys = read_keys = 0
    mismatches = []
    spent = 0.0
    for row in rows:
        started = time.perf_counter()
        note = parse(f"---\n{row['block']}---\nbody\n")
        spent += time.perf_counter() - started
        tags(note.fields)
        where = f"{row.get('repo')} {row.get('path')}"
        if note.style is None or note.body != "body\n":
            mismatches.append((where, "the block is lost", row["block"]))
        elif row["ok"]:
            accepted += 1
            theirs = row["value"] or {}
            wrong = differing(note.fields, theirs)
            equal += not wrong
            for key in wrong:
                mismatches.append((where, key, f"{note.fields.get(key)!r} is not {theirs.get(key)!r}"))
        else:
            for key, value in readable(row["block"]):
                keys += 1
                is_read = key in note.fields and value in (None, note.fields[key])
                read_keys += is_read
                if not is_read:
                    mismatches.append((where, key, f"{note.fields.get(key)!r} is not {value!r}"))
    print(f"accepted by PyYAML: {accepted} blocks, {equal} equal")
    print(f"refused by PyYAML: {len(rows) - accepted} blocks, {read_keys} of {keys} readable keys read")
    print(f"{len(rows)} blocks in {spent:.2f} s")
    for where, key, what in mismatches:
        print(f"MISMATCH {where}: {key}: {what}")
    return 1 if mismatches else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] else 2)
    sys.exit(main(sys.argv[1]))
