"""The qualification exam: many workers judge the same pairs, the median is the truth (TVR-Ranking, appendix B.2).

There, everybody judged 100 pairs (10 queries, 10 moments each). A label is aligned if it lies within 1 of the median;
at first 11.83 % were not, and workers relabelled theirs until all were. A worker passes here if at least a given
share of their labels is aligned; the paper's share is all of them. A median between two levels is rounded up, as the
consensus is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from momentseek.construct.annotation.agreement import couples, kappa
from momentseek.construct.annotation.consensus import AGREEING_LEVELS_APART
from momentseek.construct.annotation.labels import LEVEL_COUNT, AnnotatorLabels
from momentseek.construct.decisions import Decision
from momentseek.errors import MomentseekError
from momentseek.moments.arrays import IntArray
from momentseek.tables import NO_VALUE, count, text_table

MIN_WORKERS = 3
"""Workers who must judge each pair: with two, the median is their mean and cannot tell who is right."""


@dataclass(frozen=True, slots=True)
class Examinee:
    """A worker's result: share of aligned labels, mean deviation, kappa with the truth, and labels to judge again."""

    worker: str
    judged: int
    missing: int
    aligned: float
    deviation: float
    kappa: float
    passed: bool
    misses: tuple[tuple[str, int, int], ...]
    """Labels more than 1 from the truth, as (pair, the worker's level, the truth)."""


@dataclass(frozen=True, eq=False)
class Exam:
    """The result of an exam: the truth of every pair, the workers (worst first), and the mean kappa of two workers."""

    labels: AnnotatorLabels
    truth: IntArray
    share: float
    workers: tuple[Examinee, ...]
    mean_kappa: float

    @property
    def misaligned_share(self) -> float:
        """The mean over workers of the share of labels that are not aligned (11.83 % in the paper)."""
        return float(np.mean([1 - w.aligned for w in self.workers]))

    def decisions(self) -> list[Decision]:
        """The decision about every worker, and about every label to be judged again."""
        result = []
        for w in self.workers:
            reason = f"{'at least' if w.passed else 'less than'} {self.share:.0%} of labels within 1 of the median"
            result.append(Decision(w.worker, "passed" if w.passed else "failed", reason, {"aligned": w.aligned}))
            result += [
                Decision(
                    pair, "relabel", "more than 1 from the median", {"worker": w.worker, "label": said, "truth": t}
                )
                for pair, said, t in w.misses
            ]
        return result


def mark_exam(labels: AnnotatorLabels, share: float = 1.0) -> Exam:
    """Mark an exam: compare every worker with the median of all.

    >>> from momentseek.construct.annotation.labels import group_labels
    >>> found = mark_exam(group_labels([(p, w, r) for p in "ab" for w, r in (("ann", 3), ("bob", 3), ("cy", 0))]))
    >>> [(w.worker, w.aligned, w.passed) for w in found.workers]
    [('cy', 0.0, False), ('ann', 1.0, True), ('bob', 1.0, True)]
    """
    if labels.repeated.any():
        row = int(np.flatnonzero(labels.repeated)[0])
        raise MomentseekError(
            f"{labels.source}: worker {labels.workers[labels.worker[row]]} judged pair "
            f"{labels.pair_ids[labels.pair[row]]} twice; an exam has one label per worker and pair"
        )
    few = np.flatnonzero(labels.counts < MIN_WORKERS)
    if len(few):
        pair, number = labels.pair_ids[few[0]], count(int(labels.counts[few[0]]), "label")
        raise MomentseekError(
            f"{labels.source}: pair {pair} has only {number}, and a median needs at least {MIN_WORKERS} workers; "
            "in an exam all workers judge the same pairs"
        )
    truth = medians(labels)
    gap = labels.relevance - truth[labels.pair]
    result = []
    for w, name in enumerate(labels.workers):
        rows = np.flatnonzero(labels.worker == w)
        far = rows[np.abs(gap[rows]) > AGREEING_LEVELS_APART]
        aligned = 1 - len(far) / len(rows)
        table = np.zeros((LEVEL_COUNT, LEVEL_COUNT))
        np.add.at(table, (labels.relevance[rows], truth[labels.pair[rows]]), 1)
        misses = tuple(
            (labels.pair_ids[labels.pair[r]], int(labels.relevance[r]), int(truth[labels.pair[r]])) for r in far
        )
        missing = len(labels.pair_ids) - len(rows)
        passed = aligned >= share and not missing
        result.append(
            Examinee(name, len(rows), missing, aligned, float(gap[rows].mean()), kappa(table), passed, misses)
        )
    result.sort(key=lambda w: w.aligned)
    known = [c.kappa for c in couples(labels, 1) if c.kappa == c.kappa]
    return Exam(labels, truth, share, tuple(result), float(np.mean(known)) if known else float("nan"))


