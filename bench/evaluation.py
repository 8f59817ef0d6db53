"""How long an evaluation takes, and where the time goes.

    make bench            (or: python bench/evaluation.py [--quick] [--tvr-ranking CHECKOUT])

1. Graded ranking: 2,781 queries × 100 predictions × ~29 judged moments, 3 cut-offs × 3 thresholds: the whole
   command from process start to printed table, its parts, and a straightforward Python implementation of the
   same definition, which must give the same nine numbers: its computing in the same process, and a whole program of
   it that reads the files with `json`. A round of one follows a round of the other. Likewise in the way of the public
   evaluator, which we wrote from a description (`public_way`).
2. QVHighlights: 1,550 queries, the whole command with --official.
3. Cost by number of queries, up to 100,000.

Figures are ratios measured side by side; seconds depend on the machine. Data are generated (seeded).
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import read_run, read_truth
from momentseek.measuring.measures import PROTOCOLS, Alignment, parse_all
from record import Record, family_time, rounds

CUTOFFS, THRESHOLDS = (10, 20, 40), (0.3, 0.5, 0.7)


def generate(queries: int, predictions: int, moments: int, seed: int = 0) -> tuple[dict, dict]:
    """TVR-like judgements and predictions: half of these near a judged moment, all on a 1.5 s grid."""
    rng = np.random.default_rng(seed)
    names = [f"show_s{i // 500:02d}e{i % 500:03d}_clip" for i in range(20_000)]
    truth, run = {}, {}
    for q in range(queries):
        n = int(rng.integers(moments - 9, moments + 10))
        video = rng.integers(0, len(names), n)
        video[1::4] = video[: len(video[1::4])]  # several judged moments in one video
        start = np.round(rng.uniform(0, 60, n), 2)
        end = np.round(start + rng.gamma(2, 4.5, n) + 0.5, 2)
        relevance = rng.choice(5, n, p=[0.13, 0.23, 0.3, 0.22, 0.12])
        truth[q] = [
            (names[v], float(s), float(e), int(r)) for v, s, e, r in zip(video, start, end, relevance, strict=True)
        ]
        near = rng.integers(0, n, predictions)
        hit = rng.random(predictions) < 0.5
        pv = np.where(hit, video[near], rng.integers(0, len(names), predictions))
        ps = np.maximum(0, np.round((start[near] + rng.normal(0, 3, predictions)) / 1.5) * 1.5)
        pe = np.maximum(ps + 1.5, np.round((end[near] + rng.normal(0, 3, predictions)) / 1.5) * 1.5)
        run[q] = [(names[v], float(s), float(e)) for v, s, e in zip(pv, ps, pe, strict=True)]
    return truth, run


def records(truth: dict, run: dict) -> tuple[list[dict], dict[str, list[dict]]]:
    """The same data in the form of TVR-Ranking's own files."""
    gt = [
        {
            "query_id": q,
            "query": f"query {q}",
            "relevant_moment": [
                {
                    "pair_id": i,
                    "video_name": v,
                    "timestamp": [s, e],
                    "duration": 90.0,
                    "caption": "",
                    "similarity": 0.5,
                    "relevance": r,
                }
                for i, (v, s, e, r) in enumerate(moments)
            ],
        }
        for q, moments in truth.items()
    ]
    predicted = {
        str(q): [{"video_name": v, "timestamp": [s, e], "model_scores": -i} for i, (v, s, e) in enumerate(rows)]
        for q, rows in run.items()
    }
    return gt, predicted


