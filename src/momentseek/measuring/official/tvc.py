"""TVC's evaluator: BLEU, METEOR, ROUGE-L and CIDEr-D (which it calls CIDEr), times 100 and unrounded, as JSON."""

from __future__ import annotations

import json

from momentseek.core.moments.captions import CaptionTable
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.result import Missing

KEYS = {
    "BLEU@1": "Bleu_1",
    "BLEU@2": "Bleu_2",
    "BLEU@3": "Bleu_3",
    "BLEU@4": "Bleu_4",
    "METEOR": "METEOR",
    "ROUGE-L": "ROUGE_L",
    "CIDEr-D": "CIDEr",
}
"""Our measures and its names for them, in its order."""


def render(run: CaptionTable, truth: CaptionTable, missing: Missing) -> str:
    """The metrics file; METEOR is part of it, so Java is needed."""
    result = evaluate(run, truth, KEYS, protocol="tvc", missing=missing)
    return json.dumps({key: result.mean(name) * 100 for name, key in KEYS.items()}, indent=4)
