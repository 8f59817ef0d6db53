from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.core.native.kernels import kernels
from momentseek.library.scan import pooling as scenes
from momentseek.library.segments import quantise

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


def reference(rows: np.ndarray) -> list[np.ndarray]:
    """The definition in plain Python: lists of clips, merged cheapest first, tight ones before loose ones."""
    out = []
    for begin in range(0, len(rows), scenes.CLIPS_PER_STRETCH):
        groups = [[row] for row in rows[begin : begin + scenes.CLIPS_PER_STRETCH].astype(np.float64)]
        while len(groups) > 1:
            options = []
            for i, (one, two) in enumerate(pairwise(groups)):
                both = np.array(one + two)
                spread = ((both - both.mean(axis=0)) ** 2).sum(axis=1).mean()
                apart = ((np.mean(one, axis=0) - np.mean(two, axis=0)) ** 2).sum()
                options.append(
                    (
                        apart > scenes.MAX_DISTANCE or spread > scenes.MAX_SPREAD,
                        len(one) * len(two) / len(both) * apart,
                        i,
                    )
                )
            loose, _, i = min(options)
            if loose and len(groups) <= scenes.MAX_SCENES_PER_STRETCH:
                break
            groups[i : i + 2] = [groups[i] + groups[i + 1]]
        out += [np.mean(group, axis=0) for group in groups]
    return out


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 80), min_size=1, max_size=3))
def test_scenes_are_those_of_the_definition(seed, lengths):
    rng = np.random.default_rng(seed)
    videos = []
    for length in lengths:
        subjects = rng.normal(size=(5, 24))[np.sort(rng.integers(0, 5, length))]
        rows = subjects + rng.normal(size=(length, 24)) * rng.uniform(0.1, 1)
        videos.append((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    codes, scales = quantise(np.concatenate(videos))
    means, offsets = scenes.pool_scenes(codes, scales, np.concatenate([[0], np.cumsum(lengths)]))
    rows = codes * scales[:, None]
    start = 0
    for i, length in enumerate(lengths):
        expected = reference(rows[start : start + length])
        found = means[offsets[i] : offsets[i + 1]]
        assert len(found) == len(expected)
        if expected:
            np.testing.assert_allclose(found, expected, atol=1e-4)
        start += length


def test_a_smooth_video_is_one_scene_and_unlike_shots_are_their_own():
    rng = np.random.default_rng(0)
    shots = np.repeat(rng.normal(size=(4, 64)), 6, axis=0) + 0.1 * rng.normal(size=(24, 64))
    smooth = rng.normal(size=64) + 0.1 * rng.normal(size=(24, 64))
    rows = np.concatenate([smooth, shots]).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, offsets = scenes.pool_scenes(*quantise(rows), np.array([0, 24, 48]))
    assert np.diff(offsets).tolist() == [1, 4]


def test_one_odd_clip_in_a_long_scene_keeps_a_mean_of_its_own():
    rows = np.repeat(np.eye(2, 8, dtype=np.float32)[:1], 30, axis=0)
    rows[17] = np.eye(2, 8)[1]
    means, _ = scenes.pool_scenes(*quantise(rows), np.array([0, 30]))
    assert means.round(3).tolist() == [rows[0].tolist(), rows[17].tolist(), rows[0].tolist()]


def test_rows_that_are_not_numbers_leave_the_means_finite():
    codes = np.ones((3, 4), np.int8)
    means, _ = scenes.pool_scenes(codes, np.array([np.nan, 0.5, 0], np.float32), np.array([0, 3]))
    assert np.isfinite(means).all()
