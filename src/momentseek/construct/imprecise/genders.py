"""A character's gender: from the user, else from the corpus's pronouns, else from a table of first names.

The paper lets the language model guess the gender from the name (appendix A). Surnames, by which half of TVR's
characters go, say nothing; but descriptions do: "Beckett brushes her hair back". So for every name we count the
pronouns of the sentences in which it stands alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal

from momentseek.construct.imprecise.first_names import gender_in_table
from momentseek.construct.imprecise.tokens import WordToken, split_tokens
from momentseek.construct.imprecise.word_lists import FEMALE_PRONOUNS, MALE_PRONOUNS, NOUN_GENDER, ROLES

Gender = Literal["female", "male", "neutral"]

MIN_PRONOUNS = 5
"""Pronouns that are needed to outweigh the table of first names …"""
AGREEING_PRONOUNS_SHARE = 0.75
"""… if this share of them agrees."""


def count_pronouns(texts: Iterable[str], find_name: Callable[[WordToken], str | None]) -> dict[str, Counter[str]]:
    """Count the pronouns after every name that comes first in its text, up to the next name.

    ``find_name`` gives the name that a word is, or None. A text in which somebody without a name (a man, the patient)
    comes before the pronoun is left out, since the pronoun may be theirs.

    >>> texts = ["Beckett brushes her hair.", "Beckett sees his mug."]
    >>> dict(count_pronouns(texts, lambda t: "b" if t.key == "beckett" else None)["b"])
    {'female': 1, 'male': 1}
    """
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        who = None
        said = set()
        for token in split_tokens(text):
            name = find_name(token)
            if name:
                if who:
                    break
                who = name
            elif token.key in FEMALE_PRONOUNS or token.key in MALE_PRONOUNS:
                said.add("female" if token.key in FEMALE_PRONOUNS else "male")
            elif token.key in NOUN_GENDER or token.key in ROLES:
                break
        if who and len(said) == 1:
            counts.setdefault(who, Counter())[said.pop()] += 1
    return counts


def decide_gender(name: str, pronouns: Counter[str]) -> Gender:
    """A name's gender: from enough agreeing pronouns, else the table, else any pronouns that agree, else neutral.

    >>> decide_gender("Beckett", Counter(female=40, male=3)), decide_gender("Monica", Counter(male=1))
    ('female', 'female')
    >>> decide_gender("Elodie", Counter())
    'neutral'
    """
    total = pronouns.total()
    gender, most = pronouns.most_common(1)[0] if total else ("neutral", 0)
    clear = total > 0 and most >= AGREEING_PRONOUNS_SHARE * total
    said = gender_in_table(name)
    if clear and total >= (MIN_PRONOUNS if said in (None, gender) else 4 * MIN_PRONOUNS):
        return _gender(gender)
    return _gender(said or (gender if clear else "neutral"))


def _gender(word: str) -> Gender:
    return "female" if word == "female" else "male" if word == "male" else "neutral"
