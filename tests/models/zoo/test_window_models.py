"""CTRL and ACRN: windows, context, fusion, loss and decoding, each written out as loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.zoo.acrn import Acrn, AcrnConfig, context_weights
from momentseek.models.zoo.ctrl import Ctrl, CtrlConfig, alignment, parts_around, windows_of

DIMS = Dims(query=3, video=4, subtitle=None)
SETTINGS = {"hidden": 4, "head": 5, "windows": (2, 4), "overlap": 0.5, "context": 2, "max_clips": 8}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_windows_are_those_of_loops() -> None:
    mask = torch.arange(9) < torch.tensor([[9], [4], [1]])
    found = windows_of(mask, (2, 4), 0.75)
    for row, count in enumerate((9, 4, 1)):
        expected = [(s, s + n) for n in (2, 4) for s in range(0, count - n + 1, max(1, round(n * 0.25)))]
        there = found.valid[row]
        listed = list(zip(found.start[row][there].tolist(), found.end[row][there].tolist(), strict=True))
        assert listed == (expected or [(0, count)])


def test_a_video_shorter_than_all_windows_is_one() -> None:
    found = windows_of(torch.arange(3) < torch.tensor([[3], [2]]), (4, 8), 0.8)
    assert [x.tolist() for x in (found.start, found.end, found.valid)] == [[[0], [0]], [[3], [2]], [[True], [True]]]


def test_context_is_the_mean_beside_the_window_or_the_window() -> None:
    clips, mask = random(1, 6, 2), torch.ones(1, 6, dtype=torch.bool)
    windows = windows_of(mask, (2,), 0.5)
    left, own, right = parts_around(clips, mask, windows, 3)
    for w, (s, e) in enumerate(zip(windows.start[0].tolist(), windows.end[0].tolist(), strict=True)):
        rows = clips[0]
        torch.testing.assert_close(own[0, w], rows[s:e].mean(0))
        torch.testing.assert_close(left[0, w], rows[max(0, s - 3) : s].mean(0) if s else rows[s:e].mean(0))
        torch.testing.assert_close(right[0, w], rows[e : e + 3].mean(0) if e < 6 else rows[s:e].mean(0))


def test_the_alignment_of_a_batch_of_two_by_hand() -> None:
    c = torch.tensor([[0.3, -0.2], [1.1, 0.7]])
    every = torch.ones(2, 2, dtype=torch.bool)
    soft = [math.log(1 + math.exp(x)) for x in (-0.3, -0.2, 1.1, -0.7)]
    expected = (1.5 * soft[0] + 0.5 * soft[1] + 0.5 * soft[2] + 1.5 * soft[3]) / 4
    assert alignment(c, every).item() == pytest.approx(expected, rel=1e-6)
    without = every.clone()
    without[0, 1] = False
    expected = (1.5 * soft[0] + 0.5 * soft[2] + 1.5 * soft[3]) / 3
    assert alignment(c, without).item() == pytest.approx(expected, rel=1e-6)


def unit(x: Tensor) -> Tensor:
    return x / x.norm()


@torch.no_grad()
def test_ctrl_scores_and_moves_each_window_as_its_formula() -> None:
    torch.manual_seed(1)
    model = Ctrl(CtrlConfig(**SETTINGS), DIMS).double().eval()
    clips, words = random(1, 7, 4), random(1, 3, 3, seed=1)
    videos = model.encode_clips(Clips(clips, None, torch.ones(1, 7, dtype=torch.bool)))
    start, end, score = model.moments(model.encode_words(Words(words, torch.ones(1, 3, dtype=torch.bool))), videos)
    s = unit(model.sentence.linear(words[0].mean(0)))
    weight, bias = model.clips.linear.weight, model.clips.linear.bias
    windows = [(a, a + n) for n in (2, 4) for a in range(0, 7 - n + 1, n // 2)]
    for w, (a, b) in enumerate(windows, 1):
        own = clips[0, a:b].mean(0)
        around = clips[0, max(0, a - 2) : a].mean(0) if a else own, own, clips[0, b : b + 2].mean(0) if b < 7 else own
        v = unit(sum(weight[4 * i : 4 * i + 4] @ part + bias[4 * i : 4 * i + 4] for i, part in enumerate(around)))
        out = model.head(torch.cat([v * s, v + s, v, s]))
        assert score[0, w].item() == pytest.approx(math.log(1 / (1 + math.exp(-out[0].item()))))
        assert start[0, w].item() == pytest.approx((a + out[1].item()) / 7)
        assert end[0, w].item() == pytest.approx((b + out[2].item()) / 7)
    assert score[0, 0] == -torch.inf


@torch.no_grad()
def test_acrn_attends_by_its_running_memory_and_multiplies_pooled_columns() -> None:
    model = Acrn(AcrnConfig(**SETTINGS, pool=2), DIMS).double()
    parts, query = random(3, 4), random(4, seed=2)
    memory, e = torch.zeros(4, dtype=torch.float64), []
    for part in parts:
        memory = memory + part
        e.append(float(query.tanh() @ memory.tanh()))
    total = sum(map(math.exp, e))
    weights = [math.exp(x) / total for x in e]
    torch.testing.assert_close(context_weights(parts, query).tolist(), weights)
    v, s = unit(sum(w * p for w, p in zip(weights, parts, strict=True))), unit(query)
    product = [(v[2 * i] + v[2 * i + 1]) / 2 * (s[2 * j] + s[2 * j + 1]) / 2 for i in range(2) for j in range(2)]
    torch.testing.assert_close(model.fuse(parts, query), torch.cat([v, s, torch.stack(product)]))
    paper = Acrn(AcrnConfig(**SETTINGS, pool=2, fusion="pooled"), DIMS).double()
    small = [torch.cat([x.reshape(2, 2).mean(1), torch.ones(1).double()]) for x in (v, s)]
    torch.testing.assert_close(paper.fuse(parts, query), torch.outer(*small).flatten())


def one_pair(times: list[float]) -> Batch:
    there = torch.ones(1, 8, dtype=torch.bool)
    pairs = BatchPairs(
        torch.tensor([0]), torch.tensor([0]), torch.tensor([0]), torch.tensor([0]), torch.ones(1),
        torch.ones(1, 1, dtype=torch.bool), torch.tensor([times], dtype=torch.float64),
    )  # fmt: skip
    return Batch(Words(random(1, 2, 3), there[:, :2]), Clips(random(1, 8, 4), None, there), pairs)


@pytest.mark.parametrize("kind", [Ctrl, Acrn])
def test_a_window_that_is_the_moment_has_no_offsets_to_learn(kind: type[Ctrl | Acrn]) -> None:
    config = (CtrlConfig if kind is Ctrl else AcrnConfig)(**SETTINGS, **({} if kind is Ctrl else {"pool": 2}))
    model = kind(config, DIMS).double()  # type: ignore[arg-type]
    for part in model.head[2].weight, model.head[2].bias:  # type: ignore[union-attr]
        torch.nn.init.zeros_(part)
    terms = model.loss(one_pair([0.25, 0.75]), 0, torch.Generator().manual_seed(0))
    assert terms["offsets"].item() == 0
    assert terms["alignment"].item() == pytest.approx(2 * math.log(2))
    moved = model.loss(one_pair([0.25, 0.7]), 0, torch.Generator().manual_seed(0))["offsets"].item()
    windows = {(2, 6), (2, 4), (3, 5), (4, 6), (1, 3)}
    errors = {0.16 * (abs(2 - a) + abs(5.6 - b)) / 2 for a, b in windows}
    assert any(moved == pytest.approx(e) for e in errors)


def test_a_moment_without_a_fitting_window_is_left_out() -> None:
    model = Ctrl(CtrlConfig(**SETTINGS), DIMS).double()
    terms = model.loss(one_pair([0.0, 0.02]), 0, torch.Generator().manual_seed(0))
    assert [t.item() for t in terms.values()] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"windows": ()}, r"windows must be whole numbers of clips, such as \[4, 8\], not \(\)"),
        ({"searched": (0,)}, "searched must be whole numbers of clips"),
        ({"windows": (2.5,)}, "windows must be whole numbers"),
        ({"overlap": 1.0}, "overlap must be from 0 to below 1, not 1"),
        ({"sentence": "skip"}, "sentence must be mean or lstm, not 'skip'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(MomentseekError, match=f"^model: {said}"):
        CtrlConfig(**settings)  # type: ignore[arg-type]
    with pytest.raises(MomentseekError, match="hidden 10 cannot be pooled by 4"):
        AcrnConfig(hidden=10, pool=4)


def test_a_film_shorter_than_every_window_is_refused_before_training() -> None:
    model = Ctrl(CtrlConfig(**SETTINGS), DIMS)
    model.check_lengths({"long": 2})
    with pytest.raises(MomentseekError, match=r"^video short has 1 clips and the shortest window 2; set shorter ones"):
        model.check_lengths({"long": 2, "short": 1})
