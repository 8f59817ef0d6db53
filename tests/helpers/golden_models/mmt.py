"""MMT beside its public implementation, with both modalities or one: memory, next words, loss, and greedy captions."""

from __future__ import annotations

import torch

from golden_models import GoldenFile, words_of_file
from momentseek.models.captioner import CaptionBatch
from momentseek.models.zoo.mmt import MMT
from momentseek.recognition.captions.inputs import EOS, MomentInputs


def compare(golden: GoldenFile) -> None:
    given, own = golden.input, golden.config
    seen = own["max_v_len"]
    model = golden.model(
        "mmt", words=words_of_file(golden), heads=own["num_attention_heads"], max_clips=max(1, seen - 2),
        max_caption=own["max_cap_len"] - 2, smoothing=own["label_smoothing"],
    )  # fmt: skip
    assert isinstance(model, MMT)
    parts = golden.name.removeprefix("mmt_").replace("sub", "subtitle").replace("_", "+")
    assert model.config.modalities == parts
    clips = given["video_feature"][:, :seen, : model.dims.video]
    tokens, mask = given["ctx_input_ids"], given["ctx_input_mask"]
    memory = model.encode(clips, tokens, mask)
    golden.check(memory, "encoder_outputs", mask[..., None])
    caption, there = given["caption_input_ids"], given["caption_mask"]
    golden.check(model.logits(memory, mask, caption), "prediction_scores", there[..., None])
    whole = torch.cat([caption, torch.zeros_like(caption[:, :1])], 1)  # a caption's last place predicts nothing
    terms = model.loss(CaptionBatch(clips, tokens, mask, whole), 0, torch.Generator())
    golden.check(terms["likelihood"], "caption_loss")
    golden.check_gradients(model, terms, {
        "out.weight": "decoder_classifier.transform.dense.weight", "words.norm.bias": "embeddings.word_fc.4.bias",
        "encoder.0.wide.weight": "encoder.layer.0.hidden_intermediate.dense.weight",
    })  # fmt: skip
    if "greedy" in golden.output:
        inputs = MomentInputs(clips.numpy(), tokens.numpy(), mask.numpy())
        end = model.vocabulary.number[EOS]
        written = [(*row[1:], end) for row in golden.output["greedy"].tolist()]
        texts = [model.vocabulary.text(row[: row.index(end)]) for row in written]
        assert model.describe(inputs) == texts
