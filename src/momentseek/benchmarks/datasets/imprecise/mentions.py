"""Find where a query names characters: single words, full names, titles, and names typed in lower case.

A capitalised word of the gazetteer is a name, except an ordinary word after an article ("the House"). A lower-case
word is a name if it is never an ordinary word (rachel). If it can be one (castle, house, park), it is a name only if
the video's show has a character of that name and the word is bare: not after an article, an adjective or "of".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from momentseek.benchmarks.datasets.imprecise.names import (
    LIKELY_NAME_SCORE,
    MIN_CAST_MENTIONS,
    CharacterName,
    Gazetteer,
    Gender,
    looks_like_verb,
)
from momentseek.benchmarks.datasets.imprecise.words import (
    ABBREVIATIONS,
    ADVERBS,
    DETERMINERS,
    LOWER_TITLES,
    NEVER_NAMES,
    NOT_NAME_PAIRS,
    ORDINARY_WORDS,
    PAST_VERBS,
    PLURAL_TITLES,
    TITLE_GENDER,
    TITLES,
    VERBS_BE,
    WordToken,
    word_set,
)

ARTICLES_BEFORE_WORDS = word_set("a an the his their its my your our this")
WORDS_BEFORE_PEOPLE = word_set(
    """to with at from behind beside besides past toward towards by for near and while as but then when before after
    until because than of like between around onto follow tell ask see hug give hand show watch let help kiss call
    where"""
)
"""Words after which a bare lower-case "house" or "castle" may be a person; verbs in -s and -ed may precede one too."""
NAMES_THAT_ARE_VERBS = word_set("chase park mark hunt cross page tag bill chuck pat rob frank skip hope rush")
WORDS_AFTER_VERBS = word_set("him it them down up after off out") | DETERMINERS
"""Words before which a lower-case "chase" or "park" is a verb."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A person named at ``tokens[first:last]`` of a query."""

    first: int
    last: int
    who: str
    """The key that two mentions of one person share."""
    gender: Gender
    role: str = ""
    """The role that a title gives, such as doctor or detective; else ""."""
    plural_title: bool = False
    """Whether the title belongs to this name and those coordinated with it: Detectives Ryan and Esposito."""


