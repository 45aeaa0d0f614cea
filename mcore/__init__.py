"""memory-agent. The map, in import order: a module imports only names above it.

words
    errors        what can go wrong: slug, exit code, hint
    card          kinds and their folders, title -> file name, content hash
pure text (no disk, no SQL, no clock)
    frontmatter   a card file's metadata block, both ways
    variants      characters that are one in simplified and traditional Chinese
    tokenize      pairs for scripts without spaces, query -> FTS5 expression
    stem          the stem of an English word (Porter)
    nearest       words that are a slip or two away from another
    postings      the cards of one frequent term as a compact blob, both ways
    snippet       the place that answers, as the note has it
    readtext      a page of a long text, and where the next begins
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
    clients       the configuration files of MCP clients
work (the rules)
    importer      vault -> store, incremental or rebuild
    ranking       the parts of a query, our own BM25 over their postings
    explain       how hits got their score; what the vault has instead of unknown words
    search        Searcher, Hit, the four tiers
    capture       write one card, index that card
    show          find one card, read its file, cut a page
    stats         totals and paths
    benchmark     a truth file measured, compared with a baseline, drafted
    connect       the command that starts this program; a client's change; the session hook
wiring
    app           opens paths, store once; every operation gets it
    ops           every operation; the list is in `ops/__init__.py`
doors
    mcp_server    a JSON-RPC line -> operation -> answer
    cli           argv -> operation -> answer
    __main__      `python -m mcore`
"""

__version__ = "0.1.0"
