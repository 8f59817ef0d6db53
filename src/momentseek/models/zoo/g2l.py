"""G2L: MMN whose positives include moments that are near the true one by geodesic distance.

Moments near the true one by geodesic distance are positives, and wrong moments near it are harder negatives. A
game-theoretic term aligns a few moments and sentences of each video (Li et al., ICCV 2023). The network is MMN's. The
public code contradicts the paper's definitions in several places. The default follows the definitions, and
``as=official`` follows the code (docs/models.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.functional import normalize

from momentseek.models.batch import Batch, BatchPairs, Encodings
from momentseek.models.layers.moment_map import overlap
from momentseek.models.model import above_nothing, at_least
from momentseek.models.registry import register
from momentseek.models.zoo.mmn import LATE_MATCHING_FACTOR, OVERLAP_SHARPNESS, Mmn, MmnConfig, mutual_matching
from momentseek.models.zoo.tan2d import overlap_loss


@torch.no_grad()
def geodesic_similarity(features: Tensor, sources: Tensor, neighbours: int = 5, reach: float = 0.5) -> Tensor:
    """(sources, cells): 1 minus the length of the shortest path from each source cell, 0 for paths beyond ``reach``.

    Each cell has an edge to its nearest ``neighbours`` by Euclidean distance of ``features`` (cells, d). The length of
    an edge i → j is ``1 - cos(i, j)``, in single precision as in the public code. Paths carry no gradient.

    >>> line = torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 1.0]])
    >>> [round(x, 3) for x in geodesic_similarity(line, torch.tensor([0]), neighbours=1)[0].tolist()]
    [1.0, 0.995, 0.0]
    """
    count = min(neighbours, len(features) - 1)
    if not count:
        return torch.ones(len(sources), len(features), device=features.device)
    far = torch.cdist(features, features)
    near = far.fill_diagonal_(torch.inf).topk(count, dim=1, largest=False).indices
    unit = normalize(features, dim=1)
    length = (1 - torch.einsum("id,ikd->ik", unit, unit[near])).clamp(min=0).float().to(features.dtype)
    best = torch.full((len(sources), len(features)), torch.inf, device=features.device, dtype=features.dtype)
    best[torch.arange(len(sources)), sources] = 0
    target = near.flatten().expand(len(sources), -1)
    for _ in range(len(features)):  # each round adds an edge to paths, until none gets shorter
        step = (best[:, :, None] + length).flatten(1)
        shorter = best.scatter_reduce(1, target, step, "amin")
        if torch.equal(shorter, best):
            break
        best = shorter
    return torch.where(best <= reach, 1 - best, torch.zeros_like(best))


def coalition_value(similarity: Tensor, cells: Tensor, sentences: Tensor) -> Tensor:
    """(coalitions,): the value of coalitions of cells and sentences, from similarities (sentences, cells).

    It is half the sum of two means: of the sentences' best softmax over cells, and of the cells' best softmax over
    sentences. ``cells`` (coalitions, cells) and ``sentences`` (coalitions, sentences) are the members. An empty
    coalition has the value 0.
    """
    plays = sentences[:, :, None] & cells[:, None]
    table = similarity.expand(plays.shape).masked_fill(~plays, -torch.inf)
    total = similarity.new_zeros(len(plays))
    for axis, players in ((2, sentences), (1, cells)):
        best = table.amax(axis) - table.logsumexp(axis)
        best = torch.where(players & plays.any(axis), best.exp(), torch.zeros_like(best))
        total = total + best.sum(1) / players.sum(1).clamp(min=1)
    return torch.where(plays.flatten(1).any(1), total / 2, torch.zeros_like(total))


@torch.no_grad()
def interactions(similarity: Tensor) -> Tensor:
    """(sentences, cells): f(all) − f(without the cell) − f(without the sentence) + f(without both)."""
    count, cells = similarity.shape
    row, column = torch.meshgrid(torch.arange(count), torch.arange(cells), indexing="ij")
    row, column = (x.flatten().to(similarity.device) for x in (row, column))
    every = torch.ones(len(row), cells, dtype=torch.bool, device=similarity.device)
    some = every.clone()
    some[torch.arange(len(row)), column] = False
    all_said = torch.ones(len(row), count, dtype=torch.bool, device=similarity.device)
    less_said = all_said.clone()
    less_said[torch.arange(len(row)), row] = False
    value = [coalition_value(similarity, c, s) for c, s in ((every, all_said), (some, all_said), (every, less_said),
                                                            (some, less_said))]  # fmt: skip
    return (value[0] - value[1] - value[2] + value[3]).view(count, cells)


def interaction_loss(similarity: Tensor) -> Tensor:
    """``-sum φ_ij log a_ij`` with the positive interactions φ, scaled to sum to 1, and the softmax a over cells."""
    label = interactions(similarity).clamp(min=0)
    return -(label / label.sum().clamp(min=1e-9) * similarity.log_softmax(1)).sum()


@dataclass(frozen=True, kw_only=True)
class G2lConfig(MmnConfig):
    """G2L's settings; weights are those of its published configuration, for ActivityNet Captions."""

    contrast: float = 0.1
    """Weight of the contrastive terms: moments to queries, and the two below."""
    margin: float = 0.3
    hard: float = 1.0
    """Weight, times ``contrast``, of the term from queries to moments with hard negatives."""
    plain: float = 0.0
    """Weight, times ``contrast``, of that term with plain negatives; 0 in the published configuration."""
    interaction: float = 5e-4
    """Weight of the game-theoretic interaction of moments and sentences."""
    neighbours: int = 5
    """Number of nearest neighbours of a moment, and of positive moments of a query."""
    reach: float = 0.5
    """Maximum geodesic distance of near moments."""
    players: int = 7
    """Number of moments per query in the game, chosen by geodesic distance and again by similarity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 0, "hard", "plain", "interaction")
        at_least(self, 1, "neighbours", "players")
        above_nothing(self, "reach")


class G2l(Mmn):
    """MMN's network with geodesic and game-theoretic losses."""

    tower_layers: ClassVar[int] = 2
    config: G2lConfig

    def terms(self, batch: Batch, words: Encodings, clips: Encodings, epoch: int) -> dict[str, Tensor]:
        """The overlap's cross-entropy, three contrastive terms, and the interaction."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "the map's targets are overlaps in time"
        iou = overlap(self.cells, pairs.times)
        cosine = torch.einsum("pd,pcd->pc", words["overlap"][pairs.query], clips["overlap"][pairs.video])
        late = LATE_MATCHING_FACTOR if 0 < config.only_overlap_after <= epoch else 1.0
        negative = self.negatives(batch)[0]
        matching = mutual_matching(
            words["match"], clips["match"], pairs, iou, negative, temperature=config.temperature, margin=config.margin,
            negative_overlap=config.negative_overlap, query_overlap=config.query_overlap, positives=config.positives,
            to_moments=False,
        )  # fmt: skip
        terms = {
            "overlap": overlap_loss(OVERLAP_SHARPNESS * cosine, iou, pairs.weight, config),
            "matching": late * config.contrast * matching,
        }
        near = self.geodesics(clips["raw"], pairs.video, iou.argmax(1))
        if config.follow == "official":
            return {
                name: late * term for name, term in self.official_terms(pairs, words, clips, iou, near).items()
            } | terms
        every = torch.einsum("pd,vcd->pvc", words["match"][pairs.query], clips["match"])
        own = every[torch.arange(len(iou), device=iou.device), pairs.video]
        kept = negative[pairs.query]
        for name, weight in (("hard", config.hard), ("plain", config.plain)):
            if weight:
                best = clips["match"][pairs.video, iou.argmax(1)] if name == "hard" else None
                beside = None if best is None else torch.einsum("pd,pcd->pc", best, clips["match"][pairs.video])
                value = geodesic_contrast(
                    own, every.masked_fill(~kept[..., None], -torch.inf), near, iou < config.negative_overlap, beside,
                    config.neighbours, config.temperature,
                )  # fmt: skip
                weights = pairs.weight / pairs.weight.sum().clamp(min=1e-6)
                terms[name] = late * config.contrast * weight * (value * weights).sum()
        if config.interaction:
            terms["interaction"] = late * config.interaction * self.game(own, near, pairs.video)
        return terms

    def official_terms(
        self, pairs: BatchPairs, words: Encodings, clips: Encodings, iou: Tensor, near: Tensor
    ) -> dict[str, Tensor]:
        """Contrasts and game as the public code has them: for each video, with its sentences and all other videos."""
        config, order = self.config, self.cells.row_major
        values: dict[str, list[Tensor]] = {"hard": [], "plain": [], "interaction": []}
        for v in pairs.video.unique().tolist():  # type: ignore[no-untyped-call]
            here = (pairs.video == v).nonzero()[:, 0]
            sentences, moments = words["match"][pairs.query[here]], clips["match"][v][order]
            others = torch.cat([clips["match"][:v], clips["match"][v + 1 :]]).flatten(0, 1)
            right, close = iou[here][:, order], near[here][:, order]
            found = official_contrasts(
                sentences, moments, others, right, close, config.negative_overlap, config.neighbours, config.temperature
            )
            values["hard"].append(found[0])
            values["plain"].append(found[1])
            count = min(config.players, len(moments))
            chosen = torch.cat([x.topk(count, dim=1).indices for x in (close, sentences @ moments.T)], 1).flatten()
            values["interaction"].append(-official_interaction(sentences, moments[chosen]))
        hard, plain = (torch.cat(values[name]) for name in ("hard", "plain"))
        terms = {
            "hard": config.contrast * config.hard * hard.mean(),
            "plain": config.contrast * config.plain * plain.mean(),
        }
        terms = {name: term for name, term in terms.items() if getattr(config, name)}
        return {**terms, "interaction": config.interaction * torch.stack(values["interaction"]).sum()}

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms of the loss; geodesic distances use moments before they are normalised to length 1."""
        raw, around, mask = self.spaces(batch.clips)
        clips = {"raw": raw, "match": F.normalize(raw, dim=2), "overlap": F.normalize(around, dim=2), "mask": mask}
        return self.terms(batch, self.encode_words(batch.words), clips, epoch)

    def geodesics(self, raw: Tensor, video: Tensor, source: Tensor) -> Tensor:
        """(pairs, cells): the geodesic similarity of each moment of a pair's video to its best one."""
        found = torch.zeros(len(video), raw.shape[1], device=raw.device, dtype=raw.dtype)
        for v in video.unique().tolist():  # type: ignore[no-untyped-call]
            here = (video == v).nonzero()[:, 0]
            found[here] = geodesic_similarity(raw[v].detach(), source[here], self.config.neighbours, self.config.reach)
        return found

    def game(self, own: Tensor, near: Tensor, video: Tensor) -> Tensor:
        """The interaction loss of sentences and chosen moments, averaged over videos."""
        count = min(self.config.players, own.shape[1])
        values = []
        for v in video.unique().tolist():  # type: ignore[no-untyped-call]
            here = (video == v).nonzero()[:, 0]
            chosen = [x[here].topk(count, dim=1).indices.flatten() for x in (near, own.detach())]
            players = torch.cat(chosen).unique()  # type: ignore[no-untyped-call]
            values.append(interaction_loss(own[here][:, players] / self.config.temperature))
        return torch.stack(values).mean()


