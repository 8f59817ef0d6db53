"""Both stages' loss against one written as loops, where some queries and videos came only as negatives."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import overlap, overlap_of_moments, scale_overlap
from momentseek.models.registry import build
from momentseek.models.zoo.crocs import Crocs

SETTINGS = {"hidden": 12, "max_clips": 8, "longest": 8, "stride": 1, "map_layers": 1, "kernel": 3, "space": 10}


def model(**settings: object) -> Crocs:
    torch.manual_seed(0)
    made = build("crocs", {**SETTINGS, **settings}, Dims(query=6, video=9, subtitle=None))
    assert isinstance(made, Crocs)
    return made.eval()


def batch(hard_videos: list[tuple[int, int]] | None, hard_queries: list[tuple[int, int]] | None) -> Batch:
    """Queries 0 to 2 ask for videos 0, 1, 0; queries 3, 4 and videos 2, 3 have no pairs; query 0 has video 3, too."""
    g = torch.Generator().manual_seed(1)
    words = Words(torch.randn(5, 4, 6, generator=g), torch.ones(5, 4, dtype=torch.bool))
    clips = Clips(torch.randn(4, 8, 9, generator=g), None, torch.ones(4, 8, dtype=torch.bool))
    query, video = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 0])
    times = torch.tensor([[0.0, 0.3], [0.5, 1.0], [0.1, 0.3]])
    positive = torch.zeros(5, 4, dtype=torch.bool)
    positive[query, video] = True
    positive[0, 3] = True

    def mask(places: list[tuple[int, int]] | None) -> Tensor | None:
        if places is None:
            return None
        made = torch.zeros(5, 4, dtype=torch.bool)
        for q, v in places:
            made[q, v] = True
        return made

    first, last = (times[:, 0] * 8).floor().long(), (times[:, 1] * 8).ceil().long() - 1
    weight = torch.tensor([1.0, 0.5, 1.0])
    return Batch(
        words,
        clips,
        BatchPairs(query, video, first, last, weight, positive, times, mask(hard_videos), mask(hard_queries)),
    )


def by_loops(m: Crocs, b: Batch) -> dict[str, float]:
    """Equations 4 and 5, pair by pair and negative by negative."""
    c, pairs = m.config, b.pairs
    with torch.no_grad():
        words, clips = m.encode_words(b.words), m.encode_clips(b.clips)
    assert pairs.times is not None
    iou = overlap(m.cells, pairs.times)
    truths = overlap_of_moments(pairs.times, pairs.times)
    target = scale_overlap(iou, c.low, c.high)
    own = {(int(q), int(v)) for q, v in zip(pairs.query, pairs.video, strict=True)}
    cells = iou.shape[1]
    bce = contrast = total = 0.0

    def cosine(space: str, q: int, v: int, cell: int) -> float:
        return float(words[space][q] @ clips[space][v, cell])

    def held(mask: Tensor | None, q: int, v: int) -> bool:
        return (q, v) not in own and not pairs.positive[q, v] and (mask is None or bool(mask[q, v]))

    for p, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        weight = float(pairs.weight[p])
        each = 0.0
        for cell in range(cells):
            s = 1 / (1 + math.exp(-10 * cosine("overlap", q, v, cell)))
            y = float(target[p, cell])
            each -= y * math.log(s) + (1 - y) * math.log(1 - s)
        best = int(iou[p].argmax())
        right = math.exp((cosine("match", q, v, best) - c.margin) / c.temperature)
        moments = sum(
            math.exp(cosine("match", q, other, cell) / c.temperature)
            for other in range(4)
            for cell in range(cells)
            if (other == v and iou[p, cell] < c.negative_overlap) or (other != v and held(pairs.hard_videos, q, other))
        )
        queries = 0.0
        for other in set(range(5)) - {q}:
            theirs = [i for i in range(len(pairs.query)) if int(pairs.query[i]) == other and int(pairs.video[i]) == v]
            if theirs:
                counts = all(truths[p, i] < c.query_overlap for i in theirs)
            else:
                counts = held(pairs.hard_queries, other, v)
            if counts:
                queries += math.exp(cosine("match", other, v, best) / c.temperature)
        bce += weight * each / cells
        contrast -= weight * (math.log(right / (right + moments)) + math.log(right / (right + queries)))
        total += weight
    terms = {"overlap": bce / total, "matching": c.contrast * contrast / total}
    if c.reject:
        wrong = [(q, v) for q in sorted(set(pairs.query.tolist())) for v in range(4) if held(pairs.hard_videos, q, v)]
        rejected = [
            -math.log(1 - 1 / (1 + math.exp(-10 * cosine("overlap", q, v, cell))))
            for q, v in wrong
            for cell in range(cells)
        ]
        terms["rejection"] = c.reject * sum(rejected) / max(len(rejected), 1)
    return terms


CASES = {
    "both": ([(0, 1), (0, 2), (1, 2), (2, 3)], [(3, 0), (4, 0), (4, 1), (1, 0)]),
    "one drawn query is related": ([(0, 2), (0, 3)], [(3, 1)]),
    "nothing drawn": ([], []),
    "videos only": ([(0, 2), (1, 3)], None),
    "queries only": (None, [(3, 0), (4, 1)]),
    "first stage": (None, None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_loss_is_that_of_the_equations(case: str) -> None:
    b, m = batch(*CASES[case]), model(reject=0.7)
    ours = m.loss(b, 0, torch.Generator())
    assert {n: t.item() for n, t in ours.items()} == pytest.approx(by_loops(m, b), rel=1e-4)


@pytest.mark.parametrize("case", ["both", "first stage"])
def test_without_rejection_the_other_terms_are_as_they_were(case: str) -> None:
    b = batch(*CASES[case])
    without, with_it = (model(reject=r).loss(b, 0, torch.Generator()) for r in (0.0, 1.0))
    assert sorted(without) == ["matching", "overlap"]
    assert with_it["rejection"] > 0
    assert all(torch.equal(term, with_it[name]) for name, term in without.items())


def test_videos_and_words_are_encoded_once_a_step() -> None:
    m = model().train()
    m.loss(batch(*CASES["both"]), 0, torch.Generator())
    counted = [int(t) for n, t in m.named_buffers() if n.endswith("num_batches_tracked")]
    assert counted
    assert set(counted) == {1}


def test_matching_counts_a_hundredth_after_its_epochs() -> None:
    b, m = batch(None, None), model()
    late = model(only_overlap_after=2.0)
    always = m.loss(b, 9, torch.Generator())["matching"].item()
    assert [late.loss(b, e, torch.Generator())["matching"].item() for e in (0, 1, 2, 3)] == pytest.approx(
        [always, always, 0.01 * always, 0.01 * always]
    )


def test_queries_without_pairs_learn_from_being_negatives() -> None:
    b, m = batch(*CASES["both"]), model()
    features = b.words.features.clone().requires_grad_()
    b = replace(b, words=replace(b.words, features=features))
    sum(m.loss(b, 0, torch.Generator()).values()).backward()
    assert features.grad is not None
    assert (features.grad.abs().sum((1, 2)) > 0).all()
