"""How much annotators agree beyond chance: Cohen's kappa, plain and weighted, and Krippendorff's alpha.

Both are 1 − (observed disagreement) / (disagreement expected by chance): 1 is perfect, 0 is chance. Kappa compares two
workers at a time, alpha any number of labels per pair. The weight of two different levels is 1 for plain kappa,
(a − b)² for quadratic kappa and alpha's interval scale, and on alpha's ordinal scale the square of the number of labels
between the two levels.

References: Cohen 1960 and 1968; Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011. TVR-Ranking
(appendix B.2) reports an average kappa of 0.49 in its exam.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from momentseek.benchmarks.datasets.annotation.consensus import AGREEING_LEVELS_APART
from momentseek.benchmarks.datasets.annotation.labels import LEVEL_COUNT, AnnotatorLabels, read_labels, write_pairs
from momentseek.benchmarks.datasets.common import BuiltDataset, Decision, as_json_lines
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.reports import NO_VALUE, count, text_table, to_plain

MIN_COMMON_PAIRS = 30
"""Minimum number of pairs that two workers must share to be compared."""


def kappa(table: ArrayLike, weights: Literal["none", "quadratic"] = "none") -> float:
    """Return Cohen's kappa of a table whose entry (a, b) counts the pairs that one worker gave a and the other b.

    NaN if chance leaves no room for disagreement (both always gave the same level).

    >>> round(kappa([[20, 5], [10, 15]]), 4)
    0.4
    >>> round(kappa([[5, 3, 0], [1, 6, 2], [0, 1, 7]], "quadratic"), 4)
    0.7742
    """
    counts = np.asarray(table, dtype=np.float64)
    level = np.arange(len(counts))
    gap = np.subtract.outer(level, level)
    cost = (gap != 0).astype(np.float64) if weights == "none" else gap.astype(np.float64) ** 2
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    return _beyond_chance(float((cost * counts).sum() * counts.sum()), float((cost * expected).sum()))


def alpha(labels: AnnotatorLabels, scale: Literal["ordinal", "interval"] = "ordinal") -> float:
    """Return Krippendorff's alpha over all pairs with at least two labels.

    With n_u(c) labels of level c on pair u, m_u in total, coincidences are
    o(c, k) = Σ_u n_u(c) (n_u(k) − [c = k]) / (m_u − 1), their margins n_c, and

        α = 1 − (n − 1) · Σ o(c, k) δ²(c, k) / Σ n_c (n_k − [c = k]) δ²(c, k).

    >>> from momentseek.benchmarks.datasets.annotation.labels import group_labels
    >>> rows = [(pair, worker, level) for pair, two in enumerate(["00", "11", "32", "44"])
    ...         for worker, level in enumerate(two)]
    >>> round(alpha(group_labels(rows), "interval"), 4)
    0.9536
    """
    per_pair = np.zeros((len(labels.pair_ids), LEVEL_COUNT))
    np.add.at(per_pair, (labels.pair, labels.relevance), 1)
    per_pair = per_pair[labels.counts >= 2]
    weight = 1 / np.maximum(1, per_pair.sum(axis=1) - 1)
    together = (per_pair * weight[:, None]).T @ per_pair - np.diag((per_pair * weight[:, None]).sum(axis=0))
    margin = together.sum(axis=1)
    level = np.arange(LEVEL_COUNT)
    if scale == "interval":
        cost = np.subtract.outer(level, level).astype(np.float64) ** 2
    else:
        # Labels up to a level, its own counting half: differences are the labels between two levels.
        middle = np.cumsum(margin) - margin / 2
        cost = np.subtract.outer(middle, middle) ** 2
    expected = np.outer(margin, margin) - np.diag(margin)
    return _beyond_chance(float((cost * together).sum() * (margin.sum() - 1)), float((cost * expected).sum()))


@dataclass(frozen=True, slots=True)
class TwoWorkers:
    """How much two workers agree on the pairs that both judged."""

    first: str
    second: str
    pairs: int
    same: float
    within_one: float
    kappa: float
    weighted: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much the workers of one file agree; ``pairs`` counts pairs with labels of at least two different workers."""

    pairs: int
    same: float
    within_one: float
    kappa: float
    weighted: float
    alpha_ordinal: float
    alpha_interval: float
    workers: tuple[TwoWorkers, ...]

    @property
    def mean_kappa(self) -> float:
        """The mean kappa over all couples of workers."""
        known = [w.kappa for w in self.workers if w.kappa == w.kappa]
        return float(np.mean(known)) if known else float("nan")


