"""Momentseek: natural-language search for moments in videos, and the measures to judge it.

>>> import momentseek as ms
>>> truth = ms.Judgements.from_rows([("q", "kitchen.mp4", 12, 20, 4)])
>>> run = ms.Run.from_rows([("q", "kitchen.mp4", 12, 19, 0.8)])
>>> ms.evaluate(run, truth, "NDCG@10[IoU>=0.5]")["NDCG@10[IoU>=0.5]"]
1.0

docs/api.md lists everything that is public: the names in ``__all__``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from momentseek.api.files import (
        convert,
        read_captions,
        read_corpus,
        read_judgements,
        read_run,
        write_captions,
        write_judgements,
        write_run,
    )
    from momentseek.api.library import Library
    from momentseek.api.measuring import compare, diagnose, evaluate
    from momentseek.api.predicting import baseline, predict, simulate, train
    from momentseek.core.errors import MomentseekError
    from momentseek.core.moments.captions import CaptionTable
    from momentseek.core.moments.judgements import Corpus, Judgements
    from momentseek.core.moments.moment import Moment
    from momentseek.core.moments.run import Run
    from momentseek.measuring.comparison import Comparison
    from momentseek.measuring.diagnose.diagnosis import Diagnosis
    from momentseek.measuring.result import Evaluation
    from momentseek.search.hit import Hit, Results
    from momentseek.search.query import Query

_HOMES = {
    "Library": "api.library",
    "Query": "search.query",
    "Results": "search.hit",
    "Hit": "search.hit",
    "evaluate": "api.measuring",
    "compare": "api.measuring",
    "diagnose": "api.measuring",
    "Evaluation": "measuring.result",
    "Comparison": "measuring.comparison",
    "Diagnosis": "measuring.diagnose.diagnosis",
    "read_run": "api.files",
    "write_run": "api.files",
    "read_judgements": "api.files",
    "write_judgements": "api.files",
    "read_captions": "api.files",
    "write_captions": "api.files",
    "read_corpus": "api.files",
    "convert": "api.files",
    "Run": "core.moments.run",
    "Judgements": "core.moments.judgements",
    "CaptionTable": "core.moments.captions",
    "Corpus": "core.moments.judgements",
    "Moment": "core.moments.moment",
    "train": "api.predicting",
    "predict": "api.predicting",
    "simulate": "api.predicting",
    "baseline": "api.predicting",
    "MomentseekError": "core.errors",
}

__all__ = [
    "CaptionTable",
    "Comparison",
    "Corpus",
    "Diagnosis",
    "Evaluation",
    "Hit",
    "Judgements",
    "Library",
    "Moment",
    "MomentseekError",
    "Query",
    "Results",
    "Run",
    "baseline",
    "compare",
    "convert",
    "diagnose",
    "evaluate",
    "predict",
    "read_captions",
    "read_corpus",
    "read_judgements",
    "read_run",
    "simulate",
    "train",
    "write_captions",
    "write_judgements",
    "write_run",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
