"""Each line that keeps a promise, taken out in a copy of the program: some test must fail.

    python bench/faults/safety_lines.py [--only WORDS] [--list]

A line survives when a test fails without it and passes with it; the first one that does is named. A line that is not
found (the code was changed) is lost too, and so is one whose tests still pass. Needs pytest. `--only` takes the lines
whose name holds one of the words (with commas). Status 1 when one is lost.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple

from harness import ROOT, Place, Tally

COPIED = ("mcore", "tests", "bench", "memory.py", "pyproject.toml", "README.md", "LICENSE")
SECONDS = 180  # for the tests of one line; what hangs without it is noticed too

Line = namedtuple("Line", "name file old new tests")
Line.__doc__ = """One line to take out: `old` stands in `file` and is exchanged for `new`; `tests` are what pytest is
given, in this order, until one fails."""

LINES = (
    Line(
        "sync of the card",
        "vault/writing.py",
        "            view = view[handle.write(view) :]\n        os.fsync(fd)",
        "            view = view[handle.write(view) :]",
        "test_faults.py -k power",
    ),
    Line(
        "sync of its folder",
        "vault/writing.py",
        "    sync_folder(folder)\n    return True",
        "    return True",
        "test_faults.py -k power",
    ),
    Line("sync of a new folder", "vault/writing.py", "    sync_folder(parent)\n", "", "test_faults.py -k power"),
    Line(
        "the name is claimed by a link",
        "vault/writing.py",
        "os.link(temp, target)",
        "os.replace(temp, target)",
        "test_vault.py test_concurrency.py",
    ),
    Line(
        "a claim without links",
        "vault/writing.py",
        "target, os.O_WRONLY | os.O_CREAT | os.O_EXCL",
        "target, os.O_WRONLY | os.O_CREAT",
        "test_vault.py",
    ),
    Line("lock while a name is chosen", "vault/writing.py", "fcntl.flock(fd, fcntl.LOCK_EX)", "pass", "test_vault.py"),
    Line(
        "lock of the index",
        "store/store.py",
        'self.connection.execute("BEGIN IMMEDIATE")',
        'self.connection.execute("BEGIN")',
        "test_store.py test_concurrency.py",
    ),
    Line(
        "patience with a lock",
        "store/faults.py",
        "BUSY_SECONDS = 30.0",
        "BUSY_SECONDS = 0.0",
        "test_store.py test_concurrency.py",
    ),
    Line(
        "all or nothing",
        "store/store.py",
        'self.connection.execute("ROLLBACK")',
        'self.connection.execute("COMMIT")',
        "test_store.py",
    ),
    Line(
        "late cards at once",
        "store/rebuilding.py",
        "late_rows(taken.lacking) if taken.lacking else ()",
        "()",
        "test_store.py test_importer.py",
    ),
    Line(
        "quoting of terms",
        "tokenize.py",
        """return '"' + phrase.replace('"', '""') + '"'""",
        "return phrase",
        "test_tokenize.py test_search.py",
    ),
    Line(
        "real path of a folder",
        "vault/writing.py",
        "if os.path.realpath(path) != os.path.normpath(os.path.join(os.path.realpath(root), folder)):",
        "if False:",
        "test_vault.py test_capture.py",
    ),
    Line(
        "nothing is made beyond a link",
        "vault/writing.py",
        "        _refuse_link(root, folder)  # before anything is made beyond it\n",
        "",
        "test_lifecycle_safety.py -k link",
    ),
    Line(
        "a path is the one it is found by",
        "store/store.py",
        "if any(id != same for id, _, _, same in rows):",
        "if False:",
        "test_confirm.py -k flipped",
    ),
    Line(
        "real path of a card that is shown",
        "show.py",
        "if not vault.is_inside(os.path.realpath(path), os.path.realpath(root)):",
        "if False:",
        "test_show.py",
    ),
    Line("inside means below", "vault/names.py", "root.rstrip(os.sep) + os.sep", "root", "test_vault.py"),
    Line("no link is opened", "vault/reading.py", 'getattr(os, "O_NOFOLLOW", 0)', "0", "test_vault.py"),
    Line("no pipe blocks", "vault/reading.py", 'getattr(os, "O_NONBLOCK", 0)', "0", "test_vault.py"),
    Line(
        "escapes for a terminal",
        "render.py",
        'return _TERMINAL.sub("\\ufffd", scrub(text).replace("\\r\\n", "\\n"))',
        "return scrub(text)",
        "test_render.py test_cli.py",
    ),
    Line(
        "a name cannot forge a line",
        "render.py",
        'return _BREAKS.sub("\\ufffd", text)',
        "return text",
        "test_render.py test_cli.py",
    ),
    Line(
        "half characters leave no stream",
        "render.py",
        'return _LONE.sub("\\ufffd", text)',
        "return text",
        "test_render.py test_cli.py",
    ),
    Line("no credential in a file name", "capture.py", "secretscan.redact(title)", "title", "test_capture.py"),
    Line(
        "no credential in an error",
        "cli.py",
        "redact(error.message), redact(error.why), redact(error.hint)",
        "error.message, error.why, error.hint",
        "test_cli.py -k credential",
    ),
    Line(
        "the data root is one's own",
        "store/opening.py",
        "os.makedirs(folder, mode=0o700",
        "os.makedirs(folder, mode=0o755",
        "test_store.py",
    ),
    Line(
        "the index is one's own",
        "store/opening.py",
        "os.O_RDWR | os.O_CREAT, 0o600",
        "os.O_RDWR | os.O_CREAT, 0o644",
        "test_store.py",
    ),
    Line(
        "an empty answer is confirmed",
        "search/searcher.py",
        "doubtful = is_doubtful(self.store, self.indexer.files, ask.terms, hits)",
        "doubtful = False",
        "test_confirm.py",
    ),
    Line(
        "no card's name for the index",
        "store/opening.py",
        "if path.casefold().endswith(CARD_SUFFIXES):",
        "if False:",
        "test_store.py",
    ),
    Line(
        "counts outlive a repair",
        "importer/rebuild.py",
        "_restore_salvaged(store, cards, stats)\n",
        "pass\n",
        "test_importer.py",
    ),
)


def copy_of_program(folder):
    for name in COPIED:
        source = os.path.join(ROOT, name)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)


def without(line, folder):
    """(the first test that fails without a line or "", faults), in a copy of the program."""
    path = os.path.join(folder, "mcore", line.file)
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    if text.count(line.old) != 1:
        return "", [f"it stands {text.count(line.old)} times in {line.file}"]
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text.replace(line.old, line.new))
    files, _, words = line.tests.partition(" -k ")
    chosen = [os.path.join("tests", name) for name in files.split()] + (["-k", words] if words else [])
    try:
        ended = tested(folder, chosen)
    except subprocess.TimeoutExpired:
        return "a test that hangs", []
    finally:
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", ended.stdout, re.M)
    if ended.returncode == 1 and failed:
        name = failed[1].removeprefix("tests/")
        return name, [] if tested(folder, [failed[1]]).returncode == 0 else [f"{name} fails with the line, too"]
    return "", [
        f"no test failed in {line.tests}" if ended.returncode == 0 else ended.stdout[-300:] + ended.stderr[-300:]
    ]


def tested(folder, chosen):
    """How pytest ended in a copy of the program."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *chosen]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)


def main(argv=None):
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", metavar="WORDS", help="words of names, with commas")
    options.add_argument("--list", action="store_true", help="name the lines and try none")
    options = options.parse_args(argv)
    lines = [line for line in LINES if any(word in line.name for word in options.only.split(","))]
    if options.list:
        print("\n".join(f"{line.name} ({line.file})" for line in lines))
        return 0
    tally = Tally()
    with Place() as place:
        copy_of_program(place.folder)
        for line in lines:
            failed, faults = without(line, place.folder)
            if tally.trial(line.name, faults):
                print(f"{line.name}: {failed} fails", flush=True)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
