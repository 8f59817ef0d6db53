"""Which words replaced the names, by frequency and gender (TVR-Ranking, Table 3).

The words are found by comparing the texts before and after, so that rules, models and reviewers are counted alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

from momentseek.construct.imprecise.tokens import split_tokens
from momentseek.construct.imprecise.word_lists import FEMALE_PRONOUNS, MALE_PRONOUNS, NOUN_GENDER, word_set

UNCOUNTED_WORDS = word_set("a an the and of in on at to with")


def new_words(before: str, after: str) -> list[str]:
    """The words that are in the new text and not in the old one, articles aside.

    >>> new_words("Rachel sits by Ross's desk.", "A woman sits by a man's desk.")
    ['woman', 'man']
    """
    old, new = [t.key for t in split_tokens(before)], [t.key for t in split_tokens(after)]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    come = [word for tag, _, _, a, b in blocks if tag in ("insert", "replace") for word in new[a:b]]
    return [word for word in come if word not in UNCOUNTED_WORDS]


def count_replacements(pairs: Iterable[tuple[str, str]], most: int = 12) -> list[tuple[str, int, str]]:
    """Count the words that replaced names: word, how often, and M, F or N, as in the paper's Table 3.

    >>> count_replacements([("Rachel sits.", "A woman sits."), ("Ross and Ann eat.", "Two people eat.")])
    [('woman', 1, 'F'), ('two', 1, 'N'), ('people', 1, 'N')]
    """
    counts = Counter(word for before, after in pairs if before != after for word in new_words(before, after))
    return [(word, n, _letter(word)) for word, n in counts.most_common(most)]


def _letter(word: str) -> str:
    gender = NOUN_GENDER.get(word)
    if gender == "female" or word in FEMALE_PRONOUNS:
        return "F"
    return "M" if gender == "male" or word in MALE_PRONOUNS else "N"
