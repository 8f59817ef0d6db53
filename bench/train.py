"""Training speed at the papers' sizes: pairs per second and peak memory, one process per figure.

XML (hidden 256) and ReLoCLNet (hidden 384), 128 clips, batch 128, video features of 1,024 columns and text of 768, as
on TVR-Ranking. Features are random and lie in an HDF5 folder, as real ones do, so that reading is part of the figure.
Each model is trained twice: with pairs drawn at random, as the public code draws them, and with eight pairs per encoded
video and videos of like length together. ``--quick`` does a few steps at a quarter of the sizes.

    python bench/train.py --threads 2 --out results.json
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from record import Record

WAYS = {"pairs at random": (1, 1), "8 pairs per video, like lengths": (8, 8)}
MODELS = {"xml": 256, "reloclnet": 384}
PAIRS_PER_QUERY = 40


def make(folder: Path, videos: int, queries: int, clips: int, video: int, text: int) -> None:
    """Random features and a training list: ``queries`` queries of 40 moments each, TVR's lengths."""
    from momentseek.models.features.store import write_features

    rng = np.random.default_rng(0)
    lengths = {f"v{i}": int(n) for i, n in enumerate(np.clip(rng.gamma(6.0, 8.5, videos), 8, 2 * clips))}
    for name, columns in (("video", video), ("subtitle", text)):
        tables = ((v, rng.normal(size=(n, columns)).astype(np.float32)) for v, n in lengths.items())
        write_features(folder / f"{name}.h5", tables)
    words = ((str(q), rng.normal(size=(int(rng.integers(5, 25)), text))) for q in range(queries))
    write_features(folder / "query.h5", words)
    truth = []
    for q in range(queries):
        moments = []
        for v in rng.choice(videos, min(PAIRS_PER_QUERY, videos), replace=False):
            seconds = lengths[f"v{v}"] * 1.5
            start = float(rng.uniform(0, seconds - 3))
            moments.append(
                {
                    "video_name": f"v{v}",
                    "timestamp": [start, float(min(seconds, start + rng.uniform(3, 20)))],
                    "duration": seconds,
                    "similarity": 0.8,
                }
            )
        truth.append({"query_id": q, "query": "random", "relevant_moment": moments})
    (folder / "train.json").write_text(json.dumps(truth))
    (folder / "data.toml").write_text(
        '[features]\nvideo = ["video.h5"]\nsubtitle = "subtitle.h5"\n'
        '[splits.train]\ntruth = "train.json"\nquery = "query.h5"\n'
    )


def measure(folder: Path, model: str, hidden: int, clips: int, batch: int, way: str, steps: int, threads: int) -> None:
    """Train a few steps in this process, and print the figures."""
    import torch

    from momentseek.core.workers import BackgroundIterator
    from momentseek.models.features.data import Data
    from momentseek.models.training.optimisers import clip_gradients
    from momentseek.models.training.presets import configure
    from momentseek.models.training.processes import Processes
    from momentseek.models.training.setup import prepare_training

    torch.set_num_threads(threads)
    per_video, alike = WAYS[way]
    settings = [f"hidden={hidden}", f"max_clips={clips}", "fit=resample", f"pairs_per_video={per_video}"]
    settings += [f"batch={batch}", f"alike={alike}", "optimiser=bert_adam", "train=train", "validate=train"]
    with tempfile.TemporaryDirectory() as run, Data.open(folder) as data:
        made = prepare_training(configure({}, model, settings), data, Path(run), False, Processes())
        weights = sum(p.numel() for p in made.model.parameters())
        before = _peak()
        made.model.train()
        pairs, videos, began, used = 0, 0, 0.0, 0.0
        order = lambda step: made.batches.batch(made.order.batch_at(*divmod(step, made.order.per_epoch)))  # noqa: E731
        with BackgroundIterator(map(order, range(steps + 1)), depth=2) as batches:
            for step, each in enumerate(batches):
                if step == 1:  # the first step warms up
                    began, used = time.perf_counter(), time.process_time()
                made.optimiser.zero_grad()
                torch.stack(list(made.model.loss(each, 0, torch.Generator()).values())).sum().backward()
                clip_gradients(made.model, 1.0, "tensor")
                made.optimiser.step()
                if step:
                    pairs, videos = pairs + len(each.pairs.query), videos + len(each.clips)
    spent = time.perf_counter() - began
    print(
        json.dumps(
            {
                "model": model,
                "way": way,
                "parameters": weights,
                "pairs per second": round(pairs / spent, 1),
                "pairs per CPU second": round(pairs / (time.process_time() - used), 1),
                "seconds per step": round(spent / steps, 3),
                "pairs per step": round(pairs / steps, 1),
                "videos per step": round(videos / steps, 1),
                "peak MB": round(_peak()),
                "peak MB before training": round(before),
            }
        )
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of the sizes, 2 steps")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure(**json.loads(given.one, object_hook=lambda d: d | {"folder": Path(d["folder"])}))
        return
    scale = 4 if given.quick else 1
    clips, batch = 128 // scale, 128 // scale
    found = []
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), 400 // scale, 400 // scale, clips, 1024 // scale, 768 // scale)
        for model, hidden in MODELS.items():
            for way in WAYS:
                task = {"folder": folder, "model": model, "hidden": hidden // scale, "clips": clips, "batch": batch}
                task |= {"way": way, "steps": 2 if given.quick else given.steps, "threads": given.threads}
                done = subprocess.run(
                    [sys.executable, __file__, "--one", json.dumps(task)], capture_output=True, text=True, check=False
                )
                if done.returncode:
                    sys.exit(done.stderr)
                found.append(json.loads(done.stdout))
                print(
                    ", ".join(f"{k} {v:,}" if not isinstance(v, str) else v for k, v in found[-1].items()), flush=True
                )
    record = Record("train")
    for plain, ours in zip(found[::2], found[1::2], strict=True):
        ratio = ours["pairs per CPU second"] / plain["pairs per CPU second"]
        print(f"{plain['model']}: {ratio:.1f} times as many pairs per CPU second as with pairs at random")
        record.figure(f"{plain['model']}, pairs per processor second / pairs at random", [ratio], "×", "more")
    record.save()
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
