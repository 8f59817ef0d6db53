"""Replace names by general words, by rule.

The rules follow the paper's examples (TVR-Ranking, Table 2 and Figure 3): "a woman", "another man", "two women",
"two people", "a doctor". The rest of the query stays the same, except where the replacement requires a change:
"a sitting Meredith" becomes "a sitting woman", "her husband Mike" becomes "her husband", "Eric and Ann was" becomes
"two people were".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from momentseek.benchmarks.datasets.imprecise.mentions import Mention, NameFinder, group_mentions
from momentseek.benchmarks.datasets.imprecise.names import LIKELY_NAME_SCORE, Gazetteer, Gender
from momentseek.benchmarks.datasets.imprecise.words import (
    ADJECTIVES,
    ARTICLES,
    FEMALE_PRONOUNS,
    MALE_PRONOUNS,
    NOT_ADJECTIVES,
    NOUN_GENDER,
    ROLES,
    VERBS_BE,
    WordToken,
    split_tokens,
    word_set,
)

NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ORDINAL_WORDS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
GENDER_NOUNS = {"female": "woman", "male": "man", "neutral": "person"}
PLURAL_NOUNS = {"woman": "women", "man": "men", "person": "people", "boss": "bosses", "waitress": "waitresses"}
NOUN_SYNONYMS = {"man": ("man", "men", "guy"), "woman": ("woman", "women", "lady"), "person": ("person", "people")}
"""Noun → words of a query after which the first such person is "another" one."""


class People:
    """Keeps track of who has been mentioned in a query so far, and by which noun."""

    def __init__(self, words: Sequence[WordToken], groups: Sequence[Sequence[Mention]]) -> None:
        self.words = words
        self.nouns: dict[str, list[str]] = {}
        """Noun → the people it was used for, in order of appearance."""
        self.known: dict[str, str] = {}
        """Who → noun."""
        self.plain: set[str] = set()
        """People introduced only as part of a group."""
        self.roles = {m.who: m.role for g in groups for m in g if m.role}
        self.plurals: set[str] = set()
        self.others: set[str] = set()
        """People introduced as "another" person after somebody without a name."""

    def phrase(self, group: Sequence[Mention]) -> str:
        """Return the words for one group of mentions, in lower case."""
        if len(group) == 1:
            return self._one(group[0])
        whos = [m.who for m in group]
        introduced = [w in self.known for w in whos]
        if any(introduced) and not all(w in self.plain for w in whos):
            return _join_phrases([self._one(m) for m in group])
        if all(introduced):
            return f"the {NUMBER_WORDS[len(group)] if len(group) <= 10 else 'many'} {self._common(group)}"
        noun = self._common(group)
        alone = not self.known
        singular = [self._noun(m) for m in group]
        mixed = len(group) == 2 and set(singular) == {"man", "woman"}
        if mixed and alone and self._pronoun_after(group):  # Izzy and Alex are talking and she gets up
            return _join_phrases([self._one(m) for m in group])
        for mention, name in zip(group, singular, strict=True):
            self._introduce(mention.who, name)
            self.plain.add(mention.who)
        again = "other " if noun in self.plurals else ""
        self.plurals.add(noun)
        return f"{NUMBER_WORDS[len(group)] if len(group) <= 10 else 'many'} {again}{noun}"

    def noun(self, group: Sequence[Mention]) -> str:
        """Return only the noun for one group of mentions, to follow an article."""
        for mention in group:
            self._introduce(mention.who, self._noun(mention))
        return self._noun(group[0]) if len(group) == 1 else self._common(group)

    def _one(self, mention: Mention) -> str:
        who, noun = mention.who, self._noun(mention)
        if who in self.known:
            noun = self.known[who]
            same = self.nouns[noun]
            if len(same) == 1:
                return f"the other {noun}" if who in self.others else f"the {noun}"
            if who in self.plain:
                self.plain.discard(who)
                fresh = all(w in self.plain for w in same if w != who)
                return f"one {noun}" if fresh else f"the other {noun}"
            place = same.index(who) + 1
            return f"the other {noun}" if len(same) == 2 == place else f"the {ORDINAL_WORDS[min(place, 10)]} {noun}"
        place = self._introduce(who, noun)
        if place > 2:
            return f"a {ORDINAL_WORDS[min(place, 10)]} {noun}"
        if place == 2 or self._other_before(mention, noun):
            self.others |= {who}
            return f"another {noun}"
        return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"

    def _introduce(self, who: str, noun: str) -> int:
        same = self.nouns.setdefault(noun, [])
        if who not in same:
            same.append(who)
        self.known[who] = noun
        return same.index(who) + 1

    def _noun(self, mention: Mention) -> str:
        role = mention.role or self.roles.get(mention.who, "")
        return self.known.get(mention.who) or (
            role if role and not mention.plural_title else GENDER_NOUNS[mention.gender]
        )

    def _common(self, group: Sequence[Mention]) -> str:
        if group[0].plural_title:
            return group[0].role
        nouns = {self._noun(m) for m in group}
        if len(nouns) > 1:
            return "people"
        noun = nouns.pop()
        return PLURAL_NOUNS.get(noun, f"{noun}s")

    def _pronoun_after(self, group: Sequence[Mention]) -> bool:
        after = self.words[group[-1].last :]
        return any(t.key in FEMALE_PRONOUNS or t.key in MALE_PRONOUNS for t in after)

    def _other_before(self, mention: Mention, noun: str) -> bool:
        before = self.words[: mention.first]
        return any(t.key in NOUN_SYNONYMS.get(noun, (noun, f"{noun}s")) for t in before)


def _join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases as ``a, b and c``."""
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]])


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
    text: str, gazetteer: Gazetteer, *, show: str = "", min_score: float = LIKELY_NAME_SCORE, strict: bool = False
) -> Substitution:
    """Replace every name of a query by general words.

    >>> cast = Gazetteer({}).with_names([("Rachel", "female"), ("Ross", "male"), ("Monica", "female")])
    >>> substitute("Rachel's mug falls and Ross looks at Rachel.", cast).text
    "A woman's mug falls and a man looks at the woman."
    >>> substitute("Ross hugs Rachel and Monica.", cast).text
    'A man hugs two women.'
    """
    words = split_tokens(text)
    groups = group_mentions(words, NameFinder(gazetteer, show, min_score, strict).mentions(words))
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
    """Return the last part of a compound, such as the noun in ``ex-boyfriend``."""
    return token.key.split("-")[-1]


