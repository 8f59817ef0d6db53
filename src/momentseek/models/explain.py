"""Explain the answers of a trained model: the weights of a query's words, and its scores along each video.

The figure follows Figures 4 and 5 of the TVR paper: words, filters, and a strip per video. For Slate it shows the
curves "what", "start" and "end" instead, and the score of each length.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import COLOURS, figure_bytes
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import Moment, iou
from momentseek.core.ranking import EndTime
from momentseek.models.batch import Encodings
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.features.sources import Array
from momentseek.models.features.store import Features
from momentseek.models.inference.prediction import predict
from momentseek.models.inputs import clips_of, words_of
from momentseek.models.model import CorpusModel
from momentseek.models.training.checkpoint import load_checkpoint, refuse_other_dims
from momentseek.models.zoo.slate import POOLINGS, Slate
from momentseek.models.zoo.xml import XML
from momentseek.recognition.encoders.protocol import WordEncoder, fingerprint
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.exported.manifest import sources_of
from momentseek.recognition.exported.preparation import edges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILTER_LABELS = ("query–clip similarity", "start filter", "end filter")
SHOWN_POOLINGS = dict(zip(POOLINGS, ("what", "start", "end"), strict=True))
OWN_TEXT_ID = "own"
"""The id of a text that is not a query of the split."""
Numbers = tuple[float, ...]
START, END, TRUTH, FOUND, CURVE = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3], "#333333"
WIDTH, HEAD, STRIP = 9.0, 1.55, 1.9
"""Width of the figure, height of its head and height of each video's strip, in inches."""
BAR_HEIGHT_SHARE = 0.17
"""Height of a bar as a share of the curve's."""
MAX_LEVEL_WORDS = 12
"""Maximum number of words whose labels are horizontal; with more, they are tilted."""
MAX_SHOWN_WORDS = 28
"""Maximum number of words in the figure."""


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
    """A query to explain, with its words, its relevant moments and its features."""

    id: str
    text: str
    words: tuple[str, ...]
    """The word for each row of the query's features."""
    relevant: tuple[tuple[Moment, int], ...]
    """Relevant moments of the query and their levels, best first; empty for a text that is not in the split."""
    split: DataSplit
    """A split with this query only."""


def question(data: Data, split: str, asked: str) -> Question:
    """Find the query for ``asked``, which is the id or the text of a query in the split, or any other text."""
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
            f"no query of the split {split} reads {asked!r}, and the data do not name the encoder of their queries, "
            "so that it cannot be encoded; give the id or the exact text of one"
        )
    encoder = text_encoder(source.spec)
    if not isinstance(encoder, WordEncoder) or (fingerprint(encoder) or encoder.name) != source.fingerprint:
        raise MomentseekError(f"{data.path}: its queries were encoded by another {source.spec!r} than the one here")
    truth = Judgements.from_groups([OWN_TEXT_ID], [0], [], [], [], queries=[asked])
    words, table = tuple(encoder.tokens(asked)), cast(Features, WordTable(encoder.words([asked])[0]))
    return Question(OWN_TEXT_ID, asked, words, (), replace(of, truth=truth, query=table))


def _judged_question(data: Data, of: DataSplit, id: str) -> Question:
    rows = of.truth.rows(id)
    moments, levels = of.truth.moments(id), of.truth.relevance[rows].tolist()
    order = np.argsort([-level for level in levels], kind="stable").tolist()
    relevant = tuple((moments[i], int(levels[i])) for i in order if levels[i] > 0)
    text = of.truth.text(id) or ""
    videos, starts, ends = ([getattr(m, name) for m in moments] for name in ("video", "start", "end"))
    truth = Judgements.from_groups([id], [len(moments)], videos, starts, ends, levels, queries=[text])
    return Question(id, text, _labels(data, text, of.query.rows(id)), relevant, replace(of, truth=truth))


def _labels(data: Data, text: str, rows: int) -> tuple[str, ...]:
    """A label for each row of a query's features: tokens or words if their number fits, else numbers."""
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


@dataclass(frozen=True)
class PredictedMoment:
    """A moment that the model predicts for the query, with its rank."""

    rank: int
    start: float
    end: float
    score: float
    """``log p_start + log p_end + alpha * match``; Slate's z."""
    overlap: float | None
    """The largest IoU with a relevant moment of its video; None if the video has none."""


