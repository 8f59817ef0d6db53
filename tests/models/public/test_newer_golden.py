"""Later models with the weights of their public code: losses and steps that ours once had otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from golden_models import GoldenFile, read_golden
from torch import Tensor

from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.captioner import CAPTIONERS, CaptionerDims
from momentseek.models.features.data import Dims
from momentseek.models.registry import MODELS, build_config
from momentseek.models.zoo.ms_sl import clip_contrast, frame_contrast_of, frame_triplets, span_means
from momentseek.models.zoo.tsp_prl import move_window
from momentseek.models.zoo.wssl import REACH
from momentseek.recognition.captions.inputs import SPECIAL_WORDS, CaptionPreparation

NEWER = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared")) / "golden" / "newer"
pytestmark = pytest.mark.skipif(not NEWER.is_dir(), reason="the public implementations' results are not here")


def read(name: str) -> GoldenFile:
    return read_golden(NEWER / f"{name}.npz", torch.float64)


Names = dict[str, str | tuple[str, ...]]


def load(model: Any, weights: Mapping[str, Tensor], names: Names) -> Any:
    """A model in double precision with public weights, whose prefixes ``names`` gives for ours; several are joined."""
    state = {}
    for own, value in model.state_dict().items():
        prefix = max((p for p in names if own == p or own.startswith(f"{p}.")), key=len, default=None)
        if prefix is None or own.endswith("num_batches_tracked"):
            assert own.endswith("num_batches_tracked"), own
            continue
        theirs = names[prefix]
        rest = own[len(prefix) :]
        parts = [weights[p + rest] for p in ([theirs] if isinstance(theirs, str) else theirs)]
        joined = torch.cat(parts)
        if own.endswith("place.weight"):  # the public table has further places that nothing reads
            joined = joined[: len(value)]
        state[own] = joined.reshape(value.shape) if value.dim() else value
    model.load_state_dict(state, strict=False)
    return model.double().eval()


def network(name: str, dims: Dims, **settings: Any) -> Any:
    return MODELS[name].model(build_config(MODELS[name].config, settings, name), dims)


def one_video_each(count: int, video: Tensor, times: Tensor | None = None) -> BatchPairs:
    every = torch.arange(count)
    positive = video[:, None] == torch.arange(int(video.max()) + 1)
    return BatchPairs(every, video, every, every, torch.ones(count, dtype=torch.float64), positive, times)


def block(own: str, theirs: str) -> Names:
    """Names of one attention block of XML's family."""
    return {
        f"{own}.attention.query": f"{theirs}.self.query",
        f"{own}.attention.key_value": (f"{theirs}.self.key", f"{theirs}.self.value"),
        f"{own}.linear": f"{theirs}.output.dense",
        f"{own}.norm": f"{theirs}.output.LayerNorm",
    }


def test_ms_sl_triplets_and_contrasts() -> None:
    golden = read("mssl_hardest")
    names: Names = {
        "pool": "modular_vector_mapping", "key": "mapping_linear.0", "value": "mapping_linear.1",
    }  # fmt: skip
    for own, theirs in (("words", "query"), ("parts", "clip"), ("frames", "frame")):
        names |= {
            f"{own}.projection.norm": f"{theirs}_input_proj.LayerNorm",
            f"{own}.projection.linear": f"{theirs}_input_proj.net.1",
            f"{own}.positions.place": f"{theirs}_pos_embed.position_embeddings",
            f"{own}.positions.norm": f"{theirs}_pos_embed.LayerNorm",
            **block(f"{own}.block", f"{theirs}_encoder"),
        }
    settings = {"hidden": 32, "heads": 4, "max_clips": 12, "max_words": 10, "parts": 8, "spare_siblings": False}
    model = load(network("ms_sl", Dims(20, 24, None), **settings), golden.weight, names)
    given, rng = golden.input, torch.Generator()
    parts = model.parts(given["clip_video_feat"], torch.ones(4, 8, dtype=torch.bool))
    frames, mask = model.frames(given["frame_video_feat"], given["frame_video_mask"]), given["frame_video_mask"]
    query = model.encode_words(Words(given["query_feat"], given["query_mask"]))["query"]
    golden.check(query, "video_query")
    spans, pairs = span_means(parts), one_video_each(7, given["query_labels"])
    cosine, dots, best = model.clip_scores(query, spans)
    golden.check(cosine, "clip_scale_scores")
    golden.check(model.clip_triplets(cosine, pairs, pairs.weight, 1, rng), "clip_trip_loss")
    golden.check(0.02 * clip_contrast(dots, pairs, pairs.weight), "clip_nce_loss")
    guide = spans[pairs.video, best[pairs.query, pairs.video]]
    frame, frame_dots = model.frame_scores(query, guide, frames[pairs.video], mask[pairs.video])
    known = model.siblings(pairs)
    golden.check(0.04 * frame_contrast_of(frame_dots, known).mean(), "frame_nce_loss")
    golden.check(frame_triplets(frame, known, 0.2, 1, rng).mean(), "frame_trip_loss")


