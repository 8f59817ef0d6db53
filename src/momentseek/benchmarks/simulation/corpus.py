"""Simulate a corpus: generate the story, caption it, judge it, and write every file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from momentseek.benchmarks.baselines import BASELINES, BaselineSettings
from momentseek.benchmarks.datasets.common import write_folder
from momentseek.benchmarks.simulation import files
from momentseek.benchmarks.simulation.captions import (
    SimulatedQueries,
    choose_queries,
    nearest_captions,
    remove_names,
    sentence_vectors,
    write_captions,
)
from momentseek.benchmarks.simulation.relevance import (
    BATCH_MOMENTS,
    MOMENTS_PER_QUERY,
    Judge,
    all_knowing_run,
    annotate,
    build_judge,
    oracle_run,
)
from momentseek.benchmarks.simulation.settings import KINDS, SimulationSettings
from momentseek.benchmarks.simulation.story import Story, tell_story
from momentseek.benchmarks.simulation.vectors import (
    Features,
    draw_concept_vectors,
    query_features,
    spoken_lines,
    subtitle_features,
    video_features,
)
from momentseek.benchmarks.simulation.world import VOCABULARY, tag, the_world
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import text_table
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth
from momentseek.models.features.store import write_features

REPORTED_MEASURE = "NDCG@20[IoU>=0.5]"
TVR_STATISTICS: dict[str, float] = VOCABULARY["tvr_statistics"]


@dataclass(frozen=True)
class SimulationReport:
    """Sizes of a simulated corpus, its statistics next to TVR's, and NDCG@20[IoU>=0.5] on its validation queries."""

    settings: SimulationSettings
    fingerprint: str
    sizes: Mapping[str, int]
    statistics: Mapping[str, float]
    scores: Mapping[str, float]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{number:,} {what}" for what, number in self.sizes.items())
        return f"<SimulationReport: {sizes}; print its as_text()>"

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object."""
        return {
            "simulated": True,
            "settings": self.settings.as_json(),
            "fingerprint": self.fingerprint,
            "sizes": dict(self.sizes),
            "statistics": {k: {"simulated": v, "tvr": TVR_STATISTICS[k]} for k, v in self.statistics.items()},
            "measure": REPORTED_MEASURE,
            "split": "val",
            "scores": dict(self.scores),
        }

    def as_text(self) -> str:
        """Render the report as two text tables: statistics and scores."""
        rows = [[name, f"{value:.2f}", f"{TVR_STATISTICS[name]:.2f}"] for name, value in self.statistics.items()]
        scores = [[name, f"{value:.4f}"] for name, value in self.scores.items()]
        return "\n\n".join(
            [
                text_table(["a simulation", "here", "TVR"], rows),
                text_table([f"{REPORTED_MEASURE} on val (simulated)", ""], scores),
            ]
        )


def build_report(
    folder: Path, settings: SimulationSettings, story: Story, queries: SimulatedQueries, judge: Judge, fingerprint: str
) -> SimulationReport:
    """Read the written files back and measure them."""
    val = read_truth(folder / "val.json")
    test = read_truth(folder / "test.json")
    m = story.moments
    seconds = np.array([v.seconds for v in story.videos])
    length = m.end - m.start
    kinds = np.bincount(m.kind, minlength=len(KINDS)) / len(m) * 100
    judged = len(val.start) + len(test.start)
    levels = (np.bincount(val.relevance, minlength=5) + np.bincount(test.relevance, minlength=5)) / judged * 100
    asked = len(val) + len(test)
    values = (
        seconds.mean(),
        seconds.min(),
        seconds.max(),
        len(m) / len(seconds),
        length.mean(),
        np.median(length),
        100 * (m.start < 0.1 * seconds[m.video]).mean(),
        np.mean([len(text.split()) for text in queries.texts]),
        *kinds,
        judged / asked,
        judged * (1 - levels[0] / 100) / asked,
        *levels,
    )
    sizes = dict(zip(("train queries", "val queries", "test queries"), queries.sizes, strict=True))
    return SimulationReport(
        settings,
        fingerprint,
        {"videos": len(seconds), "moments": len(m), **sizes, "judged moments": judged},
        {name: round(float(value), 4) for name, value in zip(TVR_STATISTICS, values, strict=True)},
        _scores(val, read_truth(folder / "train_top01.json"), story, queries, judge, settings),
    )


def _scores(
    val: Judgements,
    train: Judgements,
    story: Story,
    queries: SimulatedQueries,
    judge: Judge,
    settings: SimulationSettings,
) -> dict[str, float]:
    runs = {
        "oracle (knows the judgements, to the clip)": oracle_run(val),
        "all-knowing (knows the world, not what was judged)": all_knowing_run(
            val, story, judge, queries.moment[queries.rows("val")], settings.random("all-knowing")
        ),
    }
    baseline_settings = BaselineSettings(seed=settings.seed, top=MOMENTS_PER_QUERY)
    for name in ("chance", "predict-all", "moment-frequency", "bias-based"):
        runs[f"{name} (told which videos were judged)"] = BASELINES[name].predict(train, val, baseline_settings)
    return {
        name: round(float(evaluate(run, val, REPORTED_MEASURE, missing="zero").means[REPORTED_MEASURE]), 6)
        for name, run in runs.items()
    }


PARAPHRASES = max(files.TVC_CAPTIONS.values())
"""Number of additional captions of every moment, for TVC's files."""
Progress = Callable[[int], None]
T = TypeVar("T")


