"""MMT's public weights (``baselines/multimodal_transformer/transformer/model.py`` of TVCaption, ``MMT``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.captioner import CaptionerDims
from momentseek.models.public.weights import (
    PublicWeights,
    State,
    Translation,
    register_public,
    take_attention,
    take_block,
    take_layers,
)
from momentseek.models.zoo.mmt import NO_VIDEO_COLUMNS, MMTConfig

EDGES = 4
"""Places around clips and words: the marks of both parts' beginnings and ends."""
LAYERS = {
    "embedding": "embeddings.word_embeddings", "words.project.norm": "embeddings.word_fc.0",
    "words.project.linear": "embeddings.word_fc.2", "words.norm": "embeddings.word_fc.4",
    "video.project.norm": "embeddings.video_embeddings.0", "video.project.linear": "embeddings.video_embeddings.2",
    "video.norm": "embeddings.video_embeddings.4", "kind": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm", "out": "decoder_classifier.transform.dense",
    "out_norm": "decoder_classifier.transform.LayerNorm", "choose": "decoder_classifier.decoder",
}  # fmt: skip


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; two columns of video features mean a captioner without video.

    Shapes do not show the number of heads. They show only the sum of the positions of clips and words, of which 18 are
    assumed to be for clips.
    """
    state: State = take_layers(weights, LAYERS) | {"choose.bias": weights.take("decoder_classifier.bias")}
    layers = weights.count("encoder.layer.{}.output.dense.weight")
    for n in range(layers):
        there, here = f"encoder.layer.{n}", f"encoder.{n}"
        state |= take_block(weights, f"{here}.attend", f"{there}.attention")
        state |= take_layers(weights, {
            f"{here}.wide": f"{there}.hidden_intermediate.dense", f"{here}.narrow": f"{there}.output.dense",
            f"{here}.norm": f"{there}.output.LayerNorm",
        })  # fmt: skip
        there, here = f"decoder.layer.{n}", f"decoder.{n}"
        for ours, theirs in (("before", "self_attention"), ("across", "dec_enc_attention")):
            state |= take_attention(weights, f"{here}.{ours}.attention", f"{there}.{theirs}")
        state |= take_layers(weights, {
            f"{here}.before.norm": f"{there}.norm1", f"{here}.across.norm": f"{there}.norm2",
            f"{here}.narrow": f"{there}.output.dense", f"{here}.norm": f"{there}.output.LayerNorm",
        })  # fmt: skip
    weights.skip("encoder.layer.*.memory_intermediate.*", "embeddings.position_embeddings.pe", "loss_func.*")
    count, dim = weights.shape("embeddings.word_embeddings.weight", 2)
    hidden, columns = weights.shape("embeddings.video_embeddings.2.weight", 2)
    places = weights.shape("embeddings.position_embeddings.pe")[-2] - EDGES
    blind = columns == NO_VIDEO_COLUMNS
    seen = 0 if blind else asked.get("max_clips") or min(MMTConfig.max_clips, places)
    assumed = {
        "heads": 12,
        "modalities": "subtitle" if blind else "video" if seen == places else "video+subtitle",
        "max_clips": max(1, seen),
        "max_words": max(1, places - seen),
    }
    settings = {
        "hidden": hidden,
        "layers": layers,
        "feedforward": weights.shape("encoder.layer.0.output.dense.weight", 2)[1],
        "word_dim": dim,
    }
    dims = CaptionerDims(0 if blind else columns, weights.vocabulary(count))
    return Translation(settings, dims, state, assumed)


register_public(
    "mmt",
    translate,
    marks=("embeddings.word_fc.2.weight", "decoder_classifier.decoder.weight"),
    source="jayleicn/TVCaption, baselines/multimodal_transformer/transformer/model.py: MMT",
    settings=MMTConfig.official,
)
