"""The stem of an English word, by Porter's algorithm of 1980. Pure.

Written from the published description ("An algorithm for suffix stripping", Program 14(3)), with the
two later changes its author put into his reference program (`bli`, `logi`), so that it agrees with
FTS5's own porter tokenizer. The index holds whole words; stems are only used to widen a query.
"""

# A word as a pattern of consonants (c) and vowels (v); its measure is the number of vc.
_STEP_2 = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("entli", "ent"),
    ("ousli", "ous"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("alli", "al"),
    ("ator", "ate"),
    ("logi", "log"),
    ("bli", "ble"),
    ("eli", "e"),
)
_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_STEP_4 = (
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ion",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "al",
    "er",
    "ic",
    "ou",
)


def stem(word):
    """The stem of a lower-case ASCII word; words of one or two letters are their own."""
    if len(word) < 3:
        return word
    word = _plural(word)
    word = _past(word)
    if word[-1] == "y" and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_STEP_2, _STEP_3):
        for ending, put in endings:
            if word.endswith(ending):
                if _measure(word[: -len(ending)]) > 0:
                    word = word[: -len(ending)] + put
                break
    return _last_e(_step_4(word))


def _plural(word):
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] != "s" else word


def _past(word):
    """Without -eed, -ed or -ing, and what that leaves put right (`hopping` -> `hop`)."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = 2 if word.endswith("ed") else 3 if word.endswith("ing") else 0
    if not ending or "v" not in _shape(word[:-ending]):
        return word
    word = word[:-ending]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    shape = _shape(word)
    if word[-1] == word[-2:-1] and shape[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _ends_cvc(word, shape) and shape.count("vc") == 1 else word


def _step_4(word):
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t"))):
                return rest
            return word
    return word


def _last_e(word):
    if word[-1] == "e":
        shape = _shape(word[:-1])
        measure = shape.count("vc")
        if measure > 1 or measure == 1 and not _ends_cvc(word[:-1], shape):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _shape(word):
    """`word` with c for each consonant and v for each vowel; y is a vowel after a consonant."""
    shape, before = [], "v"
    for char in word:
        before = "v" if char in "aeiou" or char == "y" and shape and before == "c" else "c"
        shape.append(before)
    return "".join(shape)


def _measure(word):
    return _shape(word).count("vc")


def _ends_cvc(word, shape):
    return shape.endswith("cvc") and word[-1] not in "wxy"
