from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.recognition.captions.inputs import (
    CaptionPreparation,
    MomentParts,
    SaidLine,
    build_vocabulary,
    clips_of_moment,
    stack_moments,
)

KNOWN = build_vocabulary([["a", "b"]], more_than=0)
ROWS = np.arange(40, dtype=np.float32).reshape(20, 2)
LINES = [SaidLine(0.0, 1.5, ("a",)), SaidLine(1.5, 4.5, ("b", "c")), SaidLine(9.0, 9.5, ("a",))]


def names(tokens: np.ndarray) -> list[str]:  # type: ignore[type-arg]
    return [KNOWN.words[t] for t in tokens.tolist()]


def test_input_layout_of_the_paper() -> None:
    part = CaptionPreparation().part(1.6, 4.4, ROWS, LINES, 1.5)
    inputs = stack_moments([part, MomentParts(ROWS[:1], ("a",))], KNOWN, 2)
    assert names(inputs.tokens[0]) == ["[CLS]", "[VID]", "[VID]", "[SEP]", "[BOS]", "b", "[UNK]", "[EOS]"]
    assert names(inputs.tokens[1]) == ["[CLS]", "[VID]", "[SEP]", "[PAD]", "[BOS]", "a", "[EOS]", "[PAD]"]
    assert inputs.clips[0].tolist() == [[0, 0], ROWS[1].tolist(), ROWS[2].tolist(), [0, 0]]
    assert inputs.clips[1].tolist() == [[0, 0], ROWS[0].tolist(), [0, 0], [0, 0]]
    assert inputs.mask.tolist() == (inputs.tokens != KNOWN.number["[PAD]"]).tolist()


@pytest.mark.parametrize(
    ("modalities", "clips", "words"),
    [("video", 2, ()), ("subtitle", 0, ("b", "c")), ("video+subtitle", 2, ("b", "c")), ("none", 0, ())],
)
def test_unused_modalities_are_left_out(modalities: str, clips: int, words: tuple[str, ...]) -> None:
    part = CaptionPreparation(modalities=modalities).part(1.6, 4.4, ROWS, LINES, 1.5)
    assert (len(part.clips), part.words) == (clips, words)


def test_long_moments_keep_evenly_spaced_clips_and_the_first_words() -> None:
    long = CaptionPreparation(max_clips=4, max_words=2).part(0, 30, ROWS, LINES, 1.5)
    assert long.clips[:, 0].tolist() == [ROWS[i, 0] for i in (0, 6, 12, 19)]
    assert long.words == ("a", "b")


def test_columns_choose_one_of_two_kinds_of_features() -> None:
    assert CaptionPreparation(columns=(1, 2)).part(0, 3, ROWS, (), 1.5).clips.tolist() == [[1.0], [3.0]]


@given(start=st.floats(0, 100), length=st.floats(0.01, 100), count=st.integers(1, 60))
def test_clips_lie_in_the_video_and_cover_the_moment(start: float, length: float, count: int) -> None:
    first, last = clips_of_moment(start, start + length, count, 1.5, "inclusive")
    assert 0 <= first <= last < count
    if start + length <= count * 1.5:
        assert first * 1.5 <= start
        assert (last + 1) * 1.5 >= start + length - 1e-9
    more = clips_of_moment(start, start + length, count, 1.5, "official")
    assert more in ((first, last), (first, last + 1))


def test_video_without_clips() -> None:
    assert len(CaptionPreparation().part(0, 3, ROWS[:0], (), 1.5).clips) == 0


def test_rejects_unknown_settings() -> None:
    with pytest.raises(MomentseekError, match="modalities must be video or"):
        CaptionPreparation(modalities="sound")
    with pytest.raises(MomentseekError, match="end_clip must be inclusive or official"):
        CaptionPreparation(end_clip="late")
