"""Compare runs on the same queries: which is better, by how much, and whether chance could explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.measuring.comparison import LETTERS, Comparison, QueryDifference, RunPair
from momentseek.measuring.replicates import cluster_sums, replicated_test, smallest_findable, video_clusters
from momentseek.measuring.resampling import (
    CONFIDENCE_LEVEL,
    bootstrap_means,
    exchange_test,
    percentiles,
    resampled_figures,
)
from momentseek.measuring.result import Evaluation
from momentseek.measuring.significance import (
    differences,
    effect_size,
    holm,
    outcomes,
    paired_t_test,
    randomisation_test,
    t_quantile,
    tukey_test,
)

Test = Literal["randomisation", "t", "tukey"]
Correction = Literal["holm", "none"]
TESTS: tuple[str, ...] = get_args(Test)
CORRECTIONS: tuple[str, ...] = get_args(Correction)
CLUSTERS = ("video", "none")
"""Unit of resampling and randomisation: all queries of a video together, or each query separately."""


System = Evaluation | Sequence[Evaluation]
"""One run, or the runs of one system with several seeds."""


def compare(
    systems: Sequence[System],
    *,
    test: str = "randomisation",
    correction: str = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    cluster: str = "video",
) -> Comparison:
    """Compare evaluations of several runs against one truth, with paired significance tests.

    Queries that share a video are exchanged and drawn together, unless ``cluster`` is ``none``. For a system with
    several runs, one per seed, the mean over seeds counts for each query, and the test is Student's over videos and
    seeds (``replicates.replicated_test``).

    ``test`` is ``randomisation`` (Fisher's, assumes nothing), ``t`` (Student's) or ``tukey`` (all runs at once).
    The correction is over the pairs of runs, within each measure; ``tukey`` has its own. BLEU and METEOR are not means
    over captions, so only the randomisation test applies: it exchanges the two systems' captions.

    >>> from momentseek.measuring.evaluate import evaluate
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([(q, f"video {q}", 0, 10, 4) for q in range(8)])
    >>> good = Run.from_rows([(q, f"video {q}", 0, 9, 1.0) for q in range(8)])
    >>> poor = Run.from_rows([(q, f"video {q}", 0, 9 if q < 1 else 3, 1.0) for q in range(8)])
    >>> runs = [evaluate(r, truth, "R@1[IoU>=0.5]", label=name) for r, name in [(good, "good"), (poor, "poor")]]
    >>> comparison = compare(runs)
    >>> comparison.means.ravel().tolist(), comparison.pairs[0].p, comparison.beaten("R@1[IoU>=0.5]", "good")
    ([1.0, 0.125], 0.015625, 'b')
    """
    groups = _groups(systems, test, correction, alpha, cluster)
    evaluations, seeded = [group[0] for group in groups], any(len(group) > 1 for group in groups)
    labels, head = unique_labels([e.run for e in evaluations]), evaluations[0]
    clusters = video_clusters(head.judgements) if cluster == "video" else None
    values = np.stack([np.mean([e.values for e in group], axis=0) for group in groups], axis=1)
    out = np.asarray(np.isnan(values).any(axis=1))
    values = np.where(out[:, None], np.nan, values)
    queries, runs, measures = values.shape
    first, second = np.triu_indices(runs, k=1)
    apart = differences(values[:, first], values[:, second]).reshape(queries, -1)
    p_seeds, error, freedom = _seed_tests(groups, out, first, second, clusters)
    test, raw = ("seeds", p_seeds) if seeded else (test, _pair_tests(cluster_sums(apart, clusters), test, seed))
    if test == "tukey":
        correction, raw = "tukey", tukey_test(cluster_sums(values, clusters), seed=seed)[first, second]
    raw = raw.reshape(-1, measures)
    whole = [m for m, name in enumerate(head.names) if name in head.parts]
    pooled = [_without(evaluation, out) for evaluation in evaluations] if whole else []
    for m in whole:
        both = zip(first, second, strict=True)
        raw[:, m] = [exchange_test(pooled[a], pooled[b], head.names[m], seed=seed) for a, b in both]
    p = np.stack([holm(column) for column in raw.T], axis=1) if correction == "holm" else raw
    resampled = bootstrap_means(values.reshape(queries, -1), clusters=clusters, seed=seed).reshape(-1, runs, measures)
    for r, evaluation in enumerate(pooled):
        resampled[:, r, whole] = resampled_figures(evaluation, np.ones(queries, dtype=bool), seed=seed)[:, whole]
    low, high = percentiles((resampled[:, first] - resampled[:, second]).reshape(len(resampled), -1), CONFIDENCE_LEVEL)
    if seeded:  # a bootstrap of queries alone would ignore the variance over seeds
        half = error * np.vectorize(t_quantile)(1 - CONFIDENCE_LEVEL, freedom)
        low, high = (np.nanmean(apart, axis=0) + side * half.reshape(-1) for side in (-1, 1))
    better = np.array([-1.0 if measure.LOWER_IS_BETTER else 1.0 for measure in head.measures])
    wins, ties, losses = outcomes((apart.reshape(queries, -1, measures) * better).reshape(queries, -1))
    effect = effect_size(apart)
    mean = _run_means(values, pooled, whole)

    def pair(m: int, k: int) -> RunPair:
        flat = k * measures + m
        return RunPair(
            measure=head.names[m],
            first=labels[first[k]],
            second=labels[second[k]],
            difference=float(mean[first[k], m] - mean[second[k], m]) if m in whole else _mean(apart[:, flat]),
            low=float(low[flat]),
            high=float(high[flat]),
            p=float(p[k, m]),
            p_uncorrected=float(raw[k, m]),
            effect=float(effect[flat]),
            wins=int(wins[flat]),
            ties=int(ties[flat]),
            losses=int(losses[flat]),
            significant=bool(p[k, m] <= alpha),
            findable=smallest_findable(float(error[k, m]), float(freedom[k, m]), alpha),
        )

    return Comparison(
        protocol=head.protocol,
        test=test,
        correction=correction,
        alpha=alpha,
        seed=seed,
        percent=head.percent,
        runs=labels,
        names=head.names,
        queries=queries,
        left_out=tuple(out.sum(axis=0).tolist()),
        means=mean,
        pairs=tuple(pair(m, k) for m in range(measures) for k in range(len(first))),
        asked=head.asked,
        titles=head.titles,
        videos=None if clusters is None else int(clusters.max()) + 1,
        seeds=tuple(len(group) for group in groups),
        lower=tuple(measure.name for measure in head.measures if measure.LOWER_IS_BETTER),
    )


def _groups(
    systems: Sequence[System], test: str, correction: str, alpha: float, cluster: str
) -> list[list[Evaluation]]:
    """Return the runs of every system after checking all arguments."""
    groups = [[system] if isinstance(system, Evaluation) else list(system) for system in systems]
    _check(groups, test, correction, alpha, any(len(group) > 1 for group in groups))
    if cluster not in CLUSTERS:
        raise MomentseekError(f"there is no cluster {cluster!r}; choose {' or '.join(CLUSTERS)}")
    return groups


def _pair_tests(apart: FloatArray, test: str, seed: int) -> FloatArray:
    return randomisation_test(apart, seed=seed) if test == "randomisation" else paired_t_test(apart)


def _seed_tests(
    groups: Sequence[Sequence[Evaluation]],
    out: BoolArray,
    first: IntArray,
    second: IntArray,
    clusters: IntArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return p-values over videos and seeds, standard errors, and degrees of freedom; each (pairs, measures)."""
    seeds = [np.where(out, np.nan, np.stack([e.values for e in group])) for group in groups]
    found = np.array(
        [
            [replicated_test(seeds[a][..., m], seeds[b][..., m], clusters) for m in range(out.shape[1])]
            for a, b in zip(first, second, strict=True)
        ]
    ).reshape(len(first), -1, 3)
    return found[..., 0], found[..., 1], found[..., 2]


