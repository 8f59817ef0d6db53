"""Searches on a cluster while shards' actors are killed: what do people see, and how soon is the answer whole again?

    python bench/cluster_searches.py [--on ADDRESS] [--searches 500] [--kills 5] [--videos 2000]

Makes a library of generated films, splits it, opens one actor per shard, and asks queries one after another. At even
distances an actor is killed (SIGKILL to its process). Every answer must be the whole one or say which shard is missing;
an error, or an incomplete answer that does not say so, is a failure (exit code 1).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from momentseek.cluster.connection import join_cluster
from momentseek.cluster.searching import RayShards
from momentseek.cluster.shards.making import split_library
from momentseek.search.engine import Engine
from momentseek.search.query import Query
from shards import make_library, make_queries, open_reader


def main() -> None:
    """Print the figures; exit code 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="local")
    parser.add_argument("--searches", type=int, default=500)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--videos", type=int, default=2000)
    parser.add_argument("--shards", type=int, default=2)
    args = parser.parse_args()
    rng = np.random.default_rng(2)
    queries = make_queries(20, rng)
    at = {args.searches * (n + 1) // (args.kills + 1): n % args.shards for n in range(args.kills)}
    errors, wrong, incomplete, waits = [], 0, 0, []
    with tempfile.TemporaryDirectory() as made, join_cluster(args.on) as cluster:
        folder, target = Path(made) / "one", Path(made) / "shards"
        make_library(folder, args.videos, rng)
        manifest = split_library(folder, target, args.shards)
        shards = RayShards(cluster, target)
        shards.wait()
        engine = Engine(open_reader(manifest.folders(target)[0]), shards)
        right = [list(engine.search(Query.parse(text), options)) for text, options in queries]
        hurt: float | None = None
        took = []
        for number in range(args.searches):
            if number in at:
                os.kill(cluster.ray.get(shards.actors[at[number]][0].process.remote()), signal.SIGKILL)
                hurt = time.monotonic()
            text, options = queries[number % len(queries)]
            begun = time.perf_counter()
            try:
                found = engine.search(Query.parse(text), options)
            except Exception as e:  # the very thing that is counted
                errors.append(f"{type(e).__name__}: {e}")
                continue
            took.append(time.perf_counter() - begun)
            if found.missing:
                incomplete += 1
                wrong += "incomplete" not in (found.note or "")
            else:
                wrong += list(found) != right[number % len(queries)]
                if hurt is not None:
                    waits.append(time.monotonic() - hurt)
                    hurt = None
        shards.close()
    print(f"{args.searches} searches, {args.kills} kills: {len(errors)} errors {errors[:3]}, {wrong} wrong answers")
    print(
        f"{incomplete} incomplete answers, all of them marked; the median search took {1000 * np.median(took):.1f} ms"
    )
    print(f"whole again after {', '.join(f'{wait:.1f}' for wait in waits)} s")
    sys.exit(1 if errors or wrong or len(waits) < args.kills else 0)


if __name__ == "__main__":
    main()
