"""TCN-DCM beside its public implementation: map, content and location, scores, and every term of the loss."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.pairs import draws, own_video
from momentseek.models.batch import Batch, Clips, Words
from momentseek.models.zoo.tan2d import overlap_loss
from momentseek.models.zoo.tcn_dcm import TcnDcm


def compare(golden: GoldenFile) -> None:
    given, output, own = golden.input, golden.output, golden.config["MODEL"]
    network = own["TCN"]
    clips, mask = network["NUM_CLIPS"], given["map_mask"]
    model = golden.model(
        "tcn_dcm", max_clips=clips, longest=clips, stride=network["FEATPOOL"]["KERNEL_SIZE"], own=own["ETA"],
        other_videos=own["GAMMA"], location=own["SIGMA"], independence=own["LAMBDA"], low=network["LOSS"]["MIN_IOU"],
        high=network["LOSS"]["MAX_IOU"],
    )  # fmt: skip
    assert isinstance(model, TcnDcm)
    assert torch.equal(model.cells.mask(), mask)
    position = model.cells.of_map(output["position"].to(golden.dtype))[0]
    assert float((model.where - position).abs().max()) < 1e-6, "the public table has single precision"
    model.where.copy_(position)
    features = given["feats"]
    words = Words(given["queries"], given["query_mask"])
    rows = Clips(features, None, torch.ones(features.shape[:2], dtype=torch.bool))
    query = model.encode_words(words)["query"]
    golden.check(query, "query")
    encoded = model.encode_clips(rows)["clips"]
    golden.check(encoded.transpose(1, 2), "feats")
    candidates = model.candidates(encoded)
    golden.check(model.cells.as_map(candidates), "map2d", mask)
    content, location = model.split(candidates)
    assert location is not None
    golden.check(model.cells.as_map(content), "content", mask)
    golden.check(model.cells.as_map(location), "location", mask)
    logits = model.logits(query, content, location)
    golden.check(model.cells.as_map(logits[..., None])[:, 0], "scores2d_logits", mask)
    pairs = own_video(torch.arange(len(features)), golden.dtype, given["moment_share"])
    with draws("momentseek.models.zoo.tcn_dcm", given["feats_neg_row"]):
        terms = model.loss(Batch(words, rows, pairs), 0, torch.Generator())
    iou = model.cells.of_map(given["iou2d"].to(golden.dtype)[:, None])[..., 0]
    terms["overlap"] = overlap_loss(logits, iou, pairs.weight, model.config)  # the truth's times have single precision
    names = (
        ("overlap", "loss_bce", 1.0), ("other", "loss_neg", own["GAMMA"]), ("location", "loss_recon", own["SIGMA"]),
        ("independence", "loss_dcor", own["LAMBDA"]), ("size", "regu", 1e-5),
    )  # fmt: skip
    for ours, theirs, weight in names:
        golden.check_numbers(terms[ours], weight * output[theirs], theirs)
    golden.check_numbers(torch.stack(list(terms.values())).sum(), output["loss_overall"], "loss_overall")
    golden.check_gradients(model, terms, {"content.weight": "TCN.conv.weight", "location.bias": "TCN.conv_pos.bias"})
