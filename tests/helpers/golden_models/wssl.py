"""WSSL beside its public implementation: the localiser's anchors and segments, and the captioner's words."""

from __future__ import annotations

import torch
from torch import Tensor

from golden_models import GoldenFile, words_of_file
from momentseek.models.batch import Clips, Words
from momentseek.models.inputs import UNKNOWN, word_id
from momentseek.models.zoo.wssl import Wssl, refined_segments

END = 1
"""The public number of the mark that ends a sentence."""


def compare(golden: GoldenFile) -> None:
    given, config = golden.input, golden.config
    names = words_of_file(golden)
    model = golden.model("wssl", words=names, sharpness=config["softmask_scale"])
    assert isinstance(model, Wssl)
    clips = Clips(given["video_feat"], None, given["video_mask"])
    sentence, mask = given["sent"], given["sent_mask"]
    inner = mask[:, 1:].logical_and(sentence[:, 1:] != END)[:, :-1]
    ids = torch.tensor([word_id(name) for name in names])[sentence[:, 1:-1]] * inner
    queries = model.encode_words(Words(torch.zeros(len(ids), 1, 1), torch.ones(len(ids), 1, dtype=torch.bool), ids=ids))
    videos = model.encode_clips(clips)
    scores, refinement = model.localiser(queries, videos, videos["mask"])
    golden.check(scores, "anchor_logits")
    golden.check(refinement, "refining")
    row, best = torch.arange(len(scores)), scores.argmax(1)
    found = refined_segments(refinement)[row, best]
    golden.check(found * given["video_seconds"][:, None], "segment_seconds")
    golden.check(centre_width(found), "segment_eval_cw")
    golden.check(centre_width(model.segment(queries, videos)), "segment_train_cw")
    compare_captioner(golden, model, queries["entries"], videos["clips"], names)


def compare_captioner(golden: GoldenFile, model: Wssl, words: Tensor, clips: Tensor, names: tuple[str, ...]) -> None:
    given, output = golden.input, golden.output
    mask, captioner = given["video_mask"], model.captioner
    centre, width = given["segment_cw"].unbind(1)
    seen = captioner.look(clips)
    golden.check(seen[0], "video_feature_cg", mask[..., None])
    means, states = captioner.begin(seen, torch.stack([centre - width / 2, centre + width / 2], 1), mask)
    golden.check(states.transpose(0, 1), "decoder_init_hidden")
    inside, left, right = means.chunk(3, dim=1)
    golden.check(torch.cat([left, inside, right], 1), "context_lcr")
    known = torch.cat([torch.tensor([1, 2]), model.known(torch.tensor([word_id(n) for n in names[2:-1]])),
                       torch.tensor([UNKNOWN])])  # our entries of theirs  # fmt: skip
    given_words = known[given["sent"][:, :-1]]
    logits = captioner.predict(means, states, given_words).log_softmax(2)[..., known]
    there = given["sent_mask"][:, 1:, None]
    golden.check_numbers(logits[there.expand_as(logits)], output["caption_log_prob"][:, 1:][there.expand_as(logits)],
                         "caption_log_prob")  # fmt: skip
    chance, likeliest = captioner.likelihood(means, states, words)
    golden.check(-chance.mean(), "caption_loss")
    theirs = known[output["caption_pred"][:, 1:]]
    there = given["sent_mask"][:, 1:]
    assert torch.equal(likeliest[:, : theirs.shape[1]][there], theirs[there])
    golden.check_gradients(model, {"caption": -chance.mean()}, {
        "captioner.beside.weight": "cg.video_encoder.linear.weight",
    })  # fmt: skip


def centre_width(segment: Tensor) -> Tensor:
    start, end = segment.unbind(1)
    return torch.stack([(start + end) / 2, end - start], 1)
