"""Searching by a setup, whichever library it names: moments of the served library in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from momentseek.api import Library
from momentseek.library.catalog import Catalog
from momentseek.search import Hit, Results
from momentseek.search.query import Query
from momentseek.server.asked import MOST
from momentseek.server.judging.setup import Setup
from momentseek.server.judging.videos import known, present
from momentseek.server.moments import said_in
from momentseek.server.service import Service
from momentseek.server.workers import Workers


@dataclass(frozen=True, eq=False)
class Found:
    """Moments of videos that are in the served library."""

    hits: Results
    hashes: Mapping[int, str]
    """Video → the hash of its bytes."""
    left_out: int = 0
    """Moments before the last of these whose videos only a library beside has."""


async def resolved(service: Service, setup: Setup) -> Setup:
    """A setup with all that is left to its library said; 422 if there is no library of its encoder."""
    beside = await service.beside.workers(setup.encoder, service.readers)
    return await (beside or service.readers).run(setup.on)


async def find(service: Service, setup: Setup, query: Query, k: int) -> Found:
    """The best ``k`` moments by a setup; one whose video has gone meanwhile is left out."""
    beside = await service.beside.workers(setup.encoder, service.readers)
    if beside is None:
        return await _by(service.searchers, setup, query, k)
    asked = k
    while True:
        there = await _by(beside, setup, query, asked)
        here = await service.readers.run(partial(brought, there, k))
        # what is left out makes room for others, until enough is found
        if not here.left_out or len(here.hits) == k or len(there.hits) < asked or asked >= MOST:
            return here
        asked = min(MOST, 2 * asked)


async def _by(workers: Workers, setup: Setup, query: Query, k: int) -> Found:
    return await workers.run(lambda library: _found(setup.search(library, query, k), library.catalog))


def brought(there: Found, most: int, library: Library) -> Found:
    """Moments of another library as moments of this one, renumbered."""
    ids = present(library.catalog, there.hashes.values())
    videos = known(library.catalog, ids.values())
    hits: list[Hit] = []
    left_out = 0
    for hit in there.hits:
        if len(hits) == most:
            break
        video = videos.get(ids.get(there.hashes[hit.video_id], 0))
        if video is None:
            left_out += 1
            continue
        said = said_in(library.catalog, video.id, hit.start, hit.end)
        hits.append(
            replace(hit, rank=len(hits) + 1, video_id=video.id, path=video.path, name=video.name, said=said, also=())
        )
    results = Results(hits, there.hits.query, there.hits.hidden, there.hits.took, there.hits.note)
    return Found(results, {video.id: video.hash for video in videos.values()}, left_out)


def _found(results: Results, catalog: Catalog) -> Found:
    videos = known(catalog, (hit.video_id for hit in results))
    hits = [hit for hit in results if hit.video_id in videos]
    kept = Results(hits, results.query, results.hidden, results.took, results.note)
    return Found(kept, {video.id: video.hash for video in videos.values()})
