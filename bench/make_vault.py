"""Writes a synthetic vault of any size by resampling the sentences of bench/vault.

    python bench/make_vault.py OUT --cards N [--seed S]

The same N and seed give the same bytes. Rare new words (identifiers, numbers, names) come from an
open-ended power law, so that the vocabulary goes on growing with N as it does in real notes.
"""

import argparse
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mcore.card import KIND_FOLDERS
from mcore.cardfile import new_card_text, read_card

BANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vault")
CARDS_A_FOLDER = 1000
_SENTENCE = re.compile(r"[^。！？\n]+[。！？]?")


def load_bank(folder=BANK):
    """[(kind, tags, sentences)] of every card in the bank."""
    bank = []
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".md"):
                with open(os.path.join(base, name), encoding="utf-8") as handle:
                    card = read_card(f"{os.path.basename(base)}/{name}", handle.read())
                sentences = [s.strip() for s in _SENTENCE.findall(card.body) if len(s.strip()) > 8]
                if sentences:
                    bank.append((card.kind, card.tags, sentences))
    return bank


def rare_word(rng):
    """A word that few cards share: an identifier, a number or a made-up name (Pareto, shape 1)."""
    n = int(rng.paretovariate(1.0) * 40)
    return rng.choice(("svc-{}", "get_item_{}", "Node{}Handler", "{}", "任务{}号", "v{}.2"))[:].format(n)


def make_card(rng, bank, number):
    """(kind, title, tags, body) of one card: mostly sentences of two cards, the rest from anywhere."""
    kind, tags, first = rng.choice(bank)
    second = rng.choice(bank)[2]
    count = max(2, int(rng.lognormvariate(2.6, 0.6)))
    pieces = []
    for _ in range(count):
        source = rng.choice((first, first, second, rng.choice(bank)[2]))
        sentence = rng.choice(source)
        if rng.random() < 0.5:
            at = rng.randrange(len(sentence))
            sentence = f"{sentence[:at]} {rare_word(rng)} {sentence[at:]}"
        pieces.append(sentence)
    title = re.sub(r"[#*`|>]", "", rng.choice(first))[:40].strip() or "card"
    return kind, f"{title} {number}", tags, "\n\n".join(pieces)


def write_vault(out, cards, seed):
    """Writes the vault; `out` must not exist or be empty."""
    if os.path.isdir(out) and os.listdir(out):
        raise SystemExit(f"{out} is not empty")
    rng, bank = random.Random(seed), load_bank()
    kinds = list(KIND_FOLDERS)
    for number in range(cards):
        kind, title, tags, body = make_card(rng, bank, number)
        kind = kind if kind in KIND_FOLDERS else rng.choice(kinds)
        folder = os.path.join(out, KIND_FOLDERS[kind], f"{number // CARDS_A_FOLDER:04}")
        os.makedirs(folder, exist_ok=True)
        text = new_card_text(title, kind, "synthetic", tags, "2026-01-01T00:00:00Z", body)
        with open(os.path.join(folder, f"card-{number}.md"), "w", encoding="utf-8", newline="") as handle:
            handle.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    write_vault(args.out, args.cards, args.seed)


if __name__ == "__main__":
    main()
