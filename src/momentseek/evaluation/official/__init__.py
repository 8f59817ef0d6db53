"""What the official evaluators print, to the byte: same keys, same order, same rounding."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from momentseek.errors import MomentseekError
from momentseek.evaluation.evaluate import Missing
from momentseek.moments import Judgements, Run

PRINTERS = {"tvr": "tvr", "qvhighlights": "qvhighlights", "tvr-ranking": "tvr_ranking"}
"""Protocol → the module whose ``render`` prints as its evaluator does."""


def render(protocol: str, runs: Sequence[Run], truth: Judgements, missing: Missing = "error") -> str:
    """The official output for these runs, without a newline at the end, as the official files have none."""
    if protocol not in PRINTERS:
        raise MomentseekError(
            f"protocol {protocol} has no official printed form; there are {', '.join(PRINTERS)}; or leave "
            "out `official`"
        )
    printer = importlib.import_module(f"momentseek.evaluation.official.{PRINTERS[protocol]}")
    text: str = printer.render(runs, truth, missing)
    return text
