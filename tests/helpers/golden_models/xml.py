"""XML beside its public implementation, with both modalities or one, transformers, LSTMs or convolutions."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.pairs import batch_of, clips_of, crossed, draws, words_of
from momentseek.models.batch import take_rows
from momentseek.models.public.weights import STREAMS
from momentseek.models.zoo.xml import XML

LAST_LAYER = 2


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    heads, modular = golden.config["n_heads"], not golden.config["no_modular"]
    convolved = golden.config["encoder_type"] == "cnn"
    compare_curves(golden, golden.model("xml", heads=heads, modular=modular), "", "")
    clean = golden.model("xml", heads=heads, modular=modular, masked=True)
    # what convolves lets padding in before the curve, too
    compare_curves(golden, clean, *(("_unpadded", "_unpadded") if convolved else ("", "_masked_curve")))
    for masked, suffixes in ((False, ("",)), (True, ("_unpadded",) if convolved else ("_masked_curve",))):
        model = clean if masked else golden.model("xml", heads=heads, modular=modular)
        for negatives in ("random", "hardest"):
            name = f"loss_overall_{negatives}{suffixes[0]}"
            if name not in golden.output:
                continue
            drawn = [golden.input[f"negative_{kind}_{negatives}"] for kind in ("video", "query")]
            if convolved and masked:  # without padding others are the hardest
                scores = golden.output["query_context_scores_unpadded"].clone().fill_diagonal_(-torch.inf)
                drawn = [scores.argmax(1), scores.argmax(0)]
            with draws("momentseek.models.losses", *drawn):
                terms = model.loss(batch_of(golden, words_of(golden), clips_of(golden)), 0, torch.Generator())
            golden.check(torch.stack(list(terms.values())).sum(), name)
            inner = "_unpadded" if convolved and masked else ""
            golden.check(terms["wrong_video"], f"loss_neg_ctx_{negatives}{inner}")
            golden.check(terms["wrong_query"], f"loss_neg_q_{negatives}{inner}")
            golden.check(terms["span"] / golden.config["lw_st_ed"], f"loss_st_ed{suffixes[0]}")


def compare_curves(golden: GoldenFile, model: object, layers: str, curve: str) -> None:
    """Encodings and scores; ``layers`` and ``curve`` are suffixes of what is compared before and after the filters."""
    assert isinstance(model, XML)
    words, clips = words_of(golden), clips_of(golden)
    streams = [name for name in STREAMS if f"{name}_query_linear.weight" in golden.weight]
    golden.check(model.word_states(words), f"encoded_words{layers}", words.mask[..., None])
    if model.config.modular and not layers:
        weight = torch.stack(list(model.attention(words).values()), 2)
        golden.check(weight, "modular_attention", words.mask[..., None])
    pooled = model.pooling(model.word_states(words), words.mask)
    stack = model.clip_stack(clips)
    last = len(stack[STREAMS[streams[0]]]) if hasattr(model.config, "pair_once") else LAST_LAYER
    for place, name in enumerate(streams):
        golden.check(pooled[:, place], f"{name}_query{layers}")
        found = stack[STREAMS[name]]
        golden.check(found[0], f"{name}_layer1{layers}", clips.mask[..., None])
        golden.check(found[-1], f"{name}_layer{last}{layers}", clips.mask[..., None])
        if f"{name}_layer3" in golden.output:
            golden.check(found[1], f"{name}_layer2", clips.mask[..., None])
    queries, videos = model.encode_words(words), model.encode_clips(clips)
    golden.check(model.match(queries, videos), f"query_context_scores{layers}")
    if not layers:
        golden.check(model.curve(queries, videos), "curve", clips.mask)
    count = len(words.mask)
    q, v = crossed(count, count)
    for cross, rows in (("", (torch.arange(count),) * 2), ("_cross", (q, v))):
        if f"start_logits{cross}{curve}" not in golden.output:
            continue
        logits = model.responses(take_rows(queries, rows[0]), take_rows(videos, rows[1]))
        mask = clips.mask[rows[1]]
        for side, name in enumerate(("start", "end")):
            theirs = golden.output[f"{name}_logits{cross}{curve}"].reshape(len(rows[0]), -1)
            golden.check_numbers(logits[:, side][mask], theirs[mask], f"{name}_logits{cross}{curve}")
