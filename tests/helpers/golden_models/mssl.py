"""MS-SL beside its public implementation: encodings, both branches' scores, and the four losses."""

from __future__ import annotations

from unittest.mock import patch

import torch

from golden_models import GoldenFile
from golden_models.pairs import own_video
from momentseek.models.batch import Batch, Clips, Words
from momentseek.models.zoo.ms_sl import MsSl, span_means


def compare(golden: GoldenFile) -> None:
    given, config = golden.input, golden.config
    model = golden.model(
        "ms_sl", heads=config["n_heads"], parts=config["map_size"], margin=config["margin"],
        clip_share=config["clip_scale_w"], hard_from=0 if config["use_hard_negative"] else None,
        hard_pool=config["hard_pool_size"],
    )  # fmt: skip
    assert isinstance(model, MsSl)
    words, rows, mask = (
        Words(given["query_feat"], given["query_mask"]), given["frame_video_feat"], given["frame_video_mask"],
    )  # fmt: skip
    # the public code has two views of a video as its inputs
    with patch("momentseek.models.zoo.ms_sl.even_parts", lambda *_: given["clip_video_feat"]):
        videos = model.encode_clips(Clips(rows, None, mask))
        query = model.encode_words(words)["query"]
        pairs = own_video(given["query_labels"], golden.dtype)
        terms = model.loss(Batch(words, Clips(rows, None, mask), pairs), 0, torch.Generator())
    golden.check(query, "video_query")
    golden.check(videos["parts"], "encoded_clip_feat")
    golden.check(videos["frames"], "encoded_frame_feat", mask[..., None])
    spans = span_means(videos["parts"])
    cosine, dots, best = model.clip_scores(query, spans)
    golden.check(cosine, "clip_scale_scores")
    golden.check(dots, "clip_scale_scores_unnormalized")
    guide = spans[pairs.video, best[pairs.query, pairs.video]]
    frame, frame_dots = model.frame_scores(query, guide, videos["frames"][pairs.video], mask[pairs.video])
    golden.check(frame, "train_frame_scale_scores")
    golden.check(frame_dots, "train_frame_scale_scores_unnormalized")
    golden.check(model.match({"query": query}, videos), "score_sum")
    names = {"clip": "clip_trip", "clip contrast": "clip_nce", "frame": "frame_trip", "frame contrast": "frame_nce"}
    for ours, theirs in names.items():
        golden.check(terms[ours], f"{theirs}_loss")
    golden.check(torch.stack(list(terms.values())).sum(), "loss_overall")
    golden.check_gradients(model, terms, {
        "key.weight": "mapping_linear.0.weight", "value.weight": "mapping_linear.1.weight",
        "pool.weight": "modular_vector_mapping.weight", "words.projection.linear.bias": "query_input_proj.net.1.bias",
    })  # fmt: skip
