"""Momentseek: natural-language search for moments in videos, and the measures to judge it.

>>> import momentseek as ms
>>> truth = ms.Judgements.from_rows([("q", "kitchen.mp4", 12, 20, 4)])
>>> run = ms.Run.from_rows([("q", "kitchen.mp4", 12, 19, 0.8)])
>>> ms.evaluate(run, truth, "NDCG@10[IoU>=0.5]")["NDCG@10[IoU>=0.5]"]
1.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from momentseek.api import Library
    from momentseek.errors import MomentseekError
    from momentseek.evaluation import Evaluation, compare, evaluate
    from momentseek.formats import read_corpus, read_run, read_runs, read_truth
    from momentseek.measures import parse, parse_all
    from momentseek.moments import Corpus, Judgements, Moment, Run
    from momentseek.search import Hit, Query

_HOMES = {
    "MomentseekError": "errors",
    "Evaluation": "evaluation",
    "compare": "evaluation",
    "evaluate": "evaluation",
    "read_corpus": "formats",
    "read_run": "formats",
    "read_runs": "formats",
    "read_truth": "formats",
    "parse": "measures",
    "parse_all": "measures",
    "Corpus": "moments",
    "Judgements": "moments",
    "Moment": "moments",
    "Run": "moments",
    "Hit": "search",
    "Library": "api",
    "Query": "search",
}

__all__ = [
    "Corpus",
    "Evaluation",
    "Hit",
    "Judgements",
    "Library",
    "Moment",
    "MomentseekError",
    "Query",
    "Run",
    "compare",
    "evaluate",
    "parse",
    "parse_all",
    "read_corpus",
    "read_run",
    "read_runs",
    "read_truth",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # Names load on first use: `momentseek --help` should not wait for numpy.
    if name not in _HOMES:
        raise AttributeError(f"module 'momentseek' has no attribute {name!r}")
    return getattr(import_module(f"momentseek.{_HOMES[name]}"), name)
