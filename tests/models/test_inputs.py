from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.core.language import roles_by_rule
from momentseek.models.inputs import clips_of, words_of
from momentseek.models.model import ModelConfig
from momentseek.models.zoo.mdd import MddConfig
from momentseek.recognition.exported.preparation import normalise_rows


class Rows(dict[str, np.ndarray]):
    def read(self, name: str) -> np.ndarray:
        return self[name]

    def rows(self, name: str) -> int:
        return len(self.read(name))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    counts = {"a": 2, "b": 5}
    video = Rows({n: rng.standard_normal((c, 4), dtype=np.float32) for n, c in counts.items()})
    subtitle = Rows({n: rng.standard_normal((c, 3), dtype=np.float32) for n, c in counts.items()})
    return SimpleNamespace(video=video, subtitle=subtitle, rows=lambda name: max(len(video[name]), len(subtitle[name])))


def test_clips_are_fitted_normalised_placed_and_padded(data):
    clips = clips_of(data, ["a", "b"], ModelConfig(max_clips=3, endpoints=True))
    assert clips.video is not None
    assert clips.subtitle is not None
    assert clips.mask.tolist() == [[True, True, False], [True, True, True]]
    assert clips.video.shape == (2, 3, 6)
    assert clips.subtitle.shape == (2, 3, 5)
    assert np.array_equal(clips.video[1, :, :4], normalise_rows(data.video["b"][:3]))
    torch.testing.assert_close(clips.subtitle[0, :, 3:], torch.tensor([[0.0, 0.5], [0.5, 1.0], [0.0, 0.0]]))
    assert not clips.video[0, 2].any()


def test_long_videos_may_be_averaged_before_they_are_normalised(data):
    clips = clips_of(data, ["b"], ModelConfig(max_clips=1, fit="resample", modalities="video"))
    assert clips.subtitle is None
    assert clips.video is not None
    np.testing.assert_allclose(clips.video[0], normalise_rows(data.video["b"].mean(0, keepdims=True)), rtol=1e-6)


def test_features_can_be_taken_as_they_are(data):
    clips = clips_of(data, ["a"], ModelConfig(normalise=False, modalities="subtitle"))
    assert clips.video is None
    assert clips.subtitle is not None
    assert np.array_equal(clips.subtitle[0], data.subtitle["a"])


def test_words_are_cut_normalised_and_padded(data):
    split = SimpleNamespace(query=data.video)
    words = words_of(split, ["a", "b"], ModelConfig(max_words=4))
    assert words.mask.tolist() == [[True, True, False, False], [True] * 4]
    assert np.array_equal(words.features[1], normalise_rows(data.video["b"][:4]))
    assert not words.features[0, 2:].any()


def test_what_is_cut_off_does_not_move_the_words_roles():
    text = "Well, the man's dog, a collie, opens a door."
    pieces = len(roles_by_rule(text).pieces)
    assert pieces > len(roles_by_rule(text).words)
    rows = np.ones((pieces, 3), np.float32)
    split = SimpleNamespace(query=Rows({"q": rows}), truth=SimpleNamespace(text=lambda query: text))
    whole, cut = (words_of(split, ["q"], MddConfig(max_words=most, parse="rules")) for most in (pieces, 8))
    assert whole.roles.any()
    assert torch.equal(cut.roles, whole.roles[:, :8])
    assert torch.equal(cut.phrase, whole.phrase[:, :8])


def test_a_silent_video_stays_zero_beside_its_endpoints(data):
    data.subtitle["a"] = np.zeros((2, 3), np.float32)
    clips = clips_of(data, ["a"], ModelConfig())
    assert clips.subtitle is not None
    assert not clips.subtitle.any()


def test_what_cannot_be_prepared_is_named(data):
    with pytest.raises(MomentseekError, match=r"modalities must be .*, not 'sound'"):
        clips_of(data, ["a"], ModelConfig(modalities="sound"))
    with pytest.raises(MomentseekError, match="no subtitle features"):
        clips_of(SimpleNamespace(video=data.video, subtitle=None), ["a"], ModelConfig())
    data.subtitle["a"] = np.zeros((3, 3), np.float32)
    with pytest.raises(MomentseekError, match="video a has 2 clips of video features and 3 of subtitle"):
        clips_of(data, ["a"], ModelConfig())
    data.video["a"] = data.subtitle["a"] = np.zeros((0, 4), np.float32)
    with pytest.raises(MomentseekError, match="video a has no clips"):
        clips_of(data, ["a"], ModelConfig())
    with pytest.raises(MomentseekError, match="query a has no words"):
        words_of(SimpleNamespace(query=data.video), ["a"], ModelConfig())
