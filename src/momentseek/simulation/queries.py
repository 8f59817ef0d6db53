"""Queries: captions without names, each text only once and in one split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import IntArray
from momentseek.simulation.captions import remove_names, write_captions
from momentseek.simulation.settings import SimulationSettings
from momentseek.simulation.story import SimulatedMoments
from momentseek.simulation.world import World

VAL_SHARE, TEST_SHARE = 0.05, 0.15
"""Shares of the queries; of 5,000, 250 and 750."""
MAX_PARAPHRASE_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class SimulatedQueries:
    """Texts of queries and for each the moment whose caption it is: train first, then val, then test."""

    texts: tuple[str, ...]
    moment: IntArray
    sizes: tuple[int, int, int]

    def rows(self, split: str) -> slice:
        """The rows of the queries of ``train``, ``val`` or ``test``; a query's id is its row plus one."""
        train, val, _ = self.sizes
        return {
            "train": slice(0, train),
            "val": slice(train, train + val),
            "test": slice(train + val, sum(self.sizes)),
        }[split]


def choose_queries(
    world: World, moments: SimulatedMoments, known: Sequence[str], settings: SimulationSettings
) -> SimulatedQueries:
    """Draw different texts from the imprecise captions ``known``, and from paraphrases if these are too few."""
    rng = settings.random("queries")
    first: dict[str, int] = {}
    _add(first, known, rng)
    for _ in range(MAX_PARAPHRASE_ROUNDS):
        if len(first) >= settings.queries:
            break
        _add(first, remove_names(world, write_captions(world, moments, rng)), rng)
    if len(first) < settings.queries:
        raise MomentseekError(
            f"{settings.videos:,} videos give only {len(first):,} different queries, not {settings.queries:,}; "
            "ask for fewer (`queries`) or make more videos (`videos`)"
        )
    chosen = list(first.items())[: settings.queries]
    chosen = [chosen[i] for i in rng.permutation(len(chosen)).tolist()]
    val, test = max(1, round(VAL_SHARE * len(chosen))), max(1, round(TEST_SHARE * len(chosen)))
    return SimulatedQueries(
        tuple(text for text, _ in chosen),
        np.array([moment for _, moment in chosen], dtype=np.int64),
        (len(chosen) - val - test, val, test),
    )


def _add(first: dict[str, int], texts: Sequence[str], rng: np.random.Generator) -> None:
    for row in rng.permutation(len(texts)).tolist():
        first.setdefault(texts[row], row)
