"""Build the list of character names from the annotations themselves, without network or model.

A name is a word that is capitalised inside sentences, seldom in lower case, and seldom after an article or "in". Its
score, from 0 to 1, weighs these counts; known first names start with a bonus, ordinary words with a penalty. Rare
misspellings of frequent names (Pheobe, Espostio, Rachels) are treated as the name they resemble.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from momentseek.benchmarks.datasets.imprecise.words import (
    ARTICLES,
    DETERMINERS,
    FEMALE_PRONOUNS,
    FIRST_NAMES,
    LOCATIVE_WORDS,
    MALE_PRONOUNS,
    NEVER_NAMES,
    NOUN_GENDER,
    ORDINARY_WORDS,
    PLURAL_TITLES,
    ROLES,
    TITLES,
    WordToken,
    gender_in_table,
    split_tokens,
)
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats.document import open_document

SHOW_PATTERN = re.compile(r"(?:([a-z]+)_)?s\d\de\d\d")


@dataclass(slots=True)
class WordEvidence:
    """How often one word (in lower case) occurs in a corpus in ways that distinguish names from other words."""

    inside: int = 0
    """Number of times it is capitalised within a sentence."""
    opening: int = 0
    """Number of times it is capitalised where a sentence begins, which says little …"""
    acting: int = 0
    """… and how often of these a verb follows: Elodie walks."""
    lower: int = 0
    determined: int = 0
    """Number of times it is capitalised within a sentence after an article: the Heimlich."""
    located: int = 0
    """Number of times it is capitalised after in, into, near: in Central Perk."""
    common: int = 0
    """Number of times it is in lower case after an article: the house."""
    titled: int = 0
    """Number of times it follows a title such as Dr., Mrs., Detective."""
    spelled: Counter[str] = field(default_factory=Counter)
    shows: Counter[str] = field(default_factory=Counter)

    @property
    def capital(self) -> int:
        """Number of times it is capitalised anywhere."""
        return self.inside + self.opening


def show_of(video: str) -> str:
    """Return the series of a TVR video, or "" for other names.

    >>> show_of("castle_s06e12_seg02_clip_22"), show_of("s02e14_seg02_clip_02"), show_of("v_abc")
    ('castle', 'bbt', '')
    """
    match = SHOW_PATTERN.match(video)
    return "" if match is None else match[1] or "bbt"


def looks_like_verb(token: WordToken | None) -> bool:
    """Whether a word may be a verb in the third person, or take its position: is, walks, and.

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
    """Count the evidence for every word that is ever capitalised, and how often two such words are adjacent.

    ``texts`` are pairs of a query and its video's show (or "").

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


Gender = Literal["female", "male", "neutral"]

MIN_PRONOUNS = 5
"""Minimum number of pronouns to outweigh the table of first names …"""
AGREEING_PRONOUNS_SHARE = 0.75
"""… if this share of them agrees."""


def count_pronouns(texts: Iterable[str], find_name: Callable[[WordToken], str | None]) -> dict[str, Counter[str]]:
    """Count the pronouns after every name that comes first in its text, up to the next name.

    ``find_name`` returns the name that a word is, or None. A text in which somebody without a name (a man, the patient)
    comes before the pronoun is left out, because the pronoun may be theirs.

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
    """Return a name's gender: from enough agreeing pronouns, else the table, else any agreeing pronouns, else neutral.

    >>> decide_gender("Beckett", Counter(female=40, male=3)), decide_gender("Monica", Counter(male=1))
    ('female', 'female')
    >>> decide_gender("Elodie", Counter())
    'neutral'
    """
    total = pronouns.total()
    gender, often = pronouns.most_common(1)[0] if total else ("neutral", 0)
    clear = total > 0 and often >= AGREEING_PRONOUNS_SHARE * total
    said = gender_in_table(name)
    if clear and total >= (MIN_PRONOUNS if said in (None, gender) else 4 * MIN_PRONOUNS):
        return cast("Gender", gender)
    return cast("Gender", said or (gender if clear else "neutral"))


