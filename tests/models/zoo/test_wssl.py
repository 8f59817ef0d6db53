"""WSSL: both networks against loops, its phases, and that it never looks at a moment."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.inputs import BEGIN, END, PADDING, UNKNOWN, KnownWords, word_id, word_ids
from momentseek.models.layers.recurrent import segment_masks
from momentseek.models.model import Phase, group_of
from momentseek.models.zoo.wssl import ANCHORS, LAST, REACH, Wssl, WsslConfig, refined_segments

TEXTS = ["she opens a door", "he runs", "a dog sleeps on the sofa", "she opens a window"]
SMALL = WsslConfig(
    hidden=8, vocabulary=12, max_words=6, dropout=0.0, layers=2, sharpness=1.0, pretrain=2, every=3, explained=3
)


@pytest.fixture
def model() -> Wssl:
    torch.manual_seed(0)
    found = Wssl(SMALL, Dims(query=5, video=6, subtitle=None))
    rows = {text: torch.randn(len(text.split()), 5).numpy() for text in TEXTS}
    found.prepare(rows.items())
    return found.eval()


@pytest.fixture
def batch() -> Batch:
    g = torch.Generator().manual_seed(1)
    counts = torch.tensor([7, 9, 5, 9])
    mask = torch.arange(9) < counts[:, None]
    ids = word_ids(TEXTS, SMALL.max_words)
    features = torch.zeros(4, ids.shape[1], 5)
    pairs = BatchPairs(
        torch.arange(4), torch.arange(4), torch.tensor([0, 2, 1, 4]), torch.tensor([2, 5, 3, 8]), torch.ones(4),
        torch.eye(4, dtype=torch.bool), torch.tensor([[0.0, 0.4], [0.2, 0.6], [0.3, 0.8], [0.5, 1.0]]),
    )  # fmt: skip
    clips = Clips(torch.randn(4, 9, 6, generator=g) * mask[..., None], None, mask)
    return Batch(Words(features, ids != 0, ids=ids), clips, pairs)


def in_phase(model: Wssl, name: str) -> Wssl:
    model.phase = Phase(name)
    return model


def terms(model: Wssl, batch: Batch) -> dict[str, float]:
    return {k: float(v.detach()) for k, v in model.loss(batch, 0, torch.Generator().manual_seed(0)).items()}


def test_words_have_the_same_number_everywhere_and_rare_ones_none() -> None:
    words = KnownWords(2)
    words.learn(["a dog", "a cat", "a dog"])
    assert words(word_ids(["a dog", "cat"], 3)).tolist()[1] == [UNKNOWN, PADDING, PADDING]
    assert sorted(words.known.tolist()) == sorted([word_id("a"), word_id("dog")])
    assert 0 < word_id("dog") < torch.iinfo(torch.int64).max
    other = KnownWords(2)
    other.load_state_dict(words.state_dict())
    assert other(word_ids(["dog a"], 9)).tolist() == words(word_ids(["dog a"], 9)).tolist()
    with pytest.raises(MomentseekError, match="a query has no text"):
        word_ids([""], 9)


def test_masks_of_a_segment_equal_a_loop() -> None:
    segment, mask = torch.tensor([[0.2, 0.7]]), torch.tensor([[True] * 6 + [False] * 2])
    found = segment_masks(segment, mask, 0.5)[0]

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    for i in range(8):
        after, beyond = sigmoid(0.5 * (i + 0.5 - 0.2 * 6)), sigmoid(0.5 * (i + 0.5 - 0.7 * 6))
        wanted = [after - beyond, 1 - after, beyond] if i < 6 else [0.0, 0.0, 0.0]
        assert found[:, i].tolist() == pytest.approx(wanted, abs=1e-6)


def test_fifteen_anchors_that_are_refined_by_hand() -> None:
    assert len(ANCHORS) == 15
    refinement = torch.zeros(15, 2)
    refinement[0] = torch.tensor([REACH, 0.1])
    found = refined_segments(refinement)
    centre, width = 0.25 + REACH / 2, 0.6
    assert found[0].tolist() == pytest.approx([centre - width / 2, centre + width / 2])
    assert found[14].tolist() == pytest.approx([0.0, 0.85])
    assert refined_segments(refinement, centred=False)[1].tolist() == pytest.approx([0.25, 0.75])
    assert float(refined_segments(torch.full((15, 2), REACH)).max()) == pytest.approx(LAST)


def test_the_likelihood_of_a_sentence_equals_a_loop_over_its_words(model: Wssl, batch: Batch) -> None:
    videos, words = model.encode_clips(batch.clips), model.encode_words(batch.words)["entries"]
    captioner = model.captioner
    segment = torch.tensor([[0.1, 0.5]]).expand(4, 2)
    means, states = captioner.begin(captioner.look(videos["clips"]), segment, videos["mask"])
    found, likeliest = captioner.likelihood(means, states, words)
    for row in range(4):
        state, word, total = states[row : row + 1], BEGIN, 0.0
        said = [w for w in words[row].tolist() if w != PADDING]
        for place, wanted in enumerate([*said, END]):
            given = torch.cat([captioner.words.weight[word], means[row]])[None, None]
            after = captioner.decoder(given, state)
            chances = captioner.out(after[0, 0, -1]).log_softmax(0)
            total += float(chances[wanted].detach())
            if place < len(said):
                assert int(chances[UNKNOWN + 1 :].argmax()) + UNKNOWN + 1 == int(likeliest[row, place])
            state, word = after[:, 0], wanted
        assert float(found[row].detach()) == pytest.approx(total, rel=1e-4)


def test_the_decoder_begins_where_the_segment_ends(model: Wssl, batch: Batch) -> None:
    captioner, mask = model.captioner, batch.clips.mask
    seen = captioner.look(captioner.clips(batch.clips))
    _, states = captioner.begin(seen, torch.tensor([[0.0, 0.5], [0.0, 1.0], [0.0, 0.1], [0.4, 0.99]]), mask)
    for row, clip in enumerate((3, 8, 0, 8)):
        assert torch.equal(states[row], seen[1][row, clip])


def test_a_caption_is_written_word_by_word_and_stops(model: Wssl, batch: Batch) -> None:
    captioner = model.captioner
    seen = captioner.look(captioner.clips(batch.clips))
    means, states = captioner.begin(seen, torch.tensor([[0.0, 1.0]]).expand(4, 2), batch.clips.mask)
    found = captioner.write(means, states, 5)
    assert found.shape == (4, 5)
    assert not set(found.flatten().tolist()) & {BEGIN, UNKNOWN, END}
    with torch.no_grad():
        captioner.out.bias[END] = 100.0
    assert captioner.write(means, states, 5).tolist() == [[PADDING] * 5] * 4


def test_the_best_anchor_is_the_one_whose_caption_is_likeliest(model: Wssl, batch: Batch) -> None:
    model.config = replace(SMALL, reward="likelihood")
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    found = model.best_anchors(queries, videos)
    look = model.captioner.look(videos["clips"])
    chances = []
    for centre, width in ANCHORS:
        ends = torch.tensor([[max(0.0, centre - width / 2), min(LAST, centre + width / 2)]]).expand(4, 2)
        begun = model.captioner.begin(look, ends, videos["mask"])
        chances.append(model.captioner.likelihood(*begun, queries["entries"])[0])
    assert found.tolist() == torch.stack(chances, 1).argmax(1).tolist()


def test_padding_changes_nothing(model: Wssl, batch: Batch) -> None:
    together = model.moments(model.encode_words(batch.words), model.encode_clips(batch.clips))
    for row in range(4):
        clips, words = int(batch.clips.mask[row].sum()), int(batch.words.mask[row].sum())
        assert batch.words.ids is not None
        assert batch.clips.video is not None
        at = slice(row, row + 1)
        said = Words(batch.words.features[at, :words], batch.words.mask[at, :words], ids=batch.words.ids[at, :words])
        seen = Clips(batch.clips.video[at, :clips], None, batch.clips.mask[at, :clips])
        alone = model.moments(model.encode_words(said), model.encode_clips(seen))
        for one, two in zip(together, alone, strict=True):
            assert torch.allclose(one[row], two[0], atol=1e-5)


@pytest.mark.parametrize("phase", ["caption", "localise", "both"])
def test_it_never_looks_at_a_moment(model: Wssl, batch: Batch, phase: str) -> None:
    before = terms(in_phase(model, phase), batch)
    pairs = batch.pairs
    assert pairs.times is not None
    other = replace(pairs, start=pairs.start.flip(0), end=pairs.end.flip(0), times=pairs.times.flip(0))
    assert terms(model, replace(batch, pairs=other)) == before
    assert terms(model, replace(batch, pairs=replace(other, times=None))) == before


def test_gradients_reach_every_parameter_in_some_phase(model: Wssl, batch: Batch) -> None:
    reached: set[str] = set()
    model.train()
    for phase in ("caption", "localise", "both"):
        model.zero_grad()
        loss = in_phase(model, phase).loss(batch, 0, torch.Generator().manual_seed(0))
        torch.stack(list(loss.values())).sum().backward()
        reached |= {n for n, p in model.named_parameters() if p.grad is not None and bool(p.grad.abs().sum() > 0)}
    assert reached == {name for name, _ in model.named_parameters()}


def test_phases_follow_the_epochs(model: Wssl) -> None:
    assert [model.phase_at(0, epoch).name for epoch in range(9)] == [
        "caption", "caption", "localise", "both", "both", "localise", "both", "both", "localise",
    ]  # fmt: skip
    both = model.phase_at(0, 3)
    rates = {n: both.rate(group_of(n, model.rate_groups)) for n, _ in model.named_parameters()}
    assert rates["localiser.refine.weight"] == rates["captioner.out.weight"] == 1.0
    assert rates["localiser.score.weight"] == 0.1
    assert model.phase_at(0, 0).rate("localiser.refine") == 0.0


def test_one_pair_is_enough_for_a_step(model: Wssl, batch: Batch) -> None:
    model.train()
    one = torch.tensor([0])
    pairs = BatchPairs(one, one, one, one, torch.ones(1), torch.ones(1, 1, dtype=torch.bool))
    assert batch.words.ids is not None
    words = Words(batch.words.features[:1], batch.words.mask[:1], ids=batch.words.ids[:1])
    clips = take_rows({"v": batch.clips.video, "m": batch.clips.mask}, one)  # type: ignore[dict-item]
    loss = in_phase(model, "both").loss(Batch(words, Clips(clips["v"], None, clips["m"]), pairs), 0, torch.Generator())
    assert all(torch.isfinite(term) for term in loss.values())


def test_without_texts_it_says_so(model: Wssl, batch: Batch) -> None:
    with pytest.raises(MomentseekError, match="WSSL reads them; give the queries' texts"):
        model.encode_words(replace(batch.words, ids=None))


def test_learns_captions_then_their_anchors(model: Wssl, batch: Batch) -> None:
    """From whole videos the captioner learns to write the queries; the localiser then learns the anchor of each."""
    model.train()
    for phase in ("caption", "localise"):
        part = model.captioner if phase == "caption" else model.localiser
        used = torch.optim.Adam(part.parameters(), 0.03, fused=True)
        for _ in range(50):
            used.zero_grad()
            loss = in_phase(model, phase).loss(batch, 0, torch.Generator().manual_seed(0))
            torch.stack(list(loss.values())).sum().backward()
            used.step()
    assert terms(in_phase(model, "caption"), batch)["caption"] < 1.0
    captioner, words = model.captioner, model.encode_words(batch.words)["entries"]
    whole = torch.tensor([[0.0, 1.0]]).expand(4, 2)
    begun = captioner.begin(captioner.look(captioner.clips(batch.clips)), whole, batch.clips.mask)
    assert captioner.write(*begun, words.shape[1]).tolist() == words.tolist()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    chosen = model.localiser(queries, videos, videos["mask"])[0].argmax(1)
    assert chosen[:3].tolist() == model.best_anchors(queries, videos)[:3].tolist()


def test_the_public_circle_reads_marks_and_moves_centre_and_width(model: Wssl, batch: Batch) -> None:
    settings = replace(SMALL, circle="official", project=False, centred=False)
    torch.manual_seed(0)
    official = Wssl(settings, Dims(query=5, video=6, subtitle=None)).eval()
    official.prepare([(text, torch.zeros(0, 5).numpy()) for text in TEXTS])
    assert official.localiser.video.layers[0].input_size == official.captioner.video.layers[0].input_size == 6
    official.localiser.score.bias.data[14] = 100.0  # the whole video
    queries = official.encode_words(batch.words)
    assert queries["said"].shape[1] == queries["entries"].shape[1] + 2
    assert queries["said_mask"].sum(1).tolist() == [6, 4, 8, 6]
    segment = official.segment(queries, official.encode_clips(batch.clips))
    assert float(segment.detach().max()) > 1, "a segment that leaves the video is not cut in training"
    tried = official.disturb(segment, torch.Generator().manual_seed(0)) - segment
    lots = 0.01 * (2 * torch.rand(4, 2, generator=torch.Generator().manual_seed(0)) - 1)
    assert torch.allclose(tried.mean(1), lots[:, 0], atol=1e-6)
    assert torch.allclose(tried[:, 1] - tried[:, 0], lots[:, 1], atol=1e-6)
    assert set(terms(in_phase(official, "both"), batch)) == {"caption", "consistency"}
    official.captioner.out.bias.data[END] = 100.0
    seen = official.captioner.look(official.captioner.clips(batch.clips))
    begun = official.captioner.begin(seen, torch.tensor([[0.0, 1.0]]).expand(4, 2), batch.clips.mask)
    likeliest = official.captioner.likelihood(*begun, queries["entries"])[1]
    assert likeliest.sum(1).tolist() == [END * count for count in (5, 3, 7, 5)]