def measure_agreement(labels: AnnotatorLabels, minimum: int = MIN_COMMON_PAIRS) -> Agreement:
    """Measure agreement between the first two workers of every pair, among all workers, and of every two workers."""
    people = labels.first_labels()
    start = people.offsets[:-1][people.counts >= 2]
    table = np.zeros((LEVEL_COUNT, LEVEL_COUNT))
    np.add.at(table, (people.relevance[start], people.relevance[start + 1]), 1)
    return Agreement(
        len(start),
        *_shares(table),
        kappa(table),
        kappa(table, "quadratic"),
        alpha(people, "ordinal"),
        alpha(people, "interval"),
        tuple(couples(people, minimum)),
    )


def couples(people: AnnotatorLabels, minimum: int = MIN_COMMON_PAIRS) -> list[TwoWorkers]:
    """Return the agreement of every two workers with at least ``minimum`` common pairs, most pairs first."""
    tables: dict[tuple[int, int], FloatArray] = {}
    worker, level = people.worker.tolist(), people.relevance.tolist()
    for start, stop in pairwise(people.offsets.tolist()):
        for a, b in combinations(sorted(range(start, stop), key=worker.__getitem__), 2):
            table = tables.setdefault((worker[a], worker[b]), np.zeros((LEVEL_COUNT, LEVEL_COUNT)))
            table[level[a], level[b]] += 1
    shared = {two: int(table.sum()) for two, table in tables.items() if table.sum() >= minimum}
    return [
        TwoWorkers(
            people.workers[one],
            people.workers[other],
            shared[one, other],
            *_shares(tables[one, other]),
            kappa(tables[one, other]),
            kappa(tables[one, other], "quadratic"),
        )
        for one, other in sorted(shared, key=lambda two: (-shared[two], two))
    ]


def _shares(table: Any) -> tuple[float, float]:
    """Return the shares of equal levels, and of levels at most 1 apart."""
    total = max(1.0, float(table.sum()))
    near = np.trace(table) + np.trace(table, 1) + np.trace(table, -1)
    return float(np.trace(table)) / total, float(near) / total


def _beyond_chance(observed: float, expected: float) -> float:
    return 1 - observed / expected if expected > 0 else float("nan")


MIN_WORKERS = 3
"""Minimum number of workers per pair; with two, the median is their mean and cannot show who is right."""


@dataclass(frozen=True, slots=True)
class Examinee:
    """A worker's result: share of aligned labels, mean deviation, kappa with the truth, and labels to revise."""

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
        """Return the decision about every worker, and about every label to be judged again."""
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

    >>> from momentseek.benchmarks.datasets.annotation.labels import group_labels
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
    """Return the median level of each pair, rounded up.

    >>> from momentseek.benchmarks.datasets.annotation.labels import group_labels
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


def exam_text(found: Exam) -> str:
    """Render the report as text: who passes, and which labels to discuss."""
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


def exam_json(found: Exam) -> dict[str, Any]:
    """Return the report as one JSON object."""
    workers = [
        {**asdict(w), "misses": [{"pair_id": p, "label": label, "truth": t} for p, label, t in w.misses]}
        for w in found.workers
    ]
    report: dict[str, Any] = to_plain(
        {
            "source": found.labels.source,
            "pairs": len(found.labels.pair_ids),
            "share": found.share,
            "passed": sum(w.passed for w in found.workers),
            "failed": sum(not w.passed for w in found.workers),
            "misaligned": found.misaligned_share,
            "mean_kappa": found.mean_kappa,
            "workers": workers,
        }
    )
    return report


def build_exam(
    labels: str, *, out: str | None = None, report: str | None = None, pass_share: float = 1.0
) -> BuiltDataset:
    """Mark the exam in a file of labels; ``out`` gets the median level of each pair."""
    given = read_labels(labels)
    found = mark_exam(given, pass_share)
    files: dict[str | os.PathLike[str], bytes] = {}
    if out:
        sizes = given.people.tolist(), given.counts.tolist()
        files[out] = write_pairs(zip(given.pair_ids, found.truth.tolist(), *sizes, strict=True))
    if report:
        files[report] = as_json_lines(found.decisions())
    return BuiltDataset(files=files, summary=exam_json(found), text=exam_text(found))