def edit_distance(a: str, b: str) -> int:
    """Return the number of letters changed, dropped, added or swapped with their neighbour between two words.

    >>> edit_distance("pheobe", "phoebe"), edit_distance("espostio", "esposito"), edit_distance("rachel", "ross")
    (1, 1, 5)
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]


def correct_spelling(word: str, evidence: WordEvidence, frequent: Mapping[str, int]) -> str:
    """Return the frequent name that a rare word misspells (or whose possessive lacks an apostrophe), or "".

    >>> correct_spelling("pheobe", WordEvidence(inside=10), {"phoebe": 800, "ross": 1100})
    'phoebe'
    >>> correct_spelling("monicas", WordEvidence(inside=1), {"monica": 1000})
    'monica'
    """
    if word in frequent or evidence.lower > 1 or len(word) < 4:
        return ""
    best, distance = "", 3
    for name, count in frequent.items():
        if name[0] != word[0] or count < 10 * evidence.capital or abs(len(name) - len(word)) > 2:
            continue
        if word == f"{name}s":
            return name
        allowed = 0 if word in FIRST_NAMES else 1 if len(name) < 7 else 2
        if len(name) >= 4 and (n := edit_distance(word, name)) <= allowed and n < distance:
            best, distance = name, n
    return best


LIKELY_NAME_SCORE = 0.5
"""Minimum score of a word that is replaced as a name; the check afterwards requires more (0.8)."""
MIN_CAST_MENTIONS = 5
"""How often a name must be capitalised in a show's descriptions for its lower-case form to count there too."""


@dataclass(frozen=True, slots=True)
class CharacterName:
    """One name: the certainty that it is a name, its gender, and the shows in which it occurs."""

    name: str
    score: float
    gender: Gender = "neutral"
    count: int = 0
    common: bool = False
    """Whether it is also an ordinary word (castle, penny), so that in lower case it need not be a name."""
    shows: Mapping[str, int] = field(default_factory=dict)
    spelling: str = ""
    """The name that this one misspells, in lower case."""

    @property
    def who(self) -> str:
        """The key that two mentions of one character share."""
        return self.spelling or self.name.lower()