def geodesic_contrast(
    own: Tensor, others: Tensor, near: Tensor, wrong: Tensor, beside: Tensor | None, neighbours: int, temperature: float
) -> Tensor:
    """(pairs,): minus the logarithms of the probabilities of a query's nearest moments, weighed by their nearness.

    ``own`` (pairs, cells) are the query's cosines with its video's moments, of which those where ``wrong`` are
    negatives; ``others`` (pairs, videos, cells) those with other videos', minus infinity where they are none. With
    ``beside``, the cosines of the best moment with its video's, negatives are hard: one near the best counts (1 + g)
    exp(cos) times, and of other videos' moments only those count that are above their mean.
    """
    extra = torch.zeros_like(own) if beside is None else (torch.log1p(near) + beside).detach()
    mine = (own / temperature + extra).masked_fill(~wrong, -torch.inf)
    rest = others.flatten(1)
    if beside is not None:
        there = rest > -torch.inf
        mean = rest.masked_fill(~there, 0).sum(1, keepdim=True) / there.sum(1, keepdim=True).clamp(min=1)
        rest = rest.masked_fill(rest <= mean, -torch.inf)
    floor = torch.full_like(own[:, :1], -1e4)  # without any negative the sum is empty; this adds nothing
    negatives = torch.cat([mine, rest / temperature, floor], 1).logsumexp(1, keepdim=True)
    weight, place = near.topk(min(neighbours, near.shape[1]), dim=1)
    right = own.gather(1, place) / temperature
    each = torch.logaddexp(right, negatives) - right
    return (each * weight).sum(1) / weight.sum(1).clamp(min=1e-6)


