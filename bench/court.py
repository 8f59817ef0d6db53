"""Slate next to ReLoCLNet where the default corpus is too kind to it: variants of the simulated corpus, paired.

    python bench/court.py --out DIR [--variants default,camera] [--rows slate,reloclnet] [--corpora 0,1,2] [--seeds 3]
                          [--size N] [--steps N] [--set KEY=VALUE] [--annotations FILE] [--against reloclnet]
                          [--report-only]

Every row of court.toml (a table of `momentseek reproduce`) is trained on every corpus with every seed; what is there
already is not trained again, so that several calls can share the work and a later one prints the whole. --size 3 makes
corpora with three times the videos and queries. The weight of
the video's score and the suppression of near-duplicates are chosen on val, for each row and variant, from eight
searches each. Test queries are measured by the judged pool (protocols paper and tvr-ranking) and by the true level of
every moment. Differences are paired over queries, with Student's interval over videos and seeds. Variants: `momentseek
simulate --help`; words-as-pictures needs --annotations, such as TVR's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.benchmarks.reproduction.paper_table import PaperTable, read_table
from momentseek.benchmarks.reproduction.rows import Budget, RowTask, row_tasks
from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.truths import full_truth, load_known, pooled_truth
from momentseek.benchmarks.simulation.variants import WORDS_AS_PICTURES
from momentseek.benchmarks.simulation.words_as_pictures import WordPictureSettings, simulate_words
from momentseek.core.atomic import write_bytes
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_run, read_truth, write_run
from momentseek.measuring.replicates import cluster_variance, video_clusters
from momentseek.measuring.significance import t_quantile
from momentseek.models.features.data import Data
from momentseek.models.inference.prediction import predict
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.session import train_or_read

TABLE = Path(__file__).with_name("court.toml")
MEASURES = ("NDCG@20[IoU>=0.5]", "NDCG@20[IoU>=0.7]")
JUDGED = ("paper", "tvr-ranking")
FULL = "full truth"
POOLED = "both pooled"
DEPTH = 40
SHARES, ADDED, SUPPRESSIONS = (1 / 6, 1 / 3, 2 / 3, 1.0), (0.0, 0.5, 1.0, 2.0), (None, 0.5)
"""Searches that val chooses from: shares of the row's alpha (alphas, if it has none), with or without suppression."""


def corpus_path(args: argparse.Namespace, variant: str, number: int) -> Path:
    """Where the corpus of a variant and seed is."""
    return Path(args.out) / "data" / "-".join([variant, str(number), *([f"x{args.size}"] if args.size > 1 else [])])


def corpus_folder(args: argparse.Namespace, table: PaperTable, variant: str, number: int) -> Path:
    """The simulated corpus of a variant and seed, made if it is not there; with lists in which order is destroyed."""
    folder = corpus_path(args, variant, number)
    if folder.is_dir():
        return folder
    sizes = {name: args.size * table.simulation[name] for name in ("videos", "queries")}
    sizes |= {name: table.simulation[name] for name in ("video_dim", "text_dim")}
    if variant == WORDS_AS_PICTURES:
        sizes |= {"videos": 2 * sizes["videos"]}  # each has five captions, one of them often the query
        sizes.pop("text_dim")
        simulate_words(args.annotations, folder, WordPictureSettings(seed=number, **sizes))
    else:
        simulate(folder, SimulationSettings(seed=number, variant=variant, **sizes))
    lists = json.loads((folder / "train_top40.json").read_text())
    rng = np.random.default_rng(number)
    for query in lists:
        drawn = rng.permutation([moment["similarity"] for moment in query["relevant_moment"]])
        for moment, value in zip(query["relevant_moment"], drawn.tolist(), strict=True):
            moment["similarity"] = value
    (folder / "train_permuted.json").write_text(json.dumps(lists))
    described = (folder / "data.toml").read_text()
    section = described[described.index("[splits.train_top40]") :].split("\n\n")[0]
    section = section.replace("train_top40", "train_permuted")
    (folder / "data.toml").write_text(f"{described.rstrip()}\n\n{section}\n")
    return folder


