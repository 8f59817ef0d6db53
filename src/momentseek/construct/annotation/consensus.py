"""Consensus: one relevance level per pair out of two or four workers' labels (TVR-Ranking, section 3.2).

Two workers judge every pair. If their levels differ by at most 1, they agree; otherwise two more are asked, one of the
lowest and one of the highest of the four levels are set aside, and the middle two decide in the same way:

    agree  ⇔  high − low ≤ 1,      relevance = ⌈(low + high) / 2⌉,

with low and high the two levels that count. Pairs without agreement are discarded. On TVR-Ranking's raw labels this
gives the published 94,442 of 96,483 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from momentseek.construct.annotation.labels import LEVEL_COUNT, AnnotatorLabels
from momentseek.construct.decisions import Decision
from momentseek.errors import MomentseekError
from momentseek.moments.arrays import BoolArray, IntArray
from momentseek.tables import count

Incomplete = Literal["error", "drop"]
Repeats = Literal["count", "error"]
AGREEING_LEVELS_APART = 1
LABELS_PER_PAIR = (2, 4)


@dataclass(frozen=True, eq=False)
class Consensus:
    """The outcome for every pair: ``low`` and ``high`` are the two levels that count, -1 where labels are missing."""

    labels: AnnotatorLabels
    low: IntArray
    high: IntArray

    @property
    def complete(self) -> BoolArray:
        """Whether each pair has two or four labels."""
        return self.low >= 0

    @property
    def kept(self) -> BoolArray:
        """Whether the workers agree on each pair."""
        return self.complete & (self.high - self.low <= AGREEING_LEVELS_APART)

    @property
    def relevance(self) -> IntArray:
        """The relevance of every kept pair; -1 for the others."""
        return np.where(self.kept, (self.low + self.high + 1) // 2, -1)

    @property
    def levels(self) -> IntArray:
        """The number of kept pairs at each level."""
        return np.bincount(self.relevance[self.kept], minlength=LEVEL_COUNT)

    def count_discarded(self, labels: int) -> int:
        """Number of pairs with so many labels that were discarded for disagreement."""
        return int((self.complete & ~self.kept & (self.labels.counts == labels)).sum())

    def decisions(self) -> list[Decision]:
        """The decision about every pair, with the labels on which it rests."""
        table = zip(self.labels.pair_ids, self.labels.offsets.tolist(), self.labels.counts.tolist(), strict=False)
        relevance, kept, complete = self.relevance.tolist(), self.kept.tolist(), self.complete.tolist()
        levels = self.labels.relevance.tolist()
        names = [self.labels.workers[w] for w in self.labels.worker.tolist()]
        result = []
        people = self.labels.people.tolist()
        for i, (pair, start, size) in enumerate(table):
            rows = slice(start, start + size)
            evidence = {"labels": levels[rows], "workers": names[rows]}
            if kept[i]:
                reason = f"{_describe_annotators(size, people[i])} agree"
                result.append(Decision(pair, "kept", reason, {"relevance": relevance[i], **evidence}))
            elif complete[i]:
                result.append(
                    Decision(pair, "discarded", f"{_describe_annotators(size, people[i])} disagree", evidence)
                )
            else:
                result.append(Decision(pair, "dropped", f"{count(size, 'label')}, not 2 or 4", evidence))
        return result


def _describe_annotators(labels: int, people: int) -> str:
    """Who agrees or does not: annotators, or labels if one of them judged more than once.

    >>> _describe_annotators(2, 2), _describe_annotators(2, 1), _describe_annotators(4, 3)
    ('two annotators', 'two labels of one annotator', 'four labels of three annotators')
    """
    if labels == people:
        return f"{NUMBER_WORDS[labels]} annotators"
    return f"{NUMBER_WORDS[labels]} labels of {NUMBER_WORDS[people]} annotator{'s' * (people != 1)}"


NUMBER_WORDS = {1: "one", 2: "two", 3: "three", 4: "four"}


def find_consensus(
    labels: AnnotatorLabels, *, incomplete: Incomplete = "error", repeats: Repeats = "count"
) -> Consensus:
    """Find the consensus of the workers on every pair.

    ``incomplete`` says what happens to a pair that does not have two or four labels: it is refused ("error") or left
    out ("drop"). ``repeats`` says what happens to a worker's second label of a pair: it counts like any other
    ("count"), as in TVR-Ranking's published annotations, where 11,682 pairs have one, or it is refused ("error").

    >>> from momentseek.construct.annotation.labels import group_labels
    >>> rows = [("a", w, r) for w, r in zip("1234", (0, 2, 3, 4))] + [("b", "1", 1), ("b", "2", 4)]
    >>> found = find_consensus(group_labels(rows))
    >>> found.relevance.tolist(), found.count_discarded(2)
    ([3, -1], 1)
    """
    counts = labels.counts
    odd = np.flatnonzero(~np.isin(counts, LABELS_PER_PAIR))
    if incomplete == "error" and len(odd):
        first, more = int(odd[0]), len(odd) - 1
        others = count(more, "more pair has", "more pairs have")
        raise MomentseekError(
            f"{labels.source}: pair {labels.pair_ids[first]} has {count(int(counts[first]), 'label')}"
            f"{f', and {others} a wrong number' if more else ''}; the rule needs two, or four where "
            'two disagree (incomplete="drop" leaves such pairs out)'
        )
    if repeats == "error" and labels.repeated.any():
        row = int(np.flatnonzero(labels.repeated)[0])
        many = count(len(np.unique(labels.pair[labels.repeated])), "pair has", "pairs have")
        raise MomentseekError(
            f"{labels.source}: worker {labels.workers[labels.worker[row]]} judged pair "
            f"{labels.pair_ids[labels.pair[row]]} twice, and in all {many} "
            'a repeated worker; keep one label each (repeats="count" takes them as they are)'
        )
    low = np.full(len(counts), -1)
    high = low.copy()
    for size in LABELS_PER_PAIR:
        pairs = np.flatnonzero(counts == size)
        levels = np.sort(labels.relevance[labels.offsets[pairs][:, None] + np.arange(size)], axis=1)
        low[pairs], high[pairs] = levels[:, size // 2 - 1], levels[:, size // 2]
    return Consensus(labels, low, high)
