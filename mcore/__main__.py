"""`python -m mcore ...` does what the command `memory` does: for configurations that name an interpreter."""

from mcore.cli import entry

if __name__ == "__main__":
    entry()
