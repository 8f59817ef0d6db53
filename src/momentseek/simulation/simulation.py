"""Make a simulated corpus: tell the story, caption it, judge it, and write every file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from momentseek.features.write import write_features
from momentseek.simulation import files
from momentseek.simulation.annotation import BATCH_MOMENTS, annotate
from momentseek.simulation.captions import remove_names, write_captions
from momentseek.simulation.folder import write_folder
from momentseek.simulation.lexicon import tag
from momentseek.simulation.queries import choose_queries
from momentseek.simulation.relevance import build_judge
from momentseek.simulation.report import SimulationReport, build_report
from momentseek.simulation.settings import SimulationSettings
from momentseek.simulation.similarity import nearest_captions, sentence_vectors
from momentseek.simulation.speech import spoken_lines
from momentseek.simulation.story import tell_story
from momentseek.simulation.vectors import (
    Features,
    draw_concept_vectors,
    query_features,
    subtitle_features,
    video_features,
)
from momentseek.simulation.world import the_world

PARAPHRASES = max(files.TVC_CAPTIONS.values())
"""Further captions of every moment, for TVC's files."""
Progress = Callable[[int], None]
T = TypeVar("T")


def step_count(settings: SimulationSettings) -> int:
    """Number of steps that ``progress`` counts: every video four times, every query once."""
    return 4 * settings.videos + settings.queries


def simulate(
    out: str | os.PathLike[str],
    settings: SimulationSettings | None = None,
    *,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> SimulationReport:
    """Write a simulated corpus to the folder ``out`` and return a report of its statistics.

    The folder appears only when everything is written. A folder that is not empty is refused unless ``force`` is true;
    then files of the same names are replaced and others left alone.
    """
    settings = settings or SimulationSettings()
    with write_folder(out, force) as folder:
        return _fill(folder, settings, progress)


def _fill(folder: Path, settings: SimulationSettings, progress: Progress) -> SimulationReport:
    world = the_world()
    story = tell_story(world, settings)
    progress(settings.videos)
    moments = story.moments
    descriptions = write_captions(world, moments, settings.random("captions"))
    imprecise_captions = remove_names(world, descriptions)
    queries = choose_queries(world, moments, imprecise_captions, settings)
    progress(settings.videos)

    vectors = sentence_vectors(world, [*imprecise_captions, *queries.texts], settings)
    near, similarity = nearest_captions(vectors[len(moments) :], vectors[: len(moments)], 2 * BATCH_MOMENTS)
    judge = build_judge(world, story)
    train = queries.rows("train")
    files.write_corpus(folder, story)
    files.write_training(folder, story, imprecise_captions, queries, near[train], similarity[train])
    for split in ("val", "test"):
        rows = queries.rows(split)
        judged = annotate(judge, queries.moment[rows], near[rows], similarity[rows], settings.random("judging", split))
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