@dataclass(frozen=True)
class VideoView:
    """One video of an explanation: the model's scores along it, the predicted moments and the relevant ones."""

    video: str
    match: float
    """The score of the video as a whole."""
    found: tuple[PredictedMoment, ...]
    """Predicted moments, best first; empty for a relevant video that the model did not find."""
    relevant: tuple[tuple[float, float, int], ...]
    """Relevant moments of this video: start, end, level."""
    edges: Numbers
    """Times of the clips' edges, in seconds."""
    curve: Numbers
    """Similarity of query and clip."""
    start_response: Numbers
    """Response of the start filter to the curve; for Slate, the rise of the start curve at each clip."""
    end_response: Numbers
    """Response of the end filter to the curve; for Slate, the fall of the end curve after each clip."""
    start_probability: Numbers = ()
    """Probability of a start at each clip; empty for Slate, whose scores are not probabilities."""
    end_probability: Numbers = ()
    """Probability of an end at each clip; empty for Slate."""


@dataclass(frozen=True)
class Explanation:
    """The explanation of a query's answers: all values that the figure shows."""

    query: str
    text: str
    words: tuple[str, ...]
    attention: Mapping[str, Numbers]
    """Weights of the words for each modality (Slate: for what, start and end); empty without modular queries."""
    start_filter: Numbers
    end_filter: Numbers
    views: tuple[VideoView, ...]
    lengths: Numbers = ()
    """Slate's score for each length, starting with the shortest; empty for other models."""
    shortest: int = 1
    """Length of the shortest span, in clips."""

    def as_dict(self) -> dict[str, Any]:
        """The explanation as a dictionary for JSON."""
        return asdict(self)


def explain_query(
    checkpoint: str | os.PathLike[str], data: str | os.PathLike[str], query: str, *, split: str = "val", k: int = 3
) -> Explanation:
    """Explain how the model of a checkpoint answers a query: the id or text of one in the split, or any other text."""
    loaded = load_checkpoint(checkpoint)
    training = loaded.config.training
    with Data.open(data) as opened:
        refuse_other_dims(loaded, opened, split, str(checkpoint))
        asked = question(opened, split, query)
        found: Explanation = explain(loaded.model, opened, asked, k, training.end_time, training.nms)
    return found


@torch.no_grad()
def explain(
    model: CorpusModel,
    data: Data,
    asked: Question,
    k: int = 3,
    end_time: str = "inclusive",
    nms: float | None = None,
) -> Explanation:
    """Explain the ``k`` best moments of a query, by video; add a relevant video if none of them is."""
    if not isinstance(model, XML | Slate):
        raise MomentseekError(
            f"{type(model).__name__} has no curve and filters to show; explain works for xml, reloclnet and slate"
        )
    model.eval()
    config = model.config
    words = words_of(asked.split, [asked.id], config)
    attention: dict[str, Numbers] = {}
    if isinstance(model, Slate) or model.config.modular:
        attention = {SHOWN_POOLINGS.get(m, m): _numbers(w[0]) for m, w in model.attention(words).items()}
    run = predict(model, data, asked.split, k=k, nms=nms, end_time=cast(EndTime, end_time))
    queries = model.encode_words(words)
    filters: tuple[Numbers, Numbers] = (), ()
    if isinstance(model, XML):
        start, end = model.boundaries_head.filters.weight[:, 0]
        filters = _numbers(start), _numbers(end)
    lengths = _numbers(queries["lengths"][0]) if isinstance(model, Slate) else ()

    by_video: dict[str, list[tuple[int, float, float, float]]] = {}
    for row, code in enumerate(run.video.tolist()):
        moment = (row + 1, float(run.start[row]), float(run.end[row]), float(run.score[row]))
        by_video.setdefault(run.videos[code], []).append(moment)
    if asked.relevant and not any(moment.video in by_video for moment, _ in asked.relevant):
        by_video[asked.relevant[0][0].video] = []
    views = [_view(model, data, asked, queries, video, moments) for video, moments in by_video.items()]
    shown = asked.words[: config.max_words]
    return Explanation(asked.id, asked.text, shown, attention, *filters, tuple(views), lengths, config.shortest)


