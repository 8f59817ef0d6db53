"""MCN and CAL beside their public implementation, from what it makes of moments and from clips."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.nn.functional import normalize

from golden_models import GoldenFile
from golden_models.pairs import batch_of, draws, words_of
from momentseek.models.batch import Clips, take_rows
from momentseek.models.public.weights import STREAMS
from momentseek.models.zoo.mcn import MCN

FROM_CLIPS = 1e4
"""From clips to 1e-6: the file's moments are rounded to single precision."""


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    given, config = golden.input, golden.config
    by = FROM_CLIPS if golden.dtype == torch.float64 else 1.0
    video, first, last = given["span"].unbind(1)
    model = golden.model(
        golden.kind,
        moment_endpoints="tef" in config["ctx_mode"],
        longest=max(int((spans[:, 2] - spans[:, 1]).max()) + 1 for name, spans in given.items() if "span" in name),
        margin=config["margin"],
        inter_weight=config["inter_loss_weight"],
    )
    assert isinstance(model, MCN)
    words = words_of(golden)
    clips = Clips(given["video_clips"], given.get("sub_clips"), given["clip_mask"])
    queries, videos = model.encode_words(words), model.encode_clips(clips)
    golden.check(queries["query"], "query_embed")
    asked = take_rows(videos, video)
    mask = given["moment_mask"][..., None]
    for name, ours in STREAMS.items():
        if ours in model.modalities:
            theirs = f"moment_{name}_embed"
            golden.check(normalize(model.moment[ours](given[f"moment_{name}_feat"]), dim=-1), theirs, mask)
            golden.check(model.moments_of(ours, asked, first[:, None], last[:, None])[:, 0], theirs, mask, by=by)
    moments = model.moment_vectors(asked, first[:, None], last[:, None])[:, 0]
    golden.check(2 - 2 * queries["query"] @ moments.T, "distance", by=by)
    grid = model.spans(queries, videos)  # of each query with its own video
    own = golden.output["distance"][video, torch.arange(len(video))]
    golden.check_numbers(-grid[video, first, last - first], own, "spans", by=by)
    _compare_loss(golden, model, clips, by)


def _compare_loss(golden: GoldenFile, model: MCN, clips: Clips, by: float) -> None:
    """The wrong moments are the file's; one in another video lies where the file says, not where the right one does."""
    words = words_of(golden)
    queries, videos = model.encode_words(words), model.encode_clips(clips)
    far = {}
    for kind in ("positive", "intra_negative", "inter_negative"):
        video, first, last = golden.input[f"{kind}_span"].unbind(1)
        far[kind] = model.distances(queries, take_rows(videos, video), first[:, None], last[:, None])[:, 0]
        golden.check(far[kind], f"{kind}_distance", by=by)
    margin = model.config.margin
    intra, inter = ((far["positive"] - far[f"{kind}_negative"] + margin).relu().mean() for kind in ("intra", "inter"))
    golden.check(intra, "loss_intra", by=by)
    golden.check(inter, "loss_inter", by=by)
    golden.check(intra + model.config.inter_weight * inter, "loss_inter_weight_04", by=by)
    batch = batch_of(golden, words, clips)
    right, wrong = golden.input["positive_span"], golden.input["intra_negative_span"]
    for kept, column in ((batch.pairs.video, 0), (batch.pairs.start, 1), (batch.pairs.end, 2)):
        kept.copy_(right[:, column])
    # a wrong moment of the file may overlap the right one more than ours would
    model.config = replace(model.config, intra_overlap=1.0)
    chosen = wrong[:, 1] * model.config.longest + wrong[:, 2] - wrong[:, 1]
    with draws("momentseek.models.zoo.mcn", chosen, golden.input["inter_negative_span"][:, 0]):
        terms = model.loss(batch, 0, torch.Generator())
    golden.check(terms["intra"], "loss_intra", by=by)