def drn_names() -> Names:
    head = "fcos.head"
    names: Names = {
        "query.words.forwards": "query_encoder.biLSTM", "query.shared": "query_encoder.qInput",
        "query.score": "query_encoder.cmd_inter2logits", "clips.linear": "prop_fc", "place_in": "position_transform",
        "score_tower": f"{head}.cls_tower", "distance_tower": f"{head}.bbox_tower", "score": f"{head}.cls_logits",
        "distance": f"{head}.bbox_pred", "grade.0": f"{head}.mix_fc", "grade.1": f"{head}.iou_scores",
        "grade.2": f"{head}.iou_scores.3",
    }  # fmt: skip
    for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        names[f"query.words.backwards.{part}_l0"] = f"query_encoder.biLSTM.{part}_l0_reverse"
    for n in range(3):
        names |= {
            f"query.levels.{n}": f"query_encoder.qInput{n}", f"query.out.{n}": f"qInput{n}",
            f"levels.{n}": f"backbone_net.forward_conv{n}", f"lateral.{n}": f"fpn.fpn_inner{n + 1}",
            f"smooth.{n}": f"fpn.fpn_layer{n + 1}",
        }  # fmt: skip
    return names


def test_drn_grades_every_position_that_is_good() -> None:
    golden = read("drn_third_stage")
    model = network("drn", Dims(12, 24, None), hidden=32, wide=24, max_clips=32, stride=1, modalities="video")
    scales = torch.cat([golden.weight[f"fcos.head.scales.{n}.scale"] for n in range(3)])
    load(model, {**golden.weight, "scales": scales}, {**drn_names(), "scales": "scales", "graded": "scales"})
    for tower, theirs in (("score_tower", "cls_tower"), ("distance_tower", "bbox_tower")):
        move_bias(getattr(model, tower), golden.weight[f"fcos.head.{theirs}.0.bias"])
    move_bias(model.grade[0], golden.weight["fcos.head.mix_fc.0.bias"])
    move_bias(model.grade[1], golden.weight["fcos.head.iou_scores.0.bias"])
    given = golden.input
    times = given["gt_start_end"]
    mask = torch.ones(3, 32, dtype=torch.bool)
    batch = Batch(
        Words(given["query_feat"], given["query_mask"]), Clips(given["props_features"], None, mask),
        one_video_each(3, torch.arange(3), times),
    )  # fmt: skip
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    scores, distances, grades = model.pyramid(queries, videos)
    golden.check(scores, "logits")
    golden.check(distances, "distances")
    golden.check(grades, "iou_logits")
    model.phase = model.phase_at(0, 25)
    terms = model.loss(batch, 25, torch.Generator())
    for ours, theirs in (("score", "loss_cls"), ("distance", "loss_reg"), ("grade", "loss_iou")):
        golden.check(terms[ours], theirs, by=1e5)  # the truth's times have single precision


def move_bias(part: Any, bias: Tensor) -> None:
    """A convolution's bias, which ours has not, as a shift of the mean that the normalisation after it subtracts."""
    part[1].running_mean -= bias.double()


def test_tsp_prl_moves_of_thirds() -> None:
    golden = read("tspprl_steps")
    units, start, end, root, leaf = golden.input["move_table"].unbind(1)
    moved, bad = move_window(torch.stack([start, end], 1), root, leaf, units)
    wanted = golden.output["moved_table"]
    normal = wanted[:, 2] == 1
    assert torch.equal(~bad, normal)
    assert torch.equal(moved[normal], wanted[normal, :2])


