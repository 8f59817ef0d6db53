"""The actions that queries name most: verbs by how often they occur, each with the mean of its words' features.

MDD's dictionary of actions begins from the word embeddings of the most frequent actions (debiased grounding, section
4.4). Features that depend on the sentence differ between occurrences of a verb, hence the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.language.roles import VERB, Roles, load_parser
from momentseek.language.verbs import verb_bases

Floats = NDArray[np.float32]
QueryRows = tuple[str, Floats]
"""A query's text and the features of its words."""
QUERIES_PER_PARSE = 1024


def frequent_verbs(queries: Iterable[QueryRows], count: int, parse: str = "auto") -> tuple[list[str], Floats]:
    """Base forms of the ``count`` most frequent verbs and their mean features (verbs, dim), the most frequent first.

    Verbs that are as frequent go by the alphabet. Where the words of a text and its rows disagree, it is passed over.

    >>> rows = np.eye(3, dtype=np.float32)
    >>> names, means = frequent_verbs([("she opens doors", rows), ("he opened boxes", rows), ("they run off", rows)], 2)
    >>> names, means.tolist()
    (['open', 'run'], [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    """
    sums: dict[str, NDArray[Any]] = {}
    seen: dict[str, int] = {}
    width = 0
    for roles, rows in _parse_queries(queries, parse):
        width = rows.shape[1]
        role, _ = roles.fit_to_features(len(rows))
        bases = verb_bases(list(roles.words))
        for place, part in enumerate(role):
            if part == VERB:
                verb = bases[place] or roles.words[place]
                sums[verb] = sums.get(verb, 0.0) + rows[place].astype(np.float64)
                seen[verb] = seen.get(verb, 0) + 1
    names = sorted(seen, key=lambda verb: (-seen[verb], verb))[:count]
    means = np.array([sums[verb] / seen[verb] for verb in names], np.float32).reshape(len(names), width)
    return names, means


def _parse_queries(queries: Iterable[QueryRows], parse: str) -> Iterator[tuple[Roles, Floats]]:
    several, parsing = iter(queries), load_parser(parse)
    while part := list(islice(several, QUERIES_PER_PARSE)):
        yield from zip(parsing([text for text, _ in part]), (rows for _, rows in part), strict=True)
