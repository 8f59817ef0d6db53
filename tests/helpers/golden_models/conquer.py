"""CONQUER beside its public implementation: general and disjoint scores, and exclusive ones with the video head."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from golden_models import GoldenFile, outputs_of
from momentseek.models.batch import Batch, BatchPairs, Clips, Words, take_rows
from momentseek.models.zoo.conquer import Conquer

ATTENTION_LOSS = 20.0
"""The files' weights make attention logits of 25, which in single precision cost a digit in any order of sums, and more
on some processors than on others (1.0e-5 instead of 0.9e-5 on one); double precision must agree to its own digits."""


@torch.no_grad()
def compare(golden: GoldenFile) -> None:
    if golden.dtype == torch.float32:
        golden = replace(golden, slack=ATTENTION_LOSS)
    given = golden.input
    count, several, longest = given["visual_mask"].shape
    exclusive = "video_score" in golden.output
    settings = {
        "heads": golden.config["model_config"]["bert_config"]["num_attention_heads"],
        "negatives": several - 1,
        "longest": longest,
    }
    words = Words(given["query_feat"], given["query_mask"])
    clips = Clips(*(given[name].flatten(0, 1) for name in ("visual_feat", "sub_feat", "visual_mask")))
    asking = torch.arange(count).repeat_interleave(several)
    for masked, suffix in ((False, ""), (True, "_unpadded")):
        model = golden.model("conquer", masked=masked, **settings)
        assert isinstance(model, Conquer)
        queries, videos = model.encode_words(words), model.encode_clips(clips)
        there = given["visual_mask"]

        def shaped(x: Tensor) -> Tensor:
            return x.unflatten(0, (count, several))

        golden.check(queries["words"], "encoded_query", words.mask[..., None])
        golden.check(queries["weights"], f"moe_weights{suffix}")
        for ours, theirs in (("video", "visual"), ("subtitle", "sub")):
            golden.check(shaped(videos[ours]), f"encoded_{theirs}", there[..., None])
        with outputs_of(model.read, model.contextual, model.begin.encoder, model.end.encoder) as kept:
            begin, end, video = model.logits(take_rows(queries, asking), videos)
        if not masked:
            for (found,), name in zip(
                kept, ("QAL_feature", "Contextual_QAL", "begin_features", "end_features"), strict=True
            ):
                golden.check(shaped(found), name, there[..., None])
        golden.check(shaped(begin), f"begin_logits{suffix}", there)
        golden.check(shaped(end), f"end_logits{suffix}", there)
        if video is not None:
            golden.check(shaped(video), f"video_score{suffix}")
        if not masked:
            _compare_spans(golden, settings, words, clips, asking)
        terms = model.loss(_batch(golden, words, clips), 0, torch.Generator())
        golden.check(terms["span"] / model.config.span_weight, f"loss_moment_ce{suffix}")
        if not masked:
            golden.check(torch.stack(list(terms.values())).sum(), "loss_overall")
            if exclusive:
                golden.check(terms["video"] / model.config.video_weight, "loss_video_ce")
            alone = golden.model("conquer", **{**settings, "negatives": 0}).loss(
                _batch(golden, words, clips), 0, torch.Generator()
            )
            golden.check(alone["span"] / model.config.span_weight, "loss_moment_ce_own_video")


def _compare_spans(golden: GoldenFile, settings: dict[str, int], words: Words, clips: Clips, asking: Tensor) -> None:
    """Scores of moments, in every way that the weights allow."""
    there = golden.input["visual_mask"]
    count, several, longest = there.shape
    kinds = ["exclusive"] if "video_score" in golden.output else ["disjoint", "general"]
    for kind in kinds:
        chosen = {} if kind == "exclusive" else {"score": kind}
        model = golden.model("conquer", **settings, **chosen)
        assert isinstance(model, Conquer)
        grid = model.spans(take_rows(model.encode_words(words), asking), model.encode_clips(clips))
        grid = grid.unflatten(0, (count, several))
        if kind == "general":
            first = golden.input["inference_vr_scores"].double().numpy()
            weight = torch.from_numpy(model.weigh_first_stage(first)) * model.config.alpha
            grid = (grid + weight[..., None, None].to(grid.dtype)).exp()
        elif kind == "exclusive":
            video = model.logits(take_rows(model.encode_words(words), asking), model.encode_clips(clips))[2]
            assert video is not None
            grid = (grid - video.view(count, several).logsumexp(1)[:, None, None, None]).exp()
        theirs = golden.output[f"moment_scores_{kind}"]
        start, width = torch.meshgrid(torch.arange(longest), torch.arange(longest), indexing="ij")
        last = start + width
        inside = last < there.sum(2)[..., None, None]
        found = theirs[:, :, start, last.clamp(max=longest - 1)]
        golden.check_numbers(grid[inside], found[inside], f"moment_scores_{kind}")


def _batch(golden: GoldenFile, words: Words, clips: Clips) -> Batch:
    """The right video of each query is the first of its own; the others are its listed negatives."""
    count, several, _ = golden.input["visual_mask"].shape
    each, spans = torch.arange(count), golden.input["st_ed_indices"]
    listed = torch.zeros(count, count, several, dtype=torch.bool)
    listed[each, each, 1:] = True
    related = torch.zeros(count, count * several, dtype=torch.bool)
    weight = torch.ones(count, dtype=golden.dtype)
    return Batch(
        words,
        clips,
        BatchPairs(each, each * several, spans[:, 0], spans[:, 1], weight, related, hard_videos=listed.flatten(1)),
    )
