"""Figures of a dataset: lengths, positions and types of moments and queries, similarity and relevance, hand labels.

They follow TVR's Figures 8 to 11, 14 and 15, debiased grounding's Figure 3, and TVR-Ranking's Figures 4 and 6.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.datasets.statistics import AnnotationSplit, LabelCounts
from momentseek.core.figures import COLOURS, MARKERS, draw_figures, label_rows, legend_below, subplots
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import MAX_RELEVANCE
from momentseek.core.reports import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 30
MAX_PANELS = 4
"""Maximum number of panels in a row."""
SHOWN_SHARE = 0.99
"""Share of the values that a histogram without an upper limit shows; its title gives the largest value."""
SAMPLE_QUERIES = 10
EXAMPLE_QUERIES, EXAMPLE_MOMENTS = 2, 5
STATISTICS_FIGURES = (
    "moment-lengths",
    "moment-shares",
    "moment-centres",
    "query-lengths",
    "query-types",
    "labels",
    "similarity-relevance",
    "similarity-examples",
)
"""The names of all figures that ``draw_statistics`` may draw."""


def draw_statistics(
    splits: Sequence[AnnotationSplit], labels: Mapping[str, Mapping[str, LabelCounts]]
) -> dict[str, bytes]:
    """Draw the figures that the splits have data for, as PNG and SVG; return bytes by file name."""
    seconds = {s.name: _distinct_moments(s) for s in splits}
    shares = {s.name: _shares(s) for s in splits if np.isfinite(s.truth.durations).any()}
    words = {s.name: s.token_counts for s in splits if len(s.texts)}
    types = {s.name: s.truth.fields["type"] for s in splits if "type" in s.truth.fields}
    compared = [s for s in splits if _has_similarity(s)]
    marks = {name: found for name, found in labels.items() if found}
    wanted: dict[str, tuple[object, Callable[[], Figure]]] = {
        "moment-lengths": (seconds, lambda: histograms(seconds, "moment length (s)", "moments")),
        "moment-shares": (
            shares,
            lambda: histograms({n: e - s for n, (s, e) in shares.items()}, "moment / video length", "pairs", top=1.0),
        ),
        "moment-centres": (
            shares,
            lambda: histograms({n: (s + e) / 2 for n, (s, e) in shares.items()}, "centre / video length", "pairs", 1.0),
        ),
        "query-lengths": (words, lambda: histograms(words, "words and punctuation marks", "queries")),
        "query-types": (types, lambda: types_figure(types)),
        "labels": (marks, lambda: labels_figure(marks)),
        "similarity-relevance": (compared, lambda: similarity_figure(compared)),
        "similarity-examples": (compared, lambda: examples_figure(compared[0])),
    }
    assert tuple(wanted) == STATISTICS_FIGURES
    return draw_figures({name: draw for name, (there, draw) in wanted.items() if there})


def histograms(values: Mapping[str, FloatArray | IntArray], what: str, of: str, top: float | None = None) -> Figure:
    """Draw a histogram per split in percent, on one scale, with mean and median, up to ``top`` or nearly all values."""
    known = {name: v[np.isfinite(v)] for name, v in values.items() if np.isfinite(v).any()}
    last = top or max(float(np.quantile(v, SHOWN_SHARE)) for v in known.values())
    whole = all(v.dtype.kind in "iu" for v in known.values())
    edges = np.arange(int(last) + 2) - 0.5 if whole else np.linspace(0, last, BINS + 1)
    figure, axes = _panels(len(known))
    for ax, (name, some) in zip(axes, known.items(), strict=True):
        shares = 100 * np.histogram(some, edges)[0] / len(some)
        ax.bar(edges[:-1], shares, np.diff(edges), align="edge", color=COLOURS[0], edgecolor="white", lw=0.3)
        over = f", most {some.max():.4g}" if some.max() > edges[-1] else ""
        title = f"{name}: {count(len(some), of[:-1] if of != 'queries' else 'query', of)}"
        ax.set_title(f"{title}\nmean {some.mean():.3g}, median {np.median(some):.3g}{over}", fontsize=8)
        ax.axvline(float(np.median(some)), color=COLOURS[1], lw=1)
        ax.set_xlabel(what)
    _share_height(axes)
    return figure


def types_figure(types: Mapping[str, Sequence[str]]) -> Figure:
    """Draw a bar per split, divided by the types of its queries."""
    kinds = list(dict.fromkeys(kind for of in types.values() for kind in of))
    figure, axes = subplots(1, 1, 6.0, 1.2 + 0.45 * len(types))
    ax = axes[0][0]
    left = np.zeros(len(types))
    for i, kind in enumerate(kinds):
        share = np.array([100 * list(of).count(kind) / len(of) for of in types.values()])
        ax.barh(range(len(types)), share, 0.6, left=left, color=COLOURS[i % len(COLOURS)], label=kind)
        for y, (x, width) in enumerate(zip(left, share, strict=True)):
            if width >= 4:
                ax.text(x + width / 2, y, f"{width:.1f}", ha="center", va="center", color="white", fontsize=8)
        left += share
    label_rows(ax, [f"{name} ({len(of):,})" for name, of in types.items()])
    ax.set_xlim(0, 100)
    ax.set_xlabel("% of the queries, by type")
    legend_below(figure, ax, ncols=min(6, len(kinds)))
    return figure


def labels_figure(labels: Mapping[str, Mapping[str, LabelCounts]]) -> Figure:
    """Draw a panel per split and label: the share of the labelled queries with each value (TVR, Figure 8)."""
    panels = [(split, name, counts) for split, of in labels.items() for name, counts in of.items()]
    figure, axes = _panels(len(panels))
    for ax, (split, name, counts) in zip(axes, panels, strict=True):
        total = sum(counts.values())
        ax.bar(range(len(counts)), [100 * n / total for n in counts.values()], 0.7, color=COLOURS[0])
        ax.set_xticks(range(len(counts)), [str(value) for value in counts])
        ax.set_title(f"{split}: {count(total, 'labelled query', 'labelled queries')}", fontsize=8)
        ax.set_xlabel(name)
    _share_height(axes)
    return figure


def similarity_figure(splits: Sequence[AnnotationSplit]) -> Figure:
    """Draw relevance by similarity and by rank of similarity, for ten queries per split (Figure 4)."""
    figure, axes = subplots(len(splits), 2, 9.0, 0.5 + 3.1 * len(splits))
    for row, split in zip(axes, splits, strict=True):
        found = _similarities(split)
        chosen = np.unique(np.linspace(0, len(split.truth) - 1, SAMPLE_QUERIES).round().astype(int))
        for i, q in enumerate(chosen.tolist()):
            rows = np.arange(split.truth.offsets[q], split.truth.offsets[q + 1])
            rows = rows[np.argsort(-found[rows], kind="stable")]
            level = split.truth.relevance[rows] + 0.06 * (i - (len(chosen) - 1) / 2)  # so that points do not hide
            look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i // len(COLOURS)], "s": 9, "lw": 0}
            row[0].scatter(found[rows], level, **look)
            row[1].scatter(np.arange(1, len(rows) + 1), level, **look)
        known = np.isfinite(found)
        rho = rank_correlation(found[known], split.truth.relevance[known])
        row[0].set_title(f"{split.name}: {len(chosen)} queries, a colour or mark each", fontsize=8, loc="left")
        row[1].set_title(f"rank correlation of all {known.sum():,} pairs: {rho:.2f}", fontsize=8, loc="left")
        row[0].set_xlabel("similarity of query and caption")
        row[1].set_xlabel("place by similarity")
        for ax in row:
            ax.set_yticks(range(MAX_RELEVANCE + 1))
            ax.grid(axis="y", alpha=0.3)
        row[0].set_ylabel("relevance")
    return figure


def examples_figure(split: AnnotationSplit) -> Figure:
    """Draw two queries with five of their moments each: relevance as bars, similarity as a line (Figure 6)."""
    figure, axes = subplots(EXAMPLE_QUERIES, 1, 7.5, 1.9 * EXAMPLE_QUERIES + 0.6)
    truth, found = split.truth, _similarities(split)
    captions = truth.columns.get("caption")
    many = np.flatnonzero(truth.counts >= min(EXAMPLE_MOMENTS, int(truth.counts.max())))
    for ax, q in zip(axes[:, 0], many[np.linspace(0, len(many) - 1, EXAMPLE_QUERIES).astype(int)], strict=True):
        rows = np.arange(truth.offsets[q], truth.offsets[q + 1])
        rows = rows[np.argsort(-found[rows], kind="stable")]
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, EXAMPLE_MOMENTS).astype(int))]
        ax.barh(range(len(rows)), truth.relevance[rows], 0.6, color=COLOURS[0], alpha=0.5, label="relevance")
        names = [str(captions[r]) if captions else truth.videos[truth.video[r]] for r in rows.tolist()]
        label_rows(ax, ["\n".join(textwrap.wrap(name, 48)[:2]) for name in names], fontsize=7)
        ax.set_xlim(0, MAX_RELEVANCE)
        ax.set_xticks(range(MAX_RELEVANCE + 1))
        other = ax.twiny()
        other.plot(found[rows], range(len(rows)), color=COLOURS[1], marker="o", ms=4, label="similarity")
        other.set_xlim(0, 1)
        other.tick_params(labelsize=7, colors=COLOURS[1])
        text = split.texts[q] if split.texts else truth.query_ids[q]
        ax.set_title("\n".join(textwrap.wrap(text, 90)), fontsize=8, loc="left", fontweight="bold")
    axes[-1, 0].set_xlabel("bars, below: relevance; line, above: similarity of query and caption")
    return figure


def rank_correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return Spearman's correlation; equal values have the mean of their ranks.

    >>> rank_correlation(np.array([0.1, 0.5, 0.9]), np.array([0, 4, 4])).__round__(3)
    0.866
    """
    ranks = []
    for values in (first, second):
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[inverse])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _distinct_moments(split: AnnotationSplit) -> FloatArray:
    truth = split.truth
    rows = np.unique(np.column_stack([truth.video, truth.start, truth.end]), axis=0)
    return np.asarray(rows[:, 2] - rows[:, 1])


def _shares(split: AnnotationSplit) -> tuple[FloatArray, FloatArray]:
    """Return start and end of every relevant pair's moment as fractions of its video, clipped to [0, 1]."""
    truth = split.truth
    seconds = truth.durations[truth.video]
    use = np.isfinite(seconds) & (truth.relevance > 0)
    return tuple(np.clip(times[use] / seconds[use], 0, 1) for times in (truth.start, truth.end))  # type: ignore[return-value]


def _has_similarity(split: AnnotationSplit) -> bool:
    return "similarity" in split.truth.columns and len(np.unique(split.truth.relevance)) > 1


def _similarities(split: AnnotationSplit) -> FloatArray:
    return np.array(split.truth.columns["similarity"], dtype=np.float64)


def _panels(number: int) -> tuple[Figure, list[Any]]:
    columns = min(MAX_PANELS, number)
    rows = -(-number // columns)
    figure, axes = subplots(rows, columns, 0.6 + 2.8 * columns, 0.3 + 2.6 * rows)
    for ax in axes.ravel()[number:]:
        ax.set_axis_off()
    for row in axes:
        row[0].set_ylabel("%")
    return figure, list(axes.ravel()[:number])


def _share_height(axes: Sequence[Any]) -> None:
    highest = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, highest)
