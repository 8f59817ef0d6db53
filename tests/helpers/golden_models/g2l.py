"""G2L beside its public implementation: MMN's network, geodesics, and the public code's four losses."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.mmn import as_map
from golden_models.pairs import own_video
from momentseek.models.batch import Batch, Clips, Words
from momentseek.models.zoo.g2l import G2l
from momentseek.models.zoo.mmn import OVERLAP_SHARPNESS, mutual_matching
from momentseek.models.zoo.tan2d import overlap_loss


def compare(golden: GoldenFile) -> None:
    given, output, own = golden.input, golden.output, golden.config["MODEL"]["G2L"]
    loss = own["LOSS"]
    model = golden.model(
        "g2l", max_clips=own["NUM_CLIPS"], stride=own["FEATPOOL"]["KERNEL_SIZE"], low=loss["MIN_IOU"],
        high=loss["MAX_IOU"], contrast=loss["CONTRASTIVE_WEIGHT"], margin=loss["MARGIN"], temperature=loss["TAU_VIDEO"],
        positives=loss["NUM_POSTIVE_VIDEO_PROPOSAL"], negative_overlap=loss["NEGATIVE_VIDEO_IOU"],
        query_overlap=loss["SENT_REMOVAL_IOU"], hard=loss["HARD_GEO_W"], plain=loss["GEO_W"] or 1.0,
        interaction=loss["SHAPLEY_W"], players=loss["SHAPLEY_NUM"], neighbours=loss["GEO_TOPK"], power=0.5,
    )  # fmt: skip
    assert isinstance(model, G2l)
    mask, video = given["map_mask"], given["query_video"]
    times = given["moments"] / given["duration"][video][:, None]
    pairs = own_video(video, golden.dtype, times)
    clips = Clips(given["feats"], None, torch.ones(given["feats"].shape[:2], dtype=torch.bool))
    batch = Batch(Words(given["words"], given["words_mask"]), clips, pairs)
    words = model.encode_words(batch.words)
    raw, around, _ = model.spaces(clips)
    golden.check(model.cells.as_map(raw), "map2d", mask)
    golden.check(model.cells.as_map(around), "map2d_iou", mask)
    videos = model.encode_clips(clips)
    match, near = (torch.einsum("qd,qcd->qc", words[s], videos[s][video]) for s in ("match", "overlap"))
    golden.check(as_map(model, match), "contrastive_scores", mask)
    golden.check(as_map(model, (OVERLAP_SHARPNESS * near).sigmoid()), "iou_scores", mask)
    golden.check(as_map(model, model.log_score(match, near).exp()), "final_scores", mask)
    iou = model.cells.of_map(given["iou2d"].to(golden.dtype)[:, None])[..., 0]
    geodesic = model.geodesics(raw, video, iou.argmax(1))
    golden.check(geodesic[:, model.cells.row_major], "geodesic")
    # the truth's times have single precision, so losses are from the file's own overlaps
    config = model.config
    found = model.official_terms(pairs, words, videos, iou, geodesic)
    golden.check(found["hard"] / config.contrast / config.hard, "loss_hard_sent")
    golden.check(found["plain"] / config.contrast / config.plain, "loss_sent")
    golden.check(-found["interaction"] / config.interaction, "loss_sa")
    golden.check(overlap_loss(OVERLAP_SHARPNESS * near, iou, pairs.weight, config), "loss_iou")
    matching = mutual_matching(
        words["match"], videos["match"], pairs, iou, model.negatives(batch)[0], temperature=config.temperature,
        margin=config.margin, query_overlap=config.query_overlap, positives=config.positives, to_moments=False,
    )  # fmt: skip
    golden.check(matching, "loss_vid")
    terms = model.loss(batch, 0, torch.Generator())
    if not loss["GEO_W"]:
        del terms["plain"]
    whole = torch.stack(list(terms.values())).sum()
    assert abs(float(whole.detach() - output["loss_overall"])) < 2e-6 * float(output["loss_overall"].abs())
    golden.check_gradients(model, terms, {
        "text_match.weight": "text_encoder.fc_out2.weight",
        "moment_match.weight": "proposal_conv.conv1x1_contrastive.weight",
        "clips.linear.weight": "featpool.conv.weight",
    }, to=1e-5)  # fmt: skip
