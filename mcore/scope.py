"""Where a card applies: global, project/<id> or domain/<id>. A filter, not a permission. Pure.

Spellings of one name are one scope: case, width, spaces and `_` do not matter. A card's scope is its
frontmatter `scope`, else that of the folder it lies in (config.json `scopes`), else global.
"""

import unicodedata

from mcore.pattern import Pattern

GLOBAL = "global"
ALL = "all"  # asked for by name, every scope is searched
FORMS = "global, project/<id> or domain/<id>"
MAX_SCOPE_CHARS = 200

_SCOPE = Pattern(r"(project|domain)/([^/].*)")
# `project:shop`, `Projects/shop`, `proj shop`, `项目/商城`: near misses, never taken for the scope itself.
_LOOSE = Pattern(r"(?:(proj(?:ects?)?|prj|项目|項目|专案|專案)|domains?|领域|領域)[\s:/\\|.#_-]+([^\s:/\\|.#_-].*)")
_GAPS = Pattern(r"[\s_]+")
_ODD = Pattern(r"[\x00-\x1f\x7f]")


def normalized(text):
    """The one spelling of a scope, or None when `text` has none of the three forms."""
    if not isinstance(text, str) or len(text) > MAX_SCOPE_CHARS or _ODD.search(text):
        return None
    folded = unicodedata.normalize("NFKC", text).strip().casefold()
    folded = "/".join(_GAPS.sub("-", part.strip()) for part in folded.split("/")).rstrip("/")
    if folded == GLOBAL:
        return GLOBAL
    return folded if _SCOPE.fullmatch(folded) else None


def asked(text, known):
    """The scope that a caller means: `text` itself, or the one known scope with that id; None for neither.

    `known` are the scopes of the vault. "all" is every scope.
    """
    bare = normalized(f"project/{text}")
    if bare == f"project/{ALL}":
        return ALL
    found = normalized(text)
    if found or bare is None:
        return found
    matches = [scope for scope in known if scope.partition("/")[2] == bare.partition("/")[2]]
    return matches[0] if len(matches) == 1 else None


def meant(text):
    """The scope that a text which is none may be meant for: `project:shop` and `shop` for project/shop; or None."""
    folded = unicodedata.normalize("NFKC", text).strip().casefold()
    loose = _LOOSE.fullmatch(folded)
    if loose:
        return normalized(f"{'project' if loose[1] else 'domain'}/{loose[2]}")
    return None if any(sign in folded for sign in "/:\\") else normalized(f"project/{folded}")


def nearest(text, known, limit=3):
    """Known scopes with an id that looks like that of `text`, nearest first."""
    import difflib

    wanted = normalized(text) or meant(text) or _GAPS.sub("-", text.strip().casefold())[:MAX_SCOPE_CHARS]
    by_id = {}
    for scope in known:
        if scope != normalized(text) and "/" in scope:
            by_id.setdefault(scope.partition("/")[2], []).append(scope)
    near = difflib.get_close_matches(wanted.partition("/")[2] or wanted, by_id, limit, 0.6)
    return [scope for id in near for scope in by_id[id]][:limit]


def folder_ranges(scopes):
    """(scope, first, end) of the rel_paths below each mapped folder: first <= rel_path < end.

    `scopes` maps a scope to its folders; a deeper folder comes before the one it lies in.
    """
    ranges = []
    for name, folders in scopes.items():
        for folder in folders:
            start = folder.replace("\\", "/").strip("/") + "/"
            ranges.append((normalized(name), start, start[:-1] + "0"))  # "0" is the character after "/"
    return sorted(ranges, key=lambda entry: (-entry[1].count("/"), entry[1]))
