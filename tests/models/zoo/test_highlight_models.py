"""Moment-DETR, QD-DETR and UniVTG: what their answers and losses must be, next to loops and to hand-made cases."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.inference.second_stage import moments_in_seconds
from momentseek.models.layers.highlights import HighlightModel
from momentseek.models.layers.set_prediction import SaliencyTargets, window_samples
from momentseek.models.registry import build
from momentseek.models.zoo.moment_detr import Detections
from momentseek.models.zoo.qd_detr import QdDetr
from momentseek.models.zoo.univtg import ClipTargets, UniVtg

SMALL: dict[str, Any] = {
    "hidden": 16, "heads": 4, "feedforward": 24, "max_clips": 9, "max_words": 6, "dropout": 0.0, "input_dropout": 0.0,
    "endpoints": False,
}  # fmt: skip
NAMES = ("moment_detr", "qd_detr", "univtg")
DIMS = Dims(6, 7, None)


def model_of(name: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    return build(name, {**SMALL, **settings}, DIMS).eval()


def batch_of(ratings: bool = True) -> Batch:
    """Three queries of three videos of 9, 6 and 7 clips; the first has two windows."""
    g = torch.Generator().manual_seed(0)
    there, words = torch.arange(9) < torch.tensor([[9], [6], [7]]), torch.arange(4) < torch.tensor([[4], [2], [3]])
    query = video = torch.tensor([0, 0, 1, 2])
    start, end = torch.tensor([1, 6, 0, 2]), torch.tensor([3, 7, 5, 2])
    times = torch.stack([start, end + 1], 1) / torch.tensor([9, 6, 7])[video][:, None]
    rated = torch.randint(0, 5, (3, 9, 3), generator=g).float() if ratings else None
    return Batch(
        Words(torch.randn(3, 4, 6, generator=g) * words[..., None], words),
        Clips(torch.randn(3, 9, 7, generator=g) * there[..., None], None, there),
        BatchPairs(query, video, start, end, torch.ones(4), torch.eye(3) > 0, times, None, None, rated),
    )


def encode(model: HighlightModel, batch: Batch) -> tuple[Encodings, Encodings]:
    return model.encode_words(batch.words), model.encode_clips(batch.clips)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_padding_and_other_samples_change_nothing(name: str) -> None:
    model, batch = model_of(name, word_positions=name != "univtg"), batch_of()
    queries, videos = encode(model, batch)
    together, rated = model.moments(queries, videos), model.saliency(queries, videos)
    for n in range(3):
        w, c = int(batch.words.mask[n].sum()), int(batch.clips.mask[n].sum())
        words = Words(batch.words.features[n : n + 1, :w], batch.words.mask[n : n + 1, :w])
        clips = Clips(batch.clips.modality("video")[n : n + 1, :c], None, batch.clips.mask[n : n + 1, :c])
        one = encode(model, Batch(words, clips, batch.pairs))
        for alone, all_ in zip(model.moments(*one), together, strict=True):
            assert torch.allclose(alone[0], all_[n][: alone.shape[1]], atol=1e-5)
        assert torch.allclose(model.saliency(*one)[0], rated[n, :c], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ratings", [True, False])
def test_a_batch_is_learnt_by_heart(name: str, ratings: bool) -> None:
    """The best window of each query comes to lie on a true one, and clips in windows above the others."""
    model, batch = model_of(name, queries=4) if name != "univtg" else model_of(name, drop_path=0.0), batch_of(ratings)
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    first = last = 0.0
    for step in range(150):
        terms = model.loss(batch, 0, torch.Generator().manual_seed(step))
        loss = torch.stack(list(terms.values())).sum()
        first, last = first or loss.item(), loss.item()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert last < 0.5 * first
    model.eval()
    with torch.no_grad():
        start, end, score = model.moments(*encode(model, batch))
    best = score.argmax(1)
    for sample, times in enumerate(window_samples(batch.pairs, 5, torch.Generator()).times):
        found = torch.stack([start[sample, best[sample]], end[sample, best[sample]]])
        assert float((times - found).abs().amax(1).min()) < 0.12


@pytest.mark.parametrize("name", ["moment_detr", "qd_detr"])
def test_every_layer_learns_unless_only_the_last_is_asked(name: str) -> None:
    batch = batch_of()
    terms = model_of(name, decoder_layers=3).loss(batch, 0, torch.Generator())
    assert {"span", "span_0", "span_1", "label_1", "giou_0", "saliency"} <= set(terms)
    assert set(model_of(name, auxiliary=False).loss(batch, 0, torch.Generator())) == {
        "span", "giou", "label", "saliency",
    }  # fmt: skip


def test_the_public_mask_of_qd_detr_depends_on_the_batch() -> None:
    own, tiled = model_of("qd_detr"), model_of("qd_detr", mask="tiled")
    words, clips = batch_of().words.mask, batch_of().clips.mask
    seen = tiled.word_mask(words, clips)
    for b in range(3):
        for h in range(4):
            other = (b * 4 + h) % 3
            for i in range(9):
                for j in range(4):
                    hidden = (not clips[other, i]) and (not words[other, j])
                    assert bool(seen[b, h, i, j]) == (bool(words[b, j]) and not hidden)
    assert torch.equal(own.word_mask(words, clips), words)


def test_the_ranking_terms_of_qd_detr_by_loops() -> None:
    model = model_of("qd_detr")
    g = torch.Generator().manual_seed(3)
    mask = torch.arange(4) < torch.tensor([[4], [3]])
    scores, other = torch.randn(2, 4, generator=g), torch.randn(2, 4, generator=g)
    ratings = torch.tensor([[0.0, 5, 12, 1], [3, 0, 0, 0]])
    found = Detections([], [], scores, {"mask": mask, "other": other})
    targets = SaliencyTargets(torch.zeros(2, 1, dtype=torch.long), torch.ones(2, 1, dtype=torch.long), ratings)
    parts = model.saliency_parts(found, targets)
    total = 0.0
    for t in range(1, 12):
        for b in range(2):
            there = [(float(scores[b, i]), float(ratings[b, i])) for i in range(4) if mask[b, i]]
            there += [(float(other[b, i]), 0.0) for i in range(4) if mask[b, i]]
            whole = sum(np.exp(s / 0.5) for s, _ in there)
            above = [np.log(np.exp(s / 0.5) / whole) for s, r in there if r >= t]
            total -= sum(above) / max(1, len(above)) / 2
    assert float(parts["rank"]) == pytest.approx(total / 11, abs=1e-4)
    wrong = sum(-np.log(1 - 1 / (1 + np.exp(-float(other[b, i])))) for b in range(2) for i in range(4) if mask[b, i])
    assert float(parts["negative"]) == pytest.approx(wrong / 2, abs=1e-4)
    official = model_of("qd_detr", rank_parts=12).saliency_parts(found, targets)
    assert float(official["rank"]) == pytest.approx(total / 12, abs=1e-4)


@torch.no_grad()
def test_the_terms_of_univtg_by_loops() -> None:
    model, batch = model_of("univtg"), batch_of()
    queries, videos = encode(model, batch)
    found = model.answer(queries, videos)
    samples = window_samples(batch.pairs, 5, torch.Generator())
    wanted = model.clip_targets(batch.pairs, samples, found.mask, torch.Generator().manual_seed(2))
    for b, count in enumerate((9, 6, 7)):
        for i in range(9):
            hits = [w for w in samples.times[b].tolist() if i < count and w[0] <= (i + 0.5) / count <= w[1]]
            assert bool(wanted.within[b, i]) == bool(hits)
            assert not hits or wanted.times[b, i].tolist() == hits[0]
    terms = model.terms(found, wanted)
    label = ends = near = valid = inside = 0.0
    for b in range(3):
        for i in range(9):
            if not found.mask[b, i]:
                continue
            p, valid = float(found.share[b, i]), valid + 1
            label -= np.log(p) if wanted.within[b, i] else 0.1 * np.log(1 - p)
            if wanted.within[b, i]:
                inside += 1
                ends += float(F.smooth_l1_loss(found.times[b, i], wanted.times[b, i], reduction="sum"))
                near += 1 - iou(found.times[b, i], wanted.times[b, i])
    assert float(terms["label"]) == pytest.approx(10 * label / valid, abs=1e-4)
    assert float(terms["ends"]) == pytest.approx(10 * ends / inside, abs=1e-4)
    assert float(terms["iou"]) == pytest.approx(near / inside, abs=1e-4)
    check_contrasts(model, found, wanted, terms)


def iou(one: Tensor, two: Tensor) -> float:
    a, b, c, d = (float(x) for x in (*one, *two))
    common, hull = max(0.0, min(b, d) - max(a, c)), max(b, d) - min(a, c)
    union = b - a + d - c - common
    return common / union - (hull - union) / hull


def check_contrasts(model: UniVtg, found: Any, wanted: ClipTargets, terms: dict[str, Tensor]) -> None:
    positive = wanted.positive.tolist()
    cosine = [
        [float(F.cosine_similarity(found.clips[b, positive[b]], found.query[c], dim=0)) / 0.07 for c in range(3)]
        for b in range(3)
    ]
    rows = sum(np.log(np.exp(cosine[b][b]) / sum(np.exp(cosine[b]))) for b in range(3))
    columns = sum(np.log(np.exp(cosine[b][b]) / sum(np.exp(cosine[c][b]) for c in range(3))) for b in range(3))
    assert float(terms["inter"]) == pytest.approx(-0.01 * (rows + columns) / 3, abs=1e-4)
    total = 0.0
    for b, p in enumerate(positive):
        lower = [
            float(found.near[b, i]) / 0.07 for i in range(9)
            if found.mask[b, i] and (i == p or wanted.ratings[b, i] < wanted.ratings[b, p])
        ]  # fmt: skip
        total -= float(found.near[b, p]) / 0.07 - np.log(sum(np.exp(lower)))
    assert float(terms["intra"]) == pytest.approx(0.05 * total / 3, abs=1e-4)
    other = model_of("univtg", batch_contrast=True).contrasts(found, wanted)
    assert float(other[1]) > total / 3  # the batch adds terms above 0


def test_a_window_between_two_stamps_is_learnt_by_the_clip_it_begins_in() -> None:
    model = model_of("univtg")
    pairs = replace(batch_of().pairs, times=torch.tensor([[0.23, 0.27]] * 4), start=torch.tensor([2, 2, 1, 1]))
    samples = window_samples(pairs, 5, torch.Generator())
    found = model.clip_targets(pairs, samples, torch.ones(3, 9) > 0, torch.Generator())
    assert found.within[0].nonzero().tolist() == [[2]]
    assert torch.allclose(found.times[0, 2], torch.tensor([0.23, 0.27]))


def test_univtg_learns_every_window_and_where_two_meet_the_last() -> None:
    model = model_of("univtg", stamp="public", seconds="duration")
    start = torch.tensor([0, 4, 8, 12, 16, 20, 24, 26])  # seconds in a video of 15 clips
    end = torch.tensor([2, 6, 10, 14, 18, 22, 26, 28])
    zero, mask = torch.zeros(8, dtype=torch.long), torch.ones(1, 15) > 0
    times = torch.stack([start, end], 1) / 30
    for ratings in (None, torch.ones(1, 15, 3)):
        ours = BatchPairs(zero, zero, start // 2, end // 2 - 1, torch.ones(8), mask[:, :1], times, ratings=ratings)
        samples = window_samples(ours, model.config.windows, torch.Generator())
        drawn = set()
        for seed in range(100):
            found = model.clip_targets(ours, samples, mask, torch.Generator().manual_seed(seed))
            drawn.add(int(found.positive))
        assert found.within[0].nonzero()[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
        assert torch.equal(found.times[0, 12], times[7])
        assert drawn == (set(range(14)) if ratings is None else {0, 2, 4, 6, 8, 10, 12, 13})
        assert ratings is not None or torch.equal(found.ratings, found.within.float())


def test_univtg_has_dropout_in_its_attention_only() -> None:
    for path in (0.0, 0.1):
        layer = model_of("univtg", dropout=0.5, drop_path=path).encoder[0]
        assert (layer.attention.dropout.p, layer.feed.dropout.p) == (0.5, 0.0)
        assert layer.dropout.dropout.p == path
    assert model_of("moment_detr", dropout=0.5).encoder[0].feed.dropout.p == 0.5


def test_the_contrast_of_qd_detr_is_a_constant() -> None:
    batch = batch_of()
    terms = model_of("qd_detr", align=0.5, queries=4, decoder_layers=3).loss(batch, 0, torch.Generator())
    assert [float(terms[name]) for name in ("align_0", "align_1", "align")] == pytest.approx([0.5 * np.log(4)] * 3)
    assert "align_0" not in model_of("qd_detr", align=0.5, auxiliary=False).loss(batch, 0, torch.Generator())
    assert "align" not in model_of("qd_detr").loss(batch, 0, torch.Generator())


def test_stamps_of_clips() -> None:
    mask = torch.arange(4) < torch.tensor([[4], [2]])
    assert model_of("univtg").stamps(mask, torch.zeros(1))[1, :2].tolist() == [0.25, 0.75]
    public = model_of("univtg", stamp="public", clip_seconds=2.0)
    assert public.stamps(mask, torch.zeros(1))[1, :2].tolist() == [0.5, 1.0]


def test_highlights_are_near_the_query_and_in_moments() -> None:
    batch = batch_of()
    both, near = model_of("univtg"), model_of("univtg", rating="near")
    with torch.no_grad():
        found = both.answer(*encode(both, batch))
        assert torch.allclose(both.saliency(*encode(both, batch)), found.near + found.share)
        assert torch.allclose(near.saliency(*encode(near, batch)), found.near)


def test_seconds_of_clips_and_as_the_public_code_writes_them() -> None:
    start, end, score = np.array([[0.12345, 0.9]]), np.array([[0.52, 1.2]]), np.array([[0.123456, 0.5]])
    covered, duration = np.array([[20.0]]), np.array([[19.0]])
    ours = model_of("moment_detr").to_seconds(start, end, score, covered, duration)
    assert ours[0].tolist() == [[0.12345 * 20, 18.0]]
    assert ours[1].tolist() == [[10.4, 19.0]]
    public = model_of("moment_detr", **{"as": "official"}).to_seconds(start, end, score, covered, duration)
    assert [x.tolist() for x in public] == [[[2.0, 18.0]], [[10.0, 22.0]], [[0.1235, 0.5]]]
    long = model_of("moment_detr", **{"as": "official"}).to_seconds(
        start, end, score, np.array([[400.0]]), np.array([[np.nan]])
    )
    assert long[1].tolist() == [[150.0, 150.0]]


def test_windows_of_clips() -> None:
    model, batch = model_of("moment_detr", regress="clips", span_clips=9), batch_of()
    with torch.no_grad():
        found = model.detect(*encode(model, batch))
        start, end, _ = model.moments(*encode(model, batch))
    first, last = found.spans[-1].view(3, -1, 2, 9).argmax(-1).unbind(-1)
    assert torch.allclose(start[1], first[1] / 6)
    assert torch.allclose(end[1], (last[1] + 1) / 6)
    assert float(model.loss(batch, 0, torch.Generator())["span"].detach()) > 0
    with pytest.raises(MomentseekError, match=r"chosen among 5 \(span_clips\), and videos have up to 9"):
        model_of("moment_detr", regress="clips", span_clips=5)


def test_the_contrast_of_matched_predictions_by_loops() -> None:
    """Every layer of the decoder is contrasted, as the public code has it with auxiliary losses; or the last alone."""
    model, batch = model_of("moment_detr", align_columns=5, align=0.5, decoder_layers=3), batch_of()
    with torch.no_grad():
        found = model.detect(*encode(model, batch))
        samples = window_samples(batch.pairs, 5, torch.Generator())
        wanted = [torch.stack([t.mean(1), t[:, 1] - t[:, 0]], 1) for t in samples.times]
        matchings = model.matchings(found, wanted)
        terms = model.further_terms(found, matchings)
    assert set(terms) == {"align_0", "align_1", "align"}
    for layer, name in enumerate(("align_0", "align_1", "align")):
        total = 0.0
        for b, (rows, _) in enumerate(matchings[layer]):
            near = [
                sum(float(found.more["queries"][layer, b, q] @ found.more["words"][b, w]) for w in range(4)) / 0.07
                for q in range(10)
            ]
            assert not found.more["words"][b, int(batch.words.mask[b].sum()) :].any()
            total += np.log(sum(np.exp(near))) - sum(near[q] for q in rows.tolist()) / len(rows)
        assert float(terms[name]) == pytest.approx(0.5 * total / 3, abs=1e-3)
    last = model_of("moment_detr", align_columns=5, decoder_layers=3, auxiliary=False)
    assert {n for n in last.loss(batch, 0, torch.Generator()) if n.startswith("align")} == {"align"}


def test_what_rounding_makes_equal_stays_in_the_order_of_the_scores() -> None:
    model = model_of("univtg", **{"as": "official"})
    score = np.array([[0.50001, 0.50003, -np.inf, 0.50002]], np.float32)
    start, end = np.array([[0.1, 0.2, 0.0, 0.3]], np.float32), np.array([[0.4, 0.5, 0.0, 0.6]], np.float32)
    times: Any = SimpleNamespace(covered=np.array([10.0]), duration=np.array([10.0]))
    found = moments_in_seconds(model, start, end, score, np.array([0]), times)
    assert found[0].tolist() == [[2.0, 3.0, 1.0, 0.0]]
    assert found[2].tolist() == [[0.5, 0.5, 0.5, -np.inf]]


@pytest.mark.parametrize(("name", "settings", "message"), [
    ("moment_detr", {"regress": "frames"}, "regress must be times or clips"),
    ("qd_detr", {"mask": "none"}, "mask must be own or tiled"),
    ("qd_detr", {"hidden": 6, "heads": 2}, "hidden must be a multiple of 4"),
    ("univtg", {"stamp": "start"}, "stamp must be middle or public"),
    ("univtg", {"fit": "stretch"}, "fit must be truncate or resample"),
    ("moment_detr", {"queries": 0}, "queries must be at least 1"),
])  # fmt: skip
def test_settings_that_make_no_model_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MomentseekError, match=message):
        model_of(name, **settings)


def test_pairs_of_a_video_twice_are_told_apart() -> None:
    model, batch = model_of("qd_detr"), batch_of()
    queries, videos = encode(model, batch)
    twice = take_rows(videos, torch.tensor([0, 0])), take_rows(queries, torch.tensor([0, 1]))
    assert isinstance(model, QdDetr)
    with torch.no_grad():
        rated = model.saliency(twice[1], twice[0])
    assert not torch.allclose(rated[0], rated[1])
