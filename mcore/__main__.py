"""The program as a file: `python .../mcore/__main__.py ...`, which `memory setup` writes into
configurations, and `python -m mcore ...`."""

import os
import sys

# Started as a file, Python looks for modules in this folder first, where `tokenize` would hide the
# standard one; started with -m, in the working folder, which is anybody's.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from mcore.cli import entry  # noqa: E402

if __name__ == "__main__":
    entry()