def training_task(args: argparse.Namespace, table: PaperTable, data: Data, row: str, seed: int) -> RowTask:
    """What trains a row with a seed on a corpus, and where."""
    silent = [] if data.subtitle else ["modalities=video"]
    budget = Budget(seed + 1, args.steps, [*args.set, *silent])
    return row_tasks(table, table.choose_rows([row]), data, Path(args.out), budget, {})[row][seed]


def finish(args: argparse.Namespace, table: PaperTable, variant: str, number: int, row: str, seed: int) -> Path:
    """Train a row on a corpus with a seed and measure it; the file of its values."""
    corpus = corpus_path(args, variant, number).name
    name = "-".join([corpus, row, str(seed), *([str(args.steps)] if args.steps else []), *args.set])
    file = Path(args.out) / "measured" / f"{name}.json"
    if file.is_file() or args.report_only:
        return file
    folder = corpus_folder(args, table, variant, number)
    full = full_truth(load_known(folder), "test")
    found: dict[str, Any] = {}
    with Data.open(folder) as data:
        task = training_task(args, table, data, row, seed)
        assert task.config is not None
        began = time.process_time()
        report, outcome = train_or_read(task.config, data, task.folder)
        if "best_step" not in report:
            raise SystemExit(f"{name} was interrupted; the same command continues")
        if outcome is not None:
            write_bytes(task.folder / "seconds.json", json.dumps(time.process_time() - began).encode())
        model, truth = load_checkpoint(task.folder).model, data.split("test").timed_truth
        own = model.config.alpha
        for alpha, nms in product([own * share for share in SHARES] if own else ADDED, SUPPRESSIONS):
            options: dict[str, Any] = {"k": DEPTH, "alpha": alpha, "nms": nms}
            tried = predict(model, data, "val", **options)
            run = predict(model, data, "test", **options)
            label = f"alpha {alpha:.3g}, suppression {nms or 'none'}"
            run_file = file.with_suffix("") / f"{len(found)}.jsonl"
            run_file.parent.mkdir(parents=True, exist_ok=True)
            write_run(run, run_file)
            values = {p: evaluate(run, truth, MEASURES, protocol=p).values.T.tolist() for p in JUDGED}
            values[FULL] = evaluate(run, full, MEASURES).values.T.tolist()
            val = float(evaluate(tried, data.split("val").timed_truth, MEASURES[0]).values.mean())
            found[label] = {"val": val, "run": str(run_file.relative_to(args.out)), "values": values}
    seconds = json.loads((task.folder / "seconds.json").read_text())
    kept = {"seconds": seconds, "best": [report["best_step"], report["steps"]], "searches": found}
    write_bytes(file, (json.dumps(kept) + "\n").encode())
    best = max(found.values(), key=lambda search: search["val"])
    means = np.mean(best["values"]["paper"], axis=1).round(4).tolist()
    print(f"{name}: {means}, {seconds:.0f} s of the processor", flush=True)
    return file


def read_measured(files: Sequence[Sequence[Path]]) -> tuple[str, list[list[Any]], float]:
    """The search that is best on val over corpora and seeds, what it gave in each, and the mean seconds of training."""
    read = [[json.loads(file.read_text()) for file in corpus] for corpus in files]
    flat = [one for corpus in read for one in corpus]
    best = max(flat[0]["searches"], key=lambda label: float(np.mean([one["searches"][label]["val"] for one in flat])))
    chosen = [[one["searches"][best] for one in corpus] for corpus in read]
    return best, chosen, float(np.mean([one["seconds"] for one in flat]))


def pooled_values(args: argparse.Namespace, variant: str, number: int, rows: Sequence[Sequence[Any]]) -> Any:
    """(rows, seeds, queries): values by the true levels of what any of the rows' runs has among its first 40."""
    runs = [[read_run(Path(args.out) / found["run"]) for found in row] for row in rows]
    known = load_known(corpus_path(args, variant, number))
    truth = pooled_truth(known, "test", [run for row in runs for run in row], DEPTH)
    return [[evaluate(run, truth, MEASURES[:1]).values.T[0].tolist() for run in row] for row in runs]


