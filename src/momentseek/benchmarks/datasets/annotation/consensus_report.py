"""The report of ``momentseek data consensus``: what was kept and how much the workers agree, as text and JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.benchmarks.datasets.annotation.agreement import MIN_COMMON_PAIRS, Agreement, measure_agreement
from momentseek.benchmarks.datasets.annotation.candidates import build_truth, read_candidates
from momentseek.benchmarks.datasets.annotation.consensus import (
    LABELS_PER_PAIR,
    NUMBER_WORDS,
    Consensus,
    Drift,
    Incomplete,
    LabelDistributions,
    Repeats,
    draw_consensus,
    find_consensus,
    label_distributions,
    measure_drift,
)
from momentseek.benchmarks.datasets.annotation.labels import LEVEL_COUNT, read_labels, write_pairs
from momentseek.benchmarks.datasets.common import BuiltDataset, as_json_lines
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import IntArray
from momentseek.core.reports import count, decimals, text_table, to_plain
from momentseek.measuring.formats import FORMATS

MAX_COUPLES_SHOWN = 10


def consensus_text(
    found: Consensus, agreed: Agreement, drifts: Sequence[Drift], distributions: LabelDistributions
) -> str:
    """Render the whole report as text, for a reader who has never seen an annotation campaign."""
    labels, kept = found.labels, int(found.kept.sum())
    total = len(labels.pair_ids)
    head = (
        f"{count(total, 'pair')}, {count(len(labels), 'label')} by {count(len(labels.workers), 'worker')}\n"
        f"{kept:,} kept ({_percent(kept, total)}), {int((found.complete & ~found.kept).sum()):,} discarded"
    )
    if incomplete := int((~found.complete).sum()):
        head += f", {incomplete:,} dropped for having neither 2 nor 4 labels"
    counts = labels.counts
    again = labels.people < counts
    outcome = text_table(
        ["labels", "pairs", "kept", "discarded", "with a worker's second label"],
        [
            [
                NUMBER_WORDS[n],
                f"{(counts == n).sum():,}",
                f"{(found.kept & (counts == n)).sum():,}",
                f"{found.count_discarded(n):,}",
                f"{(again & (counts == n)).sum():,}",
            ]
            for n in LABELS_PER_PAIR
        ],
    )
    levels = text_table(
        ["level", "labels before", "", "pairs after", ""],
        [
            [str(level), f"{raw:,}", _percent(raw, len(labels)), f"{final:,}", _percent(final, kept)]
            for level, (raw, final) in enumerate(
                zip(distributions.raw.tolist(), distributions.final.tolist(), strict=True)
            )
        ],
    )
    return "\n\n".join(
        [
            head,
            outcome,
            f"Relevance, 0 irrelevant to {LEVEL_COUNT - 1} perfect:\n{levels}",
            f"Pairs (%) by their lowest (row) and highest (column) label, all labels:\n{_matrix(distributions.every)}",
            "The same by the first two labels, before two more were asked (if a pair's rows are in the order of "
            f"judging):\n{_matrix(distributions.first_two)}",
            f"And by the two labels that count:\n{_matrix(distributions.counting)}",
            _agreement(agreed),
            _drift(drifts),
        ]
    )


def _agreement(agreed: Agreement) -> str:
    lines = [
        f"Agreement between the first two workers of {count(agreed.pairs, 'pair')}: same level {agreed.same:.1%}, "
        f"at most 1 apart {agreed.within_one:.1%}",
        text_table(
            ["measure (1 perfect, 0 chance)", "value"],
            [
                ["Cohen's kappa (any difference counts alike)", decimals(agreed.kappa, 3)],
                ["quadratic-weighted kappa (large differences count more)", decimals(agreed.weighted, 3)],
                ["Krippendorff's alpha, ordinal (all labels)", decimals(agreed.alpha_ordinal, 3)],
                ["Krippendorff's alpha, interval (all labels)", decimals(agreed.alpha_interval, 3)],
            ],
        ),
    ]
    if agreed.workers:
        shown = agreed.workers[:MAX_COUPLES_SHOWN]
        lines += [
            "",
            f"Two workers with at least {MIN_COMMON_PAIRS} pairs in common "
            f"({count(len(agreed.workers), 'couple')}, mean kappa {decimals(agreed.mean_kappa, 3)}"
            f"{f'; the {MAX_COUPLES_SHOWN} with most pairs' if len(shown) < len(agreed.workers) else ''}):",
            text_table(
                ["workers", "pairs", "same", "at most 1 apart", "kappa", "weighted"],
                [
                    [
                        f"{w.first} and {w.second}",
                        f"{w.pairs:,}",
                        f"{w.same:.1%}",
                        f"{w.within_one:.1%}",
                        decimals(w.kappa, 3),
                        decimals(w.weighted, 3),
                    ]
                    for w in shown
                ],
            ),
        ]
    return "\n".join(lines)


def _drift(drifts: Sequence[Drift]) -> str:
    table = text_table(
        ["worker", "labels", "deviation", "1st tenth", *(str(i) for i in range(2, 10)), "last tenth"],
        [[d.worker, f"{d.labels:,}", *(decimals(x, 2, "+") for x in (d.deviation, *d.tenths))] for d in drifts],
    )
    return (
        "Each worker against the consensus (before rounding): above 0 they judge higher, and a change along "
        f"the row is a drift:\n{table}"
    )


def consensus_json(
    found: Consensus, agreed: Agreement, drifts: Sequence[Drift], distributions: LabelDistributions
) -> dict[str, Any]:
    """Return the whole report as one JSON object; undefined values are null."""
    labels, counts = found.labels, found.labels.counts
    result: dict[str, Any] = to_plain(
        {
            "source": labels.source,
            "pairs": len(labels.pair_ids),
            "labels": len(labels),
            "workers": len(labels.workers),
            "kept": int(found.kept.sum()),
            "discarded": int((found.complete & ~found.kept).sum()),
            "incomplete": int((~found.complete).sum()),
            "by_labels": {
                str(n): {
                    "pairs": int((counts == n).sum()),
                    "kept": int((found.kept & (counts == n)).sum()),
                    "discarded": found.count_discarded(n),
                    "one_annotator": int(((labels.people == 1) & (counts == n)).sum()),
                    "repeated_annotator": int(((labels.people < counts) & (counts == n)).sum()),
                }
                for n in LABELS_PER_PAIR
            },
            "levels": {str(level): n for level, n in enumerate(distributions.final.tolist())},
            "raw_levels": {str(level): n for level, n in enumerate(distributions.raw.tolist())},
            "lowest_highest": {
                "first_two": distributions.first_two.tolist(),
                "all": distributions.every.tolist(),
                "counting": distributions.counting.tolist(),
            },
            "repeated_labels": int(labels.repeated.sum()),
            "pairs_with_repeats": len(np.unique(labels.pair[labels.repeated])),
            "agreement": {**asdict(agreed), "mean_kappa": agreed.mean_kappa},
            "drift": [asdict(d) for d in drifts],
        }
    )
    return result


def _matrix(counts: IntArray) -> str:
    total = max(1, int(counts.sum()))
    return text_table(
        ["", *map(str, range(LEVEL_COUNT))],
        [
            [str(a), *(f"{100 * counts[a, b] / total:.2f}" if b >= a else "" for b in range(LEVEL_COUNT))]
            for a in range(LEVEL_COUNT)
        ],
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.2f} %"


def build_consensus(
    labels: str,
    *,
    out: str | None = None,
    report: str | None = None,
    plots: str | None = None,
    incomplete: Incomplete = "error",
    repeats: Repeats = "count",
    candidates: Sequence[str] = (),
    truth: str | None = None,
) -> BuiltDataset:
    """Find the consensus in a file of labels, and how much the workers agree.

    ``truth`` is a file to write the judged moments to as ground truth; it needs the ``candidates`` they came from.
    """
    given = read_labels(labels)
    if given.models:
        raise MomentseekError(
            f"{labels}: has labels of {given.models[0]}, which is a model; a consensus is among people. Remove them, "
            "and compare the two (`momentseek data calibrate`)"
        )
    found = find_consensus(given, incomplete=incomplete, repeats=repeats)
    if not found.complete.any():
        raise MomentseekError(f"{labels}: no pair has two or four labels, so nothing is left to agree on")
    if (out or truth) and not found.kept.any():
        raise MomentseekError(
            f"{labels}: there is no agreement on any pair, so there is nothing to write; leave out {parameter('out')} "
            f"and {parameter('truth')} to see the report"
        )
    sizes = given.people.tolist(), given.counts.tolist()
    judged = [row for row in zip(given.pair_ids, found.relevance.tolist(), *sizes, strict=True) if row[1] >= 0]
    parts = found, measure_agreement(given), measure_drift(found), label_distributions(found)
    files: dict[str | os.PathLike[str], bytes] = {}
    if plots:
        files |= {Path(plots) / name: data for name, data in draw_consensus(parts[3]).items()}
    if out:
        files[out] = write_pairs(judged)
    if report:
        files[report] = as_json_lines(found.decisions())
    if truth:
        pairs = [c for path in candidates for c in read_candidates(path)]
        writer = FORMATS["tvr-ranking" if truth.removesuffix(".gz").endswith(".json") else "native"]
        files[truth] = writer.to_bytes(build_truth(pairs, {pair: level for pair, level, *_ in judged}))
    return BuiltDataset(
        files=files,
        summary=consensus_json(*parts),
        text=consensus_text(*parts),
        notes=[_repeat_note(found)] if given.repeated.any() else [],
    )


def _repeat_note(found: Consensus) -> str:
    given = found.labels
    alone = int((found.complete & (given.people == 1)).sum())
    return (
        f"in {count(len(set(given.pair[given.repeated].tolist())), 'pair')} a worker judged more than once"
        f"{f', and in {alone:,} of them all labels are by one worker' if alone else ''}; each label counts, but "
        f"agreement is measured between different workers only ({parameter('repeats', 'error')} refuses them)"
    )
