"""The text of a card file -> Card, and back. Pure: no disk, no SQL, no clock."""

from mcore import frontmatter, validity
from mcore.card import MAX_TITLE_CHARS, Card, first_heading, folder_kind, name_key, os_stem, path_title


def read_card(rel_path, text):
    """The Card that a file's text holds; `rel_path` gives what the text does not say. Never raises.

    Title: frontmatter `title`, else the first H1, else the file name. Kind: frontmatter `kind`, else
    the folder.
    """
    document = frontmatter.parse(text)
    fields = document.fields
    by_name = {name.casefold(): value for name, value in reversed(fields.items())}  # of two spellings the first

    def line(*names):
        """The first of these fields that says something, on one line."""
        for name in names:
            value = one_line(by_name.get(name))
            if value:
                return value
        return ""

    title = line("title")[:MAX_TITLE_CHARS] or one_line(first_heading(document.body)) or path_title(rel_path)
    tags = frontmatter.tags(fields)
    aliases = frontmatter.text_list(by_name.get("aliases") or by_name.get("alias"))
    return Card(
        title=title,
        kind=line("kind").casefold() or folder_kind(rel_path),
        source=line("source"),
        tags=tags,
        aliases=aliases,
        created=line("created", "date") or None,
        updated=line("updated", "lastmod") or None,
        priority=line("priority") or None,
        ttl=line("ttl") or None,
        fields=fields,
        body=document.body,
        labels=_labels(rel_path, title, tags, fields),
        warnings=document.warnings,
        life=validity.read(by_name),
    )


def _labels(rel_path, title, tags, fields):
    """The searchable words beside title and body (aliases among them), one a line."""
    lines = list(tags)
    stem = os_stem(rel_path.rsplit("/", 1)[-1])
    if name_key(stem) != name_key(title):
        lines.append(stem)
    extra = frontmatter.searchable(fields)
    return "\n".join([*lines, extra] if extra else lines)


def one_line(value):
    """A frontmatter value as one line of text; a list of one stands for its item, other lists and maps have none."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list):
        return one_line(value[0])
    return "" if value is None or isinstance(value, (list, dict)) else str(value)


def new_card_text(title, kind, source, tags, created, body, extra=None):
    """The text of a card that capture writes; it ends with a line end as text files do."""
    fields = {"title": title, "kind": kind}
    if source:
        fields["source"] = source
    fields["tags"] = list(tags)
    fields["created"] = created
    fields.update(extra or {})
    return frontmatter.compose(fields, body if body.endswith("\n") else body + "\n")
