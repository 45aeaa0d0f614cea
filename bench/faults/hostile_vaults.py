"""Fifty hostile vaults of 2,000 cards: how many nasty files came out right, and which did not.

    python bench/faults/hostile_vaults.py [--seeds 1-50] [--cards 2000]

A file survives when the word in it is found, or the file is named with its reason, or it is rightly left
out (tests/hostile_vault.py says which is due). Prints one line a seed and one in all; status 1 when one is lost.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests")]

from hostile_vault import build, survey  # noqa: E402

from mcore.app import App  # noqa: E402


def run_seed(seed, cards, huge=False):
    """(files tried, [(Item, why)] lost, seconds) of one vault, in a data root that is removed again."""
    folder = tempfile.mkdtemp(prefix="hostile-")
    os.environ["MEMORY_AGENT_HOME"] = os.path.join(folder, "home")
    app = App(vault=os.path.join(folder, "vault"))
    started = time.monotonic()
    try:
        outcome = survey(app, build(os.path.join(folder, "vault"), seed, cards, huge))
    finally:
        app.close()
        shutil.rmtree(folder, ignore_errors=True)
    return outcome.tried, outcome.lost, time.monotonic() - started


def main(argv=None):
    parser = argparse.ArgumentParser(description="Hostile vaults: tried, survived, lost.")
    parser.add_argument("--seeds", default="1-50", help="one number or FIRST-LAST")
    parser.add_argument("--cards", type=int, default=2000)
    parser.add_argument("--huge", action="store_true", help="a card of 50 MB in each")
    options = parser.parse_args(argv)
    first, _, last = options.seeds.partition("-")
    tried_in_all = lost_in_all = 0
    for seed in range(int(first), int(last or first) + 1):
        tried, lost, seconds = run_seed(seed, options.cards, options.huge)
        tried_in_all, lost_in_all = tried_in_all + tried, lost_in_all + len(lost)
        survived = tried - len(lost)
        print(f"seed {seed}: tried {tried}, survived {survived}, lost {len(lost)} ({seconds:.1f} s)", flush=True)
        for item, why in lost:
            print(f"  {ascii(item.path)} ({item.kind}): {ascii(why)}")
    print(f"tried {tried_in_all}, survived {tried_in_all - lost_in_all}, lost {lost_in_all}")
    return 1 if lost_in_all else 0


if __name__ == "__main__":
    sys.exit(main())
