from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.recognition.exported.preparation import bounds, edges, fit_rows, labels, normalise_rows

counts = st.integers(1, 60)


@given(counts, counts)
def test_truncating_keeps_the_first_rows(rows: int, most: int) -> None:
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)
    assert np.array_equal(fit_rows(x, most, "truncate"), x[:most])


@given(counts, counts)
def test_resampling_averages_whole_rows_between_the_bounds(rows: int, most: int) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
    at = bounds(rows, most, "resample").astype(int)
    assert len(at) == min(rows, most) + 1
    assert at[0] == 0
    assert at[-1] == rows
    by_hand = np.stack([x[a:b].mean(axis=0) for a, b in itertools.pairwise(at)])
    np.testing.assert_allclose(fit_rows(x, most, "resample"), by_hand, rtol=1e-5, atol=1e-6)


@given(counts, counts)
def test_stretching_averages_what_each_part_covers(rows: int, most: int) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, 2)).astype(np.float32)
    got = fit_rows(x, most, "stretch")
    assert len(got) == most
    fine = np.repeat(x, most, axis=0)  # every row in `most` pieces; a part is then `rows` of them
    np.testing.assert_allclose(got, fine.reshape(most, rows, 2).mean(axis=1), rtol=1e-4, atol=1e-5)


def test_an_unknown_way_of_fitting_is_said() -> None:
    with pytest.raises(MomentseekError, match="truncate, resample, stretch, rounded, not by 'squeeze'"):
        fit_rows(np.ones((2, 2), np.float32), 1, "squeeze")


@given(counts, counts, st.sampled_from(["truncate", "resample", "stretch", "rounded"]), st.floats(0.1, 100))
def test_edges_rise_and_belong_to_the_fitted_clips(rows: int, most: int, how: str, duration: float) -> None:
    at = edges(rows, most, how, 1.5, duration)
    assert len(at) == len(fit_rows(np.ones((rows, 1), np.float32), most, how)) + 1
    assert (np.diff(at) > 0).all()
    assert at[-1] <= rows * 1.5 + 1e-9


@given(st.floats(0, 80), st.floats(0.01, 40), st.integers(1, 50))
def test_labels_are_the_formula(start: float, length: float, rows: int) -> None:
    end = start + length
    first, last = labels(np.array([start]), np.array([end]), edges(rows, 100, "truncate"))
    assert first[0] == min(math.floor(start / 1.5), rows - 1)
    assert last[0] == max(first[0], min(math.ceil(end / 1.5) - 1, rows - 1))
    _, official = labels(np.array([start]), np.array([end]), edges(rows, 100, "truncate"), "official")
    assert official[0] == max(first[0], min(math.ceil(end / 1.5), rows - 1))


def test_labels_of_a_resampled_video_follow_its_edges() -> None:
    at = edges(200, 100, "resample", 1.5)
    first, last = labels(np.array([150.0]), np.array([156.0]), at)
    assert (first[0], last[0]) == (50, 51)


def test_normalising_leaves_silence_silent() -> None:
    x = np.array([[3, 4], [0, 0]], np.float32)
    np.testing.assert_allclose(normalise_rows(x), [[3 / 5.00001, 4 / 5.00001], [0, 0]], rtol=1e-6)
