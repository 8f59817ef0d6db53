"""One query of a split, by its id or its text; or a text of one's own, encoded as the data's queries were."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from momentseek.encoders.protocol import WordEncoder, fingerprint
from momentseek.encoders.registry import text_encoder
from momentseek.errors import MomentseekError
from momentseek.features.data import Data, DataSplit
from momentseek.features.store import Array
from momentseek.moments import Judgements, Moment
from momentseek.trained.manifest import sources_of

OWN_TEXT_ID = "own"
"""The id of a text that no truth knows."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """The word features of one query."""

    words: Array

    def rows(self, name: str, /) -> int:
        """Number of words of the query."""
        return len(self.words)

    def read(self, name: str, /) -> Array:
        """Features of all words of the query."""
        return self.words


@dataclass(frozen=True, eq=False)
class Question:
    """One query, as something to predict for: a split of its own."""

    id: str
    text: str
    words: tuple[str, ...]
    """The words that the rows of the query's features stand for."""
    relevant: tuple[tuple[Moment, int], ...]
    """Relevant moments of the query and their levels, best first; empty for a text that is no query of the split."""
    query: WordTable
    truth: Judgements
    corpus: tuple[str, ...]
    durations: Mapping[str, float]


def question(data: Data, split: str, asked: str) -> Question:
    """The query that ``asked`` means: an id of the split, a text of it, or any other text."""
    of = data.split(split)
    texts = of.truth.queries or ()
    if asked in of.truth:
        return _judged_question(data, of, asked)
    if asked in texts:
        return _judged_question(data, of, of.truth.query_ids[texts.index(asked)])
    if asked.isdigit():
        raise MomentseekError(f"{of.truth.source}: has no query {asked}; give an id of the split {split}, or a text")
    source = sources_of(data.path).get("query")
    if source is None:
        raise MomentseekError(
            f"no query of the split {split} reads {asked!r}, and the data do not say which encoder made their queries' "
            "features, so that it cannot be encoded; give the id or the exact text of one"
        )
    encoder = text_encoder(source.spec)
    if not isinstance(encoder, WordEncoder) or (fingerprint(encoder) or encoder.name) != source.fingerprint:
        raise MomentseekError(f"{data.path}: its queries were encoded by another {source.spec!r} than the one here")
    truth = Judgements.from_groups([OWN_TEXT_ID], [0], [], [], [], queries=[asked])
    words = tuple(encoder.tokens(asked))
    return Question(OWN_TEXT_ID, asked, words, (), WordTable(encoder.words([asked])[0]), truth, of.corpus, of.durations)


def _judged_question(data: Data, of: DataSplit, id: str) -> Question:
    rows = of.truth.rows(id)
    moments, levels = of.truth.moments(id), of.truth.relevance[rows].tolist()
    order = np.argsort([-level for level in levels], kind="stable").tolist()
    relevant = tuple((moments[i], int(levels[i])) for i in order if levels[i] > 0)
    text = of.truth.text(id) or ""
    features = of.query.read(id)
    truth = Judgements.from_groups(
        [id],
        [len(moments)],
        [m.video for m in moments],
        [m.start for m in moments],
        [m.end for m in moments],
        levels,
        queries=[text],
    )
    return Question(
        id, text, _labels(data, text, len(features)), relevant, WordTable(features), truth, of.corpus, of.durations
    )


def _labels(data: Data, text: str, rows: int) -> tuple[str, ...]:
    """What each row of a query's features stands for, as far as can be told: tokens, words, or numbers."""
    source = sources_of(data.path).get("query")
    if source is not None:
        encoder = text_encoder(source.spec)
        if isinstance(encoder, WordEncoder) and len(tokens := encoder.tokens(text)) == rows:
            return tuple(tokens)
    for words in (text.split(), re.findall(r"\w+(?:'\w+)?|[^\w\s]", text)):
        if len(words) == rows:
            return tuple(words)
        if len(words) + 2 == rows:
            return ("[CLS]", *words, "[SEP]")
    return tuple(str(i + 1) for i in range(rows))
