"""What the index knows of words: which cards hold them and how often, which begin alike, which share a stem."""

from mcore import termlists
from mcore.store.faults import guarded
from mcore.store.form import state_of
from mcore.store.probe import tokens_of

LONG_LISTS_BYTES = 16 << 20  # of unpacked lists kept in memory


class Words:
    """The words of one open index, as ranking, likeness and explanations ask for them. Part of its Store."""

    def __init__(self, connection, path):
        self.connection = connection
        self.path = path
        self._measures = (None, None)  # the state of the index, and what `measures` found then
        self._long_lists = {}  # term -> its unpacked list; emptied when the index changes

    def rows_in_index(self):
        """How many rows cards_fts has, dead ones among them: what rarity is measured against."""
        with guarded(self.path):
            return termlists.totals(self.connection)[0]

    def measures(self):
        """(rows of cards_fts with the dead ones, mean tokens of a row, a length code for every row)."""
        state = state_of(self.connection, self.path)
        if self._measures[0] != state:
            self._long_lists = {}
            with guarded(self.path):
                rows = termlists.row_count(self.connection)
                found = rows, termlists.mean_length(self.connection), termlists.length_codes(self.connection)
            self._measures = (state, found)
        return self._measures[1]

    def sizes(self, terms):
        """term -> number of rows that hold it, for the terms with a list of their own."""
        with guarded(self.path):
            return termlists.sizes(self.connection, terms)

    def read_list(self, term):
        """(the list of a term as `postings.unpack` gives it, [(doc, count)] of the rows since it was made).

        Long lists are kept: the same few hundred terms come again in query after query.
        """
        with guarded(self.path):
            unpacked = self._long_lists.get(term)
            if unpacked is None:
                unpacked = termlists.read(self.connection, term)
                if isinstance(unpacked, bytes):
                    self._keep(term, unpacked)
            return unpacked, termlists.since(self.connection, term)

    def _keep(self, term, unpacked):
        """Keeps a long list in memory, the oldest others only as far as there is room."""
        kept = self._long_lists
        while kept and (len(kept) + 1) * len(unpacked) > LONG_LISTS_BYTES:
            del kept[next(iter(kept))]
        if len(unpacked) <= LONG_LISTS_BYTES:
            kept[term] = unpacked

    def counted(self, terms):
        """term -> {doc: weighted count} for terms without a list."""
        with guarded(self.path):
            return termlists.counted(self.connection, terms)

    def held(self, terms):
        """Those of some tokens that the index holds, in their order."""
        listed = self.sizes(terms)
        rest = self.counted([term for term in terms if term not in listed])
        return [term for term in terms if term in listed or term in rest]

    def counted_start(self, char):
        """{doc: weighted count} of the tokens that begin with a character."""
        with guarded(self.path):
            return termlists.counted_start(self.connection, char)

    def of_stems(self, stems):
        """stem -> the words of the index with that stem, other than the stem itself."""
        with guarded(self.path):
            return termlists.words_of(self.connection, stems)

    def lengths(self, docs):
        """(doc -> tokens, mean tokens of a row), from FTS5's own records."""
        with guarded(self.path):
            sizes = termlists.in_batches(self.connection, "SELECT id, sz FROM cards_fts_docsize WHERE id IN ({})", docs)
            lengths = {doc: sum(termlists.varints(size)) for doc, size in sizes}
            return lengths, termlists.mean_length(self.connection)

    def starting(self, start):
        """The tokens that begin with `start`, some of cards that are gone among them."""
        with guarded(self.path):
            return termlists.words_from(self.connection, start)

    def knows_any(self, text):
        """Whether any token of a text, or a longer one that begins so, was ever in the full text, by the second
        record of its words."""
        with guarded(self.path):
            return any(
                termlists.knows(self.connection, token, len(token) > 1 or not token.isascii())
                for token in tokens_of(text)
            )
