from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.captioner import CAPTIONERS, CaptionBatch, CaptionerDims, caption_rows
from momentseek.models.registry import build_config
from momentseek.models.zoo.mmt import MMT, MMTConfig, smoothed_divergence
from momentseek.recognition.captions.decoding import DecodingSettings
from momentseek.recognition.captions.inputs import (
    PAD,
    CaptionPreparation,
    MomentInputs,
    MomentParts,
    build_vocabulary,
    stack_moments,
)

WORDS = tuple("abcdefghij")
KNOWN = build_vocabulary([WORDS], more_than=0)
COLUMNS = 5
SMALL = {"hidden": 16, "heads": 2, "layers": 2, "feedforward": 16, "word_dim": 6, "dropout": 0.0}


def build_mmt(seed: int = 0, **settings: object) -> MMT:
    torch.manual_seed(seed)
    config = build_config(MMTConfig, {**SMALL, **settings}, "model mmt")
    return MMT(config, CaptionerDims(COLUMNS if config.preparation.sees else 0, KNOWN.words))


def random_inputs(count: int, seed: int = 0, *, columns: int = COLUMNS) -> MomentInputs:
    rng = np.random.default_rng(seed)
    parts = [
        MomentParts(
            rng.standard_normal((int(rng.integers(1, 6)) if columns else 0, columns), np.float32),
            tuple(rng.choice(WORDS, int(rng.integers(0, 5))).tolist()),
        )
        for _ in range(count)
    ]
    return stack_moments(parts, KNOWN, columns)


def random_captions(count: int, seed: int = 1) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [rng.choice(WORDS, int(rng.integers(1, 7))).tolist() for _ in range(count)]


def batch_of(inputs: MomentInputs, captions: list[list[str]]) -> CaptionBatch:
    arrays = (torch.from_numpy(a) for a in (inputs.clips, inputs.tokens, inputs.mask))
    return CaptionBatch(*arrays, caption_rows(captions, KNOWN, 18))


def loss_of(model: MMT, batch: CaptionBatch) -> Tensor:
    return torch.stack(list(model.loss(batch, 0, torch.Generator()).values())).sum()


@pytest.mark.parametrize("whole", [True, False])
def test_later_words_change_no_earlier_logits(whole: bool) -> None:
    model, batch = build_mmt(whole_decoder=whole).eval(), batch_of(random_inputs(3), [["a"] * 6] * 3)
    memory = model.encode(batch.clips, batch.tokens, batch.mask)
    changed = batch.caption.clone()
    changed[:, 4:] = KNOWN.number["j"]
    one, two = (model.logits(memory, batch.mask, caption) for caption in (batch.caption, changed))
    assert torch.equal(one[:, :4], two[:, :4])
    assert not torch.allclose(one[:, 4:], two[:, 4:])


def test_padding_changes_nothing() -> None:
    model, inputs = build_mmt().eval(), random_inputs(6)
    batch = batch_of(inputs, random_captions(6))
    together = model.logits(model.encode(batch.clips, batch.tokens, batch.mask), batch.mask, batch.caption)
    seen = inputs.clips.shape[1]
    for row in range(6):
        mask = inputs.mask[row]
        parts = MomentParts(
            inputs.clips[row, 1 : mask[:seen].sum() - 1],
            tuple(KNOWN.words[t] for t in inputs.tokens[row, seen + 1 : seen + mask[seen:].sum() - 1].tolist()),
        )
        alone = batch_of(stack_moments([parts], KNOWN, COLUMNS), random_captions(6)[row : row + 1])
        memory = model.encode(alone.clips, alone.tokens, alone.mask)
        length = alone.caption.shape[1]
        assert torch.allclose(model.logits(memory, alone.mask, alone.caption)[0], together[row, :length], atol=1e-5)


def test_attention_equals_the_loop() -> None:
    """The decoder's two masks, against sums written out: a word sees itself and those before, and what is there."""
    model, batch = build_mmt(layers=1, heads=1).eval(), batch_of(random_inputs(2), [["a", "b"], ["c"]])
    layer, memory = model.decoder[0], model.encode(batch.clips, batch.tokens, batch.mask)
    x = model.words(model.embedding(batch.caption)) + model.places[: batch.caption.shape[1]]
    earlier = torch.ones(4, 4, dtype=torch.bool).tril()[None]

    def attend(attention: torch.nn.Module, rows: Tensor, others: Tensor, sees: list[list[bool]]) -> Tensor:
        query, (key, value) = attention.query(rows), attention.key_value(others).chunk(2, -1)
        out = torch.zeros_like(rows)
        for i in range(len(rows)):
            there = [j for j in range(len(others)) if sees[i][j]]
            weights = [math.exp(float(query[i] @ key[j]) / math.sqrt(rows.shape[1])) for j in there]
            for weight, j in zip(weights, there, strict=True):
                out[i] += weight / sum(weights) * value[j]
        return out

    with torch.no_grad():
        got = layer(x, earlier, memory, batch.mask)
        for n in range(2):
            rows = x[n]
            sees = [[j <= i for j in range(4)] for i in range(4)]
            rows = layer.before.norm(rows + layer.before.linear(attend(layer.before.attention, rows, rows, sees)))
            sees = [batch.mask[n].tolist()] * 4
            rows = layer.across.norm(rows + layer.across.linear(attend(layer.across.attention, rows, memory[n], sees)))
            rows = layer.norm(rows + layer.narrow(torch.nn.functional.gelu(layer.wide(rows))))
            assert torch.allclose(rows, got[n], atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_label_smoothing_equals_the_loop(smoothing: float) -> None:
    logits, target = torch.randn(4, 6, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 5, 2, 2])
    got = smoothed_divergence(logits, target, smoothing)
    for row in range(4):
        scale = sum(math.exp(float(v)) for v in logits[row])
        total = 0.0
        for word in range(6):
            t = 1 - smoothing if word == target[row] else smoothing / 5
            total += t * (math.log(t) - math.log(math.exp(float(logits[row, word])) / scale)) if t else 0.0
        assert float(got[row]) == pytest.approx(total, abs=1e-5)


