"""The list of character names, built from the annotations themselves: no network, no model.

A name is a word that is capitalised inside sentences, seldom in lower case, and seldom after an article or "in". Its
score, from 0 to 1, weighs these counts; known first names start with some credit, ordinary words with some debt.
Rare misspellings of frequent names (Pheobe, Espostio, Rachels) follow the name they resemble.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from momentseek.construct.imprecise.evidence import WordEvidence, gather_evidence
from momentseek.construct.imprecise.first_names import FIRST_NAMES
from momentseek.construct.imprecise.genders import Gender, count_pronouns, decide_gender
from momentseek.construct.imprecise.tokens import WordToken
from momentseek.construct.imprecise.word_lists import NEVER_NAMES, ORDINARY_WORDS, ROLES, TITLES
from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document


def edit_distance(a: str, b: str) -> int:
    """Number of letters changed, dropped, added or swapped with their neighbour between two words.

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
    """The frequent name of which a rare word is a misspelling (or a possessive without apostrophe), or "".

    >>> correct_spelling("pheobe", WordEvidence(inside=10), {"phoebe": 800, "ross": 1100})
    'phoebe'
    >>> correct_spelling("monicas", WordEvidence(inside=1), {"monica": 1000})
    'monica'
    """
    if word in frequent or evidence.lower > 1 or len(word) < 4:
        return ""
    best, least = "", 3
    for name, count in frequent.items():
        if name[0] != word[0] or count < 10 * evidence.capital or abs(len(name) - len(word)) > 2:
            continue
        if word == f"{name}s":
            return name
        allowed = 0 if word in FIRST_NAMES else 1 if len(name) < 7 else 2
        if len(name) >= 4 and (n := edit_distance(word, name)) <= allowed and n < least:
            best, least = name, n
    return best


LIKELY_NAME_SCORE = 0.5
"""A word with this score is replaced as a name; the check afterwards requires more (0.8)."""
MIN_CAST_MENTIONS = 5
"""Times a name must be capitalised in a show's descriptions before its lower-case form counts there too."""


@dataclass(frozen=True, slots=True)
class CharacterName:
    """One name: how certainly it is a name, its gender, and in which shows it occurs."""

    name: str
    score: float
    gender: Gender = "neutral"
    count: int = 0
    common: bool = False
    """Whether it is also an ordinary word (castle, penny), so that lower case does not show a name."""
    shows: Mapping[str, int] = field(default_factory=dict)
    spelling: str = ""
    """The name of which this is a misspelling, in lower case."""

    @property
    def who(self) -> str:
        """The key that two mentions of one character share."""
        return self.spelling or self.name.lower()


@dataclass(frozen=True)
class Gazetteer:
    """The list of names of a corpus, by their lower-case form."""

    names: Mapping[str, CharacterName]
    pairs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often two names stand side by side: first name and surname."""

    def get(self, word: str, least: float = LIKELY_NAME_SCORE) -> CharacterName | None:
        """The name that a word is, if its score is at least ``least``; else None."""
        found = self.names.get(word.lower())
        return found if found is not None and found.score >= least else None

    def __len__(self) -> int:
        return sum(n.score >= LIKELY_NAME_SCORE for n in self.names.values())

    def one_person(self, first: str, second: str) -> bool:
        """Whether two names side by side belong to one person: not if both often occur without each other."""
        a, b = self.names.get(first.lower()), self.names.get(second.lower())
        if a is None or b is None:
            return True
        together = self.pairs.get((first.lower(), second.lower()), 0)
        rarer = min(a.count, b.count)
        return rarer < 20 or together >= 0.05 * rarer

    def with_names(self, given: Iterable[tuple[str, str]]) -> Gazetteer:
        """Add the user's own names and genders; the gender ``word`` says that a word is no name at all.

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
    """How certainly a word is a person's name, from 0 to 1.

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
    for (a, b), together in pairs.items():  # Central Perk, Star Wars: the second word of what is no name
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
    """Read names and genders (female, male, neutral; ``word`` for a word that is no name; "" if unknown).

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
    """The bytes of a file of a gazetteer's names, the most frequent first.

    >>> write_names(Gazetteer({}).with_names([("Ross", "male")])).decode()
    'Ross,male,1.00\\n'
    """
    names = sorted(gazetteer.names.values(), key=lambda n: (-n.count, n.name))
    return "".join(f"{n.name},{n.gender},{n.score:.2f}\n" for n in names if n.score >= LIKELY_NAME_SCORE).encode()
