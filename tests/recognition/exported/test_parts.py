"""Between encoders and a model: cues by clip, and windows over long videos."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.recognition.exported.encoder import said_in_clips
from momentseek.recognition.exported.manifest import sources_of
from momentseek.recognition.exported.moment_map import windows

CUES = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 9)), max_size=8)


@given(CUES, st.integers(1, 20))
def test_clip_is_the_mean_of_overlapping_cues(cues: list[tuple[float, float]], clips: int):
    times = [(start, start + length) for start, length in cues]
    vectors = np.random.default_rng(len(cues)).standard_normal((len(cues), 3)).astype(np.float32)
    rows = said_in_clips(times, vectors, clips, 1.5, 3)
    for clip in range(clips):
        begin, end = clip * 1.5, (clip + 1) * 1.5
        over = [v for (s, e), v in zip(times, vectors, strict=True) if s < end and (e > begin or s >= begin)]
        wanted = np.mean(over, axis=0) if over else np.zeros(3)
        np.testing.assert_allclose(rows[clip], wanted, atol=1e-5)


@given(st.integers(1, 500), st.integers(1, 60))
def test_windows_keep_every_clip_once_and_near_their_middle(clips: int, most: int):
    found = windows(clips, most)
    assert [clip for w in found for clip in range(w.begin, w.end)] == list(range(clips))
    for w in found:
        assert w.first <= w.begin <= w.end <= w.last <= clips
        assert w.last - w.first == min(clips, most)
    for clip in range(clips):
        own = next(w for w in found if w.begin <= clip < w.end)
        near = min(abs(clip + 0.5 - (w.first + w.last) / 2) for w in found)
        assert abs(clip + 0.5 - (own.first + own.last) / 2) <= near + 1


def test_encoders_of_a_data_folder(tmp_path):
    file = tmp_path / "data.toml"
    file.write_text('[encoders.query]\nspec = "minilm"\nfingerprint = "f"\ndim = 384\n')
    assert sources_of(file)["query"].dim == 384
    file.write_text("name = 'no encoders'\n")
    assert sources_of(file) == {}
    file.write_text('[encoders.query]\nspec = "minilm"\n')
    with pytest.raises(MomentseekError, match="not understood"):
        sources_of(file)
