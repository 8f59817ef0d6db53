"""Finding moments: the query language, the streams, fusion and confidence; ``localise`` finds spans, ``export`` writes.

Names load on first use: a localiser or a format needs no library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from momentseek.search.hit import Hit, Results
    from momentseek.search.query import Query

_HOMES = {"Hit": "hit", "Query": "query", "Results": "hit"}

__all__ = ["Hit", "Query", "Results"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
