from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.media.decode import frames
from momentseek.media.shots import Boundary, ShotDetector, merge_boundaries

Picture = Any
RATE = 25


def scene(seed: int) -> Picture:
    """A photograph-like picture, 48 × 256: patches of colour, wide enough to pan over."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(20, 235, (6, 32, 3))
    return np.repeat(np.repeat(coarse, 8, 0), 8, 1)


def view(picture: Picture, x: float = 0.0) -> Picture:
    return picture[:, int(x) : int(x) + 64]


def found(pictures: list[Picture], rate: float = RATE) -> list[float]:
    detector = ShotDetector()
    for i, picture in enumerate(pictures):
        detector.push(i / rate, np.clip(picture, 0, 255).astype(np.uint8))
    return detector.boundaries()


def shots(path: Path) -> list[float]:
    detector = ShotDetector()
    for _ in frames(path, rate=1 / 3600, on_picture=detector.push):
        pass
    return detector.boundaries()


def hold(picture: Picture, seconds: float) -> list[Picture]:
    return [view(picture)] * round(seconds * RATE)


def test_hard_cuts_are_frame_accurate() -> None:
    pictures = hold(scene(0), 2) + hold(scene(1), 1) + hold(scene(2), 0.6) + hold(scene(3), 2)
    assert found(pictures) == pytest.approx([2.0, 3.0, 3.6])


def test_single_shot_has_no_boundary() -> None:
    assert found(hold(scene(0), 5)) == []
    assert found([view(scene(0))]) == []
    assert found([]) == []
    assert ShotDetector().boundaries() == []


@pytest.mark.parametrize("speed", [10, 40, 80])
def test_pan_is_no_boundary(speed: float) -> None:
    assert found([view(scene(0), speed * i / RATE) for i in range(2 * RATE)]) == []


def test_noise_is_no_boundary() -> None:
    rng = np.random.default_rng(1)
    assert found([p + rng.normal(0, 25, p.shape) for p in hold(scene(0), 4)]) == []


@pytest.mark.parametrize("length", [1, 3, 5])
def test_flash_is_no_boundary(length: int) -> None:
    pictures = hold(scene(0), 4)
    for i in range(50, 50 + length):
        pictures[i] = pictures[i] * 0.2 + 200
    assert found(pictures) == []
    assert found(pictures[: 50 + length]) == []


def test_change_of_light_is_no_boundary() -> None:
    assert found([p * (0.4 + 0.6 * min(1, i / 40)) for i, p in enumerate(hold(scene(0), 4))]) == []


@pytest.mark.parametrize("length", [0.5, 1.0, 1.5])
def test_dissolve_is_one_boundary_at_its_middle(length: float) -> None:
    n = round(length * RATE)
    blend = [view(scene(0)) * (1 - a) + view(scene(1)) * a for a in (np.arange(n) + 0.5) / n]
    (time,) = found(hold(scene(0), 2) + blend + hold(scene(1), 2))
    assert time == pytest.approx(2 + length / 2, abs=0.25)


@pytest.mark.parametrize("length", [0.3, 0.6])
def test_fade_through_black_is_one_boundary(length: float) -> None:
    n = round(length * RATE)
    out = [view(scene(0)) * a for a in np.linspace(1, 0, n)]
    back = [view(scene(1)) * a for a in np.linspace(0, 1, n)]
    (time,) = found(hold(scene(0), 2) + out + back + hold(scene(1), 2))
    assert time == pytest.approx(2 + length, abs=0.1)


def test_dark_scenes_are_distinguished() -> None:
    assert found([p * 0.12 for p in hold(scene(0), 2) + hold(scene(1), 2)]) == pytest.approx([2.0])


def test_boundaries_do_not_depend_on_when_they_are_read() -> None:
    pictures = [p for i in range(40) for p in hold(scene(i), 1.48)]
    truth = [37 * i / RATE for i in range(1, 40)]
    assert found(pictures) == pytest.approx(truth)
    detector, asked = ShotDetector(), []
    for i, picture in enumerate(pictures):
        detector.push(i / RATE, picture.astype(np.uint8))
        if i % 100 == 50:
            asked = detector.boundaries()
    assert asked == pytest.approx([t for t in truth if t <= 1450 / RATE - 0.25])
    assert detector.boundaries() == pytest.approx(truth)
    assert len(detector._times) < 1000


@pytest.mark.parametrize("rate", [5, 10, 60])
def test_other_frame_rates(rate: int) -> None:
    pictures = [view(scene(0))] * (2 * rate) + [view(scene(1))] * (2 * rate)
    assert found(pictures, rate) == pytest.approx([2.0])


def test_keeps_the_more_confident_of_two_near_boundaries() -> None:
    near = [
        Boundary(1.0, "dissolve", 0.9),
        Boundary(1.5, "cut", 0.3),
        Boundary(5.0, "cut", 0.4),
        Boundary(5.2, "cut", 0.5),
    ]
    assert [b.time for b in merge_boundaries(near)] == [1.5, 5.2]


def test_real_video_boundaries(make_video: Callable[..., Path], tmp_path: Path) -> None:
    pictures = [np.repeat(np.repeat(view(scene(i)), 3, 0), 3, 1) for i in range(3)]
    path = make_video(tmp_path / "a.mkv", [(1.2, pictures[0]), (2.0, pictures[1]), (1.4, pictures[2])], start=3.0)
    assert shots(path) == pytest.approx([1.2, 3.2], abs=0.01)


def test_tiny_videos(make_video: Callable[..., Path], tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", [(2.0, (200, 9, 9)), (2.0, (9, 9, 200))], codec="ffv1", size=(1, 1))
    assert shots(path) in ([], pytest.approx([2.0]))


def test_real_clip_without_cuts(data: Path) -> None:
    assert shots(data / "videos" / "charades_example.mp4") == []
