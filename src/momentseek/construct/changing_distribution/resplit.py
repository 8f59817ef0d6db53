"""Re-splitting a dataset so that test moments lie where training moments do not (Charades-CD, ActivityNet-CD).

Lan et al., A Closer Look at Debiased Temporal Sentence Grounding in Videos (TOMM 2023), §3.2.1. The authors published
files but no code, and the text leaves choices open; every choice is a parameter of ``Recipe`` here. The presets
``charades-cd`` and ``activitynet-cd`` reproduce the published out-of-distribution sets, ``paper`` reads the text
literally (docs/resplitting.md says where the two differ).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from momentseek.construct.changing_distribution.merging import locations, select_pairs, swap_reversed
from momentseek.construct.decisions import Decision
from momentseek.errors import MomentseekError
from momentseek.moments import Judgements
from momentseek.moments.arrays import BoolArray, IntArray
from momentseek.moments.density import SparsestPoints, sparsest_points, whiten
from momentseek.tables import count

SPLIT_NAMES = ("train", "val", "test_iid", "test_ood")


@dataclass(frozen=True, slots=True)
class Recipe:
    """All choices that decide which video goes into which split."""

    bandwidth: float | Literal["scott"] = "scott"
    """Bandwidth of the Gaussian kernel over (start, end) as shares of the video, equal in all directions; or Scott's
    rule with the points' covariance, as in ``scipy.stats.gaussian_kde``."""
    share: float = 0.2
    """Share of the pairs that are rare: the ``int(share · pairs)`` pairs of the lowest density."""
    ties: Literal["ood", "train"] = "ood"
    """The split for videos of which exactly half of the pairs are rare."""
    long_moments: float | None = None
    """A video with a moment of at least this share of its length stays out of test-ood."""
    long_strict: bool = False
    """Whether ``long_moments`` means longer than that share, and not as long."""
    swap: bool = False
    """Whether to swap the times of moments that end before they start, as Charades-CD did with four of them."""
    clip: bool = False
    """Whether to move times into the video before measuring; the splits keep them as they are."""
    val_share: float = 0.05
    """Videos of the validation split, drawn from those not out of distribution, as a share of all (rounded down)."""
    iid_share: float = 0.05
    """Videos of the iid test split, drawn from those not out of distribution, as a share of all (rounded down)."""
    seed: int = 0


RECIPES: dict[str, Recipe] = {
    "charades-cd": Recipe(bandwidth=0.034, swap=True),
    "activitynet-cd": Recipe(bandwidth=0.0013, share=0.4, long_moments=0.5),
    "paper": Recipe(),
}


@dataclass(frozen=True, eq=False)
class Resplit:
    """The four splits, why each video is where it is, and how clear the cut between rare and common was."""

    recipe: Recipe
    splits: Mapping[str, Judgements]
    decisions: tuple[Decision, ...]
    cut: SparsestPoints

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """The numbers of videos and pairs of each split."""
        return {name: (len(split.videos), len(split)) for name, split in self.splits.items()}


