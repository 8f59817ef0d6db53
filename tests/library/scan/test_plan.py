from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.exact_scan import top_videos

from momentseek.core.errors import MomentseekError
from momentseek.core.native.kernels import kernels
from momentseek.library.scan.coarse import Reach, list_near
from momentseek.library.scan.plan import PLAN_FILE, Depths, _sum, build_plan, open_plan, plan_fault
from momentseek.library.scan.recall import recall_report, share_found, tune
from momentseek.library.scan.scan import Scan
from momentseek.library.segments import Segment, build_segment

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")

ALL = Depths(10**6, 10**6, 1.0)


def made(seed: int, first: int, videos: int, dim: int = 32, name: str = "s") -> Segment:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(videos):
        drift = rng.normal(size=dim) + np.cumsum(rng.normal(size=(int(rng.integers(1, 12)), dim)) * 0.3, axis=0)
        rows.append((drift / np.linalg.norm(drift, axis=1, keepdims=True)).astype(np.float32))
    return replace(build_segment("vision", range(first, first + videos), rows), name=name)


@pytest.fixture
def library():
    return [made(1, 0, 700, name="a"), made(2, 700, 400, name="b")]


@pytest.fixture
def queries():
    return np.random.default_rng(9).normal(size=(12, 32)).astype(np.float32)


def same(one, two):
    np.testing.assert_array_equal(one.ids, two.ids)
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-6)
    np.testing.assert_array_equal(one.segment, two.segment)
    np.testing.assert_array_equal(one.at, two.at)


def test_with_full_depth_the_plan_gives_the_exact_answer(library, queries, tmp_path):
    scan = Scan(library, replace(build_plan(library, tmp_path), depths=ALL))
    same(scan.search(queries, 20), top_videos(library, queries, 20))
    same(scan.search(queries, 5000), top_videos(library, queries, 5000))


def test_filters_hold_in_a_planned_search(library, queries, tmp_path):
    rng = np.random.default_rng(4)
    scan = Scan(library, replace(build_plan(library, tmp_path), depths=ALL))
    gone = np.array([3, 8, 900], np.int64)
    for share in (0.9, 0.5, 0.02, 0):
        allowed = rng.random(1100) < share
        exact = top_videos(library, queries, 30, allowed=allowed, gone=gone)
        same(scan.search(queries, 30, allowed=allowed, gone=gone), exact)


def test_small_depths_are_made_up_for_what_a_filter_takes_away(library, queries, tmp_path):
    plan = replace(build_plan(library, tmp_path), depths=Depths(200, 200))
    allowed = np.random.default_rng(5).random(1100) < 0.1
    found = Scan(library, plan).search(queries, 10, allowed=allowed)
    assert found.ids.shape == (12, 10)
    assert allowed[found.ids].all()


def test_segments_the_plan_does_not_know_are_searched_whole(library, queries, tmp_path):
    build_plan(library, tmp_path)
    grown = [made(3, 5000, 50, name="new"), *library]
    plan = open_plan(tmp_path, grown)
    assert plan is not None
    same(Scan(grown, replace(plan, depths=ALL)).search(queries, 40), top_videos(grown, queries, 40))
    shallow = Scan(grown, replace(plan, depths=Depths(1, 1)))
    for at in range(50):
        assert shallow.search(grown[0].vectors(at)[0], 1).ids.tolist() == [[5000 + at]]


def test_a_plan_for_segments_that_are_gone_is_not_opened(library, tmp_path):
    build_plan(library, tmp_path)
    assert open_plan(tmp_path, library[:1]) is None
    assert open_plan(tmp_path / "nowhere", library) is None


@pytest.mark.parametrize("damage", ["header", "version", "list", "cut short", "missing"])
def test_a_damaged_plan_is_none(library, tmp_path, damage):
    build_plan(library, tmp_path)
    header = tmp_path / PLAN_FILE
    values = json.loads(header.read_text())
    listed = tmp_path / values["list"]
    if damage == "header":
        header.write_bytes(b"{")
    elif damage == "version":
        header.write_text(json.dumps({**values, "version": 99}))
    elif damage == "list":
        listed.write_bytes(b"not a list")
    elif damage == "cut short":
        means = tmp_path / values["means"]
        means.write_bytes(means.read_bytes()[:-100])
    else:
        listed.unlink()
    assert open_plan(tmp_path, library) is None


