"""Words that are a slip of one or two characters away from another. Pure."""


def nearest(word, words, limit):
    """At most `limit` of `words` that are at most `slips_in` the word away from it, the nearest first."""
    most, chars, found = slips_in(word), set(word), []
    for other in words:
        # A slip takes one character away and brings one in at most, so most words are ruled out at once.
        if abs(len(other) - len(word)) <= most and len(chars.symmetric_difference(other)) <= 2 * most and other != word:
            distance = slips(word, other, most)
            if distance <= most:
                found.append((distance, other[:1] != word[:1], abs(len(other) - len(word)), other))
    return [other for *_, other in sorted(found)[:limit]]


def slips_in(word):
    """How many slips a word of this length may hold: 1, from five characters on 2."""
    return 1 if len(word) < 5 else 2


def slips(left, right, most):
    """How many characters were put in, left out, changed or swapped with the next; more than `most` is `most` + 1.

    The optimal string alignment distance: no part is edited twice.
    """
    if abs(len(left) - len(right)) > most:
        return most + 1
    before, row = [], list(range(len(right) + 1))
    for at, char in enumerate(left, 1):
        before, last, row = row, before, [at]
        for there, other in enumerate(right, 1):
            cost = min(before[there] + 1, row[there - 1] + 1, before[there - 1] + (char != other))
            if at > 1 and there > 1 and char == right[there - 2] and left[at - 2] == other:
                cost = min(cost, last[there - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
