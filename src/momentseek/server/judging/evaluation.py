"""How good searches are by the judgements: a measure with its interval, and two setups against each other.

Truth and run are just what ``export`` writes, so ``momentseek evaluate RUN --truth TRUTH`` gives the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.construct.annotation.candidate_files import build_truth
from momentseek.errors import MomentseekError
from momentseek.evaluation import Comparison, Evaluation, compare, evaluate
from momentseek.evaluation.report import intervals
from momentseek.measures import Measure, parse_all
from momentseek.moments import Judgements, Run
from momentseek.search.hit import Hit
from momentseek.server.answers import text
from momentseek.server.asked import MOST
from momentseek.server.judging.consensus import pairs
from momentseek.server.judging.errors import RefusedError
from momentseek.server.judging.setup import Setup
from momentseek.server.judging.store import Store
from momentseek.server.judging.videos import label_of

MEASURE = "NDCG@20[IoU>=0.5]"
DEEP = 100
"""Moments of each query for a measure that looks at all there are."""
Answers = Sequence[Sequence[tuple[Hit, str]]]
"""For every query the hits, each with the hash of its video."""


def measure_of(name: str) -> Measure:
    """One measure by its name; one that looks further than a search goes is refused."""
    found = parse_all([name])
    if len(found) != 1:
        raise MomentseekError(f"{name} names {len(found)} measures; ask for one at a time")
    if (found[0].reach or 0) > MOST:
        raise MomentseekError(f"{name} looks at {found[0].reach:,} moments; a search gives at most {MOST}")
    return found[0]


def depth_of(measure: Measure) -> int:
    """How many moments it needs of each query."""
    return measure.reach or DEEP


@dataclass(frozen=True, eq=False)
class Judged:
    """The judgements at one time: the truth that they make, and every video's label."""

    truth: Judgements
    labels: dict[str, str]
    waiting: int
    """Pairs that still need annotators and do not count yet."""


def judged(store: Store) -> Judged:
    """The kept pairs as truth; a query without any is left out. RefusedError if there are none at all."""
    with store.view():
        candidates = store.candidates()
        found = pairs((c.pair for c in candidates), store.judgements())
        labels = store.labels()
    levels = {pair: one.relevance for pair, one in found.items() if one.relevance is not None}
    if not levels:
        raise RefusedError("two annotators have not agreed on any moment yet; judge some first", "not_judged")
    counting = {c.query for c in candidates if c.pair in levels}
    truth = build_truth([c.candidate for c in candidates if c.query in counting], levels)
    return Judged(truth, labels, sum(one.needs > 0 for one in found.values()))


def run_of(judged: Judged, answers: Answers, setup: Setup) -> Run:
    """What a setup found, videos called as in the truth."""
    labels = dict(judged.labels)
    for hit, hash in (one for hits in answers for one in hits):
        labels[hash] = label_of(text(hit.name), hash, labels)
    flat = [one for hits in answers for one in hits]
    return Run.from_groups(
        judged.truth.query_ids,
        map(len, answers),
        [labels[hash] for _, hash in flat],
        [hit.start for hit, _ in flat],
        [hit.end for hit, _ in flat],
        [hit.score for hit, _ in flat],
        queries=judged.truth.queries,
        source=str(setup),
    )


@dataclass(frozen=True, eq=False)
class Scored:
    """A run's figures, and the 95 % interval of the mean."""

    evaluation: Evaluation
    value: float
    low: float
    high: float


def scored(judged: Judged, run: Run, measure: Measure) -> Scored:
    """Measure a run; a query for which it has nothing counts as 0."""
    result = evaluate(run, judged.truth, measure.name, missing="zero", label=run.source)
    low, high = intervals(result)[""][measure.name]
    return Scored(result, result.means[measure.name], low, high)


def compared(one: Scored, other: Scored) -> Comparison:
    """Two runs query by query, with Fisher's randomisation test."""
    return compare([one.evaluation, other.evaluation])
