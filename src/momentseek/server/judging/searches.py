"""Search with a setup, for one query or for all judged ones, in the library that the setup names.

A setup is a combination of search settings, to be compared with others. It may name the encoder of another library of
the same videos. Its hits are then mapped to the served library by the hashes of the videos; hits in videos that the
served library lacks are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.core.reports import count
from momentseek.measuring.measures import Measure
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.hit import Hit, Results
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, LOCALISERS
from momentseek.search.options import STREAMS, Stream
from momentseek.search.query import Query
from momentseek.server.hits import texts_between
from momentseek.server.judging.annotate import present_ids, videos_by_id
from momentseek.server.judging.evaluation import JudgedTruth, MeasuredRun, build_run, hits_needed, measure_run
from momentseek.server.schemas import MAX_HITS
from momentseek.server.service import Service
from momentseek.server.workers import LibraryWorkers

SETUP_KEYS = ("localiser", "streams", "fusion", "encoder", "all")
LIBRARY_CHANGED_NOTE = "the library changed during the search; measure again when nothing is being added"


@dataclass(frozen=True)
class SearchSetup:
    """How to search: the localiser, the streams, the fusion, the encoder, and whether weak hits count.

    >>> SearchSetup.parse("streams=speech,vision; localiser=watershed")
    SearchSetup(localiser='watershed', streams=('vision', 'speech'), all=True, fusion='rrf', encoder='')
    >>> print(SearchSetup("scenes"), SearchSetup(fusion="scores", encoder="labels"), sep=chr(10))
    localiser=scenes;streams=vision,speech,text,described,name
    streams=vision,speech,text,described,name;fusion=scores;encoder=labels
    """

    localiser: str = ""
    """The library's default if empty."""
    streams: tuple[Stream, ...] = STREAMS
    all: bool = True
    """Whether weak hits count: the whole ranking is measured, including hits that the page would hide."""
    fusion: str = DEFAULT_FUSION
    encoder: str = ""
    """The encoder of the library to search; the served library if empty."""

    @classmethod
    def parse(cls, text: str) -> SearchSetup:
        """Parse ``localiser=NAME;streams=A,B;all=false``. Missing settings get defaults; unknown names are refused.

        >>> SearchSetup.parse("all=perhaps")
        Traceback (most recent call last):
            ...
        momentseek.core.errors.MomentseekError: all is true or false
        """
        given: dict[str, str] = {}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key not in SETUP_KEYS:
                raise MomentseekError(f"there is no setting {key!r}; there are {', '.join(SETUP_KEYS)}")
            if key in given:
                raise MomentseekError(f"{key} is set twice; keep one")
            given[key] = value
        return cls.of(**given)

    @classmethod
    def of(
        cls,
        localiser: str = "",
        streams: str | None = None,
        all: str = "true",
        fusion: str = DEFAULT_FUSION,
        encoder: str = "",
    ) -> SearchSetup:
        """Check and combine the choices given as texts, streams separated by commas; encoders are not checked."""
        if localiser:
            _ = LOCALISERS[localiser]
        _ = FUSIONS[fusion]
        chosen = set(STREAMS) if streams is None else {part.strip() for part in streams.split(",")}
        if not chosen <= set(STREAMS):
            raise MomentseekError(f"streams are some of {', '.join(STREAMS)}, separated by commas")
        if all not in ("true", "false"):
            raise MomentseekError("all is true or false")
        return cls(localiser, tuple(s for s in STREAMS if s in chosen), all == "true", fusion, encoder)

    def __str__(self) -> str:
        """The canonical text of a setup: equal setups have the same text."""
        parts = [f"localiser={self.localiser}"] * bool(self.localiser) + [f"streams={','.join(self.streams)}"]
        parts += [f"fusion={self.fusion}"] * (self.fusion != DEFAULT_FUSION)
        parts += [f"encoder={self.encoder}"] * bool(self.encoder)
        return ";".join(parts + ["all=false"] * (not self.all))

    def resolve(self, library: Library) -> SearchSetup:
        """The setup with the library's own localiser filled in where none is named."""
        return replace(self, localiser=self.localiser or library.engine.localiser)

    def search(self, library: Library, query: Query, k: int) -> Results:
        """Search a library, which must have the setup's encoder, for the best ``k`` hits."""
        return library.search(
            query, k, localiser=self.localiser or None, streams=self.streams, all=self.all, fusion=self.fusion
        )