@dataclass(frozen=True, slots=True)
class NameFinder:
    """Finds the people named in the queries of one show."""

    gazetteer: Gazetteer
    show: str = ""
    min_score: float = LIKELY_NAME_SCORE
    strict: bool = False
    """Whether to treat every possible name as one, for the second attempt at a query that failed its check."""

    def mentions(self, words: Sequence[WordToken]) -> list[Mention]:
        """Return each mention of a person's name in a query, from left to right."""
        found: list[Mention] = []
        i = 0
        while i < len(words):
            mention = self._at(words, i)
            if mention is None:
                i += 1
            else:
                found.append(mention)
                i = mention.last
        return found

    def name(self, words: Sequence[WordToken], i: int) -> CharacterName | None:
        """Return the name that word ``i`` is in its context, or None."""
        token = words[i]
        if any((a.key, b.key) in NOT_NAME_PAIRS for a, b in itertools.pairwise(words[max(i - 1, 0) : i + 2])):
            return None
        at_home = self._at_home(token.key)
        risky = token.capital and token.key in ORDINARY_WORDS and (at_home or not token.first)
        name = self.gazetteer.get(token.key, 0.15 if risky else self.min_score)
        if name is None and len(token.key) > 3 and token.key.endswith("s") and not token.capital:
            name = self.gazetteer.get(token.key[:-1], 0.95)  # rachels purse
            name = None if name is None or name.common or name.count < 20 else name
        if name is None or (not token.capital and not token.text.islower()):
            shouted = name is not None and token.text.isupper() and (at_home or not name.common)
            return name if shouted else None
        common = name.common or token.key in ORDINARY_WORDS
        if token.capital:
            before = words[i - 1] if i and not token.gap.strip() and not words[i - 1].own else None
            described = common and not at_home and before is not None and before.key in ARTICLES_BEFORE_WORDS
            following = words[i + 1] if i + 1 < len(words) else None
            acts = looks_like_verb(following) or (following is not None and following.capital)
            sure = not token.first or at_home or not common or name.score >= 0.8 or acts
            return name if self.strict or (sure and not described) else None
        if not common:
            acts = token.first and i + 1 < len(words) and looks_like_verb(words[i + 1])
            return name if name.count >= MIN_CAST_MENTIONS or acts or self.strict or name.score == 1 else None
        return name if at_home and token.key != "will" and self._bare(words, i) else None

    def _bare(self, words: Sequence[WordToken], i: int) -> bool:
        """Whether a lower-case ordinary word is in a position where only a person can be."""
        after = words[i + 1] if i + 1 < len(words) else None
        if (
            words[i].key in NAMES_THAT_ARE_VERBS
            and not words[i].own
            and after is not None
            and after.key in WORDS_AFTER_VERBS
            and not after.gap.strip()
        ):
            return False
        if i == 0 or words[i].gap.strip():
            return True
        before = words[i - 1]
        verb = before.key.endswith(("s", "ed")) and before.key not in DETERMINERS
        return not before.own and (before.key in WORDS_BEFORE_PEOPLE or verb)

    def _at_home(self, key: str) -> bool:
        """Whether the show's descriptions often use this word as a name."""
        name = self.gazetteer.names.get(key)
        return name is not None and bool(self.show) and name.shows.get(self.show, 0) >= MIN_CAST_MENTIONS

    def _at(self, words: Sequence[WordToken], i: int) -> Mention | None:
        token = words[i]
        following = words[i + 1] if i + 1 < len(words) else None
        if self._couple(words, i):
            rest = self._full(words, i + 3)
            return Mention(i, rest.last, f"{rest.who} and {rest.who}", "neutral", "couple")
        if following is not None and self._has_title(words, i):
            role = PLURAL_TITLES.get(token.key) or TITLES[token.key]
            rest = self._full(words, i + 1)
            gender = TITLE_GENDER.get(role) or rest.gender
            kept = "" if role in ("man", "woman") else role
            plural = token.key in PLURAL_TITLES
            return Mention(i, rest.last, rest.who, cast("Gender", gender), kept, plural)
        if token.key in TITLES or self.name(words, i) is None:
            return None
        return self._full(words, i)

    def _has_title(self, words: Sequence[WordToken], i: int) -> bool:
        token, following = words[i], words[i + 1]
        if token.key not in TITLES and token.key not in PLURAL_TITLES:
            return False
        joints = ("", ".", ",") if token.key in ABBREVIATIONS else ("", ".")
        if (
            following.gap.strip() not in joints
            or token.own
            or (len(following.text) > 1 and following.key in NEVER_NAMES)
        ):
            return False
        if token.key in ABBREVIATIONS and (following.capital or self.gazetteer.get(following.key, self.min_score)):
            return True
        owned = i > 0 and (words[i - 1].key in DETERMINERS or bool(words[i - 1].own))
        bold = token.capital or (token.key in LOWER_TITLES and not owned)
        return bold and following.capital and following.key in self.gazetteer.names

    def _couple(self, words: Sequence[WordToken], i: int) -> bool:
        """Whether a couple is named at word ``i``, such as Mr. and Mrs. Geller."""
        line = words[i : i + 4]
        keys = [t.key for t in line]
        return (
            len(line) == 4 and keys[0] in TITLES and keys[1] == "and" and keys[2] in ABBREVIATIONS and line[3].capital
        )

    def _full(self, words: Sequence[WordToken], i: int) -> Mention:
        """Return the mention of a name and the surname, initial or suffix that follows it."""
        head = self.gazetteer.names.get(words[i].key)
        last = i + 1
        while last < len(words) and not words[last - 1].own and words[last].capital:
            before, token = words[last - 1], words[last]
            initial = len(token.text) == 1 and token.text not in "AI"
            surname = token.key not in NEVER_NAMES and self.gazetteer.one_person(before.key, token.key)
            near = token.gap == " " or (len(before.text) == 1 and token.gap == ". ")
            if not (near and (initial or surname or token.key in ("sr", "jr"))):
                break
            last += 1
        names = [self.gazetteer.names.get(t.key) for t in words[i:last]]
        genders: list[Gender] = [n.gender for n in names if n is not None and n.gender != "neutral"]
        who = head.who if head is not None else words[i].key
        return Mention(i, last, who, genders[0] if genders else "neutral")


