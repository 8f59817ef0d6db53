"""The order in which one person sees the candidates of a query.

The best stand first in the pool, and who notices that judges by place. So everybody sees them in an order of their
own: by a hash of query, person and candidate. It is the same whenever they come back, and a candidate that is no longer
shown moves no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from momentseek.server.judging.rows import CandidateRow


def shuffled(candidates: Iterable[CandidateRow], annotator: str) -> list[CandidateRow]:
    """One person's order; a second batch comes after the first, as it is only known then."""
    return sorted(candidates, key=lambda c: (c.batch, _seeded(c, annotator)))


def _seeded(candidate: CandidateRow, annotator: str) -> bytes:
    return blake2b(f"{candidate.query}\0{candidate.id}\0{annotator}".encode(), digest_size=16).digest()
