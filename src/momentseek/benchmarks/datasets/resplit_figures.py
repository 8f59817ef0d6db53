"""Figures of the locations of moments, per split and per verb, and of the verbs of each split.

They follow debiased grounding's Figures 2, 4, 5 and 6 (Lan et al., §3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.benchmarks.datasets.pairs import locations
from momentseek.benchmarks.density import kernel_sums
from momentseek.core.figures import draw_figures, label_rows, location_map, subplots
from momentseek.core.language import verbs
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure


GRID_CELLS = 100
DRAWN_BANDWIDTH = 0.02
"""Bandwidth of the drawn densities; the split itself uses the recipe's."""
MAX_VERBS = 30
MAX_VERBS_ON_MAPS = 4
MIN_MOMENTS_PER_VERB = 20
"""Minimum number of moments of a verb in each panel."""
OOD_SPLIT = "test_ood"
FIGURE_FILES = tuple(
    f"{name}.{kind}"
    for name in ("locations-before", "locations-after", "verbs", "locations-by-verb")
    for kind in ("png", "svg")
)
"""The files that ``draw_resplit`` may draw."""


def draw_resplit(inputs: Mapping[str, Judgements], splits: Mapping[str, Judgements]) -> dict[str, bytes]:
    """Draw all figures as PNG and SVG; return bytes by file name (some of ``FIGURE_FILES``)."""
    words = {name: [verbs(q) for q in split.queries or ()] for name, split in splits.items()}
    figures: dict[str, Callable[[], Figure]] = {
        "locations-before": lambda: densities_figure(inputs),
        "locations-after": lambda: densities_figure(splits),
    }
    if any(any(w) for w in words.values()):
        figures["verbs"] = lambda: verbs_figure(words)
        if chosen := telling_verbs(words):
            figures["locations-by-verb"] = lambda: by_verb_figure(splits, words, chosen)
    return draw_figures(figures)


def densities_figure(parts: Mapping[str, Judgements]) -> Figure:
    """Draw one panel per file or split: how dense moments are at each (start, end)."""
    figure, axes = subplots(1, len(parts), 0.6 + 2.4 * len(parts), 3.0)
    for ax, (name, part) in zip(axes[0], parts.items(), strict=True):
        _draw_density(ax, locations(part, clip=True), rare=name == OOD_SPLIT)
        ax.set_title(f"{name}\n{count(len(part.videos), 'video')}, {count(len(part), 'pair')}", fontsize=8)
    axes[0][0].set_ylabel("end / duration")
    return figure


def by_verb_figure(
    splits: Mapping[str, Judgements], words: Mapping[str, list[list[str]]], chosen: Sequence[str]
) -> Figure:
    """Draw the locations of the moments of some verbs, with train above and test-ood below."""
    figure, axes = subplots(2, len(chosen), 0.8 + 2.2 * len(chosen), 5.0)
    for row, split in zip(axes, ("train", OOD_SPLIT), strict=True):
        places = locations(splits[split], clip=True)
        for ax, verb in zip(row, chosen, strict=True):
            having = np.array([verb in said for said in words[split]])
            _draw_density(ax, places[having], rare=split == OOD_SPLIT)
            ax.set_title(f"{verb}, {split}: {having.sum():,}", fontsize=8)
        row[0].set_ylabel("end / duration")
    for ax in axes[0]:
        ax.set_xlabel("")
    return figure


def verbs_figure(words: Mapping[str, list[list[str]]]) -> Figure:
    """Draw each split's share of the most frequent verbs of the whole dataset, one panel per split."""
    counts = {name: Counter(v for said in lists for v in said) for name, lists in words.items()}
    total = sum(counts.values(), Counter[str]())
    top = [verb for verb, _ in total.most_common(MAX_VERBS)]
    figure, axes = subplots(1, len(counts), 1.0 + 1.9 * len(counts), 0.9 + 0.17 * len(top))
    for i, (ax, (name, said)) in enumerate(zip(axes[0], counts.items(), strict=True)):
        share = np.array([100 * said[verb] / max(1, said.total()) for verb in top])
        ax.barh(range(len(top)), share, 0.75, color="#D55E00" if name == OOD_SPLIT else "#009E73")
        ax.set_title(f"{name}\n{share.sum():.1f} % of {said.total():,}", fontsize=8)
        label_rows(ax, top, shown=i == 0, fontsize=8)
        ax.set_xlabel("% of its verbs")
    widest = max(ax.get_xlim()[1] for ax in axes[0])
    for ax in axes[0]:
        ax.set_xlim(0, widest)
    return figure


def telling_verbs(words: Mapping[str, list[list[str]]]) -> list[str]:
    """Return the most frequent verbs of test-ood that are also frequent enough in train.

    >>> telling_verbs({"train": [["sit"], ["eat"]] * 20, "test_ood": [["sit"]] * 20 + [["eat"]]})
    ['sit']
    """
    train, rare = (Counter(v for said in words[name] for v in set(said)) for name in ("train", OOD_SPLIT))
    often = [v for v, n in rare.most_common() if n >= MIN_MOMENTS_PER_VERB and train[v] >= MIN_MOMENTS_PER_VERB]
    return often[:MAX_VERBS_ON_MAPS]


def _draw_density(ax: Any, places: FloatArray, *, rare: bool) -> None:
    centres = (np.arange(GRID_CELLS) + 0.5) / GRID_CELLS
    start, end = np.meshgrid(centres, centres)
    values = kernel_sums(places, np.column_stack([start.ravel(), end.ravel()]), DRAWN_BANDWIDTH, radius=4.0)
    shown = np.ma.masked_where(end < start - 1 / GRID_CELLS, values.reshape(GRID_CELLS, GRID_CELLS))
    location_map(ax, shown, "Oranges" if rare else "Greens", top=float(values.max()), interpolation="bilinear")
    ax.set_xlabel("start / duration")