def largest_differences(first: Evaluation, second: Evaluation, measure: str, n: int = 10) -> list[QueryDifference]:
    """Return the queries on which two runs differ most, the largest difference first.

    >>> from momentseek.measuring.evaluate import evaluate
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q1", "video", 0, 10, 4), ("q2", "video", 0, 10, 4)])
    >>> one, two = (Run.from_rows([("q1", "video", 0, 9, 1.0), ("q2", "video", 0, end, 1.0)]) for end in (8, 5))
    >>> largest_differences(*(evaluate(run, truth, "AxIoU@1") for run in (one, two)), "AxIoU@1")
    [QueryDifference(query_id='q2', query=None, first=0.8, second=0.5, difference=0.30000000000000004)]
    """
    if measure not in first.names:
        raise MomentseekError(f"measure {measure!r} was not computed; there are {', '.join(first.names)}")
    column = first.names.index(measure)
    one, two = first.values[:, column], second.values[:, column]
    apart = np.nan_to_num(differences(one, two))
    order = np.argsort(-np.abs(apart), kind="stable")[: min(n, np.count_nonzero(apart))]
    texts = first.queries
    return [
        QueryDifference(first.query_ids[q], texts[q] if texts else None, float(one[q]), float(two[q]), float(apart[q]))
        for q in order.tolist()
    ]


