"""What the candidates of CTRL and SCDM can reach at all, and what constant guesses score, on the real annotations.

The figures were measured apart from this code.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth
from momentseek.models.zoo.ctrl import Windows, window_overlaps, windows_of
from momentseek.models.zoo.scdm import anchors_of, map_sizes


def queries(data: Path, part: str) -> list[tuple[float, float]]:
    """Start and end in seconds of every query of a test split of Charades-CD."""
    found = json.loads((data / f"charades-cd/charades_test_{part}.json").read_text())
    return [(start, end) for video in found.values() for start, end in video["timestamps"]]


def reached(best: list[float]) -> list[float]:
    """Percent of queries for which some candidate overlaps by 0.5 and by 0.7."""
    return [round(100 * sum(b >= least for b in best) / len(best), 1) for least in (0.5, 0.7)]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        pytest.param((128, 256), [34.8, 22.3], marks=pytest.mark.figures),
        ((64, 128, 256, 512), [58.5, 44.6]),
        pytest.param((64, 128, 256, 512, 1024, 2048, 4096), [98.4, 87.7], marks=pytest.mark.figures),
    ],
)
def test_ctrls_windows_reach_so_many_moments(data: Path, lengths: tuple[int, ...], expected: list[float]) -> None:
    """On ActivityNet Captions at 30 frames per second; every 25th moment of the validation sets, so within 3 points."""
    best = []
    for name in ("val", "test"):
        found = json.loads((data / f"activitynet-captions/{name}.json").read_text())
        pairs = [(v["duration"], *span) for v in found.values() for span in v["timestamps"]]
        for seconds, start, end in pairs[::25]:
            mask = torch.ones(1, max(1, round(30 * seconds)), dtype=torch.bool)  # a clip is a frame
            windows = windows_of(mask, lengths, 0.8)
            iou, _ = window_overlaps(windows, torch.tensor([[30 * start, 30 * end]]))
            best.append(float(iou.masked_fill(~windows.valid, 0).max()))
    assert len(best) > 1000
    assert reached(best) == pytest.approx(expected, abs=3.0)


@pytest.mark.parametrize(("part", "expected"), [("iid", [99.8, 76.7]), ("ood", [98.6, 73.9])])
def test_scdms_anchors_reach_so_many_moments(data: Path, part: str, expected: list[float]) -> None:
    centre, width = anchors_of(64, map_sizes(64)).unbind(1)
    anchors = Windows((centre - width / 2)[None], (centre + width / 2)[None], torch.ones(1, len(centre)).bool())
    best = [float(window_overlaps(anchors, torch.tensor([[s, e]]))[0].max()) for s, e in queries(data, part)]
    assert reached(best) == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize(
    ("guess", "iid", "ood"), [((0.25, 0.75), 6.39, 25.04), ((0.0, 0.5), 18.81, 16.69), ((0.5, 1.0), 14.11, 20.70)]
)
def test_constant_guesses_score_so_much(data: Path, guess: tuple[float, float], iid: float, ood: float) -> None:
    name = "dR@1[IoU>=0.5]"
    for part, expected in (("iid", iid), ("ood", ood)):
        truth = read_truth(data / f"charades-cd/charades_test_{part}.json", invalid="keep")
        rows = []
        for query in truth.query_ids:
            video = truth.moments(query)[0].video
            seconds = float(truth.durations[truth.video_code[video]])
            rows.append((query, video, guess[0] * seconds, guess[1] * seconds, 1.0))
        assert 100 * evaluate(Run.from_rows(rows), truth, [name]).means[name] == pytest.approx(expected, abs=0.05)
