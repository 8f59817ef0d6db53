"""Figures of the text and visual scores that pools are based on (MVMR, Figures 3, 4, 6 and 7)."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.benchmarks.datasets.massive import MassiveDataset
from momentseek.benchmarks.datasets.sentences import SimilarityScores, TextSimilarity
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.figures import COLOURS, draw_figures, subplots
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import count
from momentseek.measuring.formats.document import open_document, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SENTENCES = 1200
"""Maximum number of sentences on the map; if there are more, a sample spread over the file is used."""
PERPLEXITY = 30.0
BINS = 50
VISUAL_QUERIES = 500
"""Maximum number of queries whose visual scores are drawn; if there are more, a sample spread over the file is used."""
MASSIVE_FIGURES = ("similarity-map", "similarity-histogram", "cohesiveness", "visual-scores", "judged-pairs")
"""The names of all figures that ``draw_massive`` may draw."""


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs of sentences with scores by people, such as STS16's from 0 to 5."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    score: FloatArray


def read_judged_pairs(path: str | os.PathLike[str]) -> JudgedPairs:
    """Read a CSV file of ``first``, ``second`` (sentences) and ``score`` (a number)."""
    rows = []
    for line, row in rows_of(open_document(path), "first", "second", "score"):
        try:
            rows.append((row["first"], row["second"], float(row["score"])))
        except ValueError:
            raise MomentseekError(f"{path}: line {line:,} has the score {row['score']!r}; give a number") from None
    if not rows:
        raise MomentseekError(f"{path}: has no pairs; give CSV with the columns first, second and score")
    first, second, score = zip(*rows, strict=True)
    return JudgedPairs(first, second, np.array(score))


def draw_massive(
    result: MassiveDataset,
    similarity: TextSimilarity,
    cohesiveness: Mapping[str, Mapping[str, Any]],
    scorer: str,
    target: str | None = None,
    judged: tuple[JudgedPairs, FloatArray] | None = None,
) -> dict[str, bytes]:
    """Draw every figure whose scores exist, as PNG and SVG; return bytes by file name.

    ``scorer`` names the text similarity, ``target`` is the sentence that the map compares all others with (default: the
    one with most similar sentences), and ``judged`` has pairs with their similarities. The map needs scikit-learn.
    """
    texts = _spread(result.data.texts, MAX_SENTENCES)
    texts = [*texts, target] if target is not None and target not in texts else texts
    scores = np.asarray(similarity(texts, texts), dtype=np.float32)
    figures: dict[str, Callable[[], Figure]] = {}
    if find_spec("sklearn") is not None and len(texts) > 3:
        chosen = texts.index(target) if target is not None else _most_similar(scores, result.settings.text_positive)
        figures["similarity-map"] = lambda: map_figure(scores, texts, chosen, scorer)
    figures["similarity-histogram"] = lambda: histogram_figure(result, scores, scorer)
    figures["cohesiveness"] = lambda: cohesiveness_figure(cohesiveness)
    if result.visual is not None:
        figures["visual-scores"] = lambda: visual_figure(result)
    if judged is not None:
        figures["judged-pairs"] = lambda: judged_figure(result, *judged, scorer)
    return draw_figures(figures)


def check_map_target(target: str | None, texts: Sequence[str]) -> None:
    """Raise an error if no query has the sentence for the map."""
    if target is not None and target not in texts:
        raise MomentseekError(f"no query says {target!r}; {did_you_mean(target, texts)}")


def map_figure(scores: SimilarityScores, texts: Sequence[str], chosen: int, scorer: str) -> Figure:
    """Draw sentences by t-SNE of their similarities, coloured by their similarity to one of them (Figure 3 (a))."""
    tsne = optional_module("sklearn.manifold", "demo").TSNE
    distance = np.clip(1 - (scores + scores.T) / 2, 0, None).astype(np.float64)
    np.fill_diagonal(distance, 0)
    perplexity = min(PERPLEXITY, (len(texts) - 1) / 3)
    places = tsne(metric="precomputed", init="random", perplexity=perplexity, random_state=0).fit_transform(distance)
    figure, axes = subplots(1, 1, 5.6, 4.8)
    ax = axes[0][0]
    order = np.argsort(scores[chosen])  # the most similar on top
    dots = ax.scatter(*places[order].T, c=scores[chosen][order], s=7, lw=0, cmap="viridis", vmin=0, vmax=1)
    ax.plot(*places[chosen], "*", color=COLOURS[1], ms=13, mec="white")
    ax.set_xticks([])
    ax.set_yticks([])
    title = f"{scorer}: similarity of {count(len(texts), 'sentence')} with “{texts[chosen]}”"
    ax.set_title("\n".join(textwrap.wrap(title, 70)), fontsize=8, loc="left")
    figure.colorbar(dots, ax=ax, shrink=0.8)
    return figure


def histogram_figure(result: MassiveDataset, scores: SimilarityScores, scorer: str) -> Figure:
    """Draw the similarities of pairs of different sentences, with both thresholds (Figure 3 (b))."""
    pairs = scores[np.triu_indices(len(scores), 1)]
    figure, axes = subplots(1, 1, 5.2, 3.0)
    ax = axes[0][0]
    ax.hist(pairs, BINS, color=COLOURS[0], weights=np.full(len(pairs), 100 / len(pairs)))
    settings = result.settings
    for threshold, colour in ((settings.text_negative, COLOURS[1]), (settings.text_positive, COLOURS[2])):
        ax.axvline(threshold, color=colour, lw=1, ls="--")
    low, high = np.mean(pairs < settings.text_negative), np.mean(pairs >= settings.text_positive)
    ax.set_yscale("log")
    ax.set_ylabel("% of the pairs")
    ax.set_xlabel(f"{scorer} similarity")
    ax.set_title(
        f"{count(len(pairs), 'pair')} of different sentences: {low:.1%} below {settings.text_negative:g}, "
        f"{high:.2%} from {settings.text_positive:g}",
        fontsize=8,
        loc="left",
    )
    return figure


def cohesiveness_figure(sides: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw words by the share of a set's other videos that have them, for positive and negative sets (Figure 4)."""
    figure, axes = subplots(1, 1, 5.2, 3.0)
    ax = axes[0][0]
    for i, (name, side) in enumerate(sides.items()):
        shares = 100 * np.array(side["histogram"])
        at = (np.arange(len(shares)) + 0.25 + 0.5 * i) / len(shares)
        mean = f"{side['mean']:.3f}" if side["mean"] is not None else "unknown"
        ax.bar(at, shares, 0.45 / len(shares), color=COLOURS[i], label=f"{name}: mean {mean}")
    ax.set_xlabel("share of the set's other videos that have the word")
    ax.set_ylabel("% of the words")
    ax.legend(frameon=False, fontsize=8)
    return figure


