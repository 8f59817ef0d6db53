"""What the official evaluators print, to the byte: same keys, same order, same rounding."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.measures import PROTOCOLS
from momentseek.measuring.result import Missing

PRINTERS = {"tvr": "tvr", "qvhighlights": "qvhighlights", "tvr-ranking": "tvr_ranking", "tvc": "tvc"}
"""Protocol → the module whose ``render`` prints as its evaluator does."""


def render(
    protocol: str,
    runs: Sequence[Run] | CaptionTable,
    truth: Judgements | CaptionTable,
    missing: Missing = "error",
) -> str:
    """The official output for runs or captions, without a newline at the end, as the official files have none."""
    if protocol not in PRINTERS:
        raise MomentseekError(
            f"protocol {protocol} has no official printed form; there are {', '.join(PRINTERS)}; or leave "
            f"out {parameter('official')}"
        )
    if PROTOCOLS[protocol].captions != isinstance(runs, CaptionTable):
        table, holds = (runs, "captions") if isinstance(runs, CaptionTable) else (runs[0], "ranked moments")
        raise MomentseekError(
            f"{table.source}: holds {holds}, which the evaluator of {protocol} does not measure; name another "
            f"({parameter('protocol')})"
        )
    printer = importlib.import_module(f"momentseek.measuring.official.{PRINTERS[protocol]}")
    text: str = printer.render(runs, truth, missing)
    return text
