"""Figures of the public evaluator (pycocoevalcap 1.2, TVC's order of work), on our example and on real annotations."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.moments.captions import CaptionTable
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_captions
from momentseek.measuring.measures import CaptionAlignment, parse
from momentseek.measuring.measures.captions.meteor import what_meteor_lacks

ROOT = Path(__file__).parents[4]
SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", ROOT.parent / "shared"))
DATA = Path(os.environ.get("MOMENTSEEK_DATA", SHARED / "data"))
EXAMPLE = {
    "BLEU@1": 0.9027350270563567,
    "BLEU@2": 0.709742580328877,
    "BLEU@3": 0.5371969433537123,
    "BLEU@4": 0.3592695430496098,
    "ROUGE-L": 0.6492027396430764,
    "CIDEr-D": 1.7776492343753376,
}
EXAMPLE_CAPTIONS = {
    "ROUGE-L": [0.67477876, 0.66666667, 0.71554252, 0.53982301],
    "CIDEr-D": [2.35952668, 1.47283485, 1.6544577, 1.6237777],
    "METEOR": [0.47194463803696535, 0.3871101008398056, 0.41388921016683433, 0.3957392669181726],
}
EXAMPLE_METEOR = 0.4164651598031309
ACTIVITYNET = {
    "BLEU@1": 0.5700883162009472,
    "BLEU@2": 0.34563318993541153,
    "BLEU@3": 0.21056074332027938,
    "BLEU@4": 0.13161362404631452,
    "ROUGE-L": 0.373181295541306,
    "CIDEr-D": 0.30595259633183347,
}
ACTIVITYNET_METEOR = 0.19404761484048969
ACTIVITYNET_WORDS = "dfc18f244c09ba2b8fc45ea31d9839d2a3de23d446bcdc84e31711ee1fac0f9a"
"""SHA-256 of the words that Stanford's tokenizer finds in the captions and references."""
needs_meteor = pytest.mark.skipif(what_meteor_lacks() is not None, reason="METEOR's Java program is not installed")


@pytest.fixture(scope="module")
def example():
    folder = ROOT / "examples/captions"
    return read_captions(folder / "careful.jsonl"), read_captions(folder / "references.jsonl")


@pytest.fixture(scope="module")
def activitynet():
    """Leave-one-out: the first sentence of val_1 against the other sentences of the video in val_1 and val_2."""
    folder = DATA / "activitynet-captions"
    if not folder.is_dir():
        pytest.skip("the real data is not here")
    first, second = (json.loads((folder / f"{name}.json").read_bytes()) for name in ("val", "test"))
    videos = [video for video in first if video in second]
    others = [first[video]["sentences"][1:] + second[video]["sentences"] for video in videos]
    return (
        CaptionTable.from_groups(videos, [first[video]["sentences"][:1] for video in videos]),
        CaptionTable.from_groups(videos, others),
    )


def test_the_worked_example(example):
    result = evaluate(*example, list(EXAMPLE), protocol="tvc")
    assert result.means == pytest.approx(EXAMPLE, abs=1e-14, rel=0)
    for name in ("ROUGE-L", "CIDEr-D"):
        assert result.to_columns()[name] == pytest.approx(EXAMPLE_CAPTIONS[name], abs=5e-9)


def test_real_annotations(activitynet):
    result = evaluate(*activitynet, list(ACTIVITYNET), protocol="tvc")
    assert len(result.query_ids) == 4885
    assert result.means == pytest.approx(ACTIVITYNET, abs=1e-14, rel=0)
    words = CaptionAlignment(*activitynet).words("ascii")
    lines = "\n".join(map(" ".join, words.caption_tokens + words.reference_tokens))
    assert hashlib.sha256(lines.encode()).hexdigest() == ACTIVITYNET_WORDS


def test_meteor_from_what_its_program_says():
    """The program's answers for the example, and for a caption that is its reference."""
    said = [
        [8, 7, 3, 2, 4, 4, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 3, 7, 7],
        [9, 9, 4, 4, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 2, 7, 7],
        [5, 6, 2, 3, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 5, 5],
        [8, 7, 3, 3, 3, 3, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 6, 6],
    ]
    table = np.array(said, dtype=float)
    measure = parse("METEOR")
    assert measure.figures(table) == pytest.approx(EXAMPLE_CAPTIONS["METEOR"], abs=1e-15)
    assert measure.figures(table.sum(axis=0, keepdims=True))[0] == pytest.approx(EXAMPLE_METEOR, abs=1e-15)


@pytest.mark.figures
@needs_meteor
def test_meteor_is_what_its_program_says(example, activitynet):
    result = evaluate(*example, "METEOR", protocol="tvc")
    assert result["METEOR"] == pytest.approx(EXAMPLE_METEOR, abs=1e-14)
    assert result.values[:, 0] == pytest.approx(EXAMPLE_CAPTIONS["METEOR"], abs=1e-14)
    assert evaluate(*activitynet, "METEOR", protocol="tvc")["METEOR"] == pytest.approx(ACTIVITYNET_METEOR, abs=1e-12)
