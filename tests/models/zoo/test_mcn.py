from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.models.batch import Batch, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.mcn import MCN

Make = Callable[..., Batch]


def mcn(dims: Dims, **settings: object) -> MCN:
    torch.manual_seed(0)
    model = build("mcn", {"hidden": 8, "longest": 5, "dropout": 0.0, **settings}, dims).eval()
    assert isinstance(model, MCN)
    return model


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / (x.norm() + 1e-5)


def moment(model: MCN, name: str, clips: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """The paper's moment vector, from the features of one video's clips."""
    known = [unit(clips[first : last + 1].mean(0))]
    if model.config.context:
        known.append(unit(clips.mean(0)))
    if model.config.moment_endpoints:
        known.append(torch.tensor([first / len(clips), (last + 1) / len(clips)]))
    return torch.nn.functional.normalize(model.moment[name](torch.cat(known)), dim=0)


@torch.no_grad()
@pytest.mark.parametrize("endpoints", [True, False], ids=["endpoints", "plain"])
@pytest.mark.parametrize("shortest", [1, 2])
def test_a_span_scores_by_its_squared_distance(make_batch: Make, dims: Dims, endpoints: bool, shortest: int) -> None:
    model, batch = mcn(dims, moment_endpoints=endpoints, shortest=shortest), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    pick = torch.arange(4)
    grid = model.spans(take_rows(queries, pick), take_rows(videos, pick))
    for i in range(4):
        count = int(batch.clips.mask[i].sum())
        for s in range(count):
            for w in range(grid.shape[2]):
                last = s + shortest - 1 + w
                if last >= count:
                    assert grid[i, s, w] == -torch.inf
                    continue
                far = 0.0
                for name, part in (("video", batch.clips.video), ("subtitle", batch.clips.subtitle)):
                    m = moment(model, name, part[i, :count], s, last)
                    far += float((m - queries["query"][i]).square().sum()) / 2
                assert grid[i, s, w].item() == pytest.approx(-far, abs=1e-5)


@torch.no_grad()
def test_a_video_is_as_good_as_its_best_moment(make_batch: Make, dims: Dims, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = mcn(dims), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    q, v = torch.cartesian_prod(torch.arange(5), torch.arange(4)).unbind(1)
    best = model.spans(take_rows(queries, q), take_rows(videos, v)).flatten(1).amax(1).view(5, 4)
    torch.testing.assert_close(model.match(queries, videos), best)
    monkeypatch.setattr("momentseek.models.zoo.mcn.MAX_CLIP_NUMBERS", 1)
    torch.testing.assert_close(model.match(queries, videos), best)


@torch.no_grad()
def test_the_loss_ranks_against_its_own_video_and_another(make_batch: Make, dims: Dims) -> None:
    """With one wrong moment and one wrong video to choose from, nothing is left to chance."""
    model, batch = mcn(dims, shortest=5, intra_overlap=1.0, modalities="video"), make_batch(2, 2, 2)
    clips = batch.clips
    clips.mask[:] = torch.arange(clips.mask.shape[1]) < 6  # spans of 5 clips in 6: two
    pairs = batch.pairs
    pairs.start[:], pairs.end[:] = torch.tensor([0, 1]), torch.tensor([4, 5])
    found = model.loss(batch, 0, torch.Generator().manual_seed(0))
    queries = model.encode_words(batch.words)["query"]

    def far(query: int, video: int, first: int) -> float:
        return float((moment(model, "video", clips.video[video, :6], first, first + 4) - queries[query]).square().sum())

    intra = inter = 0.0
    for p in range(2):
        right = far(p, p, p)
        intra += float(pairs.weight[p]) * max(0.0, right - far(p, p, 1 - p) + 0.1) / 2
        inter += float(pairs.weight[p]) * max(0.0, right - far(p, 1 - p, p) + 0.1) / 2
    assert found["intra"].item() == pytest.approx(0.5 * intra, abs=1e-5)
    assert found["inter"].item() == pytest.approx(0.2 * inter, abs=1e-5)


def test_videos_related_to_the_query_are_not_pushed_away(make_batch: Make, dims: Dims) -> None:
    model, batch = mcn(dims), make_batch(2, 2, 2)
    batch.pairs.positive[:] = True
    assert model.loss(batch, 0, torch.Generator())["inter"] == 0
    assert mcn(dims, positive_mask=False, margin=4.0).loss(batch, 0, torch.Generator())["inter"] > 0


def test_moments_longer_than_any_span_are_learnt_as_the_longest(make_batch: Make, dims: Dims) -> None:
    model, batch = mcn(dims, longest=2), make_batch()
    assert all(torch.isfinite(term) for term in model.loss(batch, 0, torch.Generator()).values())


@torch.no_grad()
def test_a_video_that_many_queries_search_is_computed_once(make_batch: Make, dims: Dims) -> None:
    model, batch = mcn(dims), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    some = take_rows(queries, torch.arange(3))
    repeated = {name: part[1:2].expand(3, *part.shape[1:]) for name, part in videos.items()}
    torch.testing.assert_close(
        model.spans(some, repeated), model.spans(some, take_rows(videos, torch.tensor([1, 1, 1])))
    )
