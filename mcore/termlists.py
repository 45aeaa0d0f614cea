"""The lists of frequent terms inside the index: made from FTS5, added to, read. SQL of the store.

Every function works on the store's connection, inside its transactions. A term that has a list has every
card up to `lengths.last` on it and those added since in `recent`; any other term is asked of FTS5.
Counts are weighted: the first occurrence in the title counts as four, in the labels as two.
"""

import json
import zlib
from bisect import bisect_left
from collections import Counter
from itertools import pairwise

from mcore import postings
from mcore.pattern import Pattern
from mcore.record import namedtuple
from mcore.schema import CARDS_FTS

FIELD_WEIGHTS = {"title": 4, "labels": 2, "body": 1, "names": 1}
FEW_ROWS, MANY_ROWS = 64, 1000  # a term gets a list from here on in a small index, and in a large one
ROWS_SHARE, LARGE_SHARE = 16, 400  # between the two, and beyond them: one row in so many
SINGLES_UP_TO = 5000  # rows; in a larger index a single character tells little and its list costs much
RARE_ROWS = 2  # in a larger index, words that no more cards hold are no one's other form
NUMBERS_CHARS = 2_000_000  # of SQL's text of numbers are read at a time
MOST_ROWS = 1 << 27  # a larger row number is damage
DUE_ROWS, DUE_SHARE = 1000, 4  # rows added since, and one in so many of all: then lists are made anew

IS_WORD = "term > ''"  # a lone accent folds to the empty token, which FTS5 gives as NULL
BLOCK_TERMS = 1000  # tokens in one block of the vocabulary
ROWS_A_PART, MOST_PARTS = 5000, 64  # of the tokens of so many rows is a range made that is worked on apart

LAST_CHAR = "\U0010ffff"
_FIRST_UNSPACED = "\u2e80"
_WORDS = Pattern(r"[a-z]{3,24}")
# Every ending that a step of Porter's algorithm changes; most words that are no English have none.
_STEMMED = Pattern(r"[a-z]+(?:s|ed|ing|y|i|e|al|er|or|ic|nt|nce|ou|on|sm|ful|ll|bl|at|iz)")
_WEIGHT = "CASE col WHEN 'title' THEN 4 WHEN 'labels' THEN 2 ELSE 1 END"
_COUNT = "count(*) + 3 * max(col = 'title') + max(col = 'labels')"
_VIEWS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, cards_fts, row)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.places USING fts5vocab(main, cards_fts, instance)",
)


def open_views(connection):
    """Makes FTS5's views of its tokens: `words` a row per token, `places` one per occurrence."""
    for statement in _VIEWS:
        connection.execute(statement)


# ---- making --------------------------------------------------------------------------------------


Job = namedtuple("Job", "low high least rare last")
Job.__doc__ = """A range of tokens to be told of, `low` <= token < `high` (None: no end).

A token gets a list from `least` rows on, a stem when it is in over `rare`; `last` is the last row.
"""
Part = namedtuple("Part", "blocks lists stems")
Part.__doc__ = "What the tables vocabulary, lists and stems hold of a range: their rows."


def jobs(connection):
    """The Jobs whose Parts `make` takes: all tokens that FTS5 holds."""
    last, rows = connection.execute("SELECT coalesce(max(id), 0), count(*) FROM cards_fts_docsize").fetchone()
    rare = 0 if rows <= SINGLES_UP_TO else RARE_ROWS
    return [Job(low, high, _least(rows), rare, last) for low, high in _ranges(connection, rows)]


