"""MMN beside its public implementation: map, vectors, scores, losses, and a step of training."""

from __future__ import annotations

import torch
from torch import Tensor

from golden_models import GoldenFile, outputs_of
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words
from momentseek.models.layers.moment_map import max_over
from momentseek.models.zoo.mmn import OVERLAP_SHARPNESS, Mmn, mutual_matching
from momentseek.models.zoo.tan2d import overlap_loss


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    mask, model, batch = golden.output["mask2d"], mmn(golden), batch_of(golden)
    assert torch.equal(model.cells.mask(), mask)
    with outputs_of(model.clips, model.moment_match, model.moment_overlap) as (rows, moments, overlaps):
        words, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    golden.check(rows[0].transpose(1, 2), "featpool")
    golden.check(model.cells.as_map(max_over(rows[0], model.cells)), "map2d_pooled", mask)
    golden.check(model.cells.as_map(moments[0]), "map2d", mask)
    golden.check(model.cells.as_map(overlaps[0]), "map2d_iou", mask)
    for ours, theirs in (("match", "sent_feat"), ("overlap", "sent_feat_iou")):
        golden.check(words[ours].double() * golden.output[theirs].norm(dim=1, keepdim=True), theirs)
    own = {name: videos[name][batch.pairs.video] for name in ("match", "overlap")}
    match, overlap = (torch.einsum("qd,qcd->qc", words[name], own[name]) for name in ("match", "overlap"))
    golden.check(as_map(model, match), "contrastive_scores", mask)
    golden.check(as_map(model, (OVERLAP_SHARPNESS * overlap).sigmoid()), "iou_scores", mask)
    golden.check(as_map(model, model.log_score(match, overlap).exp()), "final_scores", mask)
    compare_losses(golden, model, batch, words, videos)
    if not single(golden):  # means and variances over every cell of all maps lose five digits of single precision
        compare_step(golden)


def compare_losses(
    golden: GoldenFile, model: Mmn, batch: Batch, words: Encodings, videos: Encodings, mode: str = ""
) -> None:
    """The losses in evaluation mode, or (``train_``) with the batch's statistics."""
    iou = model.cells.of_map(golden.input["iou2d"].to(golden.dtype)[:, None])[..., 0]
    cosine = torch.einsum("pd,pcd->pc", words["overlap"], videos["overlap"][batch.pairs.video])
    golden.check(overlap_loss(OVERLAP_SHARPNESS * cosine, iou, batch.pairs.weight, model.config), f"{mode}loss_iou")
    config = model.config

    def matching(count_near: bool) -> Tensor:
        return mutual_matching(
            words["match"], videos["match"], batch.pairs, iou, *model.negatives(batch),
            temperature=config.temperature, margin=config.margin, negative_overlap=config.negative_overlap,
            query_overlap=config.query_overlap, positives=config.positives, count_near=count_near,
        )  # fmt: skip

    # the public code's sums hold small leftovers: 1e-9 of the loss
    to_query, to_moment = golden.output[f"{mode}loss_vid"], golden.output[f"{mode}loss_sent"]
    golden.check_numbers(matching(True), to_query + to_moment, "mutual matching", by=1 if single(golden) else 100)
    if mode:
        return
    clean = golden.output["loss_sent_without_exp0"]
    golden.check_numbers(matching(False), to_query + clean, "without exp(0)", by=1 if single(golden) else 100)
    order = torch.argsort(model.cells.start * model.cells.clips + model.cells.end).argsort()
    ours, theirs = order[iou.topk(config.positives).indices], golden.output["positive_cell"]
    assert torch.equal(ours.sort(1).values, theirs.sort(1).values), "equal overlaps have no order"
    terms = model.terms(batch, words, videos, 0)
    overall = terms["overlap"] + terms["matching"]
    assert abs(float(overall - golden.output["loss_overall"])) < 2e-6, "the truth's times have single precision"


def compare_step(golden: GoldenFile) -> None:
    """A step of training: losses by the batch's statistics, which move the running ones."""
    model, batch = mmn(golden).train(), batch_of(golden)
    words, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    compare_losses(golden, model, batch, words, videos, "train_")
    for layer, norm in enumerate(model.neighbours.norms):
        assert isinstance(norm, torch.nn.BatchNorm2d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        golden.check(norm.running_mean, f"train_running_mean_{layer}")
        golden.check(norm.running_var, f"train_running_var_{layer}")


def single(golden: GoldenFile) -> bool:
    return golden.dtype == torch.float32


def mmn(golden: GoldenFile) -> Mmn:
    own = golden.config["MODEL"]["MMN"]
    loss = own["LOSS"]
    model = golden.model(
        "mmn", max_clips=own["NUM_CLIPS"], stride=own["FEATPOOL"]["KERNEL_SIZE"], low=loss["MIN_IOU"],
        high=loss["MAX_IOU"], contrast=loss["CONTRASTIVE_WEIGHT"], margin=loss["MARGIN"],
        temperature=loss["TAU_VIDEO"], positives=loss["NUM_POSTIVE_VIDEO_PROPOSAL"],
        negative_overlap=loss["NEGATIVE_VIDEO_IOU"], query_overlap=loss["SENT_REMOVAL_IOU"],
        power=golden.config["TEST"]["CONTRASTIVE_SCORE_POW"],
    )  # fmt: skip
    assert isinstance(model, Mmn)
    return model


def batch_of(golden: GoldenFile) -> Batch:
    given = golden.input
    video = given["query_video"]
    every = torch.arange(len(video))
    positive = video[:, None] == torch.arange(len(given["feats"]))
    weight = torch.ones(len(video), dtype=golden.dtype)
    pairs = BatchPairs(every, video, every, every, weight, positive, given["moment_share"])
    clips = Clips(given["feats"], None, torch.ones(given["feats"].shape[:2], dtype=torch.bool))
    return Batch(Words(given["words"], given["word_mask"]), clips, pairs)


def as_map(model: Mmn, scores: Tensor) -> Tensor:
    return model.cells.as_map(scores[..., None])[:, 0]
