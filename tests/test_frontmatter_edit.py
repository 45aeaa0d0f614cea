"""mcore.frontmatter.edit: one field changes, every other character stays."""

import pytest

from mcore.frontmatter import parse
from mcore.frontmatter.edit import edited

MARK = {"forgotten_at": "2026-12-01T00:00:00Z"}
NOTES = {
    "plain": "---\ntitle: a\nodd:   'k'  # why\n---\n\nbody\n",
    "no block": "body only",
    "empty": "",
    "blank first": "\n\n# body",
    "dos": "\ufeff---\r\ntitle: a\r\nKind: tool\r\n---\r\nbody\r\n",
    "old mac": "---\rtitle: a\r---\rbody\r",
    "toml": '+++\ntitle = "x"\n\n[extra]\na = 1\n+++\nbody',
    "json fence": '---\n{\n  "title": "x"\n}\n---\nb',
    "json": '{"title": "x"}\nbody',
    "dots": "---\ntitle: a\n...\nbody",
    "block scalar": "---\ntitle: >\n  long\n  text\n# a comment\naliases: [a,\n b]\n---\nb",
    "dash at the key": "---\ntags:\n- a\n- b\nx: 1\n---\nb",
    "bad yaml": "---\nglobs: **/*.ts\ntitle: a: b\n---\nb",
    "indented": "---\n  title: a\n  tags: [x]\n---\nb",
    "twice": "---\ntitle: a\ntitle: b\n---\nb",
    "undecodable": "---\ntitle: a\n---\nb \udcff",
    "comment only": "---\n# nothing\n---\nb",
}


@pytest.mark.parametrize("name", NOTES)
def test_a_field_set_and_taken_out_leaves_the_text_as_it_was(name):
    text = NOTES[name]
    marked = edited(text, MARK)
    assert parse(marked).fields == {**parse(text).fields, **MARK}
    assert edited(marked, dict.fromkeys(MARK)) == text


@pytest.mark.parametrize("name", NOTES)
def test_a_title_changes_alone(name):
    text = NOTES[name]
    changed = edited(text, {"title": '新: "题" #1'})
    assert parse(changed).fields == {**parse(text).fields, "title": '新: "题" #1'}
    assert parse(changed).body == parse(text).body
    assert edited(changed, {"title": '新: "题" #1'}) == changed


@pytest.mark.parametrize("name", NOTES)
def test_a_body_changes_alone_with_the_line_ends_of_the_note(name):
    text = NOTES[name]
    changed = edited(text, {}, "new\nbody")
    assert parse(changed).fields == parse(text).fields
    assert parse(changed).body.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n") == "new\nbody"
    assert ("\r\n" in changed) == ("\r\n" in text)


def test_lines_of_other_fields_are_kept_to_the_letter():
    text = "---\n# top\ntitle:   a\ntags:\n    - x\n    - y\nodd :  'k'\n---\nbody"
    assert edited(text, {"tags": ["p", "q r"], "confidence": 0.8, "pinned": True}) == (
        "---\n# top\ntitle:   a\ntags:\n    - p\n    - q r\nodd :  'k'\nconfidence: 0.8\npinned: true\n---\nbody"
    )


def test_a_key_is_found_in_any_case_and_an_equal_value_changes_nothing():
    assert edited("---\nTITLE: a\n---\nb", {"title": "neu"}) == "---\nTITLE: neu\n---\nb"
    text = "---\ntags: [ a,b ]\n---\nb"
    assert edited(text, {"tags": ["a", "b"]}) == text