def pool_setups(
    localiser: str = DEFAULT_LOCALISER, localisers: Iterable[str] = (), encoders: Iterable[str] = ()
) -> tuple[SearchSetup, ...]:
    """The setups whose moments are pooled for judging: the default one, and those that differ from it in one choice.

    >>> [str(setup) for setup in pool_setups()][0], len(pool_setups(encoders=["other"])) - len(pool_setups())
    ('localiser=height;streams=vision,speech,text,described,name', 1)
    >>> len(pool_setups("scenes", ["scenes", "whole"])) - len(pool_setups("scenes"))
    1
    """
    default = SearchSetup(localiser)
    return (
        default,
        *(replace(default, localiser=name) for name in localisers if name != localiser),
        *(replace(default, streams=(stream,)) for stream in STREAMS),
        *(replace(default, fusion=name) for name in sorted(FUSIONS) if name != default.fusion),
        *(SearchSetup(encoder=name) for name in encoders),
    )


@dataclass(frozen=True, eq=False)
class SetupHits:
    """The hits of a search with a setup, all in videos of the served library."""

    hits: Results
    hashes: Mapping[int, str]
    """Video id → the hash of the video's bytes."""
    left_out: int = 0
    """Number of hits left out, ranked before the last of these, because only the other library has their videos."""


async def resolve_setup(service: Service, setup: SearchSetup) -> SearchSetup:
    """The setup with the library's defaults filled in; 422 if no library has its encoder."""
    other = await service.comparisons.workers(setup.encoder, service.readers)
    return await (other or service.readers).run(setup.resolve)


async def find_hits(service: Service, setup: SearchSetup, query: Query, k: int) -> SetupHits:
    """The best ``k`` hits with a setup; a hit whose video has been removed meanwhile is left out."""
    other = await service.comparisons.workers(setup.encoder, service.readers)
    if other is None:
        return await _search(service.searchers, setup, query, k)
    wanted = k
    while True:
        foreign = await _search(other, setup, query, wanted)
        own = await service.readers.run(partial(to_served_library, foreign, k))
        # hits were left out, so search deeper until there are enough
        if not own.left_out or len(own.hits) == k or len(foreign.hits) < wanted or wanted >= MAX_HITS:
            return own
        wanted = min(MAX_HITS, 2 * wanted)


async def _search(workers: LibraryWorkers, setup: SearchSetup, query: Query, k: int) -> SetupHits:
    def work(library: Library) -> SetupHits:
        results = setup.search(library, query, k)
        videos = videos_by_id(library.store.catalog, (hit.video_id for hit in results))
        hits = [hit for hit in results if hit.video_id in videos]
        present = Results(hits, results.query, results.hidden, results.took, results.note)
        return SetupHits(present, {video.id: video.hash for video in videos.values()})

    return await workers.run(work)


def to_served_library(foreign: SetupHits, k: int, library: Library) -> SetupHits:
    """The first ``k`` hits of another library as hits of this one, ranked again."""
    ids = present_ids(library.store.catalog, foreign.hashes.values())
    videos = videos_by_id(library.store.catalog, ids.values())
    hits: list[Hit] = []
    left_out = 0
    for hit in foreign.hits:
        if len(hits) == k:
            break
        video = videos.get(ids.get(foreign.hashes[hit.video_id], 0))
        if video is None:
            left_out += 1
            continue
        place: dict[str, Any] = {"video_id": video.id, "path": video.path, "name": video.name, "also": ()}
        texts = texts_between(library, video.id, hit.start, hit.end)
        hits.append(replace(hit, rank=len(hits) + 1, **place, **texts))
    found = foreign.hits
    results = Results(hits, found.query, found.hidden, found.took, found.note)
    return SetupHits(results, {video.id: video.hash for video in videos.values()}, left_out)


async def search_judged_queries(
    service: Service, truth: JudgedTruth, setup: SearchSetup, measure: Measure
) -> tuple[Run, int]:
    """The run of a setup on every judged query, as deep as the measure needs, and the number of hits left out."""
    answers, left_out = await find_judged_hits(service, truth, setup, hits_needed(measure))
    return build_run(truth, answers, str(setup)), left_out


async def find_judged_hits(
    service: Service, truth: JudgedTruth, setup: SearchSetup, k: int
) -> tuple[list[list[tuple[Hit, str]]], int]:
    """The best ``k`` hits of a setup for every judged query, each with its video's hash, and the number left out.

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
    """Search for every judged query with a setup and measure the run; notes say what may distort the figure."""
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
    """The note that hits of another library were left out."""
    return f"{count(left_out, 'moment')} of {setup.encoder!r} left out: their videos are not in the served library"


async def _content_numbers(service: Service, setup: SearchSetup) -> list[int]:
    """The content numbers of the libraries that a setup searches; they change with the libraries' contents."""
    other = await service.comparisons.workers(setup.encoder, service.readers)
    libraries = (service.readers, other)
    return [
        await one.run(lambda library: library.store.catalog.content_number()) for one in libraries if one is not None
    ]
