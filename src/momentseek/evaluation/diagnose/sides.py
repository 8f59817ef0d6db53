"""Which run answers which truth: one truth for all, or an iid and an ood one with their own runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import offsets_of


@dataclass(frozen=True)
class Side:
    """A truth and the runs that answer it, each under its name."""

    truth: Judgements
    runs: tuple[tuple[str, Run], ...]


def sides(runs: Sequence[tuple[str, Run]], truths: Sequence[Judgements]) -> tuple[Side, ...]:
    """Give each run to the truth whose queries it answers; a run that answers both is given to both.

    >>> iid = Judgements.from_rows([("a", "v", 0, 1, 1)])
    >>> ood = Judgements.from_rows([("b", "v", 0, 1, 1)])
    >>> runs = [("x", Run.from_rows([("b", "v", 0, 1, 1)])), ("y", Run.from_rows([("a", "v", 0, 1, 1)]))]
    >>> [[name for name, _ in side.runs] for side in sides(runs, [iid, ood])]
    [['y'], ['x']]
    """
    if len(truths) == 1:
        return (Side(truths[0], tuple(runs)),)
    shared = set(truths[0].query_ids) & set(truths[1].query_ids) if len(truths) == 2 else set()
    if len(truths) > 2:
        raise MomentseekError(
            "give one truth, or two: the one like the training data (iid) first, the other (ood) second"
        )
    if shared:
        raise MomentseekError(
            f"{truths[0].source} and {truths[1].source} share query {min(shared)}{' and others' * (len(shared) > 1)}, "
            "so it cannot be told which of them a run answers"
        )
    given: list[list[tuple[str, Run]]] = [[], []]
    for name, run in runs:
        answers = [i for i, t in enumerate(truths) if any(q in t for q in run.query_ids)]
        if not answers:
            raise MomentseekError(f"{run.source}: answers no query of {truths[0].source} or {truths[1].source}")
        for i in answers:
            given[i].append((name, run if len(answers) == 1 else _only(run, truths[i])))
    if not given[0] or len(given[0]) != len(given[1]):
        raise MomentseekError(
            f"{_answer(len(given[0]))} {truths[0].source} and {_answer(len(given[1]))} {truths[1].source}; "
            "give every system's run for both, in the same order"
        )
    return tuple(Side(t, tuple(r)) for t, r in zip(truths, given, strict=True))


def _answer(runs: int) -> str:
    return "1 run answers" if runs == 1 else f"{runs} runs answer"


def _only(run: Run, truth: Judgements) -> Run:
    """The part of the run that answers the truth's queries."""
    kept = np.array([q in truth for q in run.query_ids], dtype=bool)
    rows = kept[run.row_query]
    return Run(
        query_ids=tuple(q for q, k in zip(run.query_ids, kept, strict=True) if k),
        offsets=offsets_of(run.counts[kept].tolist()),
        videos=run.videos,
        video=run.video[rows],
        start=run.start[rows],
        end=run.end[rows],
        score=run.score[rows],
        queries=None if run.queries is None else tuple(q for q, k in zip(run.queries, kept, strict=True) if k),
        task=run.task,
        source=run.source,
    )
