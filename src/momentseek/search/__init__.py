"""Finding moments: the query language, the streams, fusion and confidence; ``localise`` finds spans, ``export`` writes.

Names load on first use: a localiser or a format needs no library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.search.hit import Hit, Results
    from momentseek.search.query import Query

__all__ = ["Hit", "Query", "Results"]

__getattr__ = late_names(__name__, {"Hit": "hit", "Query": "query", "Results": "hit"})
