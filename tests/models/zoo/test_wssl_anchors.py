"""What WSSL's fifteen anchors reach on the real annotations; the figures were measured apart from this code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from momentseek.models.zoo.ctrl import Windows, window_overlaps
from momentseek.models.zoo.wssl import ANCHORS


def best_overlaps(shares: torch.Tensor) -> torch.Tensor:
    """(n,): the largest IoU of an anchor with each moment (n, 2), in shares of its video."""
    centre, width = torch.tensor(ANCHORS).unbind(1)
    anchors = Windows((centre - width / 2)[None], (centre + width / 2)[None], torch.ones(1, len(centre)).bool())
    return torch.stack([window_overlaps(anchors, each[None])[0].max() for each in shares])


def shares_of(file: Path, seconds: str, every: int = 1) -> torch.Tensor:
    videos = json.loads(file.read_text()).values()
    found = [(start / v[seconds], end / v[seconds]) for v in videos for start, end in v["timestamps"]]
    return torch.tensor(found[::every])


@pytest.mark.parametrize(("part", "expected"), [("iid", [97.3, 45.0]), ("ood", [91.7, 50.1])])
def test_anchors_reach_so_many_moments_of_charades_cd(data: Path, part: str, expected: list[float]) -> None:
    best = best_overlaps(shares_of(data / f"charades-cd/charades_test_{part}.json", "video_duration"))
    assert [100 * float((best >= least).float().mean()) for least in (0.5, 0.7)] == pytest.approx(expected, abs=1.5)


def test_anchors_reach_so_many_moments_of_activitynet(data: Path) -> None:
    """Every 20th moment of both validation sets, so within 3 points."""
    shares = torch.cat([shares_of(data / f"activitynet-captions/{n}.json", "duration", 20) for n in ("val", "test")])
    best = best_overlaps(shares)
    assert len(best) > 1000
    assert [100 * float((best >= least).float().mean()) for least in (0.5, 0.7)] == pytest.approx([83.0, 59.5], abs=3)
