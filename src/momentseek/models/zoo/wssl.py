"""WSSL: learns moments from captions alone, by the cycle caption → segment → caption.

A localiser finds the segment of a caption, and a captioner describes a segment (Duan et al., NeurIPS 2018). The
captioner first learns from whole videos. Then, in every fifth epoch, the localiser learns to choose the anchor whose
caption is most similar to the query. In the other epochs both learn together, so that the captioner can reproduce a
query from its segment. Training never uses the moments of the training set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures.captions.rouge_l import rouge_l_score
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.inputs import BEGIN, END, PADDING, KnownWords, word_ids
from momentseek.models.layers.projection import Dropout, JointClips
from momentseek.models.layers.recurrent import GruStack, SegmentCaptioner, states_at
from momentseek.models.model import CorpusModel, GroundingConfig, Phase, Predicted, at_least, one_of
from momentseek.models.registry import register
from momentseek.recognition.captions.inputs import caption_words

ANCHORS = (
    *((c / 4, 1 / 2) for c in (1, 2, 3)),
    *((c / 6, 1 / 3) for c in (1, 3, 5)),
    *((c / 16, 1 / 8) for c in range(1, 16, 2)),
    (1 / 2, 1.0),
)
"""Centres and widths of the fifteen anchors, as shares of the video."""
REACH = 0.3
"""Maximum refinement: an anchor's centre moves by at most half of it, and its width grows by at most all of it."""
LAST = 1 - 1e-4
"""The latest end of a segment."""


@dataclass(frozen=True, kw_only=True)
class WsslConfig(GroundingConfig):
    """WSSL's settings; the defaults are those for ActivityNet Captions."""

    official: ClassVar[Mapping[str, Any]] = {"centred": False, "project": False, "circle": "official"}
    hidden: int = 512
    max_clips: int = 300
    fit: str = "resample"
    max_words: int = 20
    dropout: float = 0.3
    layers: int = 2
    vocabulary: int = 6000
    """Size of the vocabulary: the most frequent words of the training queries."""
    sharpness: float = 0.1
    """Sharpness of a segment's soft mask for the captioner, per clip."""
    pretrain: float = 100.0
    """Number of epochs at the start in which only the captioner learns, from whole videos."""
    every: int = 5
    """One of this many epochs trains only the localiser, from the anchors' captions."""
    explained: int = 6
    """Number of pairs of a batch whose fifteen anchors are described in a step of the localiser."""
    reward: str = "rouge-l"
    """Similarity of an anchor to a query: ``rouge-l`` of the anchor's caption, or the ``likelihood`` of the query
    (METEOR in the public code)."""
    noise: float = 0.01
    consistency: float = 0.01
    """Weight of the distance between the segment of a query and that of its caption."""
    centred: bool = True
    """Decode refinements in training as in search; with False, centres in training lie half of the maximum further
    right, as in the public code, whose predictions are therefore 15 % of the video too far left."""
    project: bool = True
    """Map clips to ``hidden`` columns first; the public code does not."""
    circle: str = "paper"
    """``paper``, or ``official`` as in the public code: the localiser reads the marks around a sentence, a clip's
    position is its start, and in training segments are not cut and noise moves their centre and width."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "reward", "rouge-l", "likelihood")
        one_of(self, "circle", "paper", "official")
        at_least(self, 1, "layers", "vocabulary", "every", "explained")
        at_least(self, 0, "sharpness", "pretrain", "noise", "consistency")


class PairNorm(nn.BatchNorm1d):
    """Batch normalisation that uses its running statistics for a batch of one pair, which has no variance."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, columns) -> (n, columns)."""
        if self.training and len(x) == 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        return super().forward(x)