def official_contrasts(
    sentences: Tensor, moments: Tensor, others: Tensor, iou: Tensor, near: Tensor, low: float, neighbours: int,
    temperature: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(sentences, neighbours) twice: the public code's contrasts of a video's sentences, with hard and plain negatives.

    Of unit vectors (sentences, d), the video's ``moments`` (cells, d) and other videos' (cells, d). Logits are
    ``exp(cos)``, which the softmax exponentiates again; what a mask leaves out stays as exp(0); and other videos'
    cosines are multiplied by how near they are to the best moment, or by a thousand times their softmax.
    """
    own, rest = sentences @ moments.T, sentences @ others.T
    weight, place = near.topk(min(neighbours, near.shape[1]), dim=1)
    right = own.exp().gather(1, place) * weight
    wrong = (iou < low).to(own)
    best = moments[iou.argmax(1)]
    closeness = near.masked_fill(near == 1, 0.0) + 1
    share, across = 1000 * rest.softmax(1), best @ others.T
    mixed = (share > share.mean()) * across + (across > across.mean()) * share
    found = []
    for same, other in ((own.exp() * closeness * (best @ moments.T).exp() * wrong, rest * mixed),
                        (own.exp() * wrong, rest)):  # fmt: skip
        total = (torch.cat([right, same, other], 1) / temperature).exp().sum(1, keepdim=True)
        found.append((total + 1e-6).log() - right / temperature)
    return found[0], found[1]


def official_interaction(sentences: Tensor, moments: Tensor) -> Tensor:
    """The public code's game of unit vectors (n, d) and (m, d): ``-n / m Σ φ_k log a_k``.

    φ is f(all) − f(∖i) + f(∖j) − f(∖ij) of moment i and sentence j, brought to length 1; f the mean of the best entries
    of the rows and of the columns of one softmax over moments; who does not play is a vector of −1e9. The φ are counted
    moment by moment and the softmax a sentence by sentence, so that they do not belong together.
    """
    n, m, d = len(sentences), len(moments), sentences.shape[1]
    table = sentences @ moments.T
    no_moment, no_sentence = -1e9 * sentences.sum(1), -1e9 * moments.sum(1)
    without_i = torch.eye(m, dtype=torch.bool, device=table.device)[
        :, None, None, :
    ]  # moment i, sentence j, row, column
    without_j = torch.eye(n, dtype=torch.bool, device=table.device)[None, :, :, None]
    less_i = torch.where(without_i, no_moment[:, None], table)
    less_j = torch.where(without_j, no_sentence, table)
    less_both = torch.where(without_j & without_i, 1e18 * d, torch.where(without_j, no_sentence, less_i))
    value = [_best_mean(x) for x in (table, less_i, less_j, less_both)]
    label = normalize((value[0] - value[1] + value[2] - value[3]).flatten(), dim=0)
    return -(label * table.log_softmax(1).flatten()).sum() / m * n


def _best_mean(tables: Tensor) -> Tensor:
    """Half the sum of the means of each row's and of each column's best entry, of tables (…, rows, columns)."""
    share = tables.softmax(-1)
    return (share.amax(-2).mean(-1) + share.amax(-1).mean(-1)) / 2


register("g2l", G2lConfig, G2l, "G2L: MMN with moments near the true one along the video's manifold as positives")