def _is_owned(words: Sequence[WordToken], i: int) -> bool:
    """Whether an article or owner precedes a role: her husband, the patient, Ross's sister, her best friend."""
    here = [words[i - 1]] if i else []
    here += [words[i - 2]] if i > 1 and not words[i - 1].gap.strip() else []
    return any(w.key in ARTICLES or w.own for w in here)


def _describes(words: Sequence[WordToken], i: int) -> bool:
    """Whether word ``i`` is an article, or an adjective after one, so that only a noun can follow."""
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


UNCOUNTED_WORDS = word_set("a an the and of in on at to with")


def new_words(before: str, after: str) -> list[str]:
    """Return the words of the new text that the old one does not have, without articles and prepositions.

    >>> new_words("Rachel sits by Ross's desk.", "A woman sits by a man's desk.")
    ['woman', 'man']
    """
    old, new = [t.key for t in split_tokens(before)], [t.key for t in split_tokens(after)]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    come = [word for tag, _, _, a, b in blocks if tag in ("insert", "replace") for word in new[a:b]]
    return [word for word in come if word not in UNCOUNTED_WORDS]


def count_replacements(pairs: Iterable[tuple[str, str]], limit: int = 12) -> list[tuple[str, int, str]]:
    """Count the words that replaced names: word, number, and M, F or N, as in the paper's Table 3.

    >>> count_replacements([("Rachel sits.", "A woman sits."), ("Ross and Ann eat.", "Two people eat.")])
    [('woman', 1, 'F'), ('two', 1, 'N'), ('people', 1, 'N')]
    """
    counts = Counter(word for before, after in pairs if before != after for word in new_words(before, after))
    return [(word, n, _letter(word)) for word, n in counts.most_common(limit)]


def _letter(word: str) -> str:
    gender = NOUN_GENDER.get(word)
    if gender == "female" or word in FEMALE_PRONOUNS:
        return "F"
    return "M" if gender == "male" or word in MALE_PRONOUNS else "N"
