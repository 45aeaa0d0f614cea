"""Several ranked lists into one. Pure.

Reciprocal rank fusion (Cormack, Clarke, Buettcher, SIGIR 2009): the score of a key is the sum of
1 / (K + rank) over the lists that hold it, ranks counted from 1. Scores of the lists need not compare.
"""

K = 60


def fuse(lists):
    """(key, score, number of the list that has it highest) for all keys, best first.

    `lists` hold keys, best first. Equal scores keep the order in which the keys first come up.
    """
    scores, best = {}, {}
    for number, keys in enumerate(lists):
        for rank, key in enumerate(keys, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
            if key not in best or rank < best[key][0]:
                best[key] = (rank, number)
    return [(key, scores[key], best[key][1]) for key in sorted(scores, key=lambda key: -scores[key])]
