"""Results: the list of hits that a search returns, with what it left out."""

from __future__ import annotations

from collections.abc import Iterable

from momentseek.search.hit import Hit
from momentseek.search.query import Query


class Results(list[Hit]):
    """Hits, best first; a list, and what there is to say about it.

    >>> results = Results([], Query.parse("a unicorn"), hidden=4, note="nothing here matches well")
    >>> len(results), results.hidden, str(results.query)
    (0, 4, 'a unicorn')
    """

    def __init__(
        self, hits: Iterable[Hit] = (), query: Query | None = None, hidden: int = 0, took: float = 0.0, note: str = ""
    ) -> None:
        super().__init__(hits)
        self.query = query or Query()
        self.hidden = hidden
        """Weak hits that ``all=True`` would add."""
        self.took = took
        """Seconds."""
        self.note = note
        """What a person should know about the answer; often nothing."""