class SegmentLocaliser(nn.Module):
    """Scores and refinements of the anchors, from words and clips that attend to each other."""

    def __init__(self, config: WsslConfig, dims: Dims, entries: int) -> None:
        super().__init__()
        hidden, both = config.hidden, config.layers * config.hidden
        self.clips = JointClips(config, dims, None if config.project else 0)
        self.video = GruStack(self.clips.columns, hidden, config.layers, config.dropout)
        self.beside = nn.Linear(self.clips.columns, hidden)
        self.words = nn.Embedding(entries, dims.query)
        self.sentence = GruStack(dims.query, hidden, config.layers, config.dropout)
        self.over_words, self.over_clips = nn.Linear(hidden, both), nn.Linear(hidden, both)
        self.word_norm, self.clip_norm = PairNorm(hidden), PairNorm(hidden)
        self.join = nn.Linear(2 * hidden, hidden)
        self.body = nn.Sequential(
            nn.Linear(3 * hidden, 3 * hidden, bias=False), PairNorm(3 * hidden), nn.ReLU(), Dropout(config.dropout),
            nn.Linear(3 * hidden, 3 * hidden, bias=False), PairNorm(3 * hidden), nn.ReLU(),
        )  # fmt: skip
        self.score = nn.Linear(3 * hidden, len(ANCHORS))
        self.refine = nn.Linear(3 * hidden, 2 * len(ANCHORS))

    def encode_video(self, clips: Clips) -> Encodings:
        """States of the clips (n, T, hidden), and the last ones of all layers (n, layers · hidden)."""
        rows = self.clips(clips)
        states = self.video(rows)
        last = states_at(states, (clips.mask.sum(1) - 1).clamp(min=0)).flatten(1)
        return {"seen": states[:, :, -1] + self.beside(rows), "seen_last": last}

    def encode_sentence(self, words: Tensor) -> Encodings:
        """States of words (n, T) of the vocabulary, and the last ones of all layers."""
        states = self.sentence(self.words(words))
        last = states_at(states, ((words != PADDING).sum(1) - 1).clamp(min=0)).flatten(1)
        return {"said": states[:, :, -1], "said_last": last, "said_mask": words != PADDING}

    def forward(self, said: Encodings, seen: Encodings, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 15) logits of the anchors, and (n, 15, 2) refinements of centre and width, from 0 to ``REACH``."""
        t = self.word_norm(attend(self.over_words(said["said"]), said["said"], seen["seen_last"], said["said_mask"]))
        v = self.clip_norm(attend(self.over_clips(seen["seen"]), seen["seen"], said["said_last"], mask))
        body = self.body(torch.cat([self.join(torch.cat([t, v], 1)), t * v, t + v], dim=1))
        return self.score(body), REACH * torch.sigmoid(self.refine(body)).view(-1, len(ANCHORS), 2)


def attend(keys: Tensor, rows: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
    """(n, d): the rows (n, T, d) weighted by ``softmax(keys · asked / sqrt(columns))``."""
    scores = torch.einsum("ntk,nk->nt", keys, asked) / keys.shape[2] ** 0.5
    return torch.einsum("nt,ntd->nd", scores.masked_fill(~mask, -torch.inf).softmax(1), rows)


def refined_segments(refinement: Tensor, centred: bool = True, cut: bool = True) -> Tensor:
    """(…, 15, 2): start and end of the anchors after refinements of centre and width, cut to the video or not.

    >>> still = torch.tensor([REACH / 2, 0.0]).expand(15, 2)
    >>> refined_segments(still)[[0, 3, 14]].mul(6).round(decimals=2).tolist()
    [[0.0, 3.0], [0.0, 2.0], [0.0, 6.0]]
    """
    anchors = refinement.new_tensor(ANCHORS)
    centre = anchors[:, 0] + refinement[..., 0] - (REACH / 2 if centred else 0.0)
    half = (anchors[:, 1] + refinement[..., 1]) / 2
    found = torch.stack([centre - half, centre + half], dim=-1)
    return found.clamp(0, LAST) if cut else found


def marked_sentences(entries: Tensor) -> Tensor:
    """(n, T + 2): sentences (n, T) between the marks of their beginning and end.

    >>> marked_sentences(torch.tensor([[7, 9], [8, PADDING]])).tolist()
    [[1, 7, 9, 2], [1, 8, 2, 0]]
    """
    edge = torch.full_like(entries[:, :1], BEGIN)
    found = torch.cat([edge, entries, torch.full_like(edge, PADDING)], 1)
    return found.scatter(1, (found != PADDING).sum(1, keepdim=True), END)


class Wssl(CorpusModel):
    """WSSL: a localiser and a captioner that train each other."""

    retrieves: ClassVar[bool] = False
    rate_groups: ClassVar[tuple[str, ...]] = ("captioner", "localiser", "localiser.refine")
    config: WsslConfig

    def __init__(self, config: WsslConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.known = KnownWords(config.vocabulary)
        entries = self.known.entries
        self.localiser = SegmentLocaliser(config, dims, entries)
        self.official = config.circle == "official"
        self.captioner = SegmentCaptioner(
            JointClips(config, dims, None if config.project else 0), dims.query, entries, config.hidden, config.layers,
            config.dropout, config.sharpness, official=self.official,
        )  # fmt: skip

    @property
    def pair_numbers(self) -> int:
        return 2 * (2 + self.config.layers) * self.config.hidden

    def prepare(self, queries: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Build the vocabulary, and initialise embeddings with the mean features of words whose rows are known."""
        looked = list(queries)
        self.known.learn(text for text, _ in looked)
        sums: dict[int, NDArray[np.float64]] = {}
        seen: dict[int, int] = {}
        for text, rows in looked:
            words = caption_words(text)
            if words and len(words) == len(rows):
                for entry, row in zip(self.known(word_ids([text], len(words)))[0].tolist(), rows, strict=True):
                    sums[entry], seen[entry] = sums.get(entry, 0.0) + row.astype(np.float64), seen.get(entry, 0) + 1
        with torch.no_grad():
            for table in (self.localiser.words.weight, self.captioner.words.weight):
                for entry, total in sums.items():
                    table[entry] = torch.from_numpy((total / seen[entry]).astype(np.float32))

    def phase_at(self, step: int, epoch: int) -> Phase:
        """First the captioner alone; then the localiser alone in every fifth epoch, and both in the others."""
        later = epoch - self.config.pretrain
        if later < 0:
            return Phase("caption", {"localiser": 0.0, "localiser.refine": 0.0})
        if int(later) % self.config.every == 0:
            return Phase("localise", {"captioner": 0.0})
        return Phase("both", {"localiser": 0.1, "localiser.refine": 1.0})

    def encode_words(self, words: Words) -> Encodings:
        """The localiser's encoding of the words, and their entries in the vocabulary."""
        if words.ids is None:
            raise MomentseekError("the batch has no words, and WSSL reads them; give the queries' texts")
        entries = self.known(words.ids)
        read = marked_sentences(entries) if self.official else entries
        return {"entries": entries, **self.localiser.encode_sentence(read)}

    def encode_clips(self, clips: Clips) -> Encodings:
        """The encodings of videos by the localiser and by the captioner."""
        return {"clips": self.captioner.clips(clips), "mask": clips.mask, **self.localiser.encode_video(clips)}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Return 0 for every video: the localiser only learns within videos."""
        return queries["said_last"].new_zeros(len(queries["said_last"]), len(videos["mask"]))

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The refined anchors; the score is the log-probability of an anchor."""
        scores, refinement = self.localiser(queries, videos, videos["mask"])
        start, end = refined_segments(refinement).unbind(-1)
        return start, end, scores.log_softmax(1)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The loss of the current phase, from queries and their videos, without the pairs' moments."""
        pairs = batch.pairs
        queries = take_rows(self.encode_words(batch.words), pairs.query)
        videos = take_rows(self.encode_clips(batch.clips), pairs.video)
        words, mask = queries["entries"], videos["mask"]
        if self.phase.name == "localise":
            some = slice(0, self.config.explained)
            part = ({k: v[some] for k, v in queries.items()}, {k: v[some] for k, v in videos.items()})
            return {"anchor": F.cross_entropy(self.localiser(*part, mask[some])[0], self.best_anchors(*part))}
        seen = self.captioner.look(videos["clips"])
        if self.phase.name == "caption":
            whole = torch.tensor([0.0, 1.0], device=mask.device).expand(len(words), 2)
            return {"caption": -self.captioner.likelihood(*self.captioner.begin(seen, whole, mask), words)[0].mean()}
        tried = self.disturb(self.segment(queries, videos), rng)
        chance, likeliest = self.captioner.likelihood(*self.captioner.begin(seen, tried, mask), words)
        if self.official:
            likeliest = torch.cat([torch.full_like(likeliest[:, :1], BEGIN), likeliest], 1)
        again = self.segment(self.localiser.encode_sentence(likeliest), videos)
        return {
            "caption": -chance.mean(),
            "consistency": self.config.consistency
            * (_centre_width(again) - _centre_width(tried).detach()).square().mean(),
        }

    def segment(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, 2): the refined anchor with the best score."""
        scores, refinement = self.localiser(queries, videos, videos["mask"])
        every = refined_segments(refinement, self.config.centred, cut=not self.official)
        return every[torch.arange(len(every), device=every.device), scores.argmax(1)]

    def disturb(self, segment: Tensor, rng: torch.Generator) -> Tensor:
        """(n, 2): segments with a little noise at their ends, and cut; or at centre and width (``circle``)."""
        lots = torch.rand(segment.shape, generator=rng, device=rng.device).to(segment.device)
        noise = self.config.noise * (2 * lots - 1)
        if not self.official:
            return (segment + noise).clamp(0, LAST)
        centre, width = (_centre_width(segment) + noise).unbind(-1)
        return torch.stack([centre - width / 2, centre + width / 2], -1)

    @torch.no_grad()
    def best_anchors(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n,): the anchor whose caption by the current captioner is most similar to the query."""
        words, mask = queries["entries"], videos["mask"]
        count, anchors = len(words), words.new_tensor(ANCHORS, dtype=torch.float32)
        ends = torch.stack([anchors[:, 0] - anchors[:, 1] / 2, anchors[:, 0] + anchors[:, 1] / 2], 1).clamp(0, LAST)
        rows = torch.arange(count, device=words.device).repeat_interleave(len(ANCHORS))
        look = self.captioner.look(videos["clips"])
        begun = self.captioner.begin((look[0][rows], look[1][rows]), ends.repeat(count, 1), mask[rows])
        if self.config.reward == "likelihood":
            likeness = self.captioner.likelihood(*begun, words[rows])[0]
        else:
            written = self.captioner.write(*begun, self.config.max_words)
            likeness = torch.tensor([_likeness(w, q) for w, q in zip(written, words[rows], strict=True)])
        return likeness.view(count, len(ANCHORS)).argmax(1).to(words.device)


def _centre_width(segment: Tensor) -> Tensor:
    start, end = segment.unbind(-1)
    return torch.stack([(start + end) / 2, end - start], -1)


def _likeness(written: Tensor, query: Tensor) -> float:
    """ROUGE-L of a caption and a query, both as entries of the vocabulary."""
    one, two = ([str(entry) for entry in row.tolist() if entry != PADDING] for row in (written, query))
    return rouge_l_score(one or [""], [two])


register(
    "wssl", WsslConfig, Wssl, "WSSL: segments from captions alone, by a localiser and a captioner that agree", format=2
)
