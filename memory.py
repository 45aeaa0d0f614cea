"""`python memory.py ...` from a checkout does what the installed command `memory` does."""

from mcore.cli import entry

if __name__ == "__main__":
    entry()
