"""The SQL tables, a comment per column, and the history of the schema. Pure text.

Everything here can be computed again from the vault except `card_stats`, so a change of version
means: keep `card_stats`, drop the rest, index again.

version 1: first.
version 2: folders; when and where a card holds (scope to notes); lists of cards for frequent terms, stems.
version 3: vocabulary.
version 4: cards_linked, cards_titled.
version 5: dates and lengths of time are read in more forms (validity); marks left out of Greek, Cyrillic,
Hebrew and Arabic words, words of Vietnamese whole (tokenize).
"""

VERSION = 5
APPLICATION_ID = 0x6D656D61  # "mema": tells our file from another program's SQLite database

PLAIN = ("cards", "unreadable", "folders", "meta", "lists", "recent", "lengths", "stems", "vocabulary")
TABLES = (*PLAIN, "cards_fts", "card_stats")

# unicode61 cuts at `-`, `_`, `.`, `/`; the mark categories are added because vowel signs of Thai,
# Burmese and the Indic scripts are part of words. Contentless: the text is not stored a second time
# (stored, the index was 2.2 times the Markdown). A row cannot be taken out of such a table without its
# old text, which is gone when a card was edited; so a changed card gets a new row, no card points to
# the old one any more, and `index` builds anew once dead rows are more than a few in a hundred.
CARDS_FTS = (
    "CREATE VIRTUAL TABLE cards_fts USING fts5("
    "title, labels, body, names, content='', "
    "tokenize=\"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\")"
)

DERIVED = """
CREATE TABLE cards (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- for a conversation; kept across rebuilds and moves
    doc INTEGER NOT NULL UNIQUE,           -- its row in cards_fts; never used twice
    rel_path TEXT NOT NULL UNIQUE,         -- with "/", the address that lasts
    raw_name BLOB,                         -- the real name where rel_path cannot hold it (not UTF-8)
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    tags TEXT NOT NULL,                    -- JSON list
    priority TEXT,                         -- as written
    ttl TEXT,                              -- as written
    created TEXT,                          -- as written
    updated TEXT,                          -- as written
    length INTEGER NOT NULL,               -- characters of the body
    content_hash BLOB NOT NULL,            -- of the file's bytes: moves and unchanged files
    size INTEGER NOT NULL,                 -- size, mtime_ns, ctime_ns, inode: the file's stamp
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    racy INTEGER NOT NULL,                 -- 1: changed so shortly before it was read that the clock
                                           --    may not tell a later edit; read again next time
    remark TEXT NOT NULL,                  -- what could not be decoded, or ""
    indexed_at TEXT NOT NULL,              -- UTC
    scope TEXT,                            -- its own, NULL for that of its folder
    mark TEXT NOT NULL,                    -- forgotten, retracted or ""
    valid_from REAL,                       -- seconds since 1970 UTC; NULL: always
    valid_to REAL,                         -- the same, `ttl` counted in; NULL: for ever
    review_by REAL,
    pinned INTEGER NOT NULL,
    confidence TEXT,                       -- as written
    links TEXT,                            -- JSON [[target as written, wrong], ...], NULL for none
    notes TEXT NOT NULL,                   -- a line for each of these that could not be read
    closed_at REAL,                        -- when a newer card began to supersede it
    closed_by TEXT,                        -- rel_path of that card
    special INTEGER NOT NULL,              -- 1: any of scope to closed_by is set (cards_special)
    embedding BLOB                         -- reserved
);
CREATE INDEX cards_special             -- holds all that a search asks of special cards: no row is read
    ON cards (doc, scope, mark, valid_from, valid_to, closed_at, special, rel_path) WHERE special = 1;
CREATE INDEX cards_closed ON cards (closed_by) WHERE closed_by IS NOT NULL;
CREATE INDEX cards_linked ON cards (rel_path) WHERE links IS NOT NULL;
CREATE INDEX cards_titled ON cards (title COLLATE NOCASE);
CREATE TABLE unreadable (
    rel_path TEXT PRIMARY KEY,             -- a card file that could not be read as text
    reason TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL
);
CREATE TABLE folders (
    prefix TEXT PRIMARY KEY,               -- a folder with cards: its rel_path with "/" at the end, "" for the vault
    digest INTEGER,                        -- of a listing in which nothing was new; NULL: to be compared
    files INTEGER NOT NULL                 -- how many card files that listing had
) WITHOUT ROWID;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,                  -- vault: the folder this index belongs to
    value TEXT NOT NULL
);
CREATE TABLE lists (
    term TEXT PRIMARY KEY,                 -- a token that many rows of cards_fts hold, or a character and "*"
    size INTEGER NOT NULL,                 -- how many rows hold it, up to lengths.last
    docs BLOB NOT NULL                     -- which ones and how often: mcore/postings.py
);
CREATE TABLE recent (
    term TEXT,                             -- the same for rows added since, of the terms in lists
    doc INTEGER,
    count INTEGER NOT NULL,
    PRIMARY KEY (term, doc)
) WITHOUT ROWID;
CREATE TABLE lengths (
    last INTEGER PRIMARY KEY,              -- the last row of cards_fts that lists know of
    codes BLOB NOT NULL                    -- a byte a row from 0 on: its length in tokens, in steps
);
CREATE TABLE stems (
    stem TEXT,                             -- of an English word
    word TEXT,                             -- a token with that stem, other than the stem itself
    PRIMARY KEY (stem, word)
) WITHOUT ROWID;
CREATE TABLE vocabulary (                  -- every token of cards_fts a second time: what neither has, no card holds
    first TEXT PRIMARY KEY,                -- a token
    block BLOB                             -- it and those after it, a line each, zlib; NULL: it alone
);
"""

KEPT = """
CREATE TABLE IF NOT EXISTS card_stats (
    rel_path TEXT PRIMARY KEY,             -- no second source: survives every rebuild
    read_count INTEGER NOT NULL,
    last_read_at TEXT NOT NULL             -- UTC
);
"""
