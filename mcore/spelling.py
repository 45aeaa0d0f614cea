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
    ("our", "or", 2, ("", "s", "ed", "ing", "ful", "less", "able", "ably", "al", "ally", "ite", "ites")),
    ("tre", "ter", 2, ("", "s", "d")),
    ("bre", "ber", 2, ("", "s")),
    ("ogue", "og", 3, ("", "s")),
    ("fence", "fense", 2, ("", "s")),
    ("icence", "icense", 1, ("", "s", "d")),
    ("gramme", "gram", 2, ("", "s")),
    ("aemi", "emi", 2, ("a", "as", "c")),
)
_STARTS = (("grey", "gray"), ("artef", "artif"), ("haem", "hem"), ("paed", "ped"), ("foet", "fet"), ("sulph", "sulf"))
_WITHIN = (("oestr", "estr"), ("haemo", "hemo"))


def other_spellings(word):
    """What a lower-case word may be in the other spelling: none of them, one or a few."""
    found = []
    for length in range(2, min(len(word), 12)):
        for other, least in _by_ending().get(word[-length:], ()):
            if len(word) - length >= least:
                found.append(word[:-length] + other)
    for here, there in _both_ways(_STARTS):
        if word.startswith(here):
            found.append(there + word[len(here) :])
    for here, there in _both_ways(_WITHIN):
        if word.find(here) > 0:
            found.append(word.replace(here, there))
    return found


def _both_ways(pairs):
    return [*pairs, *((there, here) for here, there in pairs)]


@cache
def _by_ending():
    """ending -> [(the other one, the fewest letters before)]"""
    table = {}
    for british, american, least, rests in _ENDINGS:
        for here, there in _both_ways([(british, american)]):
            for rest in rests:
                table.setdefault(here + rest, []).append((there + rest, least))
    return table