@pytest.mark.parametrize("mapped", [False, True])
def test_no_wrong_byte_of_a_plan_is_searched_with(library, queries, tmp_path, monkeypatch, mapped):
    if mapped:
        monkeypatch.setattr("momentseek.library.segments.MAX_READ_BYTES", 0)
    build_plan(library, tmp_path)
    assert plan_fault(tmp_path) is None
    rng = np.random.default_rng(3)
    for path in [p for p in tmp_path.iterdir() if not p.name.endswith(".checked")]:
        sound = path.read_bytes()
        for at in rng.integers(0, len(sound), 12).tolist():
            path.write_bytes(sound[:at] + bytes([sound[at] ^ (1 << int(rng.integers(8)))]) + sound[at + 1 :])
            scan = Scan(library, open_plan(tmp_path, library))
            assert scan.plan is None or json.loads(path.read_bytes()) == json.loads(sound), (path.name, at)
            assert plan_fault(tmp_path) is not None or scan.plan is not None
            same(scan.search(queries, 5, exact=scan.plan is not None), top_videos(library, queries, 5))
        path.write_bytes(bytes(len(sound)))
        assert open_plan(tmp_path, library) is None
        path.write_bytes(sound)
    assert open_plan(tmp_path, library) is not None


def test_a_large_file_of_a_plan_is_read_whole_once_a_day(library, tmp_path, monkeypatch):
    monkeypatch.setattr("momentseek.library.segments.MAX_READ_BYTES", 0)
    build_plan(library, tmp_path)
    path = next(tmp_path.glob("*.codes"))
    mark = path.with_name(f".{path.name}.checked")
    assert mark.exists()
    path.write_bytes(bytes(path.stat().st_size))
    os.utime(mark, (path.stat().st_ctime + 1, path.stat().st_ctime + 1))
    monkeypatch.setattr("time.time", lambda: path.stat().st_ctime + 2)
    assert open_plan(tmp_path, library) is not None
    assert plan_fault(tmp_path) is not None
    monkeypatch.setattr("time.time", lambda: path.stat().st_ctime + 2 + 24 * 3600)
    assert open_plan(tmp_path, library) is None


def test_building_again_leaves_only_the_new_files(library, tmp_path):
    build_plan(library[:1], tmp_path)
    before = {p.name for p in tmp_path.iterdir()}
    build_plan(library, tmp_path)
    after = {p.name for p in tmp_path.iterdir()}
    assert len(after) == len(before)
    assert after & before == {PLAN_FILE}


def test_building_twice_gives_the_same_files(library, tmp_path):
    build_plan(library, tmp_path / "one")
    build_plan(library, tmp_path / "two")
    assert {p.name for p in (tmp_path / "one").iterdir()} == {p.name for p in (tmp_path / "two").iterdir()}


def test_progress_counts_every_video(library, tmp_path, monkeypatch):
    monkeypatch.setattr("momentseek.library.scan.plan.CLIPS_PER_POOLING", 500)
    steps: list[int] = []
    build_plan(library, tmp_path, steps.append)
    assert sum(steps) == 1100
    assert len(steps) > 5


def test_pooling_in_chunks_changes_nothing(library, tmp_path, monkeypatch):
    whole = build_plan(library, tmp_path / "one")
    monkeypatch.setattr("momentseek.library.scan.plan.CLIPS_PER_POOLING", 100)
    parts = build_plan(library, tmp_path / "two")
    np.testing.assert_array_equal(whole.means.codes, parts.means.codes)
    np.testing.assert_array_equal(whole.means.owner, parts.means.owner)


def test_listing_in_parts_changes_nothing(library, tmp_path, monkeypatch):
    one = build_plan(library, tmp_path / "one")
    monkeypatch.setattr("momentseek.library.scan.plan.MEANS_PER_ENCODING", 64)
    many = build_plan(library, tmp_path / "many")
    np.testing.assert_array_equal(one.listed.blocks, many.listed.blocks)


def test_a_list_that_is_cut_short_while_it_is_mapped_is_done_without(library, queries, tmp_path, monkeypatch):
    monkeypatch.setattr("momentseek.library.segments.MAX_READ_BYTES", 0)
    build_plan(library, tmp_path)
    plan = open_plan(tmp_path, library)
    assert plan.listed.mapped is not None
    scan = Scan(library, replace(plan, depths=ALL))
    same(scan.search(queries, 5), top_videos(library, queries, 5))
    path = next(tmp_path.glob("*.list"))
    os.truncate(path, path.stat().st_size - 4096)
    same(scan.search(queries, 5), top_videos(library, queries, 5))
    assert scan.plan is None


def test_no_vectors_no_plan(tmp_path):
    with pytest.raises(MomentseekError, match="add videos"):
        build_plan([], tmp_path)


def test_tuning_reaches_its_target_and_is_remembered(library, tmp_path):
    scan = Scan(library, build_plan(library, tmp_path))
    depths = tune(scan, 0.95, k=10)
    assert depths.recall is not None
    assert depths.recall >= 0.95
    again = open_plan(tmp_path, library)
    assert again is not None
    assert again.depths == depths


