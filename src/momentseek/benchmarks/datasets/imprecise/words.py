"""Word lists for finding and replacing names, and the words of a query with their positions.

Statistics of the corpus decide what is a name (see ``names``). The lists cover what statistics cannot show: which names
are also ordinary words, which words precede a name, and what a title says about a person. They are explained in
``word_lists.toml``.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files


def word_set(words: str) -> frozenset[str]:
    """Return the set of the words in a text.

    >>> sorted(word_set("a the an"))
    ['a', 'an', 'the']
    """
    return frozenset(words.split())


LISTS = tomllib.loads((files(__package__) / "word_lists.toml").read_text(encoding="utf-8"))


def _by_word(table: dict[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in table.items() for word in words.split()}


TITLES = _by_word(LISTS["titles"])
PLURAL_TITLES = _by_word(LISTS["plural_titles"])
NOUN_GENDER = _by_word(LISTS["noun_gender"])
TITLE_GENDER = {"man": "male", "woman": "female", "priest": "male", "nun": "female"}
VERBS_BE = {"is": "are", "was": "were", "has": "have", "isn't": "aren't", "wasn't": "weren't", "doesn't": "don't"}
"""Singular → plural verbs, to correct after names have become "two people" (paper, Table 2, third example)."""
ABBREVIATIONS = word_set(LISTS["abbreviations"])
LOWER_TITLES = word_set(LISTS["lower_titles"])
ROLES = word_set(LISTS["roles"])
DETERMINERS = word_set(LISTS["determiners"])
ARTICLES = word_set(LISTS["articles"])
ADJECTIVES = word_set(LISTS["adjectives"])
NOT_ADJECTIVES = word_set(LISTS["not_adjectives"])
ORDINARY_WORDS = word_set(LISTS["ordinary_words"])
NEVER_NAMES = word_set(LISTS["never_names"])
NOT_NAME_PAIRS = frozenset(tuple(pair.split()) for pair in LISTS["not_name_pairs"])
FEMALE_PRONOUNS = word_set(LISTS["female_pronouns"])
MALE_PRONOUNS = word_set(LISTS["male_pronouns"])
LOCATIVE_WORDS = word_set(LISTS["locative_words"])
ADVERBS = word_set(LISTS["adverbs"])
PAST_VERBS = word_set(LISTS["past_verbs"])
FEMALE_NAMES, MALE_NAMES, EITHER_NAMES = (word_set(LISTS["first_names"][kind]) for kind in ("female", "male", "either"))
FIRST_NAMES = FEMALE_NAMES | MALE_NAMES | EITHER_NAMES


def gender_in_table(name: str) -> str | None:
    """Return the gender of a first name: ``"female"``, ``"male"``, or None if it is both or not in the table.

    >>> gender_in_table("Monica"), gender_in_table("ross"), gender_in_table("Robin"), gender_in_table("Beckett")
    ('female', 'male', None, None)
    """
    key = name.lower()
    if key in EITHER_NAMES:
        return None
    return "female" if key in FEMALE_NAMES else "male" if key in MALE_NAMES else None


WORD_PATTERN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*['’]?|(?<=Dr\. )\d+")
"""Words, and a number in place of a name: Dr. 13."""
POSSESSIVE = re.compile(r"^(?P<base>.+?)(?P<own>['’][sS]|(?<=[szxSZX])['’])$")
SENTENCE_END = re.compile(r"[.!?]")


@dataclass(frozen=True, slots=True)
class WordToken:
    """A word of a query, at ``text[start:end]``; ``own`` is the possessive ending that follows it."""

    text: str
    start: int
    end: int
    own: str
    first: bool
    """Whether it opens a sentence."""
    gap: str
    """The characters between it and the word before."""

    @property
    def key(self) -> str:
        """The word in lower case, as in the word lists."""
        return self.text.lower()

    @property
    def capital(self) -> bool:
        """Whether it is written like a name: ``Rachel``, ``McCord``, ``D'Andre``."""
        shouted = len(self.text) > 1 and self.text.isupper()
        return self.text[0].isdigit() or (self.text[0].isupper() and not shouted)

    @property
    def stop(self) -> int:
        """Where the word ends, including its possessive ending."""
        return self.end + len(self.own)


def split_tokens(text: str) -> list[WordToken]:
    """Split a text into words.

    >>> [(t.text, t.own, t.first) for t in split_tokens("Dr. House's cane. He sits.")]
    [('Dr', '', True), ('House', "'s", False), ('cane', '', False), ('He', '', True), ('sits', '', False)]
    """
    found: list[WordToken] = []
    last = 0
    for match in WORD_PATTERN.finditer(text):
        word, own = _split_possessive(match.group())
        gap = text[last : match.start()]
        abbreviated = bool(found) and gap.startswith(".") and _abbreviation(found[-1].text)
        first = not found or (SENTENCE_END.search(gap) is not None and not abbreviated)
        found.append(WordToken(word, match.start(), match.start() + len(word), own, first, gap))
        last = found[-1].stop
    return found


def _abbreviation(word: str) -> bool:
    return word.lower() in TITLES or word.lower() in PLURAL_TITLES or (len(word) == 1 and word.isupper())


def _split_possessive(word: str) -> tuple[str, str]:
    match = POSSESSIVE.match(word)
    if match:
        return match["base"], match["own"]
    return word.rstrip("'’"), ""
