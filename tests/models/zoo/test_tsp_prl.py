"""TSP-PRL: moves, rewards and episodes on windows made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from momentseek.models.batch import Batch, BatchPairs, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build_config
from momentseek.models.zoo.tsp_prl import (
    BRANCHES,
    TspPrl,
    TspPrlConfig,
    discounted_returns,
    draw_action,
    first_window,
    leaf_reward,
    move_window,
    root_reward,
    window_overlap,
)

MIDDLE_HALF = (0.05 / 0.75 + 0.05 / 0.75 + 0.1 / 0.5 + 0.5 / 0.8) / 4
"""The mean IoU of always answering with the middle half, for the moments of ``batch``."""


def after(window: tuple[int, int], kind: int, move: int, count: int) -> tuple[list[int], bool]:
    found, bad = move_window(
        torch.tensor([window]), torch.tensor([kind]), torch.tensor([move]), torch.tensor([count])
    )  # fmt: skip
    return found[0].tolist(), bool(bad[0])


def test_the_sixteen_moves_of_a_window_made_by_hand() -> None:
    """Clips 20 to 30 of 50: the centre is 25, the length 10, a far step 5."""
    expected = [
        [[19, 31], [18, 32], [21, 29], [22, 28]],
        [[15, 25], [15, 30], [20, 25]],
        [[25, 35], [25, 30], [20, 35]],
        [[19, 29], [19, 30], [20, 29]],
        [[21, 31], [21, 30], [20, 31]],
    ]
    assert tuple(map(len, expected)) == BRANCHES
    for kind, moves in enumerate(expected):
        for move, window in enumerate(moves):
            assert after((20, 30), kind, move, 50) == (window, False), (kind, move)
    assert after((0, 9), 1, 0, 50) == ([0, 4], False)
    assert after((44, 49), 2, 2, 50) == ([44, 49], False)
    assert after((48, 49), 4, 1, 50)[1]
    assert after((3, 4), 2, 0, 9) == ([3, 4], False)  # fewer than ten clips: a far step is none


def test_every_episode_stays_inside_the_video() -> None:
    g = torch.Generator().manual_seed(0)
    count = torch.randint(1, 40, (300,), generator=g)
    window = first_window(count)
    for _ in range(30):
        kind = torch.randint(0, 5, (300,), generator=g)
        move = torch.randint(0, 3, (300,), generator=g)
        moved, bad = move_window(window, kind, move, count)
        window = torch.where(bad[:, None], window, moved)
        assert bool((window[:, 0] >= 0).all())
        assert bool((window[:, 1] < count).all())
        assert bool((window[:, 1] >= window[:, 0]).all())


def test_overlap_is_below_nothing_for_windows_apart() -> None:
    found = window_overlap(torch.tensor([[2, 5], [0, 1]]), torch.tensor([[4.0, 8.0], [6.0, 8.0]]))
    assert found.tolist() == pytest.approx([2 / 6, -4 / 8])


@pytest.mark.parametrize("spare", [True, False])
def test_rewards_are_those_of_the_table(spare: bool) -> None:
    cases = [(0.2, 0.3), (0.2, 0.7), (0.5, 0.5), (0.5, 0.1), (0.1, -0.1), (-0.4, -0.2), (-0.4, 0.1), (-0.2, -0.4)]
    was, now = (torch.tensor(x) for x in zip(*cases, strict=True))
    closer = 1.0 if spare else -1.0
    expected = [1.0, 1.7, -0.1, -0.1, -1.0, closer, closer, -1.0]
    assert leaf_reward(was, now, spare=spare).tolist() == pytest.approx(expected)
    root = root_reward(torch.tensor([0.3, 0.3]), torch.tensor([0.4, 0.2]), torch.tensor([0.4, 0.4]))
    assert root.tolist() == pytest.approx([1 + 0.1, (0.2 - 0.4) + (0.2 - 0.3)])


def test_returns_end_with_the_value_of_the_last_step_that_counts() -> None:
    reward, value = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[10.0, 20.0, 30.0]])
    last = 3 + 0.4 * 30
    expected = [1 + 0.4 * (2 + 0.4 * last), 2 + 0.4 * last, last]
    assert discounted_returns(reward, value, torch.ones(1, 3), 0.4)[0].tolist() == pytest.approx(expected)
    stopped = discounted_returns(reward, value, torch.tensor([[1.0, 1.0, 0.0]]), 0.4)[0].tolist()
    assert stopped[:2] == pytest.approx([1 + 0.4 * (2 + 0.4 * 20), 2 + 0.4 * 20])


def test_actions_are_drawn_by_their_probabilities() -> None:
    logits = torch.tensor([0.0, 1.0, -torch.inf]).expand(4000, 3)
    drawn = draw_action(logits, torch.Generator().manual_seed(0)).bincount(minlength=3) / 4000
    assert drawn.tolist() == pytest.approx([0.269, 0.731, 0.0], abs=0.03)


def batch() -> Batch:
    g = torch.Generator().manual_seed(0)
    n, there = torch.arange(4), torch.ones(4, 20, dtype=torch.bool)
    times = torch.tensor([[0.0, 0.3], [0.7, 1.0], [0.4, 0.5], [0.1, 0.9]])
    pairs = BatchPairs(n, n, n, n, torch.ones(4), torch.eye(4, dtype=torch.bool), times)
    words = Words(torch.randn(4, 3, 6, generator=g), there[:, :3])
    return Batch(words, Clips(torch.randn(4, 20, 9, generator=g), None, there), pairs)


def mean_overlap(model: TspPrl, given: Batch) -> float:
    with torch.no_grad():
        queries, videos = model.encode_words(given.words), model.encode_clips(given.clips)
        start, end, score = model.moments(queries, take_rows(videos, torch.arange(4)))
        best = score.argmax(1, keepdim=True)
        window = torch.cat([start.gather(1, best), end.gather(1, best)], 1)
    assert given.pairs.times is not None
    first, last = given.pairs.times.unbind(1)
    shared = (torch.minimum(window[:, 1], last) - torch.maximum(window[:, 0], first)).clamp(min=0)
    return float((shared / (window[:, 1] - window[:, 0] + last - first - shared)).mean())


def test_policies_take_turns_and_find_more_than_the_start() -> None:
    torch.manual_seed(2)  # with which it needs few steps
    config = TspPrlConfig(hidden=32, unit=8, seen=4, moves=8, turn=10, max_clips=20)
    model, given = TspPrl(config, Dims(6, 9, None)), batch()
    phases = [model.phase_at(step, 0) for step in (0, 9, 10, 20)]
    assert [(p.name, p.rate("root"), p.rate("leaf"), p.rate("")) for p in phases] == [
        ("leaf", 0.0, 1.0, 1.0), ("leaf", 0.0, 1.0, 1.0), ("root", 1.0, 0.0, 1.0), ("leaf", 0.0, 1.0, 1.0),
    ]  # fmt: skip
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    for step in range(120):
        model.phase = model.phase_at(step, 0)
        optimiser.zero_grad()
        terms = model.loss(given, 0, torch.Generator().manual_seed(step))
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % 10 == 9 and mean_overlap(model, given) > MIDDLE_HALF + 0.1:
            return
    pytest.fail(f"after {step + 1} steps the mean IoU is {mean_overlap(model, given):.2f}")


def test_as_official_windows_end_with_their_last_clip_and_values_learn_from_the_policy() -> None:
    config = build_config(TspPrlConfig, {"as": "official", "hidden": 16, "moves": 3, "max_clips": 20}, "tsp_prl")
    assert window_overlap(torch.tensor([[2, 6]]), torch.tensor([[2.0, 6.0]]), 0).tolist() == [1.0]
    torch.manual_seed(0)
    model, given = TspPrl(config, Dims(6, 9, None)), batch()
    assert model.whole.in_features == 90
    seven = torch.arange(20.0)[None, :, None]
    assert model.observe(seven, torch.tensor([[3, 9]])).tolist() == [[3, 4, 5, 5, 6, 6, 7, 7, 8, 9]]
    start, end, _ = model.moments(model.encode_words(given.words), model.encode_clips(given.clips))
    assert (start[0, 0].item(), end[0, 0].item()) == pytest.approx((4 / 20, 14 / 20))
    gradients = []
    for detached in (True, False):
        model.config = replace(config, detached=detached)
        model.zero_grad()
        model.loss(given, 0, torch.Generator().manual_seed(0))["policy"].backward()  # type: ignore[no-untyped-call]
        gradients.append(model.leaf["value"].weight.grad)
    assert gradients[0] is None
    assert float(gradients[1].abs().sum()) > 0
