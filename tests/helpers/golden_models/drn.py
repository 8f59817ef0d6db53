"""DRN beside its public implementation: pyramid, the three losses, and the moments it gives."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.pairs import own_video
from momentseek.models.batch import Batch, Clips, Words
from momentseek.models.zoo.drn import Drn


def compare(golden: GoldenFile) -> None:
    given, config = golden.input, golden.config
    stage = "second" if config["is_second_stage"] else "first" if config["is_first_stage"] else "third"
    features = given["props_features"]
    model = golden.model("drn", max_clips=features.shape[1], stride=1, stage=stage, least=config["fcos_inference_thr"])
    assert isinstance(model, Drn)
    clips = Clips(features, None, torch.ones(features.shape[:2], dtype=torch.bool))
    pairs = own_video(torch.arange(len(features)), golden.dtype, given["gt_start_end"])
    batch = Batch(Words(given["query_feat"], given["query_mask"]), clips, pairs)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    scores, distances, grades = model.pyramid(queries, videos)
    golden.check(scores, "logits")
    golden.check(distances, "distances")
    golden.check(grades, "iou_logits")
    assert torch.equal(model.targets(given["gt_start_end"])[1].double(), golden.output["labels"])
    model.phase = model.phase_at(0, 0)
    terms = model.loss(batch, 0, torch.Generator())
    for ours, theirs in (("score", "loss_cls"), ("distance", "loss_reg"), ("grade", "loss_iou")):
        golden.check(terms[ours], theirs)
    golden.check_gradients(
        model, terms, {"clips.linear.weight": "prop_fc.weight", "place_in.bias": "position_transform.bias"}
    )
    model.graded.fill_(float(stage != "first"))
    start, end, value = model.moments(queries, videos)
    for row, wanted in enumerate(golden.output["detections"]):
        there = value[row] > -torch.inf
        found = torch.stack([start[row], end[row], value[row].exp()], 1)[there]
        wanted = wanted[~wanted.isnan().any(1)]
        golden.check_numbers(found[found[:, 2].argsort()], wanted[wanted[:, 2].argsort()], "detections")
