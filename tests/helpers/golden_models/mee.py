"""MEE beside its public implementation, from the pooled vectors of videos and from their clips."""

from __future__ import annotations

import torch

from golden_models import GoldenFile
from golden_models.pairs import batch_of, words_of
from momentseek.models.batch import Clips
from momentseek.models.public.weights import STREAMS
from momentseek.models.zoo.mee import MEE

FROM_CLIPS = 1e4
"""From clips to 1e-6: the file's pooled vectors are rounded to single precision."""


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    given, words = golden.input, words_of(golden)
    pooled = {ours: given[f"{name}_feat"] for name, ours in STREAMS.items() if f"{name}_feat" in given}
    alone = Clips(*(pooled[n][:, None] if n in pooled else None for n in ("video", "subtitle")), words.mask[:, :1])
    clips = Clips(given["video_clips"], given.get("sub_clips"), given["clip_mask"])
    for masked, suffix in ((False, ""), (True, "_unpadded")):
        for shown, unit, by in (
            (alone, False, 1.0),
            (clips, True, FROM_CLIPS if golden.dtype == torch.float64 else 1.0),
        ):
            model = golden.model("mee", masked=masked, unit=unit, dropout=0.0, margin=golden.config["margin"])
            assert isinstance(model, MEE)
            queries, videos = model.encode_words(words), model.encode_clips(shown)
            golden.check(model.words(words.features, words.mask).unflatten(1, (model.config.clusters, -1))
                         .transpose(1, 2).flatten(1), f"pooled_query{suffix}")  # fmt: skip
            for name, ours in STREAMS.items():
                if ours in pooled:
                    golden.check(queries[ours], f"{name}_query{suffix}")
                    golden.check(videos[ours], f"encoded_{name}", by=by)
            if model.weigh is not None:
                golden.check(queries["weights"], f"stream_weights{suffix}")
            golden.check(model.match(queries, videos), f"scores{suffix}", by=by)
            batch = batch_of(golden, words, shown)
            golden.check(model.loss(batch, 0, torch.Generator())["max_margin"], f"loss{suffix}", by=by)
            fair = golden.model("mee", masked=masked, unit=unit, dropout=0.0, true_pairs=False)
            golden.check(fair.loss(batch, 0, torch.Generator())["max_margin"], f"loss_wrong_pairs_only{suffix}", by=by)
            if not masked:
                golden.check(model.train().loss(batch, 0, torch.Generator())["max_margin"], "train_loss", by=by)
