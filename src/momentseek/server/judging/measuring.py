"""Searching for every judged query, and measuring what is found."""

from __future__ import annotations

from dataclasses import replace

from momentseek.measures import Measure
from momentseek.moments import Run
from momentseek.search.hit import Hit
from momentseek.search.query import Query
from momentseek.server.found import find
from momentseek.server.generation import generation_of
from momentseek.server.judging.evaluation import Judged, Scored, depth_of, run_of, scored
from momentseek.server.judging.setup import Setup
from momentseek.server.service import Service
from momentseek.tables import count

CHANGED = "the library changed while it was searched; measure again when it rests"


async def measured(service: Service, known: Judged, setup: Setup, measure: Measure) -> Scored:
    """Search for every judged query, and measure what was found."""
    before = await _generations(service, setup)
    run, left_out = await searched(service, known, setup, measure)
    found = await service.readers.run(lambda _: scored(known, run, measure))
    notes = list(found.evaluation.notes)
    if left_out:
        notes.append(
            f"{count(left_out, 'moment')} of {setup.encoder!r} left out: their videos are not in the served library"
        )
    if await _generations(service, setup) != before:
        notes.append(CHANGED)
    return replace(found, evaluation=replace(found.evaluation, notes=tuple(notes)))


async def searched(service: Service, known: Judged, setup: Setup, measure: Measure) -> tuple[Run, int]:
    """What a setup finds for every judged query, and how many moments were left out.

    One search at a time, so that others' searches take their turns.
    """
    answers: list[list[tuple[Hit, str]]] = []
    left_out = 0
    for text in known.truth.queries or ():
        found = await find(service, setup, Query.parse(text), depth_of(measure))
        answers.append([(hit, found.hashes[hit.video_id]) for hit in found.hits])
        left_out += found.left_out
    return run_of(known, answers, setup), left_out


async def _generations(service: Service, setup: Setup) -> list[int]:
    """Of the libraries that a setup looks at."""
    beside = await service.beside.workers(setup.encoder, service.readers)
    return [await workers.run(generation_of) for workers in (service.readers, beside) if workers is not None]