def unique_labels(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with a number added to repeated ones.

    >>> unique_labels(["run", "other", "run"])
    ('run', 'other', 'run (2)')
    """
    seen: Counter[str] = Counter()
    labels: list[str] = []
    for name in names:
        label = name
        while label in labels or (label != name and label in names):
            seen[name] += 1
            label = f"{name} ({seen[name] + 1})"
        labels.append(label)
    return tuple(labels)


def _without(evaluation: Evaluation, out: BoolArray) -> Evaluation:
    """Return the evaluation without the queries in ``out`` (queries, measures), which do not count for some run."""
    position = evaluation.names.index
    parts = {name: np.where(out[:, [position(name)]], np.nan, rows) for name, rows in evaluation.parts.items()}
    return replace(evaluation, parts=parts)


def _run_means(values: FloatArray, pooled: Sequence[Evaluation], whole: Sequence[int]) -> FloatArray:
    """Return the mean of every run and measure; measures in ``whole`` take theirs from the ``pooled`` evaluations."""
    means = np.array([[_mean(column) for column in run.T] for run in values.swapaxes(0, 1)])
    for r, evaluation in enumerate(pooled):
        means[r, whole] = [evaluation.means[evaluation.names[m]] for m in whole]
    return means


def _mean(values: FloatArray) -> float:
    counting = values[~np.isnan(values)]
    return float(counting.mean()) if len(counting) else float("nan")


def _check(groups: Sequence[Sequence[Evaluation]], test: str, correction: str, alpha: float, seeded: bool) -> None:
    evaluations = [group[0] for group in groups]
    if len(evaluations) < 2:
        raise MomentseekError("a comparison needs at least two runs")
    if len(evaluations) > len(LETTERS):
        raise MomentseekError(f"{len(evaluations)} runs are too many for one comparison; give at most {len(LETTERS)}")
    for choice, options, what in ((test, TESTS, "test"), (correction, CORRECTIONS, "correction")):
        if choice not in options:
            raise MomentseekError(f"there is no {what} {choice!r}; choose {' or '.join(options)}")
    if not 0 < alpha < 1:
        raise MomentseekError(f"alpha must be between 0 and 1, not {alpha:g}")
    head = evaluations[0]
    if head.parts and test != "randomisation":
        raise MomentseekError(
            f"{', '.join(head.parts)}: figures of all captions together, for which there is only the randomisation "
            f"test ({parameter('test', 'randomisation')}); or choose other measures"
        )
    if seeded and head.parts:
        raise MomentseekError(f"{', '.join(head.parts)}: are no means over captions, so seeds cannot be joined")
    if seeded and test == "tukey":
        raise MomentseekError(f"seeds of one system are tested pair by pair; leave out {parameter('test', 'tukey')}")
    for other in [e for group in groups for e in group][1:]:
        for what, mine, theirs in (
            ("protocols", head.protocol, other.protocol),
            ("measures", head.names, other.names),
            ("queries", head.query_ids, other.query_ids),
        ):
            if mine != theirs:
                raise MomentseekError(
                    f"{head.run} and {other.run} cannot be compared: their {what} differ; "
                    "evaluate both against the same truth, with the same measures and protocol"
                )
