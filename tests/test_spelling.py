"""British and American spellings meet, both ways round."""

import pytest

from mcore.spelling import other_spellings

PAIRS = [
    ("initialise", "initialize"), ("authorisation", "authorization"), ("serialiser", "serializer"),
    ("customisable", "customizable"), ("analysed", "analyzed"), ("colour", "color"), ("behaviours", "behaviors"),
    ("favourite", "favorite"), ("neighbourhood", "neighborhood"), ("labourer", "laborer"), ("centre", "center"),
    ("centred", "centered"), ("centring", "centering"), ("catalogued", "cataloged"), ("practise", "practice"),
    ("licenced", "licensed"), ("judgement", "judgment"), ("ageing", "aging"), ("greyscale", "grayscale"),
    ("manoeuvre", "maneuver"), ("oedema", "edema"), ("anaesthesia", "anesthesia"), ("orthopaedic", "orthopedic"),
    ("fibres", "fibers"), ("catalogue", "catalog"),
    ("licence", "license"), ("defence", "defense"), ("programme", "program"), ("grey", "gray"),
    ("artefacts", "artifacts"), ("leukaemia", "leukemia"), ("ischaemic", "ischemic"), ("haematology", "hematology"),
    ("paediatric", "pediatric"), ("foetal", "fetal"), ("antioestrogen", "antiestrogen"), ("sulphur", "sulfur"),
]  # fmt: skip


@pytest.mark.parametrize("british, american", PAIRS)
def test_each_spelling_gives_the_other(british, american):
    assert american in other_spellings(british)
    assert british in other_spellings(american)


@pytest.mark.parametrize("word", ["for", "four", "or", "hour", "rise", "size", "redis", "", "a", "is", "our"])
def test_other_words_have_no_other_spelling(word):
    assert other_spellings(word) == []