@pytest.mark.parametrize("less", [{"hope": -3.0, "coarse_margin": 0.5}, {"coarse_margin": 0.0}, {"fine_margin": 0.0}])
def test_a_margin_that_is_too_narrow_loses_videos_and_wide_ones_lose_none(library, queries, tmp_path, less):
    plan = build_plan(library, tmp_path)
    wide = replace(ALL, hope=30.0, coarse_margin=3.0, fine_margin=3.0)
    exact = top_videos(library, queries, 50)
    same(Scan(library, replace(plan, depths=wide)).search(queries, 50), exact)
    narrow = Scan(library, replace(plan, depths=replace(wide, **less)))
    assert share_found(narrow.search(queries, 50), exact) < 1


def test_what_a_query_needs_is_just_enough(library, tmp_path):
    """With the margins that one query's videos need, all of them are found; with less, one is not."""
    from momentseek.library.scan import recall

    scan = Scan(library, build_plan(library, tmp_path))
    plan, none = scan.plan, np.zeros(0, np.int64)
    lost = []
    for query in recall.sample_queries(scan, 8, seed=1):
        truth = scan.search(query, 100, exact=True)
        need = recall.needs_of(scan, plan, query, truth, none)
        depths = recall.depths_for([need], 0.0)
        assert depths.hope is not None
        scan.plan = replace(plan, depths=replace(depths, coarse_margin=depths.coarse_margin + 1e-5))
        assert share_found(scan.search(query, 100), truth) == 1
        scan.plan = replace(plan, depths=replace(depths, hope=None, coarse_margin=need.coarse_margin.max() - 1e-3))
        if need.coarse_margin.max() > 1e-2:
            lost.append(share_found(scan.search(query, 100), truth) < 1)
    assert len(lost) > 3
    assert all(lost)


def test_margins_are_relative_to_the_spread_of_a_query(library, tmp_path):
    """A query of half the length finds the same, because margins are relative."""
    from momentseek.library.scan import recall

    scan = Scan(library, build_plan(library, tmp_path))
    depths = tune(scan, 0.9)
    plan = scan.plan
    assert plan is not None
    assert depths.coarse_margin
    for query in recall.sample_queries(scan, 6, seed=3):
        reach = Reach(125, plan.means.rows, margin=depths.coarse_margin)
        near, half = (list_near(plan.listed, plan.means.owner, None, q, reach) for q in (query, query / 2))
        assert half.spread == pytest.approx(near.spread / 2, rel=1e-4)
        assert len(set(near.numbers.tolist()) ^ set(half.numbers.tolist())) <= 0.1 * len(near.numbers)


def test_fewer_videos_are_the_first_of_many(library, tmp_path):
    """The margins are those of the hundred best; for one alone they would be too narrow."""
    from momentseek.library.scan import recall

    scan = Scan(library, build_plan(library, tmp_path))
    tune(scan, 0.9)
    for query in recall.sample_queries(scan, 10, seed=2):
        many = scan.search(query, 100)
        for k in (1, 7, 100):
            same(scan.search(query, k), many.first(k))


def test_depths_of_a_plan_without_margins_are_read(library, queries, tmp_path):
    plan = build_plan(library, tmp_path)
    header = tmp_path / PLAN_FILE
    values = json.loads(header.read_text())
    del values["sum"]
    values["depths"] = {"coarse": 60, "fine": 30, "share": 0.5, "recall": 0.9}
    header.write_text(json.dumps({**values, "sum": _sum(values)}))
    old = open_plan(tmp_path, library)
    assert old.depths == Depths(60, 30, 0.5, 0.9)
    same(Scan(library, old).search(queries, 5), Scan(library, replace(plan, depths=old.depths)).search(queries, 5))


def test_reports_say_whether_a_plan_was_used(library, tmp_path):
    exact = recall_report(Scan(library), k=10)
    assert (exact.planned, exact.recall, exact.worst) == (False, 1.0, 1.0)
    assert "exact" in str(exact)
    planned = recall_report(Scan(library, build_plan(library, tmp_path)), k=10)
    assert planned.planned
    assert f"{planned.coarse:,} / {planned.fine:,}" in str(planned)


def test_a_small_library_is_opened_without_its_plan(library, tmp_path, monkeypatch):
    build_plan(library, tmp_path)
    assert Scan.open(library, tmp_path).plan is None
    monkeypatch.setattr("momentseek.library.scan.scan.MIN_PLANNED_ROWS", 100)
    assert Scan.open(library, tmp_path).plan is not None
