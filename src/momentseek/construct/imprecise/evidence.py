"""What a corpus shows about each of its words: how often it is written like a name, and next to which words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from momentseek.construct.imprecise.tokens import WordToken, split_tokens
from momentseek.construct.imprecise.word_lists import ARTICLES, DETERMINERS, LOCATIVE_WORDS, PLURAL_TITLES, TITLES

SHOW_PATTERN = re.compile(r"(?:([a-z]+)_)?s\d\de\d\d")


@dataclass(slots=True)
class WordEvidence:
    """How often one word (in lower case) occurs in a corpus in the ways that tell names from other words."""

    inside: int = 0
    """Times it is capitalised within a sentence."""
    opening: int = 0
    """Times it is capitalised where a sentence begins, which says little …"""
    acting: int = 0
    """… and of those, times a verb follows: Elodie walks."""
    lower: int = 0
    determined: int = 0
    """Times it is capitalised within a sentence after an article: the Heimlich."""
    located: int = 0
    """Times it is capitalised after in, into, near: in Central Perk."""
    common: int = 0
    """Times it is in lower case after an article: the house."""
    titled: int = 0
    """Times it follows a title such as Dr., Mrs., Detective."""
    spelled: Counter[str] = field(default_factory=Counter)
    shows: Counter[str] = field(default_factory=Counter)

    @property
    def capital(self) -> int:
        """Times it is capitalised anywhere."""
        return self.inside + self.opening


def show_of(video: str) -> str:
    """The series from which a TVR video comes, or "" for other names.

    >>> show_of("castle_s06e12_seg02_clip_22"), show_of("s02e14_seg02_clip_02"), show_of("v_abc")
    ('castle', 'bbt', '')
    """
    match = SHOW_PATTERN.match(video)
    return "" if match is None else match[1] or "bbt"


def looks_like_verb(token: WordToken | None) -> bool:
    """Whether a word may be a verb in the third person, or stand where one would: is, walks, and.

    >>> [looks_like_verb(t) for t in split_tokens("walks glass is and door")]
    [True, False, True, True, False]
    """
    if token is None or token.capital or token.own:
        return False
    key = token.key
    return key in ("and", "are", "were", "had", "then") or (key.endswith("s") and not key.endswith("ss"))


def is_title(token: WordToken, following: WordToken | None) -> bool:
    """Whether a word is a title of the capitalised word that follows: ``Dr. Cuddy``, ``Detective Ryan``."""
    if following is None or following.gap.strip() not in ("", ".") or token.own:
        return False
    known = token.key in TITLES or token.key in PLURAL_TITLES
    return known and following.capital and (token.capital or token.key in ("dr", "mr", "mrs", "ms", "doctor"))


def _may_be_surname(token: WordToken | None) -> bool:
    return token is not None and token.capital and token.gap == " " and len(token.text) > 1


def gather_evidence(texts: Iterable[tuple[str, str]]) -> tuple[dict[str, WordEvidence], Counter[tuple[str, str]]]:
    """Count the evidence for every word that is ever capitalised, and how often two such words stand side by side.

    ``texts`` are pairs of a query and its video's show (or nothing).

    >>> words, pairs = gather_evidence([("Rachel hugs Ross.", ""), ("The man sits by Ross Geller.", "")])
    >>> words["ross"].inside, words["rachel"].acting, words["the"].lower, pairs["ross", "geller"]
    (2, 1, 0, 1)
    """
    words: dict[str, WordEvidence] = {}
    pairs: Counter[tuple[str, str]] = Counter()
    for text, show in texts:
        _count(split_tokens(text), show, words, pairs)
    return {k: e for k, e in words.items() if e.capital}, pairs


def _count(
    line: Sequence[WordToken], show: str, words: dict[str, WordEvidence], pairs: Counter[tuple[str, str]]
) -> None:
    for before, token, after in zip((None, *line[:-1]), line, (*line[1:], None), strict=True):
        entry = words.setdefault(token.key, WordEvidence())
        near = before if before is not None and not token.gap.strip() else None
        if not token.capital:
            entry.lower += 1
            entry.common += near is not None and near.key in DETERMINERS
            continue
        entry.spelled[token.text] += 1
        entry.shows[show] += 1
        if before is not None and is_title(before, token):
            entry.titled += 1
        if token.first:
            entry.opening += 1
            entry.acting += bool(token.own) or looks_like_verb(after) or _may_be_surname(after)
            continue
        entry.inside += 1
        entry.determined += near is not None and near.key in ARTICLES - {"her", "that"}  # gives her Emma
        entry.located += near is not None and near.key in LOCATIVE_WORDS and not token.own
        if near is not None and near.capital:
            pairs[near.key, token.key] += 1