def _view(
    model: XML | Slate,
    data: Data,
    asked: Question,
    queries: Encodings,
    video: str,
    moments: Sequence[tuple[int, float, float, float]],
) -> VideoView:
    config = model.config
    videos = model.encode_clips(clips_of(data, [video], config))
    if isinstance(model, Slate):
        curve, start, end = model.curves(queries, videos)[:, 0]
        rise, fall = start.diff(prepend=start.new_zeros(1)), -end.diff(append=end.new_zeros(1))
        seen = {"curve": curve, "start_response": rise, "end_response": fall}
    else:
        responses = model.responses(queries, videos)[0]
        chances = (part[0].exp() for part in model.boundaries(queries, videos))
        seen = {"curve": model.curve(queries, videos)[0], "start_response": responses[0], "end_response": responses[1]}
        seen |= dict(zip(("start_probability", "end_probability"), chances, strict=True))
    relevant = tuple((m.start, m.end, level) for m, level in asked.relevant if m.video == video)
    seconds = edges(data.rows(video), config.max_clips, config.fit, data.clip_seconds, asked.split.durations[video])
    return VideoView(
        video=video,
        match=float(model.match(queries, videos)[0, 0]),
        found=tuple(PredictedMoment(*moment, overlap=_overlap(moment[1], moment[2], relevant)) for moment in moments),
        relevant=relevant,
        edges=tuple(seconds.tolist()),
        **{name: _numbers(values) for name, values in seen.items()},
    )


def _overlap(start: float, end: float, relevant: Sequence[tuple[float, float, int]]) -> float | None:
    times = np.array([(s, e) for s, e, _ in relevant]).reshape(-1, 2)
    return float(iou(times[:, 0], times[:, 1], start, end).max()) if len(times) else None


def _numbers(values: torch.Tensor) -> Numbers:
    return tuple(float(f"{v:.6g}") for v in values.tolist())


def save(found: Explanation, path: Path) -> None:
    """Write the figure of an explanation to a PNG, SVG or PDF file, chosen by its suffix."""
    (data,) = figure_bytes(lambda: draw(found), path.suffix.lstrip(".").lower())
    write_bytes(path, data)


def draw(found: Explanation) -> Figure:
    """Draw the figure of an explanation, with a strip for each video."""
    from matplotlib.figure import Figure

    strips = [STRIP * (1 + BAR_HEIGHT_SHARE * len(view.found) / 2) for view in found.views]
    figure = Figure(figsize=(WIDTH, HEAD + sum(strips) + 0.75), layout="constrained")
    figure.suptitle(_title(found), x=0.012, ha="left", fontsize=11, fontweight="bold")
    rows = figure.add_gridspec(len(strips) + 1, 1, height_ratios=[HEAD, *strips], hspace=0.06)
    head = rows[0].subgridspec(1, 2, width_ratios=[3.4, 1], wspace=0.05)
    _words(figure.add_subplot(head[0]), found)
    (_lengths if found.lengths else _filters)(figure.add_subplot(head[1]), found)
    judged = any(view.relevant for view in found.views)
    for at, view in enumerate(found.views):
        _strip(figure, rows[at + 1], view, judged)
    _legend(figure, judged, ("what", "start", "end") if found.lengths else FILTER_LABELS)
    return figure


def _title(found: Explanation) -> str:
    text = f"“{found.text}”"
    return text if len(text) <= 95 else text[:94] + "…”"


def _words(axes: Any, found: Explanation) -> None:
    """Draw the weight of each word in the query's vector, by modality (Figure 4)."""
    if not found.attention:
        axes.text(0, 0.5, "This model has no modular queries, so words have no weights.", va="center")
        axes.set_axis_off()
        return
    words = [word.removeprefix("##") for word in found.words[:MAX_SHOWN_WORDS]]
    table = np.array([weights[: len(words)] for weights in found.attention.values()])
    axes.imshow(table, aspect="auto", cmap="Blues", vmin=0, vmax=max(float(table.max()), 1e-9))
    axes.set_xticks(range(len(words)), words)
    if len(words) > MAX_LEVEL_WORDS:
        for label in axes.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(table)), list(found.attention))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(words) <= 18:
        for (row, column), value in np.ndenumerate(table):
            shade = "white" if value > 0.5 * table.max() else "#444444"
            axes.text(column, row, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=7, color=shade)
    axes.set_title("Weight of each word", loc="left", fontsize=9)


