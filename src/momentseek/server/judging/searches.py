"""Searching by a setup, for one query or for all judged ones, in whichever library the setup names.

A setup may name the encoder of a companion library. Its hits are translated to moments of the served library by the
hashes of the videos; hits in videos that the served library lacks are left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from momentseek.api.library import Library
from momentseek.core.moments.run import Run
from momentseek.core.reports import count
from momentseek.library.tracks.descriptions import captions_between
from momentseek.library.tracks.readings import lines_between
from momentseek.measuring.measures import Measure
from momentseek.search.hit import Hit, Results
from momentseek.search.query import Query
from momentseek.server.judging.annotate import present_ids, videos_by_id
from momentseek.server.judging.evaluation import JudgedTruth, MeasuredRun, build_run, hits_needed, measure_run
from momentseek.server.judging.setup import SearchSetup
from momentseek.server.schemas import MAX_HITS
from momentseek.server.service import Service
from momentseek.server.workers import LibraryWorkers

LIBRARY_CHANGED_NOTE = "the library changed during the search; measure again when nothing is being added"


@dataclass(frozen=True, eq=False)
class SetupHits:
    """What a search by a setup found, all of it in videos of the served library."""

    hits: Results
    hashes: Mapping[int, str]
    """Video id → the hash of the video's bytes."""
    left_out: int = 0
    """Hits, ranked before the last of these, whose videos only a companion library has."""


async def resolve_setup(service: Service, setup: SearchSetup) -> SearchSetup:
    """The setup with the library's defaults filled in; 422 if no library has its encoder."""
    companion = await service.comparisons.workers(setup.encoder, service.readers)
    return await (companion or service.readers).run(setup.resolve)


async def find_hits(service: Service, setup: SearchSetup, query: Query, k: int) -> SetupHits:
    """The best ``k`` hits by a setup; a hit whose video has been removed meanwhile is left out."""
    companion = await service.comparisons.workers(setup.encoder, service.readers)
    if companion is None:
        return await _search(service.searchers, setup, query, k)
    wanted = k
    while True:
        foreign = await _search(companion, setup, query, wanted)
        own = await service.readers.run(partial(to_served_library, foreign, k))
        # what is left out makes room for others, so search deeper until there are enough
        if not own.left_out or len(own.hits) == k or len(foreign.hits) < wanted or wanted >= MAX_HITS:
            return own
        wanted = min(MAX_HITS, 2 * wanted)


async def _search(workers: LibraryWorkers, setup: SearchSetup, query: Query, k: int) -> SetupHits:
    def work(library: Library) -> SetupHits:
        results = setup.search(library, query, k)
        videos = videos_by_id(library.catalog, (hit.video_id for hit in results))
        hits = [hit for hit in results if hit.video_id in videos]
        present = Results(hits, results.query, results.hidden, results.took, results.note)
        return SetupHits(present, {video.id: video.hash for video in videos.values()})

    return await workers.run(work)


def to_served_library(foreign: SetupHits, k: int, library: Library) -> SetupHits:
    """The first ``k`` hits of another library as hits of this one, ranked anew."""
    ids = present_ids(library.catalog, foreign.hashes.values())
    videos = videos_by_id(library.catalog, ids.values())
    hits: list[Hit] = []
    left_out = 0
    for hit in foreign.hits:
        if len(hits) == k:
            break
        video = videos.get(ids.get(foreign.hashes[hit.video_id], 0))
        if video is None:
            left_out += 1
            continue
        said = tuple(library.catalog.cues_between(video.id, hit.start, hit.end))
        hits.append(
            replace(
                hit,
                rank=len(hits) + 1,
                video_id=video.id,
                path=video.path,
                name=video.name,
                said=said,
                also=(),
                written=tuple(lines_between(library.catalog.of(video.id), video.id, hit.start, hit.end)),
                described=tuple(captions_between(library.catalog.of(video.id), video.id, hit.start, hit.end)),
            )
        )
    found = foreign.hits
    results = Results(hits, found.query, found.hidden, found.took, found.note)
    return SetupHits(results, {video.id: video.hash for video in videos.values()}, left_out)


async def search_judged_queries(
    service: Service, truth: JudgedTruth, setup: SearchSetup, measure: Measure
) -> tuple[Run, int]:
    """The run of a setup on every judged query, as deep as the measure looks, and how many hits were left out."""
    answers, left_out = await find_judged_hits(service, truth, setup, hits_needed(measure))
    return build_run(truth, answers, setup), left_out


async def find_judged_hits(
    service: Service, truth: JudgedTruth, setup: SearchSetup, k: int
) -> tuple[list[list[tuple[Hit, str]]], int]:
    """The best ``k`` hits of a setup on every judged query, each with its video's hash, and how many were left out.

    Searches one query at a time, so that other people's searches get their turn.
    """
    answers: list[list[tuple[Hit, str]]] = []
    left_out = 0
    for text in truth.judgements.queries or ():
        found = await find_hits(service, setup, Query.parse(text), k)
        answers.append([(hit, found.hashes[hit.video_id]) for hit in found.hits])
        left_out += found.left_out
    return answers, left_out


async def measure_setup(service: Service, truth: JudgedTruth, setup: SearchSetup, measure: Measure) -> MeasuredRun:
    """Search for every judged query by a setup and measure the run; notes say what may distort the figure."""
    before = await _content_numbers(service, setup)
    run, left_out = await search_judged_queries(service, truth, setup, measure)
    measured = await service.readers.run(lambda _: measure_run(truth, run, measure))
    notes = list(measured.evaluation.notes)
    if left_out:
        notes.append(left_out_note(left_out, setup))
    if await _content_numbers(service, setup) != before:
        notes.append(LIBRARY_CHANGED_NOTE)
    return replace(measured, evaluation=replace(measured.evaluation, notes=tuple(notes)))


def left_out_note(left_out: int, setup: SearchSetup) -> str:
    """That hits of a companion library were left out."""
    return f"{count(left_out, 'moment')} of {setup.encoder!r} left out: their videos are not in the served library"


async def _content_numbers(service: Service, setup: SearchSetup) -> list[int]:
    """The content numbers of the libraries that a setup searches, which change with what the libraries hold."""
    companion = await service.comparisons.workers(setup.encoder, service.readers)
    libraries = (service.readers, companion)
    return [await one.run(lambda library: library.catalog.content_number()) for one in libraries if one is not None]