def step_count(settings: SimulationSettings) -> int:
    """Return the number of steps that ``progress`` counts: four per video and one per query."""
    return 4 * settings.total_videos + settings.queries


def simulate(
    out: str | os.PathLike[str],
    settings: SimulationSettings | None = None,
    *,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> SimulationReport:
    """Write a simulated corpus to the folder ``out`` and return a report of its statistics.

    The folder appears only when everything is written. A folder that is not empty raises an error unless ``force`` is
    true; then files of the same names are replaced and others are kept.
    """
    settings = settings or SimulationSettings()
    with write_folder(out, force) as folder:
        return _fill(folder, settings, progress)


def _fill(folder: Path, settings: SimulationSettings, progress: Progress) -> SimulationReport:
    world = the_world()
    story = tell_story(world, settings)
    progress(settings.total_videos)
    moments = story.moments
    descriptions = write_captions(world, moments, settings.random("captions"))
    imprecise_captions = remove_names(world, descriptions)
    queries = choose_queries(world, moments, imprecise_captions[: story.offsets[settings.videos]], settings)
    progress(settings.total_videos)

    vectors = sentence_vectors(world, [*imprecise_captions, *queries.texts], settings)

    def nearest(split: str) -> tuple[IntArray, FloatArray]:
        videos = settings.listed_videos(split)
        first, last = story.offsets[videos.start], story.offsets[videos.stop]
        asked = vectors[len(moments) :][queries.rows(split)]
        found, similarity = nearest_captions(asked, vectors[first:last], 2 * BATCH_MOMENTS)
        return found + first, similarity

    judge = build_judge(world, story, ordered=settings.changes.repeats)
    files.write_corpus(folder, story, settings)
    files.write_training(folder, story, imprecise_captions, queries, *nearest("train"))
    for split in ("val", "test"):
        near = nearest(split)
        error, rng = settings.changes.annotator_error, settings.random("judging", split)
        judged = annotate(judge, queries.moment[queries.rows(split)], *near, error, rng)
        files.write_judged(folder, split, story, imprecise_captions, queries, judged)
    files.write_tvr(folder, story, descriptions)
    again = [write_captions(world, moments, settings.random("tvc captions", k)) for k in range(PARAPHRASES)]
    files.write_tvc(folder, story, descriptions, again)
    files.write_subtitles(folder, spoken_lines(world, story, settings))
    files.write_concepts(folder, world, story)

    tagged = {text: tag(text) for text in (*descriptions, *queries.texts)}
    space = draw_concept_vectors(world, sorted({w for t in tagged.values() for w in t.words}), settings)

    def texts(name: str, wanted: Iterable[tuple[int, str]]) -> Iterator[tuple[str, Features]]:
        for number, text in wanted:
            yield str(number), query_features(tagged[text], space, settings, settings.random(name, number))

    write_features(folder / "query.h5", _report_each(texts("query words", enumerate(queries.texts, start=1)), progress))
    write_features(folder / "tvr_query.h5", texts("description words", enumerate(descriptions)))
    write_features(folder / "video.h5", _report_each(video_features(world, story, space, settings), progress))
    write_features(folder / "subtitle.h5", _report_each(subtitle_features(world, story, space, settings), progress))
    files.write_data(folder, settings)
    fingerprint = files.write_world(folder, settings)
    return build_report(folder, settings, story, queries, judge, fingerprint)


def _report_each(items: Iterable[T], progress: Progress) -> Iterator[T]:
    for item in items:
        yield item
        progress(1)
