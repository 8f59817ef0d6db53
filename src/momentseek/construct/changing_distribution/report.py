"""The report of a re-split: sizes, how far published splits agree, and what a reader should know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from momentseek.construct.changing_distribution.membership import Membership, Overlap
from momentseek.construct.changing_distribution.merging import count_repeated_pairs
from momentseek.construct.changing_distribution.resplit import Recipe, Resplit
from momentseek.construct.decisions import tally
from momentseek.moments import Judgements
from momentseek.tables import count, text_table


def as_text(done: Resplit, published: Sequence[Membership]) -> str:
    """The report as text: sizes of the splits, and agreement with published splits if there are any."""
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


def as_json(preset: str, done: Resplit, published: Sequence[Membership], written: Sequence[Path]) -> dict[str, Any]:
    """The report as one JSON object, without the single decisions; figures are not rounded."""
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


def notes(pairs: Judgements, done: Resplit) -> list[str]:
    """Sentences about impossible times, repeated pairs and ties at the cut."""
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
    """The values of a recipe, by the names of the command's options.

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
