"""Replaces names by general words, by rule: text and gazetteer in, text and a list of replacements out.

Follows the paper's examples (TVR-Ranking, Table 2 and Figure 3): "a woman", "another man", "two women", "two people",
"a doctor". The rest of the query stays as it is, but for what the replacement needs: "a sitting Meredith" is
"a sitting woman", "her husband Mike" is "her husband", "Eric and Ann was" is "two people were".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.construct.imprecise.gazetteer import LIKELY_NAME_SCORE, Gazetteer
from momentseek.construct.imprecise.genders import Gender
from momentseek.construct.imprecise.groups import group_mentions
from momentseek.construct.imprecise.mentions import Mention, NameFinder
from momentseek.construct.imprecise.people import People
from momentseek.construct.imprecise.tokens import WordToken, split_tokens
from momentseek.construct.imprecise.word_lists import ADJECTIVES, ARTICLES, NOT_ADJECTIVES, ROLES, VERBS_BE


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replacement: ``text[start:end]`` of the original became ``by``."""

    what: str
    by: str
    gender: Gender
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Substitution:
    """A query without names, and what was replaced in it."""

    text: str
    replacements: tuple[Replacement, ...] = ()


def substitute(
    text: str, gazetteer: Gazetteer, *, show: str = "", least: float = LIKELY_NAME_SCORE, strict: bool = False
) -> Substitution:
    """Replace every name of a query by general words.

    >>> cast = Gazetteer({}).with_names([("Rachel", "female"), ("Ross", "male"), ("Monica", "female")])
    >>> substitute("Rachel's mug falls and Ross looks at Rachel.", cast).text
    "A woman's mug falls and a man looks at the woman."
    >>> substitute("Ross hugs Rachel and Monica.", cast).text
    'A man hugs two women.'
    """
    words = split_tokens(text)
    groups = group_mentions(words, NameFinder(gazetteer, show, least, strict).mentions(words))
    people = People(words, groups)
    edits: list[Replacement] = []
    for group in groups:
        edits.extend(_edits(text, words, group, people))
    return Substitution(_apply(text, edits), tuple(edits))


def _edits(text: str, words: Sequence[WordToken], group: list[Mention], people: People) -> list[Replacement]:
    first, last = group[0].first, group[-1].last
    start, end = words[first].start, words[last - 1].stop
    if len(words[last - 1].text) == 1 and text[end : end + 1] == "." and last < len(words) and not words[last].first:
        end += 1  # Miss X. stops
    own = "'s" if words[last - 1].own or _bare_possessive(words, last - 1, group[-1]) else ""
    before = words[first - 1] if first and not words[first].gap.strip() and not words[first - 1].own else None
    by = None
    if before is not None and first > 1 and _naming(before, words[first - 2]):  # a girl named Ann
        start, by = words[first - 2].stop, ""
    elif before is not None and _role(before) in ROLES and _is_owned(words, first - 1):  # her husband Mike
        start, by = before.end, ""
    elif before is not None and _describes(words, first - 1):  # a sitting Meredith
        by = people.noun(group)
    elif before is not None and before.key in ROLES and len(group) == 1:
        start = before.start  # detective Beckett
        by = people.phrase([Mention(first, last, group[0].who, group[0].gender, before.key)])
    if by is None:
        by = people.phrase(group)
    if start and before is not None and before.key == "both" and by.startswith("two "):
        by = by.removeprefix("two ")
    phrase = by + own
    opening = next((w for w in words if w.start >= start), words[first])
    if opening.start == start and opening.first and phrase:
        phrase = phrase[0].upper() + phrase[1:]
    genders = {m.gender for m in group}
    gender = genders.pop() if len(genders) == 1 else "neutral"
    edits = [Replacement(text[start:end], phrase, gender, start, end)]
    verb = words[last] if last < len(words) else None
    if len(group) > 1 and not own and verb is not None and verb.key in VERBS_BE and not verb.gap.strip():
        edits.append(Replacement(verb.text, VERBS_BE[verb.key], "neutral", verb.start, verb.end))
    return edits


def _naming(token: WordToken, before: WordToken) -> bool:
    return token.key == "named" or (token.key == "called" and _role(before) in ROLES)


def _role(token: WordToken) -> str:
    """The noun of ``ex-boyfriend``."""
    return token.key.split("-")[-1]


def _is_owned(words: Sequence[WordToken], i: int) -> bool:
    """Whether an article or owner stands before a role: her husband, the patient, Ross's sister, her best friend."""
    here = [words[i - 1]] if i else []
    here += [words[i - 2]] if i > 1 and not words[i - 1].gap.strip() else []
    return any(w.key in ARTICLES or w.own for w in here)


def _describes(words: Sequence[WordToken], i: int) -> bool:
    """Whether word ``i`` is an article, or an adjective behind one, so that only a noun fits after it."""
    key = words[i].key
    if key in ARTICLES and key != "her" and key != "that":
        return True
    adjective = key in ADJECTIVES or (key.endswith(("ing", "ed")) and key not in NOT_ADJECTIVES)
    if i == 0:
        return key in ADJECTIVES
    return adjective and words[i - 1].key in ("a", "an", "the") and not words[i].gap.strip()


def _bare_possessive(words: Sequence[WordToken], i: int, mention: Mention) -> bool:
    """Whether a name owns what follows without an apostrophe: Rachels purse."""
    return words[i].key == f"{mention.who}s" and mention.last == mention.first + 1


def _apply(text: str, edits: Sequence[Replacement]) -> str:
    parts, last = [], 0
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < last:
            continue
        parts += [text[last : edit.start], edit.by]
        last = edit.end
    result = "".join([*parts, text[last:]])
    return re.sub(r"(?<=\S)  +(?=\S)", " ", result) if edits else text
