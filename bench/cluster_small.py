"""What the path over a cluster costs where nothing needs one: a small library here, and in two shards on Ray.

    python bench/cluster_small.py LIBRARY [--rounds 10]

The same searches go to both in turns, warm, with the library's own encoders; every answer must be the same. The demo's
library (``momentseek demo --into FOLDER``) will do.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from momentseek.api.library import Library
from momentseek.cluster.connection import join_cluster
from momentseek.cluster.searching import RayShards
from momentseek.cluster.shards.making import split_library

QUERIES = ("a flower", "a dog", "something red", "a cat -dog", "people in a street", "text:exit", "said:hello", "water")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, join_cluster("local") as cluster:
        target = Path(made) / "shards"
        split_library(args.library, target, 2)
        shards = RayShards(cluster, target)
        shards.wait()
        with (
            Library.open(args.library, create=False) as one,
            Library.open(target) as here,
            Library.open(target, shard_client=shards) as there,
        ):
            took: dict[str, list[float]] = {"one library": [], "two shards here": [], "two shards on Ray": []}
            for round in range(args.rounds + 1):
                for query in QUERIES:
                    answers = []
                    for name, library in zip(took, (one, here, there), strict=True):
                        begun = time.perf_counter()
                        answers.append(list(library.search(query, all=True)))
                        if round:
                            took[name].append(time.perf_counter() - begun)
                    assert answers[0] == answers[1] == answers[2], query
        shards.close()
        for name, each in took.items():
            print(f"{name}: p50 {1000 * np.median(each):.1f} ms, at best {1000 * min(each):.1f}")
        extra = np.median(np.array(took["two shards on Ray"]) - np.array(took["one library"]))
        print(f"over Ray, a search takes {1000 * extra:.1f} ms more in the median, with the same answer")


if __name__ == "__main__":
    main()
