"""What becomes of every pair by the labels it has, and how many more it needs.

The rule itself is ``momentseek.construct.annotation.consensus``; here it is only asked. Two annotators judge a pair;
if they differ by more than 1, two more do; nobody else is asked, because the rule knows two and four labels only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from momentseek.construct.annotation.agreement import measure_agreement
from momentseek.construct.annotation.consensus import LABELS_PER_PAIR, Consensus, find_consensus
from momentseek.construct.annotation.consensus_report import as_json
from momentseek.construct.annotation.distributions import label_distributions
from momentseek.construct.annotation.drift import measure_drift
from momentseek.construct.annotation.labels import group_labels
from momentseek.server.judging.rows import Judgement


@dataclass(frozen=True)
class Pair:
    """A pair with what was said about it.

    ``outcome`` is ``kept``, ``discarded``, or ``waiting`` while annotators are needed.
    """

    outcome: str
    reason: str
    needs: int
    """Annotators who have not judged it yet and should."""
    relevance: int | None = None
    labels: tuple[tuple[str, int], ...] = ()
    """Who said what, in the order in which they did."""

    def awaits(self, annotator: str) -> bool:
        """Whether this person should judge it."""
        return self.needs > 0 and not self.has(annotator)

    def has(self, annotator: str) -> bool:
        """Whether this person has judged it."""
        return any(name == annotator for name, _ in self.labels)


UNJUDGED = Pair("waiting", "no label", LABELS_PER_PAIR[0])


def agreed(judgements: Sequence[Judgement]) -> Consensus | None:
    """The rule on all labels; None if there are none. Pairs with one or three labels are incomplete."""
    if not judgements:
        return None
    return find_consensus(group_labels((j.label for j in judgements), "judgements"), incomplete="drop")


def pairs(ids: Iterable[str], judgements: Sequence[Judgement]) -> dict[str, Pair]:
    """Pair → what became of it.

    >>> says = [Judgement(i, 1, c, who, level, 0.0) for i, (c, who, level) in enumerate(
    ...     [(1, "ann", 3), (1, "bob", 4), (2, "ann", 0), (2, "bob", 2), (3, "ann", 1)])]
    >>> {pair: (p.outcome, p.relevance, p.needs) for pair, p in pairs(["1/1", "1/2", "1/3", "1/4"], says).items()}
    {'1/1': ('kept', 4, 0), '1/2': ('waiting', None, 2), '1/3': ('waiting', None, 1), '1/4': ('waiting', None, 2)}
    """
    found = agreed(judgements)
    judged: dict[str, Pair] = {}
    for decision in found.decisions() if found else ():
        labels = decision.evidence["labels"]
        said = tuple(zip(decision.evidence["workers"], labels, strict=True))
        needs = needed(len(labels), decision.outcome == "kept")
        outcome = "waiting" if needs else "discarded" if decision.outcome == "dropped" else decision.outcome
        judged[decision.subject] = Pair(outcome, decision.reason, needs, decision.evidence.get("relevance"), said)
    return {pair: judged.get(pair, UNJUDGED) for pair in ids}


def needed(labels: int, kept: bool) -> int:
    """How many more people a pair needs.

    >>> [needed(n, False) for n in range(6)], needed(2, True)
    ([2, 1, 2, 1, 0, 0], 0)
    """
    return 0 if kept else next((size - labels for size in LABELS_PER_PAIR if size > labels), 0)


def statistics(judgements: Sequence[Judgement]) -> dict[str, Any] | None:
    """The report of ``momentseek data consensus --json``; None while no pair has two labels."""
    found = agreed(judgements)
    if found is None or not found.complete.any():
        return None
    return as_json(found, measure_agreement(found.labels), measure_drift(found), label_distributions(found))
