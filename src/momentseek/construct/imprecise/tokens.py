"""Words of a query with their places, ready for finding names: possessives apart, sentence starts marked.

A capital letter says something only inside a sentence, so that every word knows whether it opens one; ``Dr.`` and
initials do not end a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from momentseek.construct.imprecise.word_lists import PLURAL_TITLES, TITLES

WORD_PATTERN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*['’]?|(?<=Dr\. )\d+")
"""Words; and a number where a name belongs: Dr. 13."""
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
        """The word in lower case, as word lists hold it."""
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
