"""Tests of the example's parts; run them where it is installed: ``pytest examples/plugin/tests``."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from momentseek import Judgements, Run, evaluate, read_run, write_run
from momentseek.models.batch import Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.training.trackers import TRACKERS, TrackedRun
from momentseek.search.localise.localiser import Curve, localise


def test_spans_are_products_of_the_clips_odds() -> None:
    """Every span's probability written out as a loop over its clips."""
    torch.manual_seed(0)
    model = build("span-crf", {"hidden": 8, "longest": 4, "shortest": 2}, Dims(5, 6, None)).double().eval()
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    words = Words(torch.randn(2, 4, 5).double(), torch.ones(2, 4, dtype=torch.bool))
    clips = Clips(torch.randn(2, 6, 6).double() * mask[..., None], None, mask)
    queries, videos = model.encode_words(words), model.encode_clips(clips)
    logits, found = model.logits(queries, videos), model.spans(queries, videos)
    for i, count in enumerate((6, 3)):
        odds = {
            (s, n): torch.exp(sum(logits[i, s + j] for j in range(n))).item()
            for s, n in itertools.product(range(count), range(2, 5))
            if s + n <= count
        }
        for s, n in itertools.product(range(6), range(2, 5)):
            expected = odds.get((s, n), 0.0) / sum(odds.values())
            assert found[i, s, n - 2].exp().item() == pytest.approx(expected, abs=1e-12)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    model = build("span-crf", {"hidden": 8, "longest": 4}, Dims(5, 6, None)).eval()
    clips = torch.randn(1, 3, 6)
    alone = model.encode_clips(Clips(clips, None, torch.ones(1, 3, dtype=torch.bool)))
    mask = torch.tensor([[True] * 3 + [False] * 4])
    padded = model.encode_clips(Clips(torch.nn.functional.pad(clips, (0, 0, 0, 4)), None, mask))
    assert torch.allclose(alone["clips"], padded["clips"][:, :3], atol=1e-6)


def test_the_first_match_counts_by_its_rank() -> None:
    truth = Judgements.from_rows([("a", "v", 0, 10, 1), ("b", "v", 0, 10, 1)])
    run = Run.from_rows([("a", "v", 20, 30, 0.9), ("a", "v", 0, 9, 0.8), ("b", "v", 20, 30, 0.9)])
    assert evaluate(run, truth, "MRR@5[IoU>=0.5]")["MRR@5[IoU>=0.5]"] == 0.25


def test_a_spreadsheet_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = Run.from_rows([("a", "v", 0, 9.5, 0.8), ("a", "w", 1, 2, 0.7), ("b", "v", 20, 30, 0.9)])
    write_run(run, tmp_path / "run.csv", to="plain-csv")
    again = read_run(tmp_path / "run.csv")
    assert again.query_ids == run.query_ids
    assert again.start.tolist() == run.start.tolist()
    assert again.score.tolist() == run.score.tolist()


def test_the_clips_above_the_threshold_are_proposed() -> None:
    spans = localise(Curve.regular([0.1, 0.1, 0.1, 0.8, 0.9, 0.8, 0.1, 0.1, 0.1], seconds=2), "otsu")
    assert (spans.start[0], spans.end[0]) == (6.0, 12.0)


class Recorder:
    """Stands for the module of a tracker, and for its run: it notes what is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.summary: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Recorder:
            self.calls.append((name, given[0] if given else named))
            return self

        return call


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_trackers_are_told_steps_and_scores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, name, recorder)
    tracker = TRACKERS[name](TrackedRun(tmp_path / "runs", {"training": {"lr": 0.1}}))
    assert tracker is not None
    tracker.log(5, {"loss": 1.5})
    report = {"scores": {"val": {"R@1[IoU>=0.5]": 0.25}}}
    tracker.finish(SimpleNamespace(report=report))  # type: ignore[arg-type]
    sent = [given for _, given in recorder.calls]
    assert {"loss": 1.5} in sent
    assert recorder.summary == {"val/R@1[IoU>=0.5]": 0.25} or {"val/R_1 IoU ge 0.5": 0.25} in sent


def test_lines_after_the_step_that_training_continues_from_are_dropped(tmp_path: Path) -> None:
    first = TRACKERS["json-lines"](TrackedRun(tmp_path, {}))
    assert first is not None
    for step in (1, 2, 3):
        first.log(step, {"loss": float(step)})
    TRACKERS["json-lines"](TrackedRun(tmp_path, {}, step=2))
    assert [json.loads(line)["step"] for line in (tmp_path / "track.jsonl").read_text().splitlines()] == [1, 2]
