"""Other spellings of a word: numbers, British and American forms, abbreviations and signs.

Transcripts may say "two litres" or "2 liters", so a word of a query is sought in all its spellings. Exact phrases (in
quotation marks) are not: for them the index only finds candidates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * at for at, word in enumerate(_TEN_WORDS.split(), 2)}
_NUMBERS = {word: at for at, word in enumerate(_UNITS.split())} | _TENS | {"hundred": 100, "thousand": 1000}
_NUMBER_WORDS = {value: word for word, value in _NUMBERS.items()}
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
SIGNS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound", "°": "degree"}
"""Signs that stand for a word; no index contains them, so they are sought in the texts themselves."""
_SIGN_OF = {word + end: sign for sign, word in SIGNS.items() for end in ("", "s")}
_SAME = (
    "doctor dr", "mister mr", "television tv", "versus vs", "okay ok", "grey gray", "tyre tire", "programme program",
    "jewellery jewelry", "aluminium aluminum", "pyjamas pajamas",
    "moustache mustache", "doughnut donut", "yoghurt yogurt", "aeroplane airplane", "mum mom", "whisky whiskey",
    "cosy cozy", "plough plow", "sceptical skeptical", "defence defense", "licence license", "offence offense",
    "catalogue catalog", "dialogue dialog", "analogue analog", "cheque check", "storey story",
    "gram gramme", "kilogram kilo kg", "kilometre kilometer km", "centimetre centimeter cm",
    "millimetre millimeter mm", "millilitre milliliter ml", "teaspoon tsp", "tablespoon tbsp", "ounce oz", "pound lb",
    "hour hr", "minute mins", *(
        f"{word} {at}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(at, 'th')}" for at, word in enumerate(_ORDINALS.split(), 1)
    ),
)  # fmt: skip
_GROUPS = {word: tuple(group.split()) for group in _SAME for word in group.split()}
_BRITISH = (
    "colour favour flavour harbour honour humour labour neighbour odour rumour vapour behaviour armour savour vigour "
    "endeavour parlour tumour litre metre centre theatre fibre calibre travell cancell labell modell signall"
)
_ENDINGS = {"our": "or", "re": "er", "ll": "l"}
_AMERICAN = {
    word: word[: -len(old)] + new for word in _BRITISH.split() for old, new in _ENDINGS.items() if word.endswith(old)
}
_PREFIXES = [*_AMERICAN.items(), *((new, old) for old, new in _AMERICAN.items() if not old.endswith("ll"))] + [
    (f"{old[:-1]}{end}", f"{old}{end}") for old in _BRITISH.split() if old.endswith("ll") for end in ("ed", "ing", "er")
]
_ISE = re.compile(r"(?<=.{4})([sz])(?=(e|ed|es|er|ers|ing|ation|ations)$)")


@lru_cache(8192)  # queries share most of their words
def spellings(word: str) -> tuple[str, ...]:
    """All spellings of a word in lower case, the given one first; a spelling of several words is a phrase.

    >>> spellings("two"), spellings("21"), spellings("colourful"), spellings("organise"), spellings("dog")
    (('two', '2'), ('21', 'twenty one'), ('colourful', 'colorful'), ('organise', 'organize'), ('dog',))
    """
    one = word.removesuffix("s")
    found = [word, *(other for other in _GROUPS.get(word, _GROUPS.get(one, ())) if other != one)]
    if word in _NUMBERS:
        found.append(str(_NUMBERS[word]))
    elif word.isdecimal() and word.isascii() and len(word) < 10:
        found += _number_words(int(word))
    for start, other in _PREFIXES:
        if word.startswith(start):
            found.append(other + word[len(start) :])
    if changed := _ISE.search(word):
        at = changed.start()
        if word[at - 1] in "iy":
            found.append(f"{word[:at]}{'z' if changed[1] == 's' else 's'}{word[at + 1 :]}")
    return tuple(dict.fromkeys(found))


def _number_words(value: int) -> list[str]:
    """A number in words, if that is usual, and with its thousands separated."""
    tens, unit = divmod(value, 10)
    found = [_NUMBER_WORDS[value]] if value in _NUMBER_WORDS else []
    if 20 < value < 100 and unit:
        found.append(f"{_NUMBER_WORDS[10 * tens]} {_NUMBER_WORDS[unit]}")
    return found + ([f"{value:,}".replace(",", " ")] if value >= 1000 else [])


def sign_of(word: str) -> str | None:
    """The sign that stands for a word.

    >>> sign_of("percent"), sign_of("dollars"), sign_of("dog")
    ('%', '$', None)
    """
    return _SIGN_OF.get(word)


def write_out_signs(text: str) -> str:
    """Replace signs in a text by words, and remove commas inside numbers.

    >>> write_out_signs("1,000 of 5%")
    '1000 of 5 percent '
    """
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    for sign, word in SIGNS.items():
        text = text.replace(sign, f" {word} ")
    return text


def join_numbers(words: Sequence[str]) -> list[str]:
    """Replace numbers of two words by digits.

    >>> join_numbers(["twenty", "one", "dogs"]), join_numbers(["twenty", "dogs"])
    (['21', 'dogs'], ['twenty', 'dogs'])
    """
    out: list[str] = []
    for word in words:
        if out and out[-1] in _TENS and 1 <= _NUMBERS.get(word, 0) <= 9:
            out[-1] = str(_TENS[out[-1]] + _NUMBERS[word])
        else:
            out.append(word)
    return out
