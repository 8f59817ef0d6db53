"""Which published dataset a truth is, by its size: versions of one dataset differ, and so do scores on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from momentseek.moments import CaptionTable, Judgements

VARIANTS: dict[tuple[str, int, int | None], str] = {
    ("charades-sta", 12_408, None): "Charades-STA, train",
    ("charades-sta", 12_404, None): "Charades-STA (2D-TAN version, 4 impossible moments removed), train",
    ("charades-sta", 3_720, None): "Charades-STA, test",
    ("charades-cd", 11_071, None): "Charades-CD, train",
    ("charades-cd", 859, None): "Charades-CD, val",
    ("charades-cd", 823, None): "Charades-CD, test-iid",
    ("charades-cd", 3_375, None): "Charades-CD, test-ood",
    ("charades-cd", 51_415, None): "ActivityNet-CD, train",
    ("charades-cd", 3_521, None): "ActivityNet-CD, val",
    ("charades-cd", 3_443, None): "ActivityNet-CD, test-iid",
    ("charades-cd", 13_578, None): "ActivityNet-CD, test-ood",
    ("activitynet", 37_421, None): "ActivityNet Captions, train",
    ("activitynet", 17_505, None): "ActivityNet Captions, val_1",
    ("activitynet", 17_031, None): "ActivityNet Captions, val_2 (used as test)",
    ("tacos", 9_790, None): "TACoS (2D-TAN version), train",
    ("tacos", 4_436, None): "TACoS (2D-TAN version), val",
    ("tacos", 4_001, None): "TACoS (2D-TAN version), test",
    ("tacos-tall", 10_146, None): "TACoS (TALL version), train",
    ("tacos-tall", 4_589, None): "TACoS (TALL version), val",
    ("tacos-tall", 4_083, None): "TACoS (TALL version), test",
    ("tvr", 10_895, None): "TVR, val",
    ("tvr-ranking", 500, 14_382): "TVR-Ranking, val",
    ("tvr-ranking", 2_781, 80_060): "TVR-Ranking, test",
    ("tvr-ranking-flat", 500, 14_382): "TVR-Ranking, val",
    ("tvr-ranking-flat", 2_781, 80_060): "TVR-Ranking, test",
    ("qvhighlights", 7_218, None): "QVHighlights, train",
    ("qvhighlights", 1_550, None): "QVHighlights, val",
    ("qvhighlights", 1_542, None): "QVHighlights, test",
    ("didemo", 4_180, None): "DiDeMo, val",
    ("didemo", 4_021, None): "DiDeMo, test",
    ("tvc", 86_603, None): "TVC, train",
    ("tvc", 10_841, None): "TVC, val",
    ("tvc", 5_420, None): "TVC, test-public",
    ("tvc", 5_422, None): "TVC, test-private",
    ("mvmr", 3_720, None): "MVMR, Charades-STA test",
    ("mvmr", 4_001, None): "MVMR, TACoS test",
}
"""(format, queries, moments where the number of queries alone says too little) → dataset."""


Table = TypeVar("Table", Judgements, CaptionTable)


def with_variant(truth: Table, format: str) -> Table:
    """The truth (or captions) with its dataset's name, where its size is that of a published file."""
    if truth.variant is not None:
        return truth
    name = VARIANTS.get((format, len(truth), None)) or VARIANTS.get((format, len(truth), len(truth.start)))
    return replace(truth, variant=name) if name else truth