def _least(rows):
    """From how many rows on a term gets a list, of so many in all."""
    return max(FEW_ROWS, min(MANY_ROWS, rows // ROWS_SHARE), rows // LARGE_SHARE)


def make(connection, parts=None):
    """Makes the lists, the lengths of cards and the stems anew from what FTS5 holds.

    `parts`, an iterable of the Part of each of `jobs` in any order, may come from elsewhere.
    """
    open_views(connection)
    for table in ("lists", "recent", "lengths", "stems", "vocabulary"):
        connection.execute(f"DELETE FROM {table}")
    codes = length_codes(connection)
    last, rows = len(codes) - 1, connection.execute("SELECT count(*) FROM cards_fts_docsize").fetchone()[0]
    connection.execute("INSERT INTO lengths VALUES (?, ?)", (last, codes))
    for some in (part(connection, job) for job in jobs(connection)) if parts is None else parts:
        connection.executemany("INSERT INTO vocabulary VALUES (?, ?)", some.blocks)
        connection.executemany("INSERT INTO lists VALUES (?, ?, ?)", some.lists)
        connection.executemany("INSERT OR IGNORE INTO stems VALUES (?, ?)", some.stems)
    characters = Counter()
    if rows <= SINGLES_UP_TO:
        sql = "SELECT term, doc FROM temp.words WHERE term >= ?"
        for term, size in connection.execute(sql, (_FIRST_UNSPACED,)):
            characters[term[0]] += size
    for char, size in characters.items():
        if size >= _least(rows) and (counts := _counted_start(connection, char)):
            row = _list(char + "*", dict(sorted(counts.items())), last)
            connection.execute("INSERT INTO lists VALUES (?, ?, ?)", row)


def _ranges(connection, rows):
    """(low, high) of ranges of tokens that cost about as much as each other, all tokens together.

    The borders come from FTS5's own index of its pages; whatever stands there, no token is left out.
    """
    parts = min(MOST_PARTS, rows // ROWS_A_PART)
    borders = [None, None]
    if parts > 1:
        starts = sorted(bytes(term) for (term,) in connection.execute("SELECT term FROM cards_fts_idx"))
        chosen = {starts[len(starts) * at // parts][1:].decode("utf-8", "ignore") for at in range(1, parts) if starts}
        borders[1:1] = sorted(chosen - {""})
    return list(pairwise(borders))


def part(connection, job):
    """The Part of a Job. Writes nothing."""
    open_views(connection)
    found = connection.execute(
        f"SELECT term, doc FROM temp.words WHERE {IS_WORD} AND term >= ?" + (" AND term < ?" if job.high else ""),
        [border for border in (job.low or "", job.high) if border is not None],
    )
    blocks, told = [], []
    while some := found.fetchmany(BLOCK_TERMS):
        blocks.append((some[0][0], zlib.compress("\n".join([term for term, _ in some]).encode(), 1)))
        told += [row for row in some if row[1] >= job.least or row[1] > job.rare and "a" <= row[0] < "{"]
    counted = ((term, _counted(connection, term)) for term, size in told if size >= job.least)
    lists = [_list(term, counts, job.last) for term, counts in counted if counts]
    return Part(blocks, lists, _stems([term for term, _ in told]))


def _counted(connection, term):
    """doc -> weighted count of a token, docs ascending. One long text of numbers is three times cheaper than rows."""
    text = connection.execute("SELECT group_concat(doc) FROM temp.places WHERE term = ?", (term,)).fetchone()[0]
    counts = Counter()
    for numbers in _numbers(text):
        counts.update(numbers)
    for field in ("title", "labels"):
        extra = FIELD_WEIGHTS[field] - 1
        found = connection.execute("SELECT rowid FROM cards_fts WHERE cards_fts MATCH ?", (f'{field} : "{term}"',))
        for (doc,) in found:
            counts[doc] += extra
    return counts


def _numbers(text):
    """The numbers of a group_concat (None for none) as lists: a number takes ten times the memory of its text."""
    at, end = 0, len(text or "")
    while at < end:
        stop = text.find(",", at + NUMBERS_CHARS) if end - at > NUMBERS_CHARS else -1
        stop = end if stop < 0 else stop
        yield json.loads(f"[{text[at:stop]}]")
        at = stop + 1


def _counted_start(connection, char):
    """doc -> weighted count of a character: of the tokens that begin with it."""
    return _weighed(
        connection.execute(
            f"SELECT group_concat(doc * 8 + {_WEIGHT}) FROM temp.places WHERE term >= ? AND term < ?",
            (char, char + LAST_CHAR),
        ).fetchone()[0]
    )


def _weighed(text):
    """doc -> weighted count, of a number doc x 8 + field weight for each occurrence in a text."""
    counts, occurrences = {}, Counter()
    for numbers in _numbers(text):
        occurrences.update(numbers)
    get = counts.get
    for number, times in occurrences.items():
        doc = number >> 3
        counts[doc] = get(doc, 0) + times + (number & 7) - 1
    return counts


def _list(term, counts, last):
    """The row of `lists` for a term; the docs of `counts` ascend."""
    return term, len(counts), postings.pack(list(counts), counts.values(), last)


def _stems(words):
    """(stem, word) of those words that are not their own."""
    from mcore.stem import stem

    stems = ((stem(word), word) for word in words if len(word) < 25 and _STEMMED.fullmatch(word))
    return [(root, word) for root, word in stems if root != word]


# ---- adding --------------------------------------------------------------------------------------


def add(connection, cut):
    """Notes rows just added to cards_fts: (doc, title, labels, body, names) as they were stored there, text or UTF-8.

    A second, passing FTS5 table cuts them into the same tokens.
    """
    for name in ("fresh_places", "fresh"):  # what a transaction that failed left of them is no use
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
    connection.execute(CARDS_FTS.replace("cards_fts", "temp.fresh", 1))
    connection.execute("CREATE VIRTUAL TABLE temp.fresh_places USING fts5vocab(temp, fresh, instance)")
    connection.executemany("INSERT INTO temp.fresh (rowid, title, labels, body, names) VALUES (?, ?, ?, ?, ?)", cut)
    connection.execute(
        f"INSERT OR IGNORE INTO vocabulary SELECT DISTINCT term, NULL FROM temp.fresh_places WHERE {IS_WORD}"
    )
    if connection.execute("SELECT 1 FROM lists LIMIT 1").fetchone():
        for term in ("+term", "substr(term, 1, 1) || '*'"):  # without the +, FTS5 is asked for every listed term
            connection.execute(
                f"INSERT OR REPLACE INTO recent SELECT {term} AS listed, doc, {_COUNT} FROM temp.fresh_places "
                "WHERE listed IN (SELECT term FROM lists) GROUP BY listed, doc"
            )
    words = set()
    for _, *columns in cut:
        words.update(*(_WORDS.findall(text if isinstance(text, str) else text.decode()) for text in columns))
    connection.executemany("INSERT OR IGNORE INTO stems VALUES (?, ?)", _stems(words))


def due(connection):
    """Whether so many rows were added since the lists were made that asking FTS5 for them takes long."""
    total = connection.execute("SELECT coalesce(max(id), 0) FROM cards_fts_docsize").fetchone()[0]
    since = total - last_row(connection)
    return since > max(DUE_ROWS, total // DUE_SHARE)


def last_row(connection):
    """The last row of cards_fts that the lists know of; 0 without lists."""
    return connection.execute("SELECT coalesce(max(last), 0) FROM lengths").fetchone()[0]


# ---- checking ------------------------------------------------------------------------------------


def differences(connection):
    """What is otherwise in the lists, the lengths, the stems and the second record of the words than in FTS5.

    One text a sort; as slow as `make`. Raises DamagedList for a record that cannot be read at all.
    """
    open_views(connection)
    words = {term for (term,) in connection.execute(f"SELECT term FROM temp.words WHERE {IS_WORD}")}
    last = last_row(connection)
    told = connection.execute("SELECT term, size FROM lists").fetchall()
    stems = connection.execute("SELECT stem, word FROM stems").fetchall()
    wrong = {
        "words missing from the second record of the words": len(words - _recorded(connection)),
        "lists of frequent terms with other cards": sum(
            not _agrees(connection, term, size, words, last) for term, size in told
        ),
        "cards with another length": _wrong_lengths(connection, last),
        "stems that are not those of their words": sum(not _is_stem(root, word) for root, word in stems),
    }
    return [f"{what}: {count}" for what, count in wrong.items() if count]


def _recorded(connection):
    """Every token of the second record that a search finds there."""
    found = set()
    for first, block in connection.execute("SELECT first, block FROM vocabulary"):
        terms = [first] if block is None else _unpacked(block)
        found.update(terms if terms[0] == first else ())
    return found


def _agrees(connection, term, size, words, last):
    """Whether the list of a term has the cards and counts that FTS5 has; `words` are its tokens."""
    if not isinstance(term, str) or not (term in words or len(term) == 2 and term[1] == "*"):
        return False
    listed = {doc: count for doc, count in postings.each(read(connection, term)) if count}
    counts = _counted_start(connection, term[0]) if term not in words else _counted(connection, term)
    if size != len(listed) or listed != {doc: min(count, 255) for doc, count in counts.items() if doc <= last}:
        return False
    return dict(since(connection, term)) == {doc: count for doc, count in counts.items() if doc > last}


def _wrong_lengths(connection, last):
    codes, wrong = length_codes(connection), 0
    for doc, size in connection.execute("SELECT id, sz FROM cards_fts_docsize WHERE id <= ?", (last,)):
        wrong += codes[doc : doc + 1] != bytes([postings.length_code(sum(varints(size)))])
    return wrong


def _is_stem(root, word):
    from mcore.stem import stem

    return isinstance(word, str) and stem(word) == root


# ---- reading -------------------------------------------------------------------------------------


def sizes(connection, terms):
    """term -> number of rows that hold it, for the terms with a list."""
    found = dict(in_batches(connection, "SELECT term, size FROM lists WHERE term IN ({})", terms))
    if found:
        sql = "SELECT term, count(*) FROM recent WHERE term IN ({}) GROUP BY term"
        for term, size in in_batches(connection, sql, list(found)):
            found[term] += size
    return found


def read(connection, term):
    """The unpacked list of a term. Raises DamagedList."""
    return postings.unpack(connection.execute("SELECT docs FROM lists WHERE term = ?", (term,)).fetchone()[0])


def since(connection, term):
    """(doc, count) of the rows added since the lists were made."""
    return connection.execute("SELECT doc, count FROM recent WHERE term = ?", (term,)).fetchall()


def counted(connection, terms):
    """term -> {doc: weighted count} for terms without a list, those that the index holds."""
    open_views(connection)
    sql = f"SELECT term, group_concat(doc * 8 + {_WEIGHT}) FROM temp.places WHERE term IN ({{}}) GROUP BY term"
    return {term: _weighed(text) for term, text in in_batches(connection, sql, terms)}


def counted_start(connection, char):
    """{doc: weighted count} of the tokens that begin with a character."""
    open_views(connection)
    return _counted_start(connection, char)


def knows(connection, token, is_open):
    """Whether the second record of the full text's tokens has one (if `is_open`, one that begins so)."""
    last = token + LAST_CHAR if is_open else token
    if connection.execute("SELECT 1 FROM vocabulary WHERE first BETWEEN ? AND ? LIMIT 1", (token, last)).fetchone():
        return True
    try:
        terms = _block_before(connection, token)
    except postings.DamagedList:
        return True  # let the files say
    at = bisect_left(terms, token)
    return at < len(terms) and terms[at] <= last


def words_from(connection, start):
    """The tokens that begin with `start`, by the second record: a tenth of what asking FTS5 costs.

    Raises DamagedList.
    """
    sql = "SELECT first, block FROM vocabulary WHERE first >= ? AND first < ?"
    found = _block_before(connection, start)
    for first, block in connection.execute(sql, (start, start + LAST_CHAR)):
        found += [first] if block is None else _unpacked(block)
    return [term for term in found if term.startswith(start)]


def _block_before(connection, token):
    """The tokens of the last block that begins before a token."""
    sql = "SELECT block FROM vocabulary WHERE first < ? AND block IS NOT NULL ORDER BY first DESC LIMIT 1"
    row = connection.execute(sql, (token,)).fetchone()
    return _unpacked(row[0]) if row else []


def _unpacked(block):
    try:
        return zlib.decompress(block).decode().split("\n")
    except (zlib.error, UnicodeDecodeError, TypeError):
        raise postings.DamagedList("a block of words cannot be read") from None


def words_of(connection, stems):
    """stem -> the tokens with it other than itself."""
    found = {}
    for stem, word in in_batches(connection, "SELECT stem, word FROM stems WHERE stem IN ({})", stems):
        found.setdefault(stem, []).append(word)
    return found


def length_codes(connection):
    """A code for the length of every row from 0 on, those since the lists were made among them."""
    last, codes = connection.execute("SELECT last, codes FROM lengths").fetchone() or (0, b"\0")
    if not isinstance(codes, bytes):
        raise postings.DamagedList("the lengths of cards cannot be read")
    codes = bytearray(codes)
    for doc, size in connection.execute("SELECT id, sz FROM cards_fts_docsize WHERE id > ? ORDER BY id", (last,)):
        if doc > MOST_ROWS:
            raise postings.DamagedList(f"there is a row {doc} in the full text")
        codes.extend(bytes(max(0, doc + 1 - len(codes))))
        codes[doc] = postings.length_code(sum(varints(size)))
    return bytes(codes)


def row_count(connection):
    """How many rows cards_fts has, dead ones among them. Raises DamagedList when some are missing."""
    rows = connection.execute("SELECT count(*) FROM cards_fts_docsize").fetchone()[0]
    if rows < last_row(connection):
        raise postings.DamagedList("rows are missing from the full text")
    return rows


def mean_length(connection):
    """The tokens of a row on average."""
    rows, *tokens = totals(connection)
    return max(1.0, sum(tokens) / max(1, rows))


def totals(connection):
    """The number of rows, then of tokens in each column: FTS5 keeps them under id 1 of its data table."""
    record = connection.execute("SELECT block FROM cards_fts_data WHERE id = 1").fetchone()
    if record is None:
        raise postings.DamagedList("the full text has no totals")
    return varints(record[0]) or [0]


BATCH = 500  # below SQLite's limit of 999 variables in old builds


def in_batches(connection, sql, values, more=()):
    """Rows of a statement with `{}` for a list of values, asked in batches; `more` values follow the list."""
    values = list(values)
    for at in range(0, len(values), BATCH):
        part = values[at : at + BATCH]
        yield from connection.execute(sql.format(", ".join("?" * len(part))), [*part, *more])


def varints(block):
    """The numbers of a record in SQLite's variable-length form (seven bits a byte, high bit: more).

    Raises DamagedList.
    """
    if not isinstance(block, bytes):
        raise postings.DamagedList("the full text has a record without content")
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers
