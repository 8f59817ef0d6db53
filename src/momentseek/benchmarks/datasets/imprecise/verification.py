"""The two checks that every rewritten query must pass (TVR-Ranking, section 3.1 and appendix A).

The meaning must be kept: the similarity before and after must be at least 0.4 (the paper uses SimCSE; we use the
installed text encoder, else a lexical similarity). For an encoder, names in the original are replaced by "someone",
because names affect encoders strongly: without this, MiniLM gives 3 % of TVR's good rewritings less than 0.4; with it,
none. And no name may be left, that is, no word with a name score of 0.8 or more (the paper uses Flair; we use the
gazetteer's evidence and, on request, spaCy).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.benchmarks.datasets.imprecise.mentions import NameFinder
from momentseek.benchmarks.datasets.imprecise.names import Gazetteer
from momentseek.benchmarks.datasets.imprecise.words import split_tokens
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.language import load_spacy
from momentseek.core.progress import ShowCount
from momentseek.core.reports import count
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.encoders.text_cache import encode_cached
from momentseek.recognition.encoders.vector_file import VectorFileEncoder

MIN_SIMILARITY = 0.4
CERTAIN_NAME_SCORE = 0.8

Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Texts before, texts after → one similarity per pair."""
Recogniser = Callable[[Sequence[str]], Sequence[Sequence[str]]]
"""Texts → the names of people found in each, by another tool."""


class MissingVectors(MomentseekError):
    """Raised when a file of vectors lacks some texts."""

    def __init__(self, source: str, texts: Sequence[str], where: str = "") -> None:
        self.source = source
        self.texts = tuple(texts)
        listed = f"see {where}, one per line" if where else f"such as {self.texts[0]!r}"
        lack = f"{source}: has no vector for {count(len(texts), 'text')}, {listed}"
        super().__init__(f"{lack}; add what is missing, then run the same command again")


@dataclass(frozen=True, slots=True)
class RewriteVerdict:
    """The result of the checks for one rewritten query."""

    similarity: float
    names: tuple[str, ...]
    reasons: tuple[str, ...]
    """Why the query failed; empty if it passed."""

    @property
    def passed(self) -> bool:
        """Whether the query passed both checks."""
        return not self.reasons


