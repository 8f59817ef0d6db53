"""Set prediction: match predicted windows to true ones, and compute their losses (Moment-DETR, section 4.2).

Windows are (centre, width) as shares of a video; class 0 is a moment and class 1 the background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from momentseek.core.errors import optional_module
from momentseek.models.batch import BatchPairs
from momentseek.models.layers.spans import inside

Matching = list[tuple[Tensor, Tensor]]
"""For each sample, the matched predictions, and the true window of each."""


@dataclass(frozen=True, eq=False)
class WindowSamples:
    """Training samples of set prediction: pairs of a query and a video with all their true windows."""

    query: Tensor
    """(samples,), rows of the batch's words."""
    video: Tensor
    """(samples,), rows of the batch's clips."""
    times: Sequence[Tensor]
    """(windows, 2) of each sample: starts and ends as shares of the video."""
    clips: Sequence[Tensor]
    """(windows, 2) of each sample: first and last clip, included."""


def window_samples(pairs: BatchPairs, most: int, rng: torch.Generator) -> WindowSamples:
    """Build the samples of a batch; if a sample has more than ``most`` windows, that many are drawn."""
    assert pairs.times is not None, "windows are shares of the video"
    both = torch.stack([pairs.query, pairs.video], 1)
    samples, place = both.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
    clips = torch.stack([pairs.start, pairs.end], 1)
    chosen = []
    for sample in range(len(samples)):
        rows = (place == sample).nonzero()[:, 0]
        if len(rows) > most:
            rows = rows[torch.randperm(len(rows), generator=rng)[:most].to(rows.device)]
        chosen.append(rows)
    return WindowSamples(
        samples[:, 0], samples[:, 1], [pairs.times[rows] for rows in chosen], [clips[rows] for rows in chosen]
    )


def centre_width(times: Tensor) -> Tensor:
    """(…, 2) starts and ends -> centres and widths.

    >>> centre_width(torch.tensor([0.25, 0.75])).tolist()
    [0.5, 0.5]
    """
    start, end = times.unbind(-1)
    return torch.stack([(start + end) / 2, end - start], -1)


def start_end(spans: Tensor) -> Tensor:
    """(…, 2) centres and widths -> starts and ends."""
    centre, width = spans.unbind(-1)
    return torch.stack([centre - width / 2, centre + width / 2], -1)


def generalised_iou(one: Tensor, two: Tensor) -> Tensor:
    """``IoU - (hull - union) / hull`` of windows given by starts and ends, (…, 2) each (Rezatofighi et al. 2019).

    >>> generalised_iou(torch.tensor([0.0, 1.0]), torch.tensor([3.0, 4.0])).item()
    -0.5
    """
    common = (torch.minimum(one[..., 1], two[..., 1]) - torch.maximum(one[..., 0], two[..., 0])).clamp(min=0)
    union = (one[..., 1] - one[..., 0]) + (two[..., 1] - two[..., 0]) - common
    hull = (torch.maximum(one[..., 1], two[..., 1]) - torch.minimum(one[..., 0], two[..., 0])).clamp(min=0)
    return common / union - (hull - union) / hull


