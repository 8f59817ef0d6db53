"""The report of the qualification exam, in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from momentseek.construct.annotation.exam import Exam
from momentseek.tables import count, text_table

MAX_MISSES_SHOWN = 20


def as_text(found: Exam) -> str:
    """Who passes, and which labels to talk about."""
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
                "–" if w.kappa != w.kappa else f"{w.kappa:.2f}",
            ]
            for w in found.workers
        ],
        align="llr",
    )
    misses = [(w.worker, *miss) for w in found.workers for miss in w.misses]
    kappa = "–" if found.mean_kappa != found.mean_kappa else f"{found.mean_kappa:.2f}"
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
    """The same as one JSON object."""
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
