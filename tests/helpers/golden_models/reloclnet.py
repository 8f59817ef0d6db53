"""ReLoCLNet beside its public implementation."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.pairs import batch_of, clips_of, draws, words_of
from golden_models.xml import compare_curves
from momentseek.models.losses import related_masks
from momentseek.models.zoo.reloclnet import ReLoCLNet, mil_nce


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    heads = golden.config["n_heads"]
    public = golden.model("reloclnet", heads=heads)
    clean = golden.model("reloclnet", heads=heads, masked=True, pair_once=True)
    for model, curve, contrast, overall in (
        (public, "", "", ""),
        (clean, "_masked_curve", "_pair_once", "_masked_curve_pair_once"),
    ):
        assert isinstance(model, ReLoCLNet)
        compare_curves(golden, model, "", curve)
        batch = batch_of(golden, words_of(golden), clips_of(golden))
        weight, config = golden.input["simi"], golden.config
        for negatives in ("random", "hardest"):
            drawn = [golden.input[f"negative_{kind}_{negatives}"] for kind in ("video", "query")]
            with draws("momentseek.models.losses", *drawn):
                terms = model.loss(batch, 0, torch.Generator())
            golden.check(torch.stack(list(terms.values())).sum(), f"loss_overall_{negatives}{overall}")
            golden.check(terms["wrong_video"], f"loss_neg_ctx_{negatives}")
            golden.check(terms["wrong_query"], f"loss_neg_q_{negatives}")
            for term, key, name in (
                ("span", "lw_st_ed", f"loss_st_ed{curve}"),
                ("video_contrast", "lw_vcl", f"loss_vcl{contrast}"),
                ("frame_contrast", "lw_fcl", "loss_fcl"),
            ):
                theirs = (golden.output[name] * weight).mean()
                golden.check_numbers(terms[term] / config[key], theirs, name)
        known = related_masks(batch.pairs, masked=False)
        scores = golden.output["loss_vcl_scores"].to(golden.dtype)
        golden.check(mil_nce(scores, batch.pairs, known, pair_once=bool(contrast)), f"loss_vcl{contrast}")
