"""The choice of frames to read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.recognition.ocr.lines import MIN_SLOT_SECONDS, SLOT_SECONDS, brightness_blocks, frame_slots, is_still

seconds = st.floats(0.04, 100.0)


@given(seconds, st.lists(st.floats(0.0, 100.0), max_size=20))
def test_slots_cover_the_video_once_within_limits(duration: float, cuts: list[float]) -> None:
    slots = frame_slots(duration, [cut for cut in cuts if cut < duration])
    assert slots[0][0] == 0.0
    assert slots[-1][1] == duration
    assert all(one[1] == other[0] for one, other in pairwise(slots))
    lengths = np.diff([*(slot[0] for slot in slots), duration])
    assert (lengths <= SLOT_SECONDS + 1e-6).all()
    assert duration < MIN_SLOT_SECONDS or (lengths >= MIN_SLOT_SECONDS - 1e-6).all()


def test_shots_are_not_mixed() -> None:
    assert frame_slots(12.0, [3.0, 3.5]) == [(0.0, 3.0), (3.0, 6.0), (6.0, 9.0), (9.0, 12.0)]
    assert len(frame_slots(12.0, [], every=1.0)) == 12


def test_noise_is_still_and_a_small_line_is_not() -> None:
    rng = np.random.default_rng(7)
    slide = np.full((360, 640, 3), 240, np.uint8)
    noisy = np.clip(slide.astype(int) + rng.integers(-6, 7, slide.shape), 0, 255).astype(np.uint8)
    written = slide.copy()
    written[300:312:3, 50:170] = 20  # a line of small letters
    before = brightness_blocks(slide)
    assert not is_still(before, None)
    assert is_still(brightness_blocks(noisy), before)
    assert not is_still(brightness_blocks(written), before)