def _filters(axes: Any, found: Explanation) -> None:
    """Draw the learned filters (Figure 5)."""
    places = np.arange(len(found.start_filter)) - len(found.start_filter) // 2
    for values, colour, marker in ((found.start_filter, START, "o"), (found.end_filter, END, "s")):
        axes.plot(places, values, color=colour, marker=marker, markersize=4, linewidth=1.4)
    axes.axhline(0, color="#bbbbbb", linewidth=0.7, zorder=0)
    axes.set_xticks(places)
    axes.set_xlabel("clips", labelpad=1, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.set_title("Filters", loc="left", fontsize=9)


def _lengths(axes: Any, found: Explanation) -> None:
    """Draw Slate's score of each length."""
    axes.bar(range(found.shortest, found.shortest + len(found.lengths)), found.lengths, color=CURVE, width=0.7)
    axes.axhline(0, color="#bbbbbb", linewidth=0.7, zorder=0)
    axes.set_xlabel("clips", labelpad=1, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.set_title("Score of each length", loc="left", fontsize=9)


def _strip(figure: Figure, place: Any, view: VideoView, judged: bool) -> None:
    """Draw one video: the curve, the filters' responses, and truth and predictions (Figures 4 and 5)."""
    parts = place.subgridspec(
        3, 1, height_ratios=[1.0, 0.85, BAR_HEIGHT_SHARE * (judged + len(view.found))], hspace=0.0
    )
    upper = figure.add_subplot(parts[0])
    lower, bars = (figure.add_subplot(part, sharex=upper) for part in (parts[1], parts[2]))
    seconds = np.asarray(view.edges)
    for axes in (upper, lower):
        for start, end, _ in view.relevant:
            axes.axvspan(start, end, color=TRUTH, alpha=0.13, linewidth=0)
        for moment in view.found[:1]:
            for at in (moment.start, moment.end):
                axes.axvline(at, color=FOUND, linewidth=1.0, linestyle=(0, (3, 2)))
    upper.stairs(view.curve, seconds, color=CURVE, linewidth=1.3, baseline=None)
    lower.stairs(view.start_response, seconds, color=START, linewidth=1.3, baseline=None)
    lower.stairs(view.end_response, seconds, color=END, linewidth=1.3, baseline=None)
    lower.axhline(0, color="#bbbbbb", linewidth=0.7, zorder=0)
    labels = ("similarity", "filters") if view.start_probability else ("what", "start, end")
    for axes, label in zip((upper, lower), labels, strict=True):
        axes.set_ylabel(label, fontsize=8)
        axes.tick_params(labelsize=7, labelbottom=False, bottom=False)
        axes.locator_params(axis="y", nbins=3)
        axes.margins(y=0.12)
    upper.set_title(_caption(view), loc="left", fontsize=9)
    upper.set_xlim(seconds[0], seconds[-1])
    _bars(bars, view, judged)


def _bars(axes: Any, view: VideoView, judged: bool) -> None:
    """Draw the relevant moments with their levels in one row, and each predicted moment with its rank in a row."""
    for start, end, level in view.relevant:
        axes.barh(0, end - start, 0.8, start, color=TRUTH)
        if level > 1:
            axes.text((start + end) / 2, 0, str(level), ha="center", va="center", fontsize=6, color="white")
    for row, moment in enumerate(view.found):
        alpha = 0.55 if row else 1.0
        axes.barh(row + judged, moment.end - moment.start, 0.8, moment.start, color=FOUND, alpha=alpha)
    labels = [*(["truth"] if judged else []), *(f"#{moment.rank}" for moment in view.found)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(labelsize=7)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{int(value) // 60}:{int(value) % 60:02d}")
    axes.locator_params(axis="x", nbins=12, steps=[1, 1.5, 2, 3, 5, 6, 10])


def _caption(view: VideoView) -> str:
    if not view.found:
        return f"{view.video}: not found   match {view.match:.3f}"
    best = view.found[0]
    shown = f"#{best.rank}  {view.video}  {best.start:.1f}–{best.end:.1f} s   score {best.score:.2f}"
    overlap = "" if best.overlap is None else f", IoU with the truth {best.overlap:.2f}"
    return f"{shown}, match {view.match:.3f}{overlap}"


def _legend(figure: Figure, judged: bool, labels: Sequence[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries = [
        Line2D([], [], color=CURVE, label=labels[0]),
        Line2D([], [], color=START, marker="o", markersize=4, label=labels[1]),
        Line2D([], [], color=END, marker="s", markersize=4, label=labels[2]),
        Patch(color=FOUND, label="found"),
        *([Patch(color=TRUTH, label="truth")] if judged else []),
    ]
    figure.legend(handles=entries, loc="outside lower left", ncols=5, frameon=False, fontsize=8)