def straightforward(truth: list[dict], run: dict[str, list[dict]]) -> dict[tuple[int, float], float]:
    """TVR-Ranking §4 as one would write it down for its files: loops over queries, thresholds and predictions."""

    def iou(p: list[float], g: list[float]) -> float:
        inter = max(0, min(p[1], g[1]) - max(p[0], g[0]))
        union = (p[1] - p[0]) + (g[1] - g[0]) - inter
        return inter / union if union > 0 else 0

    def dcg(grades: list[int]) -> float:
        return sum((2**grade - 1) / math.log2(i + 2) for i, grade in enumerate(grades))

    moments = {str(entry["query_id"]): entry["relevant_moment"] for entry in truth}
    scores: dict[tuple[int, float], list[float]] = {(k, t): [] for k in CUTOFFS for t in THRESHOLDS}
    for query, predictions in run.items():
        judged = sorted(moments[query], key=lambda m: m["relevance"], reverse=True)
        for threshold in THRESHOLDS:
            left = list(judged)
            grades = []
            for prediction in predictions:
                best, best_overlap = None, 0.0
                for moment in left:
                    if moment["video_name"] == prediction["video_name"]:
                        overlap = iou(prediction["timestamp"], moment["timestamp"])
                        if overlap > best_overlap:
                            best, best_overlap = moment, overlap
                if best is not None and best_overlap > threshold:
                    grades.append(best["relevance"])
                    left.remove(best)
                else:
                    grades.append(0)
            for k in CUTOFFS:
                ideal = dcg([m["relevance"] for m in judged[:k]])
                scores[k, threshold].append(dcg(grades[:k]) / ideal if ideal else 0.0)
    return {cell: float(np.mean(values)) for cell, values in scores.items()}


def public_way(truth: list[dict], run: dict[str, list[dict]]) -> dict[tuple[int, float], float]:
    """The same nine numbers in the way of the public evaluator, written by us from a description of it.

    Which is: the moments sorted in place; a deep copy of them for every threshold; for every prediction a scan of those
    left for its video, a list of overlaps and `np.argmax` of it; `np.log2` for every rank; `np.mean` over queries.
    """
    moments = {str(entry["query_id"]): entry["relevant_moment"] for entry in truth}
    scores: dict[int, dict[float, list[float]]] = {k: {t: [] for t in THRESHOLDS} for k in CUTOFFS}
    for query, predictions in run.items():
        moments[query].sort(key=lambda m: m["relevance"], reverse=True)
        for threshold in THRESHOLDS:
            left = copy.deepcopy(moments[query])
            for prediction in predictions:
                there = [(i, m) for i, m in enumerate(left) if m["video_name"] == prediction["video_name"]]
                prediction["pred_relevance"] = 0
                if not there:
                    continue
                start, end = prediction["timestamp"]
                overlaps = []
                for _, moment in there:
                    first, last = moment["timestamp"]
                    inter = max(0, min(end, last) - max(start, first))
                    union = (end - start) + (last - first) - inter
                    overlaps.append(inter / union if union > 0 else 0)
                best = int(np.argmax(overlaps))
                if overlaps[best] > threshold:
                    prediction["pred_relevance"] = there[best][1]["relevance"]
                    del left[there[best][0]]
            for k in CUTOFFS:
                grades = [p["pred_relevance"] for p in predictions[:k]]
                ideal = [m["relevance"] for m in moments[query][:k]]
                dcg, idcg = (sum((2**g - 1) / np.log2(i + 2) for i, g in enumerate(some)) for some in (grades, ideal))
                scores[k][threshold].append(dcg / idcg if idcg else 0.0)
    return {(k, t): float(np.mean(scores[k][t])) for k in CUTOFFS for t in THRESHOLDS}


def tables(truth: dict, run: dict) -> tuple[Judgements, Run]:
    """The same data in memory."""
    judged = Judgements.from_rows([(q, *m) for q, moments in truth.items() for m in moments])
    return judged, Run.from_rows([(q, *p, -i) for q, rows in run.items() for i, p in enumerate(rows)])


def compute(judged: Judgements, run: Run) -> dict[tuple[int, float], float]:
    rules = PROTOCOLS["tvr-ranking"]
    view = Alignment(run, judged, max(CUTOFFS))
    return {(m.k, m.iou): m.summarise(m(view)) for m in parse_all(rules.measures, rules.options)}  # type: ignore[attr-defined]


