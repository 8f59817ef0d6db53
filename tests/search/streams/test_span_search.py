"""A look at the videos of many shards finds what a look at one library finds, whatever each shard sought at first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.search.confidence import Scale
from momentseek.search.hit import StreamHit
from momentseek.search.localise.localiser import Background
from momentseek.search.streams.span_search import (
    PagedSearch,
    SearchedVideos,
    VideoList,
    in_order,
    join_lists,
    seek_spans,
)
from momentseek.search.streams.vision import ClipSearch, VisionQuery

SCALE = Scale(0.0, 1.0, 400)
SEARCH = ClipSearch(VisionQuery(np.ones(2, np.float32), (), 1.0, SCALE, Background.of([0.0, 1.0])), "height")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    videos=st.integers(0, 60),
    shards=st.integers(1, 9),
    depth=st.sampled_from([1, 5, 40, 100]),
    pages=st.lists(st.integers(1, 60), min_size=1, max_size=3).map(sorted),
)
def test_shards_together_seek_the_spans_that_one_library_seeks(seed, videos, shards, depth, pages):
    rng = np.random.default_rng(seed)
    worth = dict(enumerate(rng.normal(2.0, 2.0, videos).round(1).tolist()))
    hits = {
        id: [StreamHit(id, 0.0, 1.0, value, SCALE.level(value - n)) for n in range(int(rng.integers(0, 4)))]
        for id, value in worth.items()
    }

    def find(ids: Sequence[int]) -> list[list[StreamHit]]:
        return [hits[id] for id in ids]

    owner = dict(zip(worth, rng.integers(0, shards, videos).tolist(), strict=True))
    asked: list[int] = []

    def begin(page: int) -> list[SearchedVideos]:
        parts = []
        for shard in range(shards):
            mine = in_order({id: value for id, value in worth.items() if owner[id] == shard})
            found = seek_spans(mine, SEARCH.budget(page), find)
            asked.extend(list(mine)[: len(found)])
            parts.append(SearchedVideos(np.array(list(mine), np.int64), np.array(list(mine.values())), found))
        return parts

    def go_on(wanted: Sequence[int]) -> dict[int, list[StreamHit]]:
        asked.extend(wanted)
        return {id: hits[id] for id in wanted}

    paged = PagedSearch(SEARCH.budget, depth, shards, begin, go_on)
    for page in pages:
        found = seek_spans(
            dict(list(in_order(worth).items())[:depth]), SEARCH.budget(page), lambda ids: [hits[id] for id in ids]
        )
        hits_found, whole = paged.result(page)
        assert sorted(map(repr, hits_found)) == sorted(repr(hit) for some in found for hit in some)
        assert whole == (len(found) == min(depth, videos))
    assert len(asked) == len(set(asked))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), shards=st.integers(1, 9), scans=st.integers(1, 3), reach=st.integers(1, 30))
def test_the_best_of_all_lists_go_to_the_shards_that_have_them(seed, shards, scans, reach):
    rng = np.random.default_rng(seed)
    lists: dict[int, list[VideoList]] = {}
    for shard in range(shards):
        some = np.arange(shard, 40, shards)
        each = []
        for _ in range(scans):
            scores = rng.integers(0, 5, len(some)).astype(np.float32)
            order = np.lexsort((some, -scores))[:reach]
            each.append(VideoList(some[order], scores[order]))
        lists[shard] = each
    best: set[int] = set()
    for scan in range(scans):
        rows = [pair for some in lists.values() for pair in zip(*(c.tolist() for c in some[scan]), strict=True)]
        best |= {id for id, _ in sorted(rows, key=lambda row: (-row[1], row[0]))[:reach]}
    found = join_lists(lists, reach)
    assert {id for ids in found.values() for id in ids.tolist()} == best
    assert all(id % shards == shard for shard, ids in found.items() for id in ids.tolist())
    assert join_lists({}, reach) == {}
