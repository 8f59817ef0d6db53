"""Compare a model's judgements of relevance with people's: kappa, confusion and bias, with intervals by query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentseek.benchmarks.datasets.annotation.agreement import kappa, medians
from momentseek.benchmarks.datasets.annotation.candidates import read_candidates
from momentseek.benchmarks.datasets.annotation.labels import (
    LEVEL_COUNT,
    AnnotatorLabels,
    read_labels,
    read_pairs,
)
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray, encode_names
from momentseek.core.reports import NO_VALUE, count, decimals, text_table, to_plain
from momentseek.measuring.formats.document import header_of, open_document
from momentseek.measuring.resampling import BOOTSTRAP_RESAMPLES, CONFIDENCE_LEVEL, percentiles

LEVELS = np.arange(LEVEL_COUNT)
Estimate = tuple[float, float, float]
"""A value with the ends of its 95 % interval."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A model's levels against people's, over the pairs that both judged."""

    judge: str
    pairs: int
    queries: int
    confusion: IntArray
    """(5, 5): number of pairs by people's level (row) and the model's level (column)."""
    kappa: Estimate
    """Quadratic weighted: 1 is agreement, 0 is chance."""
    exact: Estimate
    within_one: Estimate
    bias: Estimate
    """Mean of the model's level minus people's; above 0 if the model is too generous."""
    bias_by_level: tuple[Estimate, ...]
    """The same for the pairs of each level that people gave."""
    people: float
    """Quadratic weighted kappa between two people on the same pairs; NaN if not known."""
    only_model: int
    only_people: int


def calibrate(
    model: Mapping[str, int],
    people: Mapping[str, int],
    queries: Mapping[str, str],
    *,
    judge: str = "model",
    ceiling: float = float("nan"),
    seed: int = 0,
) -> Calibration:
    """Compare levels by pair; ``queries`` names each pair's query, and intervals draw whole queries.

    >>> found = calibrate({"a": 4, "b": 0, "c": 2}, {"a": 4, "b": 1, "c": 2}, {"a": "q", "b": "p", "c": "r"})
    >>> round(found.kappa[0], 3), round(found.bias[0], 3), int(found.confusion[1, 0])
    (0.923, -0.333, 1)
    """
    common = [pair for pair in model if pair in people]
    if not common:
        raise MomentseekError("no pair was judged by both the model and people; give labels of the same pairs")
    theirs, ours = np.array([people[p] for p in common]), np.array([model[p] for p in common])
    names, query = encode_names([queries.get(pair, pair) for pair in common])
    tables = np.zeros((len(names), LEVEL_COUNT, LEVEL_COUNT))
    np.add.at(tables, (query, theirs, ours), 1)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=BOOTSTRAP_RESAMPLES)
    sums = np.tensordot(drawn.astype(np.float64), tables, axes=1)
    table = tables.sum(axis=0)
    whole, parts = _figures(table[None]), _figures(sums)
    low, high = percentiles(parts, CONFIDENCE_LEVEL)
    estimates = [(float(v), float(a), float(b)) for v, a, b in zip(whole[0], low, high, strict=True)]
    return Calibration(
        judge=judge,
        pairs=len(common),
        queries=len(names),
        confusion=table.astype(np.int64),
        kappa=estimates[0],
        exact=estimates[1],
        within_one=estimates[2],
        bias=estimates[3],
        bias_by_level=tuple(estimates[4:]),
        people=ceiling,
        only_model=len(model) - len(common),
        only_people=len(people) - len(common),
    )


def _figures(tables: FloatArray) -> FloatArray:
    """Return kappa, exact share, share within one, bias, and bias by people's level, (tables, figures)."""
    gap = LEVELS[None, :] - LEVELS[:, None]
    total = tables.sum(axis=(1, 2))
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    cost = (gap**2).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.einsum("ti,ij,tj->t", rows, cost, columns) / total
        agreement = 1 - (tables * cost).sum(axis=(1, 2)) / expected
        exact = np.einsum("tii->t", tables) / total
        near = (tables * (np.abs(gap) <= 1)).sum(axis=(1, 2)) / total
        bias = (tables * gap).sum(axis=(1, 2)) / total
        by_level = (tables * gap).sum(axis=2) / rows
    return np.column_stack([agreement, exact, near, bias, by_level])


def two_people_kappa(labels: AnnotatorLabels) -> float:
    """Return the quadratic weighted kappa of the first two different people on each pair, counted in both orders."""
    first = labels.first_labels()
    table = np.zeros((LEVEL_COUNT, LEVEL_COUNT))
    for start, number in zip(first.offsets[:-1].tolist(), first.counts.tolist(), strict=True):
        if number >= 2:
            one, two = first.relevance[start], first.relevance[start + 1]
            table[one, two] += 1
            table[two, one] += 1
    return kappa(table, "quadratic") if table.any() else float("nan")


def calibrate_files(model: str, people: str, candidates: str | None = None) -> Calibration:
    """Compare a model's labels with people's labels (the median of a pair counts) or judged pairs.

    A pair's query comes from ``candidates``, or is the part of its id before the last ``/``.
    """
    ours = read_labels(model)
    if len(ours.models) != 1 or len(ours.workers) != 1:
        raise MomentseekError(
            f"{model}: expected the labels of one model, found those of {', '.join(ours.workers[:3])}; give the file "
            "that `momentseek data judge` wrote"
        )
    given = dict(zip([ours.pair_ids[p] for p in ours.pair.tolist()], ours.relevance.tolist(), strict=True))
    ceiling = float("nan")
    if "worker" in header_of(open_document(people)):
        labels = read_labels(people)
        if labels.models:
            raise MomentseekError(f"{people}: has labels of {labels.models[0]}; give only people's labels")
        levels = dict(zip(labels.pair_ids, medians(labels).tolist(), strict=True))
        ceiling = two_people_kappa(labels)
    else:
        levels = read_pairs(people)
    queries = {pair: pair.rpartition("/")[0] or pair for pair in given}
    if candidates:
        queries |= {c.pair_id: c.query_id for c in read_candidates(candidates)}
    return calibrate(given, levels, queries, judge=ours.workers[0], ceiling=ceiling)


def calibration_text(found: Calibration) -> str:
    """Render the report as text."""

    def interval(estimate: Estimate, sign: str = "") -> str:
        value, low, high = estimate
        if value != value:
            return NO_VALUE
        return f"{decimals(value, 2, sign)} [{decimals(low, 2, sign)}, {decimals(high, 2, sign)}]"

    lines = [
        f"{found.judge} against people: {count(found.pairs, 'pair')} of {count(found.queries, 'query', 'queries')} "
        f"that both judged ({found.only_model:,} by the model alone, {found.only_people:,} by people alone)",
        f"quadratic weighted kappa {interval(found.kappa)}"
        + (f"; between two people {found.people:.2f}" if found.people == found.people else ""),
        f"same level {interval(found.exact)}, within one {interval(found.within_one)}",
        f"bias {interval(found.bias, '+')} levels; above 0 the model is more generous than people",
    ]
    rows = [
        [str(level), *(f"{n:,}" for n in row), interval(found.bias_by_level[level], "+")]
        for level, row in enumerate(found.confusion.tolist())
    ]
    table = text_table(["people \\ model", *map(str, LEVELS.tolist()), "bias"], rows, align="lr")
    return "\n".join(lines) + f"\n\n{table}\n\nBrackets: 95 % bootstrap interval over queries."


def calibration_json(found: Calibration) -> dict[str, Any]:
    """Return the report as one JSON object; estimates are [value, low, high]."""
    plain: dict[str, Any] = to_plain(found)
    return plain
