"""2D-TAN beside its public implementation: clips, map, query, fusion, scores and loss."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from golden_models import GoldenFile, outputs_of
from momentseek.models.batch import Clips, Words
from momentseek.models.zoo.tan2d import Tan2d, overlap_loss


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    given, mask = golden.input, golden.output["map_mask"]
    loss = golden.config["LOSS"]["PARAMS"]
    stride = golden.config["TAN"]["FRAME_MODULE"]["PARAMS"]["STRIDE"]
    model = golden.model("tan2d", max_clips=len(mask), stride=stride, low=loss["MIN_IOU"], high=loss["MAX_IOU"])
    assert isinstance(model, Tan2d)
    assert torch.equal(model.cells.mask(), mask)
    frames = given["visual_input"]
    videos = model.encode_clips(Clips(frames, None, torch.ones(frames.shape[:2], dtype=torch.bool)))
    words = Words(given["textual_input"], given["textual_mask"][..., 0])
    queries = model.encode_words(words)
    golden.check(videos["clips"].transpose(1, 2), "vis_h")
    golden.check(model.sentence(words)[0], "txt_last")
    golden.check(queries["query"], "txt_h")
    candidates = model.candidates(videos["clips"])
    golden.check(model.cells.as_map(candidates), "map_h", mask)
    with outputs_of(model.map_in, model.neighbours, model.score) as (seen, near, scores):
        spans = model.spans(queries, videos)
    fused = F.normalize(queries["query"][:, None] * seen[0], dim=2)
    golden.check(model.cells.as_map(fused), "fused_h", mask)
    golden.check(near[0], "map_layer_h", mask)
    logits = scores[0][..., 0]
    golden.check(model.cells.as_map(logits[..., None]), "prediction", mask)
    golden.check(model.cells.as_map(logits[..., None].sigmoid()), "joint_prob", mask)
    assert torch.equal(spans, model.cells.as_spans(F.logsigmoid(logits), len(mask)))
    iou = model.cells.of_map(given["map_gt"])[..., 0]
    golden.check(overlap_loss(logits, iou, torch.ones(len(iou), dtype=golden.dtype), model.config), "loss_value")