def medians(labels: AnnotatorLabels) -> IntArray:
    """The median level of each pair, rounded up.

    >>> from momentseek.construct.annotation.labels import group_labels
    >>> medians(group_labels([("p", w, r) for w, r in enumerate((0, 2, 3, 4))])).tolist()
    [3]
    """
    order = np.lexsort((labels.relevance, labels.pair))
    ordered = labels.relevance[order]
    start, counts = labels.offsets[:-1], labels.counts
    low, high = ordered[start + (counts - 1) // 2], ordered[start + counts // 2]
    result: IntArray = (low + high + 1) // 2
    return result


MAX_MISSES_SHOWN = 20


def as_text(found: Exam) -> str:
    """The report as text: who passes, and which labels to talk about."""
    failed = [w for w in found.workers if not w.passed]
    table = text_table(
        ["worker", "result", "judged", "missing", "within 1", "deviation", "kappa"],
        [
            [
                w.worker,
                "passes" if w.passed else "fails",
                str(w.judged),
                str(w.missing),
                f"{w.aligned:.1%}",
                f"{w.deviation:+.2f}",
                NO_VALUE if w.kappa != w.kappa else f"{w.kappa:.2f}",
            ]
            for w in found.workers
        ],
        align="llr",
    )
    misses = [(w.worker, *miss) for w in found.workers for miss in w.misses]
    kappa = NO_VALUE if found.mean_kappa != found.mean_kappa else f"{found.mean_kappa:.2f}"
    pairs, workers = count(len(found.labels.pair_ids), "pair"), count(len(found.workers), "worker")
    passes = count(len(found.workers) - len(failed), "passes", "pass")
    fails = count(len(failed), "fails", "fail")
    parts = [
        f"{pairs}, {workers}; the truth of a pair is the median of its labels\n"
        f"{passes} ({found.share:.0%} of their labels within 1 of the truth, none missing), {fails}\n"
        f"on average {found.misaligned_share:.2%} of a worker's labels are more than 1 off; "
        f"mean kappa between two workers {kappa}",
        table,
    ]
    if misses:
        more = f" (the first {MAX_MISSES_SHOWN} of {len(misses):,})" if len(misses) > MAX_MISSES_SHOWN else ""
        parts.append(
            f"Labels to explain and judge again{more}:\n"
            + text_table(
                ["worker", "pair", "label", "truth"],
                [[w, pair, str(label), str(truth)] for w, pair, label, truth in misses[:MAX_MISSES_SHOWN]],
                align="llr",
            )
        )
    return "\n\n".join(parts)


def as_json(found: Exam) -> dict[str, Any]:
    """The report as one JSON object."""
    workers = []
    for w in found.workers:
        entry = asdict(w)
        entry["kappa"] = None if w.kappa != w.kappa else w.kappa
        entry["misses"] = [{"pair_id": p, "label": label, "truth": t} for p, label, t in w.misses]
        workers.append(entry)
    return {
        "source": found.labels.source,
        "pairs": len(found.labels.pair_ids),
        "share": found.share,
        "passed": sum(w.passed for w in found.workers),
        "failed": sum(not w.passed for w in found.workers),
        "misaligned": found.misaligned_share,
        "mean_kappa": None if found.mean_kappa != found.mean_kappa else found.mean_kappa,
        "workers": workers,
    }
