"""Re-split a dataset so that test moments are where training moments are rare (Charades-CD, ActivityNet-CD).

Lan et al., A Closer Look at Debiased Temporal Sentence Grounding in Videos (TOMM 2023), §3.2.1. The authors published
files but no code, and the text leaves choices open; here, every choice is a parameter of ``Recipe``. The presets
``charades-cd`` and ``activitynet-cd`` reproduce the published out-of-distribution sets; ``paper`` follows the text
literally (docs/datasets.md explains where the two differ).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from momentseek.benchmarks.datasets.common import BuiltDataset, Decision, as_json_lines, tally
from momentseek.benchmarks.datasets.pairs import (
    count_repeated_pairs,
    locations,
    merge_truths,
    select_pairs,
    swap_reversed,
)
from momentseek.benchmarks.datasets.resplit_figures import draw_resplit
from momentseek.benchmarks.density import SparsestPoints, sparsest_points, whiten
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, IntArray
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.reports import count, text_table
from momentseek.measuring.formats import FORMATS, read_corpus, read_truth
from momentseek.measuring.formats.document import open_document
from momentseek.measuring.formats.files import choose, read_document
from momentseek.measuring.formats.registry import Reading

SPLIT_NAMES = ("train", "val", "test_iid", "test_ood")


@dataclass(frozen=True, slots=True)
class Recipe:
    """All choices that decide which video goes into which split."""

    bandwidth: float | Literal["scott"] = "scott"
    """Bandwidth of the Gaussian kernel over (start, end) as fractions of the video, equal in all directions; or
    Scott's rule with the points' covariance, as in ``scipy.stats.gaussian_kde``."""
    share: float = 0.2
    """Share of the pairs that are rare: the ``int(share · pairs)`` pairs with the lowest density."""
    ties: Literal["ood", "train"] = "ood"
    """The split for videos with exactly half of their pairs rare."""
    long_moments: float | None = None
    """A video with a moment of at least this fraction of its length stays out of test-ood."""
    long_strict: bool = False
    """Whether ``long_moments`` means longer than that fraction, instead of at least as long."""
    swap: bool = False
    """Whether to swap the times of moments that end before they start, as Charades-CD did with four of them."""
    clip: bool = False
    """Whether to clip times to the video before measuring; the splits keep the original times."""
    val_share: float = 0.05
    """Size of the validation split, drawn from the videos not in test-ood, as a share of all videos (rounded down)."""
    iid_share: float = 0.05
    """Size of the iid test split, drawn from the videos not in test-ood, as a share of all videos (rounded down)."""
    seed: int = 0


RECIPES: dict[str, Recipe] = {
    "charades-cd": Recipe(bandwidth=0.034, swap=True),
    "activitynet-cd": Recipe(bandwidth=0.0013, share=0.4, long_moments=0.5),
    "paper": Recipe(),
}


@dataclass(frozen=True, eq=False)
class Resplit:
    """The four splits, the reason for each video's split, and how clear the cut between rare and common was."""

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
            f"nothing to set apart; {'raise' if rare_pairs < 1 else 'lower'} {parameter('share')}, or give more pairs"
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
    """Return every video's split as an index in ``SPLIT_NAMES``; the draw depends only on names and seed."""
    others = sorted(np.flatnonzero(~ood).tolist(), key=videos.__getitem__)
    val, iid = int(recipe.val_share * len(videos)), int(recipe.iid_share * len(videos))
    sizes = {"test_ood": len(videos) - len(others), "val": val, "test_iid": iid, "train": len(others) - val - iid}
    remedy = {
        "test_ood": f"raise {parameter('share')} or the bound of {parameter('long_moments')}",
        "val": f"raise {parameter('val_share')}",
        "test_iid": f"raise {parameter('iid_share')}",
        "train": f"lower {parameter('share')}, {parameter('val_share')} or {parameter('iid_share')}",
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


@dataclass(frozen=True, slots=True)
class Overlap:
    """The sizes of two collections and of what they share."""

    ours: int
    theirs: int
    both: int

    @property
    def precision(self) -> float:
        """The share of our items that are also theirs."""
        return self.both / self.ours if self.ours else 0.0

    @property
    def recall(self) -> float:
        """The share of their items that are also ours."""
        return self.both / self.theirs if self.theirs else 0.0

    @property
    def iou(self) -> float:
        """Number of shared items divided by the number of all items."""
        union = self.ours + self.theirs - self.both
        return self.both / union if union else 1.0


@dataclass(frozen=True, slots=True)
class Membership:
    """How many videos and pairs a split shares with a published one."""

    split: str
    reference: str
    videos: Overlap
    pairs: Overlap


def overlap(ours: Iterable[Hashable], theirs: Iterable[Hashable]) -> Overlap:
    """Count what two collections share, including repeats.

    >>> both = overlap("aab", "abbc")
    >>> both, both.precision, both.recall, both.iou
    (Overlap(ours=3, theirs=4, both=2), 0.6666666666666666, 0.5, 0.4)
    """
    one, two = Counter(ours), Counter(theirs)
    return Overlap(one.total(), two.total(), (one & two).total())


def compare_membership(split: str, ours: Judgements, theirs: Judgements) -> Membership:
    """Compare a split with a published one: videos by name, pairs by video and times (spellings of sentences vary)."""
    return Membership(
        split,
        theirs.source,
        overlap(set(_video_names(ours)), set(_video_names(theirs))),
        overlap(_pairs(ours), _pairs(theirs)),
    )


def _video_names(table: Judgements) -> list[str]:
    return [table.videos[code] for code in table.video.tolist()]


def _pairs(table: Judgements) -> Iterable[Hashable]:
    return zip(_video_names(table), table.start.tolist(), table.end.tolist(), strict=True)


def resplit_text(done: Resplit, published: Sequence[Membership]) -> str:
    """Render the report as text: sizes of the splits, and agreement with published splits if there are any."""
    total = sum(pairs for _, pairs in done.sizes.values())
    sizes = [[name, f"{v:,}", f"{p:,}", f"{100 * p / total:.1f}"] for name, (v, p) in done.sizes.items()]
    parts = [text_table(["split", "videos", "pairs", "% of pairs"], sizes)]
    if published:
        header = ["split", "published", "what", "precision %", "recall %", "IoU %"]
        rows = [
            [m.split, Path(m.reference).name, what, *(f"{100 * x:.2f}" for x in (o.precision, o.recall, o.iou))]
            for m in published
            for what, o in (("videos", m.videos), ("pairs", m.pairs))
        ]
        parts += ["", text_table(header, rows, align="lllr")]
    return "\n".join(parts)


def resplit_json(
    preset: str, done: Resplit, published: Sequence[Membership], written: Sequence[Path]
) -> dict[str, Any]:
    """Return the report as one JSON object with unrounded figures; decisions are only counted."""
    return {
        "preset": preset,
        "recipe": describe_recipe(done.recipe),
        "splits": {name: {"videos": v, "pairs": p} for name, (v, p) in done.sizes.items()},
        "decisions": tally(done.decisions),
        "cut": {"gap": done.cut.gap, "tied": done.cut.tied},
        "published": [
            {"split": m.split, "file": m.reference, "videos": _numbers(m.videos), "pairs": _numbers(m.pairs)}
            for m in published
        ],
        "written": [str(path) for path in written],
    }


def resplit_notes(pairs: Judgements, done: Resplit) -> list[str]:
    """Return notes on impossible times, repeated pairs and ties at the cut."""
    sentences = [str(finding) for finding in pairs.findings]
    if repeats := count_repeated_pairs(pairs):
        verb = "repeats" if repeats == 1 else "repeat"
        sentences.append(f"{count(repeats, 'pair')} {verb} another: the same video, times and words")
    if done.cut.tied:
        sentences.append(
            f"{count(done.cut.tied, 'pair')} are equally dense at the cut; the first of them count as rare"
        )
    return sentences


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return the values of a recipe, by the names of the command's options.

    >>> describe_recipe(Recipe(long_moments=0.5))["long_moments"]
    '>=0.5'
    """
    bound = recipe.long_moments
    sign = ">" if recipe.long_strict else ">="
    about = {**asdict(recipe), "long_moments": "off" if bound is None else f"{sign}{bound:g}"}
    del about["long_strict"]
    return about


def _numbers(overlap: Overlap) -> dict[str, float]:
    return {**asdict(overlap), "precision": overlap.precision, "recall": overlap.recall, "iou": overlap.iou}


def change_recipe(recipe: Recipe, bandwidth: str | None, long_moments: str | None, **given: Any) -> Recipe:
    """Change a recipe by the options that are given: ``bandwidth`` and ``long_moments`` as people write them.

    >>> change_recipe(Recipe(), "0.02", ">0.5", share=None, seed=3)  # doctest: +ELLIPSIS
    Recipe(bandwidth=0.02, share=0.2, ties='ood', long_moments=0.5, long_strict=True, ..., seed=3)
    """
    changes = {name: value for name, value in given.items() if value is not None}
    if bandwidth is not None:
        changes["bandwidth"] = "scott" if bandwidth == "scott" else _positive(bandwidth)
        if changes["bandwidth"] is None:
            flag = parameter("bandwidth", bandwidth)
            raise MomentseekError(f"{flag}: give a positive number such as 0.034, or scott")
    if long_moments is not None:
        bound = None if long_moments == "off" else _positive(long_moments.removeprefix(">").removeprefix("="))
        if bound is None and long_moments != "off":
            flag = parameter("long_moments", long_moments)
            raise MomentseekError(f"{flag}: give a share such as 0.5 or '>0.5', or off")
        changes |= {"long_moments": bound, "long_strict": long_moments.startswith(">") and long_moments[1:2] != "="}
    return replace(recipe, **changes)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def split_of_file(text: str) -> tuple[str, str]:
    """Return which split a published file is, from ``SPLIT=FILE`` or the file's own name.

    >>> split_of_file("val=a.json"), split_of_file("charades_test_ood.json")
    (('val', 'a.json'), ('test_ood', 'charades_test_ood.json'))
    """
    named, mark, path = text.partition("=")
    if mark and named in SPLIT_NAMES:
        return named, path
    name = Path(text).name.lower()
    found = [split for split in SPLIT_NAMES if split.removeprefix("test_") in name]
    if len(found) != 1:
        raise MomentseekError(f"{text}: which split is it? Say so: {parameter('reference', f'test_ood={text}')}")
    return found[0], text


def read_parts(paths: Sequence[str], corpus: Corpus | None) -> tuple[list[Judgements], str]:
    """Read the files of a dataset with impossible times kept, and choose the format to write."""
    if len({Path(p).resolve() for p in paths}) < len(paths):
        raise MomentseekError("the same file is given twice; give each part of the dataset once")
    truths, forms = [], set()
    for path in paths:
        document = open_document(path)
        format = choose(document, None, "truth")
        forms.add(format.name)
        truths.append(read_document(document, format, Reading("keep", corpus)))
    return truths, "charades-cd" if forms == {"charades-cd"} else "activitynet"


def build_resplit(
    annotations: Sequence[str],
    folder: str,
    preset: str,
    recipe: Recipe,
    *,
    durations: str | None = None,
    references: Sequence[tuple[str, str]] = (),
    report: str | None = None,
    plots: str | None = None,
) -> BuiltDataset:
    """Re-split the files of a dataset by a recipe; ``references`` are published splits (split, file) to compare."""
    corpus = read_corpus(durations) if durations else None
    truths, form = read_parts(annotations, corpus)
    pairs = merge_truths(truths, corpus.durations if corpus else None)
    done = resplit(pairs, recipe)
    published = [compare_membership(s, done.splits[s], read_truth(path, invalid="keep")) for s, path in references]
    writer = FORMATS["charades-cd" if preset == "charades-cd" else form]
    files: dict[str | os.PathLike[str], bytes] = {Path(report): as_json_lines(done.decisions)} if report else {}
    files |= {Path(folder) / f"{name}.json": writer.to_bytes(split) for name, split in done.splits.items()}
    if plots:
        drawn = draw_resplit({Path(t.source).name: t for t in truths}, done.splits)
        files |= {Path(plots) / name: data for name, data in drawn.items()}
    return BuiltDataset(
        files=files,
        summary=resplit_json(preset, done, published, [Path(path) for path in files]),
        text=resplit_text(done, published),
        notes=resplit_notes(pairs, done),
    )
