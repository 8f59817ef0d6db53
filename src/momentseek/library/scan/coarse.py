"""The coarse list: scene means in 4 bits per two columns, scanned by FAISS from a table in registers (PQ FastScan).

Product quantisation (Jégou et al. 2011) with 16 centres per pair of columns takes 64 bytes for 256 columns, a quarter
of int8, and is read about as fast as memory delivers it (André et al. 2017). FAISS gives one query to one thread, so
the vectors are kept in shards, which threads take in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.threads import run_together
from momentseek.optional import optional_module

MAX_TRAINING_MEANS = 65_536
"""Number of scene means, at most, from which the centres are learnt."""


def faiss() -> Any:
    """The module ``faiss``, which comes with the extra ``large``."""
    return optional_module("faiss", "large")


def train_index(sample: NDArray[np.float32]) -> Any:
    """An empty index with centres learnt from a sample."""
    dim = sample.shape[1]
    index = faiss().IndexPQFastScan(dim, max(1, dim // 2) if dim % 2 == 0 else dim, 4, faiss().METRIC_INNER_PRODUCT)
    index.pq.cp.seed = 1
    index.pq.cp.min_points_per_centroid = 1
    with one_thread():
        index.train(np.ascontiguousarray(sample))
    return index


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep FAISS's own threads out: they wait for each other by spinning, which a busy machine makes hundredfold slow.

    The setting belongs to the thread that makes it, so nobody else's FAISS is touched.
    """
    before = faiss().omp_get_max_threads()
    faiss().omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss().omp_set_num_threads(before)


def copy_index(index: Any) -> Any:
    """Another index with the same centres and vectors."""
    return faiss().clone_index(index)


def index_bytes(index: Any) -> bytes:
    """An index as bytes, to be written to a file."""
    return bytes(faiss().serialize_index(index).tobytes())


def index_of_bytes(data: NDArray[np.uint8]) -> Any:
    """The index that was written as these bytes."""
    return faiss().deserialize_index(np.ascontiguousarray(data))


def nearest(shards: Sequence[Any], queries: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The numbers of about ``count`` vectors with the largest estimated scores for each query, best first."""
    sizes = [int(shard.ntotal) for shard in shards]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    total = int(starts[-1])
    count = min(count, total)

    parts: dict[int, tuple[NDArray[np.float32], NDArray[np.int64]]] = {}

    def one(i: int) -> None:
        # A shard's share of the best is about its share of the vectors; six standard deviations more miss nothing.
        expected = count * sizes[i] / total
        share = min(sizes[i], int(expected + 6 * expected**0.5) + 16, count)
        with one_thread():
            scores, places = shards[i].search(queries, share)
        parts[i] = scores, np.where(places < 0, -1, places + starts[i])

    run_together(partial(one, i) for i in range(len(shards)))
    if len(shards) == 1:
        return parts[0][1]
    scores = np.concatenate([parts[i][0] for i in range(len(shards))], axis=1)
    places = np.concatenate([parts[i][1] for i in range(len(shards))], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(places, order, axis=1)
