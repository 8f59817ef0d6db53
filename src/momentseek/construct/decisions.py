"""The record of how a dataset was built: for every pair, query or video, what was decided and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision about one subject (a pair, a query, a video), with the evidence for it."""

    subject: str
    outcome: str
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)


def as_json_lines(decisions: Iterable[Decision]) -> bytes:
    """The bytes of a report: JSON Lines, one decision each."""
    return "".join(json.dumps(asdict(d), ensure_ascii=False) + "\n" for d in decisions).encode()


def tally(decisions: Iterable[Decision]) -> dict[str, dict[str, int]]:
    """Count decisions by outcome and reason.

    >>> tally([Decision("a", "kept", "agree"), Decision("b", "dropped", "disagree"), Decision("c", "kept", "agree")])
    {'kept': {'agree': 2}, 'dropped': {'disagree': 1}}
    """
    counts = Counter((d.outcome, d.reason) for d in decisions)
    table: dict[str, dict[str, int]] = {}
    for (outcome, reason), n in counts.items():
        table.setdefault(outcome, {})[reason] = n
    return table
