"""British and American spellings of English words. Pure.

Both stand side by side in one vault (`initialise` and `initialization`, `colour` and `color`), and their stems
differ. The regular pairs are here, among them those of medicine; what they make of a word need not be one, so ask
only for what the vault has.
"""

from functools import cache

# British, American, the fewest letters before, and what may follow up to the end of the word.
_ENDINGS = (
    ("is", "iz", 3, ("e", "es", "ed", "er", "ers", "ing", "ation", "ations", "ational", "able")),
    ("ys", "yz", 2, ("e", "es", "ed", "er", "ers", "ing")),
    ("our", "or", 2, ("", "s", "ed", "er", "ers", "ing", "ful", "less", "able", "al", "ally", "ite", "ites", "hood")),
    ("tr", "ter", 2, ("ed", "ing")),
    ("tre", "ter", 2, ("", "s")),
    ("bre", "ber", 2, ("", "s")),
    ("ogu", "og", 3, ("ed", "ing")),
    ("ogue", "og", 3, ("", "s")),
    ("fence", "fense", 2, ("", "s")),
    ("icenc", "icens", 1, ("e", "es", "ed", "ing")),
    ("ctis", "ctic", 2, ("e", "es", "ed", "ing")),
    ("dgement", "dgment", 2, ("", "s")),
    ("geing", "ging", 1, ("",)),
    ("gramme", "gram", 2, ("", "s")),
    ("aemi", "emi", 2, ("a", "as", "c")),
)
_PARTS = (
    ("grey", "gray"), ("artef", "artif"), ("manoeuvre", "maneuver"), ("sulph", "sulf"), ("haem", "hem"),
    ("paed", "ped"), ("foet", "fet"), ("oestr", "estr"), ("oedem", "edem"), ("oesoph", "esoph"), ("gynaec", "gynec"),
    ("faec", "fec"), ("aesth", "esth"), ("archae", "arche"), ("rrhoe", "rrhe"),
)  # fmt: skip


def other_spellings(word):
    """What a lower-case word may be in the other spelling: none of them, one or a few."""
    endings, longest = _by_ending()
    found = [
        word[:-length] + other
        for length in range(2, min(len(word), longest + 1))
        for other, least in endings.get(word[-length:], ())
        if len(word) - length >= least
    ]
    found += [word.replace(british, american) for british, american in _PARTS if british in word]
    return found + [word.replace(american, british) for british, american in _PARTS if american in word]


@cache
def _by_ending():
    """(ending -> [(the other one, the fewest letters before)], the length of the longest)"""
    table = {}
    for british, american, least, rests in _ENDINGS:
        for rest in rests:
            table.setdefault(british + rest, []).append((american + rest, least))
            table.setdefault(american + rest, []).append((british + rest, least))
    return table, max(map(len, table))
