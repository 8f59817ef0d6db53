"""The people of one query, and the words for each mention of them: a man, another man, the first man, two women."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.construct.imprecise.mentions import Mention
from momentseek.construct.imprecise.tokens import WordToken
from momentseek.construct.imprecise.word_lists import FEMALE_PRONOUNS, MALE_PRONOUNS

NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ORDINAL_WORDS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
GENDER_NOUNS = {"female": "woman", "male": "man", "neutral": "person"}
PLURAL_NOUNS = {"woman": "women", "man": "men", "person": "people", "boss": "bosses", "waitress": "waitresses"}
NOUN_SYNONYMS = {"man": ("man", "men", "guy"), "woman": ("woman", "women", "lady"), "person": ("person", "people")}
"""Words of the query after which the first name is already another one."""


class People:
    """Keeps track of who has been mentioned in a query so far, and by which noun."""

    def __init__(self, words: Sequence[WordToken], groups: Sequence[Sequence[Mention]]) -> None:
        self.words = words
        self.nouns: dict[str, list[str]] = {}
        """Noun → who bears it, in order of appearance."""
        self.known: dict[str, str] = {}
        """Who → noun."""
        self.plain: set[str] = set()
        """Who was introduced only as one of several."""
        self.roles = {m.who: m.role for g in groups for m in g if m.role}
        self.plurals: set[str] = set()
        self.others: set[str] = set()
        """Who was introduced as another beside somebody without a name."""

    def phrase(self, group: Sequence[Mention]) -> str:
        """The words for one group of mentions, in lower case."""
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
        """The noun alone for one group of mentions, to follow an article."""
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
    """``a, b and c``."""
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]])
