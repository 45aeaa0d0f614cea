"""What fits into so many characters, and what was left out. Pure.

A card goes in whole or not at all. In the compact view it is shortened to whole sentences: the first
one that is no heading, those that hold a word asked for, and every one that says how sure the card is.
A sentence that qualifies is never cut: without its "probably" a guess reads like a fact.
"""

import re

from mcore.record import namedtuple
from mcore.snippet import mark

SHORT_CHARS = 240  # of a body that is not shortened
SENTENCE_CHARS = 240  # a longer sentence is cut here, unless it qualifies
COMPACT_SENTENCES = 4  # beside those that qualify

Block = namedtuple("Block", "key text")
Packed = namedtuple("Packed", "blocks left_out")
Packed.__doc__ = """`blocks` that fit, in order; `left_out` (key, characters it would need) of the others."""

# What says how sure a sentence is, or when it does not hold.
_QUALIFIER = re.compile(
    r"\b(?:probabl[ey]|likely|unlikely|maybe|perhaps|possibl[ey]|might|seems?|appears?|apparently|presumabl[ey]|"
    r"suspect(?:ed)?|assum(?:e|ed|ing|ption)|guess(?:ed)?|unsure|uncertain|unverified|unconfirmed|untested|tentative|"
    r"rumou?r|estimated?|unless|only if|only when|deprecated|obsolete|no longer|not sure|not certain|not yet)\b|"
    "可能|也许|或许|大概|估计|推测|猜测|似乎|好像|疑似|不确定|未确认|未验证|待确认|待验证|暂定|除非|仅当|"
    "已废弃|已過時|已过时|尚未|據說|据说|听说|應該|应该|未必|不一定|存疑",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r".*?(?:[.!?](?=\s)|[。！？；]|\n|\Z)", re.DOTALL)


def pack(blocks, max_chars, joint=2):
    """The Packed of blocks taken in their order, each whole, with `joint` characters between two."""
    taken, left_out, used = [], [], 0
    for block in blocks:
        need = len(block.text) + (joint if taken else 0)
        if used + need <= max_chars:
            taken.append(block)
            used += need
        else:
            left_out.append((block.key, len(block.text)))
    return Packed(taken, left_out)


def compact(body, terms=()):
    """The sentences of `body` that say the most, in their order; "…" stands where some are left out."""
    sentences = [" ".join(part.split()) for part in _SENTENCE.findall(body)]
    sentences = [sentence for sentence in sentences if sentence.strip("#-*>=|` ")]
    if len(body) <= SHORT_CHARS:
        return " ".join(sentences)
    opening = next((sentence for sentence in sentences if not sentence.startswith("#")), None)
    plain, out, gap = 0, [], False
    for sentence in sentences:
        qualifies = bool(_QUALIFIER.search(sentence))
        wanted = sentence is opening or bool(terms) and mark(sentence, terms) != sentence
        if not qualifies and (not wanted or plain >= COMPACT_SENTENCES):
            gap = True
            continue
        plain += not qualifies
        if not qualifies and len(sentence) > SENTENCE_CHARS:
            sentence = sentence[:SENTENCE_CHARS].rstrip() + "…"
        out.append("… " + sentence if gap else sentence)
        gap = False
    return " ".join(out) + (" …" if gap else "")
