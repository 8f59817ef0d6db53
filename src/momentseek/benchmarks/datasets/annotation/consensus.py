"""Consensus: one relevance level per pair from two or four workers' labels (TVR-Ranking, section 3.2).

Two workers judge every pair. If their levels differ by at most 1, they agree; otherwise two more are asked, one of the
lowest and one of the highest of the four levels are set aside, and the middle two decide in the same way:

    agree  ⇔  high − low ≤ 1,      relevance = ⌈(low + high) / 2⌉,

with low and high the two levels that count. Pairs without agreement are discarded. On TVR-Ranking's raw labels this
gives the published 94,442 of 96,483 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from momentseek.benchmarks.datasets.annotation.labels import LEVEL_COUNT, AnnotatorLabels
from momentseek.benchmarks.datasets.common import Decision
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.figures import COLOURS, draw_figures, subplots
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray, stable_order
from momentseek.core.reports import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Incomplete = Literal["error", "drop"]
Repeats = Literal["count", "error"]
AGREEING_LEVELS_APART = 1
LABELS_PER_PAIR = (2, 4)


@dataclass(frozen=True, eq=False)
class Consensus:
    """The outcome for every pair: ``low`` and ``high`` are the two levels that count, -1 if labels are missing."""

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
        """Count the pairs with this number of labels that were discarded for disagreement."""
        return int((self.complete & ~self.kept & (self.labels.counts == labels)).sum())

    def decisions(self) -> list[Decision]:
        """Return the decision about every pair, with the labels it is based on."""
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
    """Describe who agrees or disagrees: annotators, or labels if one of them judged more than once.

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

    ``incomplete`` says whether a pair that does not have two or four labels is an "error" or left out ("drop").
    ``repeats`` says whether a worker's second label of a pair counts like any other ("count"), as in TVR-Ranking's
    published annotations, where 11,682 pairs have one, or is an "error".

    >>> from momentseek.benchmarks.datasets.annotation.labels import group_labels
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
            f"two disagree ({parameter('incomplete', 'drop')} leaves such pairs out)"
        )
    if repeats == "error" and labels.repeated.any():
        row = int(np.flatnonzero(labels.repeated)[0])
        many = count(len(np.unique(labels.pair[labels.repeated])), "pair has", "pairs have")
        raise MomentseekError(
            f"{labels.source}: worker {labels.workers[labels.worker[row]]} judged pair "
            f"{labels.pair_ids[labels.pair[row]]} twice, and in all {many} "
            f"a repeated worker; keep one label each ({parameter('repeats', 'count')} takes them as they are)"
        )
    low = np.full(len(counts), -1)
    high = low.copy()
    for size in LABELS_PER_PAIR:
        pairs = np.flatnonzero(counts == size)
        levels = np.sort(labels.relevance[labels.offsets[pairs][:, None] + np.arange(size)], axis=1)
        low[pairs], high[pairs] = levels[:, size // 2 - 1], levels[:, size // 2]
    return Consensus(labels, low, high)


DRIFT_PARTS = 10


@dataclass(frozen=True, slots=True)
class Drift:
    """The number of a worker's labels, their mean deviation, and the deviation in each tenth of the work."""

    worker: str
    labels: int
    compared: int
    deviation: float
    tenths: tuple[float, ...]


def measure_drift(found: Consensus) -> list[Drift]:
    """Measure the drift of every worker, most labels first; NaN for those who judged no pair that was kept.

    >>> from momentseek.benchmarks.datasets.annotation.consensus import find_consensus
    >>> from momentseek.benchmarks.datasets.annotation.labels import group_labels
    >>> rows = [(p, w, r) for p in range(20) for w, r in (("kind", 3), ("strict", 2))]
    >>> [(d.worker, d.deviation, d.tenths[0]) for d in measure_drift(find_consensus(group_labels(rows)))]
    [('kind', 0.5, 0.5), ('strict', -0.5, -0.5)]
    """
    labels = found.labels
    middle = (found.low + found.high) / 2
    deviation = labels.relevance - middle[labels.pair]
    counted = found.kept[labels.pair]
    in_order = stable_order(labels.place)
    by_worker = in_order[stable_order(labels.worker[in_order])]
    bounds = np.searchsorted(labels.worker[by_worker], np.arange(len(labels.workers) + 1))
    result = []
    for w, name in enumerate(labels.workers):
        rows = by_worker[bounds[w] : bounds[w + 1]]
        used = rows[counted[rows]]
        parts = np.array_split(deviation[used], DRIFT_PARTS)
        result.append(Drift(name, len(rows), len(used), _mean(deviation[used]), tuple(map(_mean, parts))))
    return sorted(result, key=lambda d: -d.labels)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


@dataclass(frozen=True, eq=False)
class LabelDistributions:
    """Pairs counted by (lowest, highest) label in three ways, and levels before and after the consensus."""

    first_two: IntArray
    """Pairs by their first two labels, before two more workers were asked. This relies on the file's order: if rows of
    a pair are sorted by worker, as in TVR-Ranking's file, the first two need not be those who judged first."""
    every: IntArray
    """Pairs by all their labels: figure 5a."""
    counting: IntArray
    """Pairs by the two labels that count, after the extremes of four were set aside."""
    raw: IntArray
    """Number of labels at each level."""
    final: IntArray
    """Number of kept pairs at each level: figure 5b."""


def label_distributions(found: Consensus) -> LabelDistributions:
    """Count labels and complete pairs; entry (a, b) of a matrix counts pairs with lowest a and highest b.

    >>> from momentseek.benchmarks.datasets.annotation.consensus import find_consensus
    >>> from momentseek.benchmarks.datasets.annotation.labels import group_labels
    >>> four = find_consensus(group_labels([("p", w, r) for w, r in enumerate((0, 3, 2, 1))]))
    >>> found = label_distributions(four)
    >>> [np.argwhere(m).tolist() for m in (found.first_two, found.every, found.counting)]
    [[[0, 3]], [[0, 3]], [[1, 2]]]
    """
    labels, complete = found.labels, found.complete
    start = labels.offsets[:-1]
    rows = np.flatnonzero(labels.counts > 0)
    lowest = np.minimum.reduceat(labels.relevance, start[rows])[complete[rows]]
    highest = np.maximum.reduceat(labels.relevance, start[rows])[complete[rows]]
    one, other = labels.relevance[start[complete]], labels.relevance[start[complete] + 1]
    return LabelDistributions(
        _matrix(np.minimum(one, other), np.maximum(one, other)),
        _matrix(lowest, highest),
        _matrix(found.low[complete], found.high[complete]),
        np.bincount(labels.relevance, minlength=LEVEL_COUNT),
        found.levels,
    )


def _matrix(low: IntArray, high: IntArray) -> IntArray:
    return np.bincount(low * LEVEL_COUNT + high, minlength=LEVEL_COUNT * LEVEL_COUNT).reshape(LEVEL_COUNT, LEVEL_COUNT)


def draw_consensus(distributions: LabelDistributions) -> dict[str, bytes]:
    """Draw both figures as PNG and SVG: file name → bytes."""
    figures = {"lowest-highest": partial(draw_matrices, distributions), "scores": partial(draw_levels, distributions)}
    return draw_figures(figures)


def draw_matrices(distributions: LabelDistributions) -> Figure:
    """Draw pairs by lowest and highest label: of all labels (figure 5a), and of the two that count."""
    figure, (axes,) = subplots(1, 2, 7.6, 3.7)
    panels: list[tuple[str, IntArray]] = [
        ("all labels", distributions.every),
        ("the two that count", distributions.counting),
    ]
    for ax, (title, counts) in zip(axes, panels, strict=True):
        share = 100 * counts / max(1, counts.sum())
        shown = np.ma.masked_array(share, np.tril(np.ones_like(counts, dtype=bool), -1))
        ax.imshow(shown, cmap="Blues", vmin=0)
        for low in range(LEVEL_COUNT):
            for high in range(low, LEVEL_COUNT):
                colour = "white" if share[low, high] > share.max() / 2 else "black"
                ax.text(high, low, f"{share[low, high]:.2f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_title(f"{title} (% of {int(counts.sum()):,} pairs)", fontsize=9, loc="left")
        ax.set_xlabel("highest label")
        ax.set_xticks(range(LEVEL_COUNT))
        ax.set_yticks(range(LEVEL_COUNT))
    axes[0].set_ylabel("lowest label")
    return figure


def draw_levels(distributions: LabelDistributions) -> Figure:
    """Draw labels by level before the consensus, and kept pairs by level after it (figure 5b)."""
    figure, (axes,) = subplots(1, 2, 7.6, 3.0)
    panels = [("labels before", distributions.raw), ("pairs after (final relevance)", distributions.final)]
    for ax, (title, counts), colour in zip(axes, panels, COLOURS, strict=False):
        bars = ax.bar(range(LEVEL_COUNT), counts, 0.7, color=colour)
        ax.bar_label(bars, labels=[f"{100 * n / max(1, counts.sum()):.1f} %" for n in counts], fontsize=8)
        ax.set_title(f"{title}: {int(counts.sum()):,}", fontsize=9, loc="left")
        ax.set_xlabel("relevance")
        ax.set_xticks(range(LEVEL_COUNT))
    return figure
