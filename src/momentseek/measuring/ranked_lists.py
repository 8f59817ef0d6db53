"""A figure of ranked moments next to the judged ones, for a few queries (TVR-Ranking, Figure 7)."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.figures import COLOURS, save_figures, shorten, subplots
from momentseek.core.moments.arrays import IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.measures import PROTOCOLS, parse_all
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.matching import match
from momentseek.measuring.measures.ndcg import NDCG

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN_MEASURE = "NDCG@10[IoU>=0.3]"
DRAWN_SHARES = (0.9, 0.5, 0.1)
"""Quantiles of the queries to draw, among the queries with a value above 0."""
MISSED = "0.65"
"""Grey level of moments that did not match."""


def draw_ranked_lists(run: Run, truth: Judgements, folder: str | Path, protocol: str = "paper") -> list[Path]:
    """Write ``ranked-lists`` as PNG and SVG into ``folder``: a good, a middling and a poor query of a run."""
    return save_figures({"ranked-lists": lambda: ranked_lists_figure(run, truth, protocol)}, folder)


def ranked_lists_figure(run: Run, truth: Judgements, protocol: str = "paper") -> Figure:
    """Draw, for three queries, judged moments on the left, predictions on the right and lines between matches.

    Judged moments are in order of relevance: those that were matched, and the most relevant others in grey. Predictions
    that match nothing are grey too. Matching and values are those of ``DRAWN_MEASURE``.
    """
    (measure,) = parse_all([DRAWN_MEASURE], PROTOCOLS[protocol].options)
    assert isinstance(measure, NDCG)
    view = Alignment(run, truth)
    values = measure(view)
    matched = match(view, measure.iou, strict=measure.strict, absorb=measure.zeros == "absorb")
    chosen = choose_queries(values)
    figure, axes = subplots(1, len(chosen), 3.6 * len(chosen), 0.9 + 0.32 * measure.k)
    for ax, query in zip(axes[0], chosen, strict=True):
        _draw_query(ax, view, matched, query, measure.k)
        text = truth.queries[query] if truth.queries else truth.query_ids[query]
        ax.set_title(
            "\n".join(textwrap.wrap(text, 46)[:3]) + f"\n{measure.title}: {values[query]:.3f}", fontsize=8, loc="left"
        )
    return figure


def choose_queries(values: Any) -> list[int]:
    """Return the positions of a good, a middling and a poor query among those with a value above 0.

    >>> choose_queries(np.array([0.0, 0.2, 0.9, 0.4, 0.6]))
    [2, 4, 1]
    """
    some = np.flatnonzero(values > 0)
    if not len(some):
        raise MomentseekError(f"no query has a {DRAWN_MEASURE} above 0, so there is nothing to draw; check the run")
    rising = some[np.argsort(values[some], kind="stable")]
    return list(dict.fromkeys(int(rising[min(len(rising) - 1, int(share * len(rising)))]) for share in DRAWN_SHARES))


def _draw_query(ax: Any, view: Alignment, matched: IntArray, query: int, depth: int) -> None:
    truth = view.truth
    judged = np.arange(truth.offsets[query], truth.offsets[query + 1])
    judged = judged[np.argsort(-truth.relevance[judged].astype(int), kind="stable")]
    found = np.flatnonzero((view.query == query) & (view.rank < depth))
    hit = {int(matched[p]): int(view.rank[p]) for p in found.tolist() if matched[p] >= 0}
    missed = [row for row in judged.tolist() if row not in hit][: max(0, depth - len(hit))]
    for y, row in enumerate(row for row in judged.tolist() if row in hit or row in missed):
        where = truth.videos[truth.video[row]], truth.start[row], truth.end[row]
        _write(ax, 0.0, y, where, int(truth.relevance[row]), there=row in hit)
        if row in hit:
            ax.plot([0.42, 0.56], [y, hit[row]], color=COLOURS[0], lw=1)
    names = view.run.videos
    for p in found.tolist():
        level = int(truth.relevance[matched[p]]) if matched[p] >= 0 else None
        where = names[view.run.video[view.row[p]]], view.start[p], view.end[p]
        _write(ax, 0.58, int(view.rank[p]), where, level, there=level is not None)
    ax.set_xlim(0, 1.02)
    ax.set_ylim(depth - 0.4, -1.4)
    ax.set_axis_off()
    for x, words in ((0.0, "judged, relevance first"), (0.58, "predicted, by rank")):
        ax.text(x, -1, words, fontsize=7, fontweight="bold")


def _write(ax: Any, x: float, y: int, where: tuple[str, float, float], level: int | None, *, there: bool) -> None:
    video, start, end = where
    mark = "–" if level is None else str(level)
    ax.text(x, y, mark, fontsize=8, va="center", fontweight="bold", color=COLOURS[1] if there else MISSED)
    place = f"{shorten(video, 22)}\n{start:.1f}–{end:.1f} s"
    ax.text(x + 0.04, y, place, fontsize=6, va="center", color="black" if there else MISSED)
