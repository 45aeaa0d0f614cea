"""Which id a card keeps when files changed, moved or swapped their names. Pure: no disk, no SQL."""


def assign_ids(digests, old, removed):
    """rel_path -> the id it keeps, for files with new content or a new name.

    `digests` maps the files' paths to their content hashes, `old` the replaced or removed index rows'
    paths to (id, content_hash), `removed` the old paths that no file has any more. A file with its old
    content keeps its id; any other takes that of a removed card with its content (a move); if its path
    was indexed, that of any old card with its content (a swap), else its own.
    """
    ids = {path: old[path][0] for path, digest in digests.items() if path in old and old[path][1] == digest}
    kept = set(ids)
    moved, replaced = {}, {}  # content -> the ids to give away, last path first; equal files keep their order
    for path in sorted(old, reverse=True):
        if path not in kept:
            id, digest = old[path]
            (moved if path in removed else replaced).setdefault(digest, []).append(id)
    for path in sorted(digests):
        pool = moved.get(digests[path]) or (path in old and replaced.get(digests[path]))
        if pool and path not in kept:
            ids[path] = pool.pop()
    taken = set(ids.values())
    for path in digests:
        if path not in ids and path in old and old[path][0] not in taken:
            ids[path] = old[path][0]
    return ids


def moved_paths(ids, old):
    """Old rel_path -> new, for the ids whose path changed; `ids` are what `assign_ids` made of `old`."""
    old_paths = {id: path for path, (id, _) in old.items()}
    return {old_paths[id]: path for path, id in ids.items() if old_paths[id] != path}