@dataclass(frozen=True)
class RewriteVerifier:
    """The two checks of rewritten queries, with their tools and thresholds."""

    gazetteer: Gazetteer
    similarity: Similarity
    similar: float = MIN_SIMILARITY
    named: float = CERTAIN_NAME_SCORE
    recognise: Recogniser | None = None
    as_written: bool = False
    """Whether to compare with the original including its names, as the paper does."""

    def verify(self, before: Sequence[str], after: Sequence[str], shows: Sequence[str]) -> list[RewriteVerdict]:
        """Check rewritten queries against the originals; one verdict per query.

        >>> cast = Gazetteer({}).with_names([("Ross", "male")])
        >>> check = RewriteVerifier(cast, lexical_similarity, as_written=True).verify
        >>> one, two = check(["Ross sits down."] * 2, ["A man sits down.", "Ross sits down now."], ["", ""])
        >>> one.passed, two.reasons
        (True, ('names are left: Ross',))
        """
        changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        old = [before[i] if self.as_written else mask_names(before[i], self.gazetteer, shows[i]) for i in changed]
        values = self.similarity(old, [after[i] for i in changed]) if changed else []
        similarity = dict(zip(changed, map(float, values), strict=True))
        names = self.names(after, shows)
        return [self._judge(text, similarity.get(i, 1.0), names[i]) for i, text in enumerate(after)]

    def names(self, texts: Sequence[str], shows: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the names left in every text (the second check only)."""
        further = self.recognise(texts) if self.recognise else [()] * len(texts)
        return [
            tuple(dict.fromkeys([*names_left(text, self.gazetteer, show, self.named), *found]))
            for text, show, found in zip(texts, shows, further, strict=True)
        ]

    def _judge(self, text: str, similarity: float, names: tuple[str, ...]) -> RewriteVerdict:
        reasons = []
        if not text.strip():
            reasons.append("nothing is left")
        if similarity < self.similar:
            reasons.append(f"similarity {similarity:.2f} is below {self.similar:g}")
        if names:
            reasons.append(f"names are left: {', '.join(names)}")
        return RewriteVerdict(similarity, names, tuple(reasons))


def mask_names(text: str, gazetteer: Gazetteer, show: str = "") -> str:
    """Replace every name of a query by "someone".

    >>> mask_names("Rachel's dog sees Rachel.", Gazetteer({}).with_names([("Rachel", "female")]))
    "someone's dog sees someone."
    """
    words = split_tokens(text)
    for mention in reversed(NameFinder(gazetteer, show).mentions(words)):
        text = text[: words[mention.first].start] + "someone" + text[words[mention.last - 1].end :]
    return text


def names_left(text: str, gazetteer: Gazetteer, show: str = "", min_score: float = CERTAIN_NAME_SCORE) -> list[str]:
    """Return the words of a text that are names with a score of at least ``min_score``, in any position.

    >>> names_left("The Rachel and a man", Gazetteer({}).with_names([("Rachel", "female")]))
    ['Rachel']
    """
    words = split_tokens(text)
    found = NameFinder(gazetteer, show, min_score, strict=True).mentions(words)
    return [text[words[m.first].start : words[m.last - 1].end] for m in found]


def lexical_similarity(before: Sequence[str], after: Sequence[str]) -> list[float]:
    """Return the cosine of the counts of letter triples, which needs no model and ignores meaning.

    >>> [round(s, 2) for s in lexical_similarity(["Ross opens the door."] * 2, ["A man opens the door.", "No."])]
    [0.71, 0.1]
    """
    return [_cosine(_triples(a), _triples(b)) for a, b in zip(before, after, strict=True)]


def encoder_similarity(name: str = "minilm", progress: ShowCount | None = None) -> Similarity:
    """Return a similarity by the cosine of a text encoder's sentence vectors; an error if it is not installed.

    If the encoder is a file of vectors, ``MissingVectors`` names all missing texts at once. Texts are looked up as they
    are, else with single spaces, as in a file with one text per line.
    """
    encoder = text_encoder(name)

    def has_vector(text: str) -> bool:
        try:
            encoder.encode([text])
        except MomentseekError:
            return False
        return True

    def similarity(before: Sequence[str], after: Sequence[str]) -> list[float]:
        texts = [*before, *after]
        if isinstance(encoder, VectorFileEncoder):
            texts = [text if has_vector(text) else " ".join(text.split()) for text in texts]
            if missing := [text for text in dict.fromkeys(texts) if not has_vector(text)]:
                raise MissingVectors(encoder.name, missing)
        vectors = encode_cached(encoder, texts, progress=progress)
        left, right = vectors[: len(before)], vectors[len(before) :]
        return [float(s) for s in np.einsum("ij,ij->i", left, right)]

    return similarity


def load_similarity(name: str | None, progress: ShowCount | None = None) -> tuple[Similarity, str, str]:
    """Return the similarity of an encoder's name or ``lexical``, its name, and a note if it is only a fallback.

    Without a name, it is the default encoder's, or the lexical one if that is not installed.
    """
    if name == "lexical":
        return lexical_similarity, "lexical", ""
    try:
        return encoder_similarity(name or "minilm", progress), name or "minilm", ""
    except MomentseekError as e:
        if name:
            raise
        return lexical_similarity, "lexical", f"similarity compares letters, not meaning, because {e}"


def _triples(text: str) -> Counter[str]:
    padded = f"  {text.lower().strip()}  "
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    dot = sum(n * b[gram] for gram, n in a.items())
    norms = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return dot / norms if norms else 1.0


def spacy_recogniser() -> Recogniser:
    """Return a function that finds capitalised names of people with spaCy, as a check on the gazetteer.

    On TVR's 8,097 rewritten val descriptions it flags 32, four of them correctly, in 24 s
    (docs/measurements/evaluation.md). Raises an error if spaCy or its English model is missing.
    """
    pipeline = load_spacy("lemmatizer", "parser")
    if pipeline is None:
        raise MomentseekError(
            f"finding names with spaCy ({parameter('ner')}) needs its English model; install momentseek[nlp], or "
            "leave it out"
        )

    def recognise(texts: Sequence[str]) -> list[list[str]]:
        return [
            [e.text for e in document.ents if e.label_ == "PERSON" and e.text[0].isupper() and len(e.text) > 1]
            for document in pipeline.pipe(texts, batch_size=256)
        ]

    return recognise
