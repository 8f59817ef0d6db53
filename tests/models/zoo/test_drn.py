"""DRN: targets, loss, decoding and stages, written out as loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.model import Phase
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.warm_start import check_later_stage
from momentseek.models.zoo.drn import RANGES, Drn, DrnConfig, focal_loss, point_overlap

SMALL = {"hidden": 4, "wide": 6, "stride": 1}


def make(**settings: object) -> Drn:
    torch.manual_seed(0)
    return Drn(DrnConfig(**{**SMALL, **settings}), Dims(3, 5, None)).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("clips", [32, 16])
def test_positions_answer_for_moments_of_their_range(clips: int) -> None:
    model = make(max_clips=clips, longest=32)
    times = torch.rand(40, 2, generator=torch.Generator().manual_seed(0)).sort(1).values
    distances, right = model.targets(times)
    at = 0
    for level in range(3):
        for i in range(clips // 2**level):
            point = (i + 0.5) * 2**level * 32 / clips
            for n, (start, end) in enumerate(times.tolist()):
                left, after = point - 32 * start, 32 * end - point
                assert distances[n, at].tolist() == pytest.approx([left, after], abs=1e-4)
                low, high = RANGES[level]
                assert bool(right[n, at]) == (left > 0 and after > 0 and low <= max(left, after) <= high)
            at += 1
    assert at == right.shape[1]


def test_every_moment_of_a_segment_or_more_has_a_position() -> None:
    start = torch.rand(5000, generator=torch.Generator().manual_seed(1))
    length = 1 / 32 + torch.rand(5000, generator=torch.Generator().manual_seed(2)) * (1 - 1 / 32)
    start = start * (1 - length)
    assert bool(make().targets(torch.stack([start, start + length], 1))[1].any(1).all())


def test_overlap_and_focal_loss_are_their_formulas() -> None:
    found, wanted = torch.tensor([[1.0, 2.0], [3.0, 0.5]]), torch.tensor([[2.0, 1.0], [1.0, 1.0]])
    for a, b, value in zip(found.tolist(), wanted.tolist(), point_overlap(found, wanted).tolist(), strict=True):
        assert value == pytest.approx((min(a[0], b[0]) + min(a[1], b[1])) / (max(a[0], b[0]) + max(a[1], b[1])))
    logits = torch.tensor([0.3, -1.2])
    p = [1 / (1 + math.exp(-x)) for x in (0.3, -1.2)]
    expected = [-0.25 * (1 - p[0]) ** 2 * math.log(p[0]), -0.75 * p[1] ** 2 * math.log(1 - p[1])]
    assert focal_loss(logits, torch.tensor([True, False])).tolist() == pytest.approx(expected)


def fake(model: Drn, scores: Tensor, distances: Tensor, grades: Tensor) -> None:
    model.pyramid = lambda queries, videos: (scores, distances, grades)  # type: ignore[method-assign]


@torch.no_grad()
def test_positions_are_decoded_and_the_whole_video_is_the_last_resort() -> None:
    model = make()
    scores, distances, grades = torch.full((2, 56), -9.0), torch.ones(2, 56, 2), torch.zeros(2, 56)
    scores[0, 3], distances[0, 3], grades[0, 3] = 1.0, torch.tensor([2.0, 40.0]), 0.7
    fake(model, scores, distances, grades)
    start, end, value = model.moments({}, {})
    assert (value > -torch.inf).nonzero().tolist() == [[0, 3], [1, 56]]
    assert [start[0, 3].item(), end[0, 3].item()] == pytest.approx([1.5 / 32, 1.0])
    assert value[0, 3].item() == pytest.approx(0.5 * math.log(1 / (1 + math.exp(-1.0))))
    assert [x[1, 56].item() for x in (start, end, value)] == [0.0, 1.0, 0.0]
    model.graded.fill_(1.0)
    graded = model.moments({}, {})[2][0, 3].item()
    assert graded == pytest.approx(math.log(math.sqrt(1 / (1 + math.exp(-1.0)) / (1 + math.exp(-0.7)))))


def test_stages_follow_each_other() -> None:
    model = make(stage_epochs=(2, 3), stage_rates=(0.5, 0.25))
    phases = [model.phase_at(9, epoch) for epoch in range(4)]
    assert [phase.name for phase in phases] == ["first", "first", "second", "third"]
    assert [(p.rate(""), p.rate("grade")) for p in phases[1:]] == [(1.0, 0.0), (0.0, 0.5), (0.25, 0.25)]
    assert make(stage="third").phase_at(0, 0).name == "third"
    assert [make(stage=s).goes_on for s in ("all", "first", "second")] == [False, False, True]


def batch() -> Batch:
    g = torch.Generator().manual_seed(0)
    there = torch.ones(2, 32, dtype=torch.bool)
    n = torch.arange(2)
    times = torch.tensor([[0.1, 0.4], [0.3, 0.9]])
    pairs = BatchPairs(n, n, n, n, torch.ones(2), torch.eye(2, dtype=torch.bool), times)
    words = Words(torch.randn(2, 3, 3, generator=g), there[:, :3])
    return Batch(words, Clips(torch.randn(2, 32, 5, generator=g), None, there), pairs)


def test_stages_train_their_terms_and_checkpoint_records_grading() -> None:
    model = make(good=0.0).train()
    for name, terms, graded in (
        ("first", {"score", "distance"}, 0.0),
        ("second", {"grade"}, 1.0),
        ("third", {"score", "distance", "grade"}, 1.0),
    ):
        model.phase = Phase(name)
        model.zero_grad()
        loss = model.loss(batch(), 0, torch.Generator())
        assert set(loss) == terms
        assert model.state_dict()["graded"].item() == graded
        torch.stack(list(loss.values())).sum().backward()  # type: ignore[no-untyped-call]
        moved = [n for n, p in model.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0]
        reached = {n.split(".")[0] for n in moved}
        assert ("grade" in reached) == (name != "first")
        assert ("levels" in reached) == (name != "second")


def test_a_later_stage_without_an_earlier_one_is_refused() -> None:
    config = TrainConfig.of({"model": {"name": "drn", **SMALL, "stage": "second"}})
    with pytest.raises(MomentseekError, match=r"^drn with stage=second continues .* \(begin=PATH\), or set stage=all$"):
        check_later_stage(config, make(stage="second"))
    check_later_stage(config.with_changes(["begin=somewhere"]), make(stage="second"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_clips": 30}, "max_clips must be a multiple of 4"),
        ({"fit": "truncate"}, "fit must be stretch or rounded"),
        ({"stage": "fourth"}, "stage must be all or first or second or third, not 'fourth'"),
        ({"stage_epochs": (5, 5)}, "stage_epochs must be two rising epochs"),
        ({"stage_rates": (1.0,)}, "stage_rates must be two factors"),
        ({"good": 1.0}, "good must be from 0 to below 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(MomentseekError, match=f"^model: .*{said}"):
        DrnConfig(**settings)  # type: ignore[arg-type]