@dataclass(frozen=True)
class Gazetteer:
    """The list of names of a corpus, by their lower-case form."""

    names: Mapping[str, CharacterName]
    pairs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often two names are adjacent: first name and surname."""

    def get(self, word: str, min_score: float = LIKELY_NAME_SCORE) -> CharacterName | None:
        """Return the name that a word is, if its score is at least ``min_score``; else None."""
        found = self.names.get(word.lower())
        return found if found is not None and found.score >= min_score else None

    def __len__(self) -> int:
        return sum(n.score >= LIKELY_NAME_SCORE for n in self.names.values())

    def one_person(self, first: str, second: str) -> bool:
        """Whether two adjacent names belong to one person: not if both often occur without each other."""
        a, b = self.names.get(first.lower()), self.names.get(second.lower())
        if a is None or b is None:
            return True
        together = self.pairs.get((first.lower(), second.lower()), 0)
        rarer = min(a.count, b.count)
        return rarer < 20 or together >= 0.05 * rarer

    def with_names(self, given: Iterable[tuple[str, str]]) -> Gazetteer:
        """Add the user's own names and genders; the gender ``word`` means that a word is not a name.

        >>> own = Gazetteer({}).with_names([("House", "male"), ("Oreo", "word")])
        >>> own.get("house").gender, own.get("oreo")
        ('male', None)
        """
        names = dict(self.names)
        for name, gender in given:
            key = name.lower()
            old = names.get(key)
            kind: Gender = "female" if gender == "female" else "male" if gender == "male" else "neutral"
            if not gender and old is not None:
                kind = old.gender
            elif not gender:
                kind = decide_gender(name, Counter())
            score = 0.0 if gender == "word" else 1.0
            known = old or CharacterName(name, score, common=key in ORDINARY_WORDS)
            names[key] = replace(known, score=score, gender=kind)
        return Gazetteer(names, self.pairs)


def name_score(word: str, e: WordEvidence) -> float:
    """Return how certain it is that a word is a person's name, from 0 to 1.

    >>> round(name_score("rachel", WordEvidence(inside=504, opening=664, acting=600, lower=5)), 2)
    1.0
    >>> name_score("doctor", WordEvidence(inside=7, opening=9, lower=83)) < 0.1
    True
    """
    if word in NEVER_NAMES or word in TITLES or word in ROLES or len(word) == 1:
        return 0.0
    known = word in FIRST_NAMES
    like = e.inside + 0.6 * e.acting + 2 * e.titled + 1.5 * known
    sloppy = min(e.lower - e.common, 0.05 * e.capital)  # names typed in lower case
    against = 0.4 + 0.8 * (word in ORDINARY_WORDS and not known) + max(0.0, e.lower - max(0.0, sloppy))
    inside = max(e.inside, 1)
    alien = 0.0 if e.capital > 100 else min(0.3 if known else 1.0, max(e.determined, 1.5 * e.located) / inside)
    return like / (like + against) * (1 - alien)


def build_gazetteer(texts: Sequence[tuple[str, str]]) -> Gazetteer:
    """Find the names in a corpus of pairs (query, show).

    >>> corpus = [("Elodie hugs her friend Ross.", ""), ("Ross smiles at Elodie.", ""), ("She sees the TV.", "")]
    >>> [(n.name, n.gender) for n in build_gazetteer(corpus).names.values() if n.score > 0.5]
    [('Elodie', 'female'), ('Ross', 'male')]
    """
    words, pairs = gather_evidence(texts)
    scores = {word: name_score(word, e) for word, e in words.items()}
    for (a, b), together in pairs.items():  # Central Perk, Star Wars: the second word of something that is not a name
        if together >= 0.8 * words[b].capital and scores[a] < LIKELY_NAME_SCORE and a not in TITLES:
            scores[b] = min(scores[b], scores[a])
    frequent = {w: words[w].capital for w, s in scores.items() if s >= 0.8 and words[w].capital >= 15}
    spellings = {w: s for w in words if (s := correct_spelling(w, words[w], frequent))}
    scores |= {w: max(scores[w], 0.9) for w in spellings}

    def find_name(token: WordToken) -> str | None:
        return (
            spellings.get(token.key, token.key)
            if token.capital and scores.get(token.key, 0) >= LIKELY_NAME_SCORE
            else None
        )

    pronouns = count_pronouns((text for text, _ in texts), find_name)
    names = {}
    for word, e in words.items():
        if scores[word] > 0:
            who = spellings.get(word, word)
            gender = decide_gender(who, pronouns.get(who, Counter()))
            common = word in ORDINARY_WORDS or e.common > 0.02 * e.capital or e.lower > max(1, 0.1 * e.capital)
            shown = e.spelled.most_common(1)[0][0]
            names[word] = CharacterName(
                shown, scores[word], gender, e.capital, common, dict(e.shows), spellings.get(word, "")
            )
    return Gazetteer(names, pairs)


GENDER_SPELLINGS = {
    "": "",
    **dict.fromkeys(("f", "female", "woman", "w"), "female"),
    **dict.fromkeys(("m", "male", "man"), "male"),
    **dict.fromkeys(("n", "neutral", "person", "either"), "neutral"),
    "word": "word",
}


def read_names(path: str | Path) -> list[tuple[str, str]]:
    """Read names and genders (female, male, neutral; ``word`` for a word that is not a name; "" if unknown).

    The file has a line ``name[,gender[,score]]`` per name, as ``write_names`` writes it.
    """
    names = []
    for number, row in enumerate(csv.reader(io.StringIO(open_document(path).text)), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        gender = cells[1].lower() if len(cells) > 1 else ""
        if not cells[0] or gender not in GENDER_SPELLINGS:
            raise MomentseekError(
                f"{path}: line {number:,} is {','.join(row)[:60]!r}; expected name,gender with female, male, neutral "
                "or word"
            )
        names += [(part, GENDER_SPELLINGS[gender]) for part in cells[0].split()]
    return names


def write_names(gazetteer: Gazetteer) -> bytes:
    """Return the bytes of a file of a gazetteer's names, the most frequent first.

    >>> write_names(Gazetteer({}).with_names([("Ross", "male")])).decode()
    'Ross,male,1.00\\n'
    """
    names = sorted(gazetteer.names.values(), key=lambda n: (-n.count, n.name))
    return "".join(f"{n.name},{n.gender},{n.score:.2f}\n" for n in names if n.score >= LIKELY_NAME_SCORE).encode()