def interval(first: Sequence[FloatArray], second: Sequence[FloatArray], clusters: IntArray) -> tuple[float, float]:
    """The difference of two systems' means and half of its 95 % interval; each has (seeds, queries) for every corpus.

    As ``replicates.replicated_test`` computes it, with the variance over seeds taken within each corpus.
    """
    apart = np.concatenate([np.mean(a, axis=0) - np.mean(b, axis=0) for a, b in zip(first, second, strict=True)])
    videos = len(np.unique(clusters))
    whole = cluster_variance(apart, clusters)
    squares = whole**2 / (videos - 1)
    for system in (first, second):
        means = np.array([np.mean(corpus, axis=1) for corpus in system])
        corpora, count = means.shape
        if count > 1:
            rest = np.concatenate([c - c.mean(0) - c.mean(1, keepdims=True) + c.mean() for c in system], axis=1)
            noise = sum(cluster_variance(row, clusters) for row in rest) / (count * (count - 1))
            spread = float(means.var(axis=1, ddof=1).mean()) / (count * corpora)
            whole += max(0.0, spread - noise)
            squares += (spread**2 / corpora + noise**2 / (videos - 1)) / (count - 1)
    return float(apart.mean()), t_quantile(0.05, whole**2 / squares) * whole**0.5


def report(args: argparse.Namespace, table: PaperTable, variant: str) -> Iterable[str]:
    """Lines on a variant: each row's mean and standard deviation over seeds, and its difference from ``--against``."""
    done: dict[str, tuple[str, list[list[Any]], float]] = {}
    for row in args.rows:
        files = [[finish(args, table, variant, c, row, s) for s in range(args.seeds)] for c in args.corpora]
        if all(file.is_file() for corpus in files for file in corpus):
            done[row] = read_measured(files)
            yield f"{variant:18} {row:18} {done[row][2]:.0f} s of the processor, {done[row][0]}"
    if not done:
        return
    places = []
    for number in args.corpora:
        found = video_clusters(read_truth(corpus_path(args, variant, number) / "test.json"))
        assert found is not None
        places.append(found + 100_000 * number)
    clusters = np.unique(np.concatenate(places), return_inverse=True)[1]
    for kind, at in [*product((*JUDGED, FULL), (0, 1)), *([(POOLED, 0)] if len(done) > 1 else [])]:
        values: dict[str, list[FloatArray]] = {}
        pooled = [
            pooled_values(args, variant, number, [chosen[which] for _, chosen, _ in done.values()])
            for which, number in enumerate(args.corpora if kind == POOLED else ())
        ]
        for place, (row, (_, chosen, _)) in enumerate(done.items()):
            values[row] = [
                np.array(pooled[which][place] if kind == POOLED else [seed["values"][kind][at] for seed in corpus])
                for which, corpus in enumerate(chosen)
            ]
            means = np.mean([corpus.mean(axis=1) for corpus in values[row]], axis=0)
            spread = means.std(ddof=1) if len(means) > 1 else np.nan
            line = f"{variant:18} {kind:12} {MEASURES[at]:18} {row:18} {means.mean():.3f} ± {spread:.3f}"
            if row != args.against and args.against in values:
                difference, half = interval(values[row], values[args.against], clusters)
                each = [float(p.mean() - q.mean()) for p, q in zip(values[row], values[args.against], strict=True)]
                line += f"  {difference:+.3f} [{difference - half:+.3f}, {difference + half:+.3f}]"
                line += f"  by corpus {', '.join(f'{d:+.3f}' for d in each)}"
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--variants", default="default,event-variance,unannotated,camera,new-library")
    parser.add_argument("--rows", default="reloclnet,slate")
    parser.add_argument("--against", default="reloclnet")
    parser.add_argument("--corpora", default="0,1,2", help="seeds of the corpora")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", type=int, default=1, help="multiplies the numbers of videos and queries")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--annotations")
    parser.add_argument("--report-only", action="store_true", help="train nothing, print what is finished")
    args = parser.parse_args()
    args.variants, args.rows = args.variants.split(","), args.rows.split(",")
    args.corpora = [int(number) for number in args.corpora.split(",")]
    args.rows.sort(key=lambda row: row != args.against)
    table = read_table(str(TABLE))
    for seed, number, variant, row in product(range(args.seeds), args.corpora, args.variants, args.rows):
        finish(args, table, variant, number, row, seed)
    for variant in args.variants:
        print(*report(args, table, variant), sep="\n")


if __name__ == "__main__":
    main()