def best_matching(cost: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns of the assignment with the least cost (Hungarian method), sorted by row.

    >>> [x.tolist() for x in best_matching(torch.tensor([[1.0, 5.0], [2.0, 9.0], [7.0, 0.0]]))]
    [[0, 2], [0, 1]]
    """
    solve = optional_module("scipy.optimize", "train").linear_sum_assignment
    rows, columns = solve(cost.detach().cpu().numpy())
    return torch.as_tensor(rows, device=cost.device), torch.as_tensor(columns, device=cost.device)


def clip_log_probabilities(spans: Tensor) -> Tensor:
    """(…, 2 · clips) logits -> (…, 2, clips): log-probabilities of first and last clips."""
    return spans.view(*spans.shape[:-1], 2, -1).log_softmax(-1)


def match_cost(logits: Tensor, spans: Tensor, wanted: Tensor, weights: tuple[float, float, float]) -> Tensor:
    """(predictions, windows): the costs ``a |Δ| - b gIoU - c p`` of one sample; ``weights`` are a, b and c.

    If ``spans`` are logits of clips, ``wanted`` are first and last clips, and it is ``-a (p_first + p_last) - c p``.
    """
    of_span, of_iou, of_class = weights
    moment = logits.softmax(-1)[:, :1]
    if spans.shape[-1] > 2:
        odds = clip_log_probabilities(spans).exp()
        return -of_span * (odds[:, 0, wanted[:, 0]] + odds[:, 1, wanted[:, 1]]) - of_class * moment
    distance = (spans[:, None] - wanted).abs().sum(-1)
    near = generalised_iou(start_end(spans)[:, None], start_end(wanted))
    return of_span * distance - of_iou * near - of_class * moment


def set_losses(
    logits: Tensor, spans: Tensor, wanted: Sequence[Tensor], found: Matching, background: float
) -> dict[str, Tensor]:
    """The losses ``span``, ``giou`` and ``label``, from logits (n, predictions, 2) and spans (n, predictions, …).

    The label's cross-entropy is averaged over all predictions; those of the background have weight ``background``.
    """
    chosen = torch.cat([spans[i, rows] for i, (rows, _) in enumerate(found)])
    right = torch.cat([wanted[i][columns] for i, (_, columns) in enumerate(found)])
    if spans.shape[-1] > 2:
        parts = -clip_log_probabilities(chosen).gather(2, right[..., None])[..., 0]
        span, giou = parts.mean(), parts.new_zeros(())
    else:
        span = (chosen - right).abs().mean()
        giou = (1 - generalised_iou(start_end(chosen), start_end(right))).mean()
    kind = torch.ones(logits.shape[:2], dtype=torch.long, device=logits.device)
    for i, (rows, _) in enumerate(found):
        kind[i, rows] = 0
    weight = torch.tensor([1.0, background], dtype=logits.dtype, device=logits.device)
    label = F.cross_entropy(logits.transpose(1, 2), kind, weight, reduction="none").mean()
    return {"span": span, "giou": giou, "label": label}


@dataclass(frozen=True, eq=False)
class SaliencyTargets:
    """Targets of the saliency of each sample's clips: pairs of clips to rank, and ratings."""

    above: Tensor
    """(samples, pairs), clips that should score above those of ``below``."""
    below: Tensor
    """(samples, pairs), clips that should score below those of ``above``."""
    ratings: Tensor
    """(samples, clips), the sum of the annotators' ratings; without ratings, 1 inside the windows and 0 outside."""


def saliency_targets(
    pairs: BatchPairs, samples: WindowSamples, mask: Tensor, rng: torch.Generator, *, public: bool = False
) -> SaliencyTargets:
    """Choose clips to compare: the best and the worst inside the windows, and one inside and one outside of them.

    Without ratings, it compares two inside with two outside. If no clip is outside, the best and the worst are compared
    twice, or a clip with itself. Of equally rated clips the first is the best, or the last as in the ``public`` code.
    """
    rated = pairs.ratings
    first = pairs.start if rated is not None else torch.minimum(pairs.start, pairs.end)
    every, both = inside(first, pairs.end, mask.shape[1]), zip(samples.query, samples.video, strict=True)
    within = torch.stack([every[(pairs.query == q) & (pairs.video == v)].any(0) for q, v in both]) & mask
    within[~within.any(1), 0] = True
    outside = mask & ~within
    known = within.float() if rated is None else rated[samples.query].sum(2)
    known = F.pad(known, (0, max(0, mask.shape[1] - known.shape[1])))[:, : mask.shape[1]]
    count = 2 if rated is None else 1
    none = ~outside.any(1, keepdim=True)
    one, other = draw_clips(within, count, rng), draw_clips(outside | none, count, rng)
    if rated is None:
        return SaliencyTargets(one, torch.where(none, one, other), known)
    above = known.masked_fill(~within, -torch.inf)
    best = mask.shape[1] - 1 - above.flip(1).argmax(1, keepdim=True) if public else above.argmax(1, keepdim=True)
    worst = known.masked_fill(~within, torch.inf).argmin(1, keepdim=True)
    one, other = torch.where(none, best, one), torch.where(none, worst, other)
    return SaliencyTargets(torch.cat([best, one], 1), torch.cat([worst, other], 1), known)


def draw_clips(allowed: Tensor, count: int, rng: torch.Generator) -> Tensor:
    """(n, count): columns of each row, drawn with replacement among the allowed ones."""
    return torch.multinomial(allowed.float().cpu(), count, replacement=True, generator=rng).to(allowed.device)


def saliency_margin(scores: Tensor, targets: SaliencyTargets, margin: float) -> Tensor:
    """Twice the mean of ``max(0, margin + s_below - s_above)`` (Moment-DETR, equation 4: a sum over two pairs)."""
    above, below = scores.gather(1, targets.above), scores.gather(1, targets.below)
    return 2 * (margin + below - above).relu().mean()
