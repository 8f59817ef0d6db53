"""Vectors that two encoders made together: both speak by how far a clip stands out, and hits are ordered by odds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_library import DIM, OpenLibrary, TwoHalves, WordVectors, fill, film, nothing

from momentseek.search.confidence import Scale, odds_level
from momentseek.search.engine import Engine
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.stream_index import SampledIndex, SampledRows, SamplePart
from momentseek.search.streams.vision import BLOCK_SHARES, balance, block_queries

BACKGROUND = {f"background-{n}.mp4": nothing(40, n) for n in range(12)}
HALF = DIM // 2


def index_of(rows: np.ndarray) -> SampledIndex:
    sampled = SampledRows(np.zeros(len(rows), np.uint64), np.arange(len(rows)), rows)
    blocks = (("first", HALF), ("second", HALF))
    return SampledIndex(lambda kind, step: [SamplePart(sampled)], len(rows), find_blocks=lambda: blocks)


def test_a_product_with_a_balanced_query_is_the_weighted_sum_of_both_z_scores() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((400, DIM)) * np.repeat([1, 7], HALF)).astype(np.float32)
    query = rng.standard_normal(DIM).astype(np.float32)
    got = rows @ balance(query, index_of(rows))
    parts = [rows[:, :HALF] @ query[:HALF], rows[:, HALF:] @ query[HALF:]]
    z_scores = [(part - Scale.of(part).centre) / Scale.of(part).spread for part in parts]
    wanted = np.asarray(BLOCK_SHARES) @ np.stack(z_scores)
    assert np.corrcoef(got, wanted)[0, 1] == pytest.approx(1, abs=1e-6)


def test_clips_that_the_second_has_not_seen_do_not_count_as_usual_for_it() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((400, DIM)).astype(np.float32)
    half_seen = rows.copy()
    half_seen[::2, HALF:] = 0
    query = rng.standard_normal(DIM).astype(np.float32)
    asked = (block_queries(query, index_of(some)) for some in (rows, half_seen))
    spreads = [[one.scale.spread for one in blocks if one.scale] for blocks in asked]
    np.testing.assert_allclose(*spreads, rtol=0.2)
    unseen = rows.copy()
    unseen[:, HALF:] = 0
    first, second = block_queries(query, index_of(unseen))
    assert first.scale is not None
    assert second.scale is None
    assert not balance(query, index_of(unseen))[HALF:].any()


def test_hits_are_in_the_order_of_their_odds_and_levels(tmp_path: Path) -> None:
    shown = film([("castle sunset", 6), ("piano", 6)], seed=1), film([("dog beach", 12)], noise=1.5, seed=2)
    films = {**BACKGROUND, "both.mp4": shown[0], "dim.mp4": shown[1]}
    on = Engine(OpenLibrary(tmp_path, fill(tmp_path, films), TwoHalves()))  # type: ignore[arg-type]
    for text in ("castle sunset", "dog beach", "piano", "giraffe"):
        hits = on.search(Query.parse(text), SearchOptions(k=20, all=True, explain=True))
        odds = [hit.streams["vision"].score for hit in hits]
        assert odds == sorted(odds, reverse=True)
        assert [hit.level for hit in hits] == [odds_level(x) for x in odds]
        assert set(hits[0].encoders) == {"first", "second"}
    castle = on.search(Query.parse("castle sunset"), SearchOptions())
    assert (castle[0].name, castle[0].level, castle[0].start) == ("both.mp4", "strong", 0.0)


def test_without_the_second_encoder_levels_are_those_of_the_first(tmp_path: Path) -> None:
    def blind(rows: np.ndarray) -> np.ndarray:
        seen = rows.copy()
        seen[:, HALF:] = 0
        return seen / np.linalg.norm(seen, axis=1, keepdims=True)

    films = {name: blind(rows) for name, rows in {**BACKGROUND, "shore.mp4": film([("dog beach", 8)])}.items()}
    on = Engine(OpenLibrary(tmp_path, fill(tmp_path, films), TwoHalves()))  # type: ignore[arg-type]
    (hit,) = on.search(Query.parse("dog beach"), SearchOptions(k=1))
    assert (hit.name, hit.level) == ("shore.mp4", "fair")  # nothing is named, so that nothing is strong
    assert WordVectors().dim == DIM