@torch.no_grad()
def test_the_loss_counts_words_and_not_padding() -> None:
    model, inputs, captions = build_mmt().eval(), random_inputs(4), random_captions(4)
    batch = batch_of(inputs, captions)
    memory = model.encode(batch.clips, batch.tokens, batch.mask)
    logits = model.logits(memory, batch.mask, batch.caption)
    total = sum(
        float(smoothed_divergence(logits[row, at][None], batch.caption[row, at + 1][None], 0.1))
        for row, caption in enumerate(captions)
        for at in range(len(caption) + 1)
    )
    assert float(loss_of(model, batch)) == pytest.approx(total, rel=1e-5)
    mean = build_mmt(reduction="mean").eval()
    assert float(loss_of(mean, batch)) == pytest.approx(total / sum(len(c) + 1 for c in captions), rel=1e-5)


@pytest.mark.parametrize("modalities", ["video", "subtitle", "video+subtitle", "none"])
@pytest.mark.parametrize("follow", ["paper", "official"])
def test_gradients_reach_every_parameter(modalities: str, follow: str) -> None:
    model = build_mmt(modalities=modalities, **{"as": follow})
    loss_of(model, batch_of(random_inputs(8, columns=model.dims.video), random_captions(8))).backward()  # type: ignore[no-untyped-call]
    still = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    if not model.dims.video:  # of what stands for no video only the last constant learns at first
        still = [name for name in still if not name.startswith("video.") or name == "video.norm.bias"]
    assert still == []
    assert float(model.embedding.weight.grad[KNOWN.number[PAD]].abs().sum()) == 0  # type: ignore[index]


def test_twenty_captions_are_overfitted_and_end_correctly() -> None:
    model, inputs, captions = build_mmt(smoothing=0.0, layers=1, hidden=32), random_inputs(20), random_captions(20)
    batch, optimiser = batch_of(inputs, captions), torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    told = [" ".join(c) for c in captions]
    assert model.eval().describe(inputs) != told
    model.train()
    for _ in range(200):
        optimiser.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if loss < 1.0:
            break
    model.eval()
    assert model.describe(inputs) == told
    assert model.describe(inputs, DecodingSettings(beam=3)) == told


def test_captioner_without_input_gives_one_caption_for_all() -> None:
    model = build_mmt(modalities="none").eval()
    empty = stack_moments([MomentParts(np.zeros((0, 0), np.float32), ())] * 3, KNOWN, 0)
    assert len(set(model.describe(empty))) == 1


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"heads": 3}, "hidden 16 cannot be divided among 3 heads"),
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"smoothing": 1.0}, "smoothing must be from 0 to below 1, not 1"),
        ({"columns": "all"}, "columns must be two numbers such as 0:2048, not 'all'"),
        ({"columns": "7:3"}, "columns must be two numbers such as 0:2048, not '7:3'"),
        ({"modalities": "sound"}, "modalities must be video or .*, not 'sound'"),
        ({"reduction": "max"}, "reduction must be sum or mean, not 'max'"),
        ({"threshold": -1}, "threshold must be at least 0, not -1"),
        ({"beam": 100}, "a beam keeps 1 to 64 captions, not 100"),
    ],
)
def test_a_setting_out_of_range_is_named(settings: dict[str, object], what: str) -> None:
    with pytest.raises(MomentseekError, match=f"^model: {what}"):
        build_mmt(**settings)


def test_captioners_are_known_by_name() -> None:
    assert CAPTIONERS["mmt"].model is MMT


def test_clips_of_a_long_moment_are_chosen_by_truncation() -> None:
    rows = np.arange(19, dtype=np.float32)[:, None]
    part = CaptionPreparation(max_clips=18).part(0, 19 * 1.5, rows, [], 1.5)
    assert part.clips[:, 0].tolist() == [*range(17), 18]
