"""ExCL beside its public implementation."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.pairs import batch_of, clips_of, words_of
from momentseek.models.public.weights import STREAMS
from momentseek.models.zoo.excl import ExCL


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    """Logits are compared with the last maps' biases added, which our model leaves to the softmax."""
    model = golden.model("excl", dropout=0.0, endpoints="tef" in golden.config["ctx_mode"])
    assert isinstance(model, ExCL)
    words, clips = words_of(golden), clips_of(golden)
    queries, videos = model.encode_words(words), model.encode_clips(clips)
    golden.check(queries["query"], "encoded_query")
    for name, ours in STREAMS.items():
        if ours not in model.modalities:
            continue
        golden.check(videos[ours], f"{name}_feat1", clips.mask[..., None])
        logits = model.predictors[ours](videos[ours], queries["query"], clips.mask)
        for side, end, found in zip(("start", "end"), ("st", "ed"), logits, strict=True):
            bias = golden.weight[f"{name}_{end}_predictor.2.bias"].to(golden.dtype)
            golden.check(found + bias, f"{name}_{side}_logits", clips.mask)
    for side, found in zip(("start", "end"), model.boundaries(queries, videos), strict=True):
        golden.check(found, f"{side}_log_prob", clips.mask)
    loss = model.loss(batch_of(golden, words, clips), 0, torch.Generator())
    golden.check(loss["span"], "loss_st_ed")