def visual_figure(result: MassiveDataset) -> Figure:
    """Draw visual scores of queries with their positives and with the negatives of their pools (Figure 3 (c))."""
    assert result.visual is not None
    data, names = result.data, result.data.truth.videos
    sides: dict[str, list[float]] = {"own video and positives": [], "negatives": []}
    for pool in _spread(result.pools, VISUAL_QUERIES):
        query = data.truth.query_ids[pool.query]
        for some, videos in zip(
            sides.values(), ([int(data.own[pool.query]), *pool.positives], pool.negatives), strict=True
        ):
            some += result.visual.score(query, [names[v] for v in videos]).tolist()
    known = {name: np.array(some)[np.isfinite(some)] for name, some in sides.items()}
    edges = np.linspace(min(v.min() for v in known.values()), max(v.max() for v in known.values()), BINS + 1)
    figure, axes = subplots(1, 1, 5.2, 3.0)
    ax = axes[0][0]
    for i, (name, values) in enumerate(known.items()):
        share = np.full(len(values), 100 / max(1, len(values)))
        ax.hist(values, edges, weights=share, alpha=0.6, color=COLOURS[1 - i], label=f"{name} ({len(values):,})")
    for threshold, colour in ((result.visual.negative, COLOURS[0]), (result.visual.golden, COLOURS[1])):
        ax.axvline(threshold, color=colour, lw=1, ls="--")
    ax.set_xlabel("visual score; dashed: the means that decide")
    ax.set_ylabel("%")
    ax.legend(frameon=False, fontsize=8)
    return figure


def judged_figure(result: MassiveDataset, judged: JudgedPairs, found: FloatArray, scorer: str) -> Figure:
    """Draw the text similarity by people's score; widths show the number of pairs (Figure 6)."""
    figure, axes = subplots(1, 1, 5.2, 3.4)
    ax = axes[0][0]
    level = np.rint(judged.score).astype(int)
    values = [found[level == at] for at in np.unique(level)]
    most = max(map(len, values))
    drawn = ax.violinplot(
        values, np.unique(level), widths=[0.15 + 0.75 * len(v) / most for v in values], showmedians=True, bw_method=0.3
    )
    for body in drawn["bodies"]:
        body.set_facecolor(COLOURS[0])
    settings = result.settings
    for threshold, colour in ((settings.text_negative, COLOURS[1]), (settings.text_positive, COLOURS[2])):
        ax.axhline(threshold, color=colour, lw=1, ls="--")
    ax.set_xlabel("score given by people, rounded")
    ax.set_ylabel(f"{scorer} similarity")
    ax.set_title(f"{count(len(found), 'pair')} of sentences; width by their number", fontsize=8, loc="left")
    return figure


def pair_similarities(pairs: JudgedPairs, similarity: TextSimilarity) -> FloatArray:
    """Return the similarity of each pair."""
    texts = list(dict.fromkeys([*pairs.first, *pairs.second]))
    place = {text: at for at, text in enumerate(texts)}
    scores = np.asarray(similarity(texts, texts), dtype=np.float64)
    return np.array([scores[place[a], place[b]] for a, b in zip(pairs.first, pairs.second, strict=True)])


def _most_similar(scores: SimilarityScores, threshold: float) -> int:
    """Return the sentence with most others above a threshold; the first one of equals."""
    return int(np.argmax((scores >= threshold).sum(axis=1)))


def _spread(some: Sequence[Any], most: int) -> list[Any]:
    return [some[i] for i in np.unique(np.linspace(0, len(some) - 1, min(most, len(some))).astype(int)).tolist()]
