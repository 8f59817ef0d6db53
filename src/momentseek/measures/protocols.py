"""Protocols: whose rules a figure follows. Each is a bundle of options, default measures and a way to print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from momentseek.registry import Registry

GRADED_MEASURES = ("NDCG@{10,20,40}[IoU>={0.3,0.5,0.7}]",)
UNGRADED_MEASURES = ("R@{1,5,10}[IoU>={0.3,0.5,0.7}]", "AxIoU@{1,5,10}", "mIoU")
CAPTION_MEASURES = ("BLEU@{1,2,3,4}", "METEOR", "ROUGE-L", "CIDEr-D")
GROUNDING_MEASURES = ("R@{1,5}[IoU>={0.3,0.5,0.7}]", "mIoU")


@dataclass(frozen=True)
class Protocol:
    """``options`` apply to every measure that has them; ``measures`` are computed unless others are asked for."""

    name: str
    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    by_truth: bool = False
    """Default measures by the truth: RANKED for graded judgements, UNGRADED for others, CAPTION for captions."""
    percent: bool = False
    """Whether its users print values times 100."""
    captions: bool = False
    """Whether it measures captions, not ranked moments; ``paper`` does both."""


PROTOCOLS: Registry[Protocol] = Registry("protocol")
for _protocol in (
    Protocol("paper", "each measure as its paper defines it: linear gain and >= for NDCG", by_truth=True),
    Protocol(
        "tvr-ranking",
        "TVR-Ranking's evaluator: gain 2^rel-1, IoU compared with >, relevance-0 moments absorb matches",
        {"strict": True, "gain": "exp2", "zeros": "absorb", "empty": "zero"},
        GRADED_MEASURES,
    ),
    Protocol(
        "spr",
        "SPR's evaluator: gain 2^rel-1, >=, relevance-0 moments left out, queries without others skipped",
        {"strict": False, "gain": "exp2", "zeros": "ignore", "empty": "skip"},
        GRADED_MEASURES,
    ),
    Protocol(
        "tvr",
        "TVR's evaluator: float32, hull union, >=, first 100 predictions",
        {"strict": False, "overlap": "hull32", "depth": 100},
        (
            "R@{1,5,10,100}[IoU>={0.5,0.7},task=VCMR]",
            "R@{1,5,10,100}[IoU>={0.5,0.7},task=SVMR]",
            "R@{1,5,10,100}[task=VR]",
        ),
        percent=True,
    ),
    Protocol(
        "qvhighlights",
        "QVHighlights' evaluator: the query's video is given; R1 of the first window, mAP of ten, highlights",
        {"strict": False, "overlap": "hull", "videos": "ignore"},
        (
            "R@1[IoU>={0.5,0.7}]",
            "mAP",
            "mAP[IoU>={0.5,0.75}]",
            "mAP[length={short,middle,long}]",
            "SaliencyAP[level={fair,good,verygood}]",
            "HIT@1[level={fair,good,verygood}]",
        ),
        percent=True,
    ),
    Protocol(
        "2d-tan",
        "2D-TAN's evaluator: IoU compared with >; the run comes after its suppression",
        {"strict": True, "overlap": "hull"},
        GROUNDING_MEASURES,
        percent=True,
    ),
    Protocol(
        "mmn",
        "MMN's evaluator: float32, >=; the run comes after its suppression",
        {"strict": False, "overlap": "hull32"},
        GROUNDING_MEASURES,
        percent=True,
    ),
    Protocol(
        "mvmr",
        "MVMR's evaluator: float32, >=, any positive in its own video, queries with incomplete pools left out",
        {"strict": False, "overlap": "hull32", "pools": "full"},
        ("R@{1,5,10,20,50}[IoU>={0.3,0.5,0.7}]",),
        percent=True,
    ),
    Protocol(
        "mvmr-all",
        "as mvmr, with every query",
        {"strict": False, "overlap": "hull32", "pools": "any"},
        ("R@{1,5,10,20,50}[IoU>={0.3,0.5,0.7}]",),
        percent=True,
    ),
    Protocol(
        "tvc",
        "TVC's evaluator: PTB tokens without punctuation, characters outside ASCII left out, first caption only",
        {"letters": "ascii"},
        CAPTION_MEASURES,
        percent=True,
        captions=True,
    ),
    Protocol(
        "coco",
        "COCO's caption evaluator: as tvc, with all characters",
        {"letters": "all"},
        CAPTION_MEASURES,
        captions=True,
    ),
):
    PROTOCOLS.add(_protocol.name, _protocol)
