"""Rows of features as models take them."""

from __future__ import annotations

import numpy as np

from momentseek.recognition.exported.preparation import Preparation, endpoints, fit_rows, normalise_rows

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)


def test_clips_are_fitted_then_normalised_then_have_endpoints() -> None:
    got = Preparation(4, "resample", endpoints=True).prepare_clips(X, "video")
    assert np.array_equal(got[:, :3], normalise_rows(fit_rows(X, 4, "resample")))
    assert np.array_equal(got[:, 3:], endpoints(4))
    assert np.array_equal(Preparation(4, "truncate", video=False).prepare_clips(X, "video"), X[:4])


def test_rows_may_be_normalised_before_they_are_averaged() -> None:
    got = Preparation(2, "stretch", fit_first=False).prepare_clips(X, "video")
    assert np.array_equal(got, fit_rows(normalise_rows(X), 2, "stretch"))
    assert not np.allclose(got, Preparation(2, "stretch").prepare_clips(X, "video"))


def test_words_and_subtitles_have_their_own_say() -> None:
    only_video = Preparation.of(
        {"max_clips": 9, "fit": "truncate", "normalise": True, "normalise_words": False, "normalise_subtitles": False,
         "endpoints": False}
    )  # fmt: skip
    assert np.array_equal(only_video.prepare_clips(X, "video"), normalise_rows(X))
    assert np.array_equal(only_video.prepare_clips(X, "subtitle"), X)
    assert np.array_equal(only_video.prepare_words(X), X)


def test_rounded_takes_whole_rows() -> None:
    """As 2D-TAN's public code: bounds are rounded and end before the last row; where none is left, one is taken."""
    rows = np.arange(5, dtype=np.float32)[:, None]
    assert fit_rows(rows, 2, "rounded").ravel().tolist() == [0.5, 2.5]
    assert fit_rows(rows[:2], 4, "rounded").ravel().tolist() == [0, 0, 1, 1]
