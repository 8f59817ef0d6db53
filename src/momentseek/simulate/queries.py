"""Queries: captions made imprecise, no text in two splits nor twice in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import IntArray
from momentseek.simulate.captions import captions
from momentseek.simulate.imprecise import imprecise
from momentseek.simulate.settings import Settings
from momentseek.simulate.story import Moments
from momentseek.simulate.world import World

VAL, TEST = 0.05, 0.15
"""Shares of the queries; of 5,000, 250 and 750."""
MOST_PARAPHRASES = 4


@dataclass(frozen=True, eq=False)
class Queries:
    """Texts, and for each the moment whose caption it is: those of train, then of val, then of test."""

    texts: tuple[str, ...]
    moment: IntArray
    sizes: tuple[int, int, int]

    def rows(self, split: str) -> slice:
        """The queries of ``train``, ``val`` or ``test``; a query's id is its row plus one."""
        train, val, _ = self.sizes
        return {
            "train": slice(0, train),
            "val": slice(train, train + val),
            "test": slice(train + val, sum(self.sizes)),
        }[split]


def choose_queries(world: World, moments: Moments, known: Sequence[str], settings: Settings) -> Queries:
    """Different texts, drawn from the imprecise captions ``known``, and from paraphrases where these are too few."""
    rng = settings.random("queries")
    first: dict[str, int] = {}
    _add(first, known, rng)
    for _ in range(MOST_PARAPHRASES):
        if len(first) >= settings.queries:
            break
        _add(first, imprecise(world, captions(world, moments, rng)), rng)
    if len(first) < settings.queries:
        raise MomentseekError(
            f"{settings.videos:,} videos give only {len(first):,} different queries, not {settings.queries:,}; "
            "ask for fewer (--queries) or make more videos (--videos)"
        )
    chosen = list(first.items())[: settings.queries]
    chosen = [chosen[i] for i in rng.permutation(len(chosen)).tolist()]
    val, test = max(1, round(VAL * len(chosen))), max(1, round(TEST * len(chosen)))
    return Queries(
        tuple(text for text, _ in chosen),
        np.array([moment for _, moment in chosen], dtype=np.int64),
        (len(chosen) - val - test, val, test),
    )


def _add(first: dict[str, int], texts: Sequence[str], rng: np.random.Generator) -> None:
    for row in rng.permutation(len(texts)).tolist():
        first.setdefault(texts[row], row)