def median_of(n: int, action: Callable[[], object]) -> float:
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def command(*arguments: object) -> None:
    subprocess.run(
        [sys.executable, "-m", "momentseek", *map(str, arguments)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def authors(checkout: Path, truth: list[dict], run: dict[str, list[dict]]) -> float:
    """Seconds of TVR-Ranking's own calculate_ndcg_iou, from a checkout of their repository; it needs pandas."""
    sys.path.insert(0, str(checkout))
    from modules.ndcg_iou import calculate_ndcg_iou  # type: ignore[import-not-found]

    moments = {str(entry["query_id"]): list(entry["relevant_moment"]) for entry in truth}
    return median_of(1, partial(calculate_ndcg_iou, moments, run, list(THRESHOLDS), list(CUTOFFS)))


def ranking(folder: Path, queries: int, checkout: Path | None, record: Record) -> None:
    truth, run = generate(queries, 100, 29)
    gt, predictions = folder / "truth.json", folder / "run.json"
    as_records = records(truth, run)
    gt.write_text(json.dumps(as_records[0]))
    predictions.write_text(json.dumps(as_records[1]))
    judged, ranked = tables(truth, run)
    gc.collect()
    gc.freeze()  # the collector's walks over the records above would be timed otherwise
    plain = "straightforward Python"
    asked = ("evaluate", predictions, "--truth", gt, "--protocol", "tvr-ranking")
    loops = [sys.executable, __file__, "--straightforward", str(gt), str(predictions)]
    programs = {"ours": lambda: command(*asked), plain: lambda: subprocess.run(loops, check=True, capture_output=True)}
    whole_rounds = rounds(programs, 5, family_time)
    parts = {"ours": lambda: compute(judged, ranked), plain: lambda: straightforward(*as_records)}
    part_rounds = rounds(parts, 5, time.process_time)
    record.ratio("whole command, processor's time", whole_rounds["ours"], plain, whole_rounds[plain])
    record.ratio("computing, processor's time", part_rounds["ours"], plain, part_rounds[plain])
    public = "the public evaluator's way (written by us from its description)"
    theirs = [sys.executable, __file__, "--public-way", str(gt), str(predictions)]
    programs = {"ours": programs["ours"], public: lambda: subprocess.run(theirs, check=True, capture_output=True)}
    parts = {"ours": parts["ours"], public: lambda: public_way(*as_records)}
    slow_rounds, slow_parts = rounds(programs, 3, family_time), rounds(parts, 3, time.process_time)
    record.ratio("whole command, processor's time", slow_rounds["ours"], public, slow_rounds[public])
    record.ratio("computing, processor's time", slow_parts["ours"], public, slow_parts[public])
    record.figure("computing, processor's time", part_rounds["ours"], "s")
    whole = median_of(5, lambda: command(*asked))
    startup = median_of(
        5, lambda: subprocess.run([sys.executable, "-c", "import momentseek.cli.measure, numpy, orjson"], check=True)
    )
    reading = median_of(3, lambda: (read_truth(gt), read_run(predictions)))
    computing = median_of(15, lambda: compute(judged, ranked))
    reference = straightforward(*as_records)
    assert all(math.isclose(value, reference[c], rel_tol=1e-12) for c, value in public_way(*as_records).items())
    naive = median_of(3, lambda: straightforward(*as_records))
    ours = compute(judged, ranked)
    worst = max(abs(ours[c] - reference[c]) for c in reference)
    size = (gt.stat().st_size + predictions.stat().st_size) / 1e6
    print(
        f"Graded ranking: {queries:,} queries × 100 predictions × ~29 judged moments, 9 cells ({size:.0f} MB of JSON)"
    )
    print(f"  whole command          {whole:7.3f} s   (median of 5; goal < 1 s on an idle machine)")
    print(f"    start-up             {startup:7.3f} s")
    print(f"    reading              {reading:7.3f} s")
    print(f"    computing            {computing:7.3f} s")
    print(f"  straightforward Python {naive:7.3f} s   computing only, same definition")
    print(f"  computing ratio        {naive / computing:7.0f} ×   (goal 100 ×)")
    print(f"  largest difference     {worst:.1e}")
    if checkout:
        theirs = authors(checkout, *as_records)
        ratios = f"{theirs / computing:.0f} × ours, {theirs / naive:.1f} × straightforward"
        print(f"  TVR-Ranking's own      {theirs:7.3f} s   {ratios}")
        record.ratio("computing", [computing], "TVR-Ranking's own code", [theirs])


def qvhighlights(folder: Path, queries: int = 1550) -> None:
    rng = np.random.default_rng(1)
    truth, submission = [], []
    for q in range(queries):
        windows = [[int(2 * a), int(2 * a + 2 * n)] for a, n in rng.integers([0, 1], [60, 15], (2, 2))]
        clips = sorted({c for a, b in windows for c in range(a // 2, min(75, b // 2))})
        truth.append(
            {
                "qid": q,
                "query": "",
                "duration": 150,
                "vid": f"v{q}",
                "relevant_windows": windows,
                "relevant_clip_ids": clips,
                "saliency_scores": rng.integers(0, 5, (len(clips), 3)).tolist(),
            }
        )
        start = rng.uniform(0, 100, 10)
        rows = np.stack([start, start + rng.uniform(2, 50, 10), np.sort(rng.random(10))[::-1]], 1).round(4).tolist()
        submission.append(
            {
                "qid": q,
                "query": "",
                "vid": f"v{q}",
                "pred_relevant_windows": rows,
                "pred_saliency_scores": rng.normal(size=75).round(4).tolist(),
            }
        )
    gt, predicted = folder / "qvh.jsonl", folder / "qvh_run.jsonl"
    for path, rows in ((gt, truth), (predicted, submission)):
        path.write_text("\n".join(map(json.dumps, rows)))
    whole = median_of(5, lambda: command("evaluate", predicted, "--truth", gt, "--official"))
    print(f"\nQVHighlights: {queries:,} queries, windows and saliency, official report")
    print(f"  whole command          {whole:7.3f} s   (goal < 3 s)")


def scaling(sizes: tuple[int, ...]) -> None:
    print("\nCost by number of queries (100 predictions, ~29 judged moments, 9 cells)")
    base = generate(1000, 100, 29)
    for n in sizes:
        truth = {f"{copy}-{q}": m for copy in range(n // 1000) for q, m in base[0].items()}
        run = {f"{copy}-{q}": p for copy in range(n // 1000) for q, p in base[1].items()}
        judged, ranked = tables(truth, run)
        seconds = median_of(3, partial(compute, judged, ranked))
        print(f"  {n:>7,} queries        {seconds:7.3f} s   {1e6 * seconds / n:6.1f} µs per query")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, for a first look")
    parser.add_argument(
        "--tvr-ranking",
        type=Path,
        metavar="DIR",
        help="a checkout of TVR-Ranking, to time its evaluator (pandas)",
    )
    parser.add_argument("--straightforward", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--public-way", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if files := options.straightforward or options.public_way:
        way = straightforward if options.straightforward else public_way
        print(way(*(json.loads(path.read_text()) for path in files)))
        return
    quick = options.quick
    record = Record("evaluation")
    with tempfile.TemporaryDirectory() as folder:
        ranking(Path(folder), 278 if quick else 2781, options.tvr_ranking, record)
        qvhighlights(Path(folder), 155 if quick else 1550)
    scaling((1000, 10_000) if quick else (1000, 10_000, 100_000))
    record.save()


if __name__ == "__main__":
    main()
