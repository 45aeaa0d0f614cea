"""memory-agent. The map, in import order: a module imports only names above it.

words
    record        named tuples that are cheap to define
    pattern       regular expressions that are compiled when first used
    errors        what can go wrong: slug, exit code, hint
    card          kinds and their folders, title -> file name, content hash
pure text (no disk, no SQL, no clock)
    portable      names that would not travel to another system
    hidden        characters that hide, reorder or control text
    frontmatter   a card file's metadata block, both ways, and single fields changed in place
    scope         where a card applies: spellings, folders, near misses
    validity      which card is in force at a time: intervals, supersede chains, TTL
    variants      characters that are one in simplified and traditional Chinese
    tokenize      pairs for scripts without spaces, query -> FTS5 expression
    plainscan     what a plain look through texts finds: the yardstick of the search
    stem          the stem of an English word (Porter)
    spelling      British and American spellings of an English word
    nearest       words that are a slip or two away from another
    postings      the cards of one frequent term as a compact blob, both ways
    snippet       the place that answers, as the note has it
    rerank        a closer look at the texts of the best cards: words in part, feedback
    readtext      a page of a long text, and where the next begins
    budget        what fits into so many characters, and what was left out
    fuse          several ranked lists into one (RRF)
    secretscan    kind and span of a credential, never its text
    cardfile      text of a card file <-> Card
    render        result tuple -> dict -> JSON; text that cannot drive a terminal
    quality       how good ranked answers are, what got worse between two measurements
    jsonrpc       one line in, one line out, no I/O
    operation     one record per operation -> checked arguments, JSON schema
    schema        the SQL tables with a comment per column
shells (one outside thing each)
    paths         flag > environment > config.json > default, and which one won
    vault         walk, read, atomically write card files; no SQL
    termlists     lists of cards for frequent terms beside FTS5; SQL of the store
    store         the SQLite file, every SQL statement; no card files
    archive       the file of a backup: packed, and read with trust in nothing
    clients       the configuration files of MCP clients
work (the rules)
    prepare       card files -> rows to store; many of them in helper processes
    changes       what differs between the files and the index
    importer      vault -> store, incremental or rebuild
    confirm       whether an empty answer is true: the files themselves are read
    ranking       the parts of a query, our own BM25 over their postings
    explain       how hits got their score; what the vault has instead of unknown words
    search        Searcher, Hit, the four tiers
    draft         what a caller gives for a card, checked
    similar       cards that share rare words with a new one
    capture       write one card, index that card
    show          find one card, read its file, cut a page
    history       former texts of a card, kept as Markdown in the vault
    revise        update, supersede, retract, forget, restore, purge
    context       the cards that answer, inside a budget
    stats         totals and paths
    benchmark     a truth file measured, compared with a baseline, drafted
    connect       the command that starts this program; a client's change; the session hook
    backup        vault, reading counts and settings into one archive, and back
    selftest      the search held against a plain scan of the files
    doctor        everything looked at, a cure named for each thing found
wiring
    app           opens paths, store once; every operation gets it
    ops           every operation; the list is in `ops/__init__.py`
doors
    mcp_server    a JSON-RPC line -> operation -> answer
    cli           argv -> operation -> answer
    __main__      `python -m mcore`
"""

__version__ = "0.1.0"