def resplit(pairs: Judgements, recipe: Recipe) -> Resplit:
    """Split ``pairs`` (one moment per query, durations known; see ``merge_truths``) by how common their locations are.

    1. The ``int(share · N)`` pairs of lowest density are rare.
    2. A video whose pairs are rare by half or more (``ties``) is test-ood, unless it has a long moment.
    3. Of the others, val and test-iid are drawn at random; the rest is train.

    >>> ids = [f"v{i}:{j}" for i in range(40) for j in range(2)]
    >>> start = [0.0] * 78 + [40.0] * 2
    >>> pairs = Judgements.from_groups(ids, [1] * 80, [q.split(":")[0] for q in ids], start, [s + 9 for s in start],
    ...                                durations={f"v{i}": 60.0 for i in range(40)})
    >>> done = resplit(pairs, Recipe(bandwidth=0.05, share=0.03))
    >>> done.sizes, done.splits["test_ood"].videos
    ({'train': (35, 70), 'val': (2, 4), 'test_iid': (2, 4), 'test_ood': (1, 2)}, ('v39',))
    """
    pairs = swap_reversed(pairs) if recipe.swap else pairs
    places = locations(pairs, recipe.clip)
    rare_pairs = int(recipe.share * len(places))
    if rare_pairs < 1 or rare_pairs >= len(places):
        raise MomentseekError(
            f"a share of {recipe.share:g} makes {rare_pairs or 'none'} of {count(len(places), 'pair')} rare: "
            f"nothing to set apart; {'raise' if rare_pairs < 1 else 'lower'} `share`, or give more pairs"
        )
    plane, bandwidth = whiten(places) if recipe.bandwidth == "scott" else (places, recipe.bandwidth)
    cut = sparsest_points(plane, rare_pairs, bandwidth)
    total = np.bincount(pairs.video, minlength=len(pairs.videos))
    rare = np.bincount(pairs.video[cut.chosen], minlength=len(pairs.videos))
    majority = 2 * rare >= total if recipe.ties == "ood" else 2 * rare > total
    length = places[:, 1] - places[:, 0]
    longest = np.full(len(pairs.videos), -np.inf)
    np.maximum.at(longest, pairs.video, length)
    long = np.zeros(len(longest), dtype=bool)
    if recipe.long_moments is not None:
        long = longest > recipe.long_moments if recipe.long_strict else longest >= recipe.long_moments
    home = _draw(pairs.videos, majority & ~long, recipe)
    splits = {name: select_pairs(pairs, home[pairs.video] == i) for i, name in enumerate(SPLIT_NAMES)}
    decisions = tuple(
        Decision(video, SPLIT_NAMES[h], _reason(h, m, recipe), {"pairs": n, "rare": r, "longest": round(x, 4)})
        for video, h, m, n, r, x in zip(
            pairs.videos, home.tolist(), majority.tolist(), total.tolist(), rare.tolist(), longest.tolist(), strict=True
        )
    )
    return Resplit(recipe, splits, decisions, cut)


def _draw(videos: tuple[str, ...], ood: BoolArray, recipe: Recipe) -> IntArray:
    """Every video's split, as its place in ``SPLIT_NAMES``; what is drawn depends on the names and the seed alone."""
    others = sorted(np.flatnonzero(~ood).tolist(), key=videos.__getitem__)
    val, iid = int(recipe.val_share * len(videos)), int(recipe.iid_share * len(videos))
    sizes = {"test_ood": len(videos) - len(others), "val": val, "test_iid": iid, "train": len(others) - val - iid}
    remedy = {
        "test_ood": "raise `share` or the bound of `long_moments`",
        "val": "raise `val_share`",
        "test_iid": "raise `iid_share`",
        "train": "lower `share`, `val_share` or `iid_share`",
    }
    for name, size in sizes.items():
        if size < 1:
            raise MomentseekError(f"{name} would have none of {count(len(videos), 'video')}; {remedy[name]}")
    home = np.where(ood, SPLIT_NAMES.index("test_ood"), SPLIT_NAMES.index("train"))
    drawn = np.random.default_rng(recipe.seed).permutation(len(others))
    order = np.array(others)[drawn]
    home[order[:val]] = SPLIT_NAMES.index("val")
    home[order[val : val + iid]] = SPLIT_NAMES.index("test_iid")
    return home


def _reason(home: int, majority: bool, recipe: Recipe) -> str:
    if SPLIT_NAMES[home] == "test_ood":
        return "half or more of its pairs are rare" if recipe.ties == "ood" else "most of its pairs are rare"
    why = "it has a long moment" if majority else "most of its pairs are common"
    return f"{why}; {'the rest after drawing' if SPLIT_NAMES[home] == 'train' else 'drawn'}"