def test_wssl_localiser() -> None:
    golden = read("wssl_parts")
    model = network(
        "wssl", Dims(16, 12, None), hidden=16, layers=2, vocabulary=17, dropout=0.0, modalities="video"
    ).localiser
    weight = {name.removeprefix("sl."): w for name, w in golden.weight.items() if name.startswith("sl.")}
    gru: Names = {"score": "predictor", "refine": "refiner"}
    for own, theirs in (("video", "video_encoder"), ("sentence", "text_encoder")):
        for layer in range(2):
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                gru[f"{own}.layers.{layer}.{part}_l0"] = f"{theirs}.rnn_cell.{part}_l{layer}"
    mixer = "feature_mixer"
    names = gru | {
        "over_words": f"{mixer}.text_attention.linear", "over_clips": f"{mixer}.video_attention.linear",
        "word_norm": f"{mixer}.text_batch_norm", "clip_norm": f"{mixer}.video_batch_norm", "join": f"{mixer}.fc",
        "body.0": f"{mixer}.combiner.0", "body.1": f"{mixer}.combiner.1", "body.4": f"{mixer}.combiner.4",
        "body.5": f"{mixer}.combiner.5", "beside": "video_encoder.linear", "words": "sent_embedding",
        "clips.linear": "clips.linear",
    }  # fmt: skip
    zeros = torch.zeros(32)
    weight |= {
        "clips.linear.weight": torch.eye(12), "clips.linear.bias": torch.zeros(12),
        f"{mixer}.text_attention.linear.bias": zeros, f"{mixer}.video_attention.linear.bias": zeros,
        "video_encoder.linear.bias": torch.zeros(16),
    }  # fmt: skip
    # the public recurrent layers read features of 12 columns as they are; ours read them after a linear layer
    model.clips.linear = torch.nn.Linear(12, 12)
    model.video.layers[0] = torch.nn.GRU(12, 16, batch_first=True)
    model.beside = torch.nn.Linear(12, 16)
    words = torch.cat([torch.zeros(1, 16), weight["sent_embedding.weight"]])
    model.words = torch.nn.Embedding(21, 16)
    load(model, {**weight, "sent_embedding.weight": words}, names)
    given = golden.input
    said = model.encode_sentence(torch.where(given["sent_mask"], given["sent"] + 1, 0))
    seen = model.encode_video(Clips(given["video_feat"], None, given["video_mask"]))
    scores, refinement = model(said, seen, given["video_mask"])
    golden.check(scores, "anchor_logits")
    theirs = golden.output["refining"]
    shown = refinement if theirs.min() >= 0 else refinement - REACH / 2
    golden.check(shown, "refining")


@pytest.mark.parametrize(("name", "modalities"), [
    ("mmt_video_sub", "video+subtitle"), ("mmt_video", "video"), ("mmt_sub", "subtitle"),
])  # fmt: skip
def test_mmt(name: str, modalities: str) -> None:
    golden = read(name)
    weight, given, own = golden.weight, golden.input, golden.config
    names: Names = {
        "embedding": "embeddings.word_embeddings", "words.project.norm": "embeddings.word_fc.0",
        "words.project.linear": "embeddings.word_fc.2", "words.norm": "embeddings.word_fc.4",
        "video.project.norm": "embeddings.video_embeddings.0", "video.project.linear": "embeddings.video_embeddings.2",
        "video.norm": "embeddings.video_embeddings.4", "kind": "embeddings.token_type_embeddings",
        "norm": "embeddings.LayerNorm", "out": "decoder_classifier.transform.dense",
        "out_norm": "decoder_classifier.transform.LayerNorm", "choose": "decoder_classifier.decoder",
        "choose.bias": "decoder_classifier.bias",
    }  # fmt: skip
    for n in range(2):
        e, d = f"encoder.layer.{n}", f"decoder.layer.{n}"
        names |= block(f"encoder.{n}.attend", f"{e}.attention") | {
            f"encoder.{n}.wide": f"{e}.hidden_intermediate.dense", f"encoder.{n}.narrow": f"{e}.output.dense",
            f"encoder.{n}.norm": f"{e}.output.LayerNorm", f"decoder.{n}.narrow": f"{d}.output.dense",
            f"decoder.{n}.norm": f"{d}.output.LayerNorm", f"decoder.{n}.before.norm": f"{d}.norm1",
            f"decoder.{n}.across.norm": f"{d}.norm2",
        }  # fmt: skip
        for ours, theirs in (("before", "self_attention"), ("across", "dec_enc_attention")):
            names[f"decoder.{n}.{ours}.attention.query"] = f"{d}.{theirs}.query"
            names[f"decoder.{n}.{ours}.attention.key_value"] = (f"{d}.{theirs}.key", f"{d}.{theirs}.value")
    seen = own["max_v_len"]
    spec, columns = CAPTIONERS["mmt"], own["video_feature_size"] if "video" in modalities else 0
    settings = {
        "hidden": 32, "heads": 4, "layers": 2, "feedforward": 32, "word_dim": 20, "whole_decoder": False,
        "max_clips": seen - 2 or 1, "max_words": 8, "max_caption": 9, "modalities": modalities, "smoothing": 0.1,
    }  # fmt: skip
    words = (*SPECIAL_WORDS, *(f"w{i}" for i in range(33)))
    model = load(spec.model(build_config(spec.config, settings, "mmt"), CaptionerDims(columns, words)), weight, names)
    model.places = model.places.double()
    clips = given["video_feature"][:, :seen, : columns or 0]
    tokens, mask = given["ctx_input_ids"], given["ctx_input_mask"]
    memory = model.encode(clips, tokens, mask)
    golden.check(memory, "encoder_outputs", mask[..., None])
    caption = given["caption_input_ids"]
    golden.check(model.logits(memory, mask, caption), "prediction_scores", given["caption_mask"][..., None])


def test_clips_of_a_long_moment_are_chosen_by_truncation() -> None:
    rows = np.arange(19, dtype=np.float32)[:, None]
    part = CaptionPreparation(max_clips=18).part(0, 19 * 1.5, rows, [], 1.5)
    assert part.clips[:, 0].tolist() == [*range(17), 18]
