"""Segments on disk."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.merging import groups_to_join
from momentseek.library.scan.scan import Scan
from momentseek.library.segments import Segment, StoredVectors, checksum, quantise, segment_of


def made(seed: int, counts: list[int], first: int = 1) -> Segment:
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(n, 5)).astype(np.float32) for n in counts]
    units = [r / np.linalg.norm(r, axis=1, keepdims=True) for r in rows]
    return segments.build_segment("vision", range(first, first + len(counts)), units)


def same(one: Segment, other: Segment) -> None:
    for name in segments.ARRAY_TYPES.keys() - {"sums"}:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    content = made(1, [3, 1, 0, 7])
    name = segments.write_segment(tmp_path, content)
    back = segments.read_segment(tmp_path, name)
    same(back, content)
    assert (back.stream, back.dim, back.rows) == ("vision", 5, 11)
    assert checksum(tmp_path / f"{name}.vec") == name
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.vec"]


def test_joined_segments_are_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "ROWS_PER_WRITE", 3)
    one, two = made(1, [3, 1, 9]), made(2, [4, 2], first=4)
    found = [StoredVectors.find([one, two], id) for id in (1, 2, 3, 4, 5)]
    rows = [vectors for vectors in found if vectors is not None]
    whole = segment_of("vision", [1, 2, 3, 4, 5], rows)
    name = segments.write_joined(tmp_path, "vision", [one, two])
    same(segments.read_segment(tmp_path, name), whole)
    assert segments.write_segment(tmp_path, whole) == name


def test_without_leaves_views_of_the_rest() -> None:
    content = made(3, [2, 3, 4, 1])
    parts = segments.parts_without(content, np.array([2, 9]))
    assert [part.ids.tolist() for part in parts] == [[1], [3, 4]]
    np.testing.assert_array_equal(parts[1].half, content.half[5:])
    assert parts[1].half.base is not None
    assert segments.parts_without(content, np.array([1, 2, 3, 4])) == []


def test_find_copies_a_videos_rows() -> None:
    parts = [made(1, [2, 3]), made(2, [4], first=3)]
    rows = StoredVectors.find(parts, 3)
    assert rows is not None
    np.testing.assert_array_equal(rows.codes, parts[1].codes)
    assert StoredVectors.find(parts, 4) is None


@pytest.mark.parametrize("damage", ["short", "magic", "empty", "gone", "header"])
def test_damage_is_said(tmp_path: Path, damage: str) -> None:
    name = segments.write_segment(tmp_path, made(1, [20]))
    path = tmp_path / f"{name}.vec"
    data = path.read_bytes()
    broken = {"short": data[:-400], "magic": b"?" + data[1:], "empty": b"", "header": data[:40] + b"?" * 40 + data[80:]}
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(broken[damage])
    with pytest.raises(MomentseekError, match="momentseek verify"):
        segments.read_segment(tmp_path, name)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.floats(1e-3, 1e3))
def test_codes_are_within_half_a_step(seed: int, rows: int, size: float) -> None:
    vectors = (np.random.default_rng(seed).normal(size=(rows, 6)) * size).astype(np.float32)
    codes, scales = quantise(vectors)
    assert (np.abs(codes * scales[:, None] - vectors) <= scales[:, None] * 0.5001).all()
    assert (np.abs(codes).max(axis=1) == 127).all()


@given(st.lists(st.integers(1, 2000), max_size=60), st.integers(10, 3000))
def test_joining_leaves_each_segment_larger_than_those_after(rows: list[int], large: int) -> None:
    groups = groups_to_join(rows, large)
    left = list(rows)
    for group in reversed(groups):
        left[group.start : group.stop] = [sum(left[group.start : group.stop])]
    assert sum(left) == sum(rows)
    assert all(sum(rows[at] for at in group[:-1]) < large for group in groups)
    if not groups:
        tail: list[int] = []
        for size in reversed(rows):
            if size >= large:
                break
            assert size > sum(tail)
            tail.append(size)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=300))
def test_adding_one_by_one_leaves_few_segments(sizes: list[int]) -> None:
    held: list[int] = []
    for size in sizes:
        held.append(size)
        for group in reversed(groups_to_join(held, 10**9)):
            held[group.start : group.stop] = [sum(held[group.start : group.stop])]
    assert len(held) <= np.log2(sum(sizes)) + 2


def test_a_large_file_is_mapped_and_its_size_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = segments.write_segment(tmp_path, made(1, [20, 30]))
    read = segments.read_segment(tmp_path, name)
    monkeypatch.setattr(segments, "MAX_READ_BYTES", 1000)
    mapped = segments.read_segment(tmp_path, name)
    assert (read.mapped, mapped.mapped is None) == (None, False)
    same(read, mapped)
    mapped.check_size()
    scan = Scan([mapped])
    assert scan.search(mapped.vectors(1)[0], 1).ids.tolist() == [[2]]
    path = tmp_path / f"{name}{segments.SEGMENT_SUFFIX}"
    os.truncate(path, path.stat().st_size - 1)
    for use in (mapped.check_size, mapped.part(1, 2).check_size, lambda: scan.search(read.vectors(1)[0], 1)):
        with pytest.raises(MomentseekError, match="cut short while it was in use; run: momentseek verify --repair"):
            use()
    read.check_size()
    with pytest.raises(MomentseekError, match="damaged"):
        segments.read_segment(tmp_path, name)