SUBORDINATORS = word_set("while as when after before if once since because although during upon")


def group_mentions(words: Sequence[WordToken], mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Group mentions that are coordinated ("Ross and Monica"); a single mention is a group of one."""
    runs: list[list[Mention]] = []
    for mention in mentions:
        if runs and _is_joined(words, runs[-1][-1], mention):
            runs[-1].append(mention)
        else:
            runs.append([mention])
    return list(itertools.chain.from_iterable(_split_run(words, run) for run in runs))


def _is_joined(words: Sequence[WordToken], left: Mention, right: Mention) -> bool:
    """Whether there is only a comma, "and" or both between two names, the left one without a possessive ending."""
    if words[left.last - 1].own or right.plural_title:
        return False
    between = words[left.last : right.first]
    if not between:
        gap = words[right.first].gap
        return gap.strip() in (",", "&", "/") or gap == "." or (gap == ". " and words[left.first].first)
    joint = between[0].gap.strip() in ("", ",", ".") and not words[right.first].gap.strip()
    return len(between) == 1 and between[0].key in ("and", "und", "n") and joint


def _split_run(words: Sequence[WordToken], run: list[Mention]) -> list[list[Mention]]:
    """Return a sequence of names as one group, or as several if a clause may end between them."""
    if len(run) == 1:
        return [run]
    joints = [bool(b.first - a.last) or "&" in words[b.first].gap for a, b in itertools.pairwise(run)]
    opens = words[run[0].first].first or words[run[0].first - 1].key in SUBORDINATORS
    following = words[run[-1].last] if run[-1].last < len(words) else None
    listed = following is not None and following.key == "and" and not any(joints)
    fronted = not words[run[0].first].first and _clause_opener(words, run[0].first)
    if fronted and not joints[0]:  # While talking to Castle, Beckett and Ryan leave
        return [run[:1], *_split_run(words, run[1:])]
    if not (joints[-1] or listed):
        return [[m] for m in run]
    if True in joints[:-1]:  # A and B, C and D
        cut = joints.index(True) + 2
        return [*_split_run(words, run[:cut]), *_split_run(words, run[cut:])]
    if not opens and not words[run[-1].last - 1].own and _clause_follows(words, run[-1].last):
        return [*_split_run(words, run[:-1]), run[-1:]] if len(run) > 2 else [[m] for m in run]
    return [run]


def _clause_opener(words: Sequence[WordToken], i: int) -> bool:
    start = next((k for k in range(i, -1, -1) if words[k].first), 0)
    inside = not any("," in w.gap for w in words[start + 1 : i + 1])
    return inside and words[start].key in SUBORDINATORS and i - start > 1


def _clause_follows(words: Sequence[WordToken], i: int) -> bool:
    """Whether the next word, ignoring adverbs, looks like a verb whose subject is only the last name."""
    while i < len(words) and (words[i].key in ADVERBS or words[i].key.endswith("ly")) and not words[i].gap.strip():
        i += 1
    if i >= len(words) or words[i].gap.strip():
        return False
    key = words[i].key
    if key in ("and", "then", "are", "were", "as"):
        return False
    return looks_like_verb(words[i]) or key in VERBS_BE or key in PAST_VERBS or key.endswith("ed")
