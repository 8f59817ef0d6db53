"""What others take for the search that bench/scan.py measures: libraries of vectors, and engines that run in a process.

All but milvus-lite search clips, so the best 100 videos are made up from a longer list of clips; milvus-lite groups by
itself. A peer that is not installed is named in the record and left out:

    pip install faiss-cpu usearch hnswlib lancedb qdrant-client pymilvus milvus-lite
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from record import Record
from scan_corpus import CLIPS, DIM, Floats

K = 100
"""Videos that are asked for."""
EXACT_CLIPS, GRAPH_CLIPS = 3000, 1000
"""Clips asked of a peer so that they make up the best 100 videos: graphs slow down with their number."""
LINKS, BUILD_EFFORT = 32, 80
"""Neighbours of a node of a graph, and candidates looked at for them while it is built."""
SEARCH_EFFORTS = (3000, 6000)
ROWS_PER_INSERT = 5000
FLAT, BLOCKED = "FAISS Flat", "numpy float32, blocked"

Found = NDArray[np.int64]
Search = Callable[[Floats], list[Found]]
"""From queries to the numbers of the best videos of each, best first."""


@dataclass(frozen=True)
class Peer:
    """A peer that has taken in all clips, and how many seconds that took."""

    name: str
    search: Search
    seconds: float
    is_exact: bool


@dataclass(frozen=True)
class PeerKind:
    """How a peer is made, and the number of videos up to which it is unless somebody asks for it."""

    make: Callable[[Floats, Path], Iterator[tuple[str, Search]]]
    max_videos: int
    """Bounded by memory (flat, numpy) or by the time that building and asking take."""
    is_exact: bool = True


def videos_of(clips: Found) -> Found:
    """The first K videos of a ranked list of clips.

    >>> videos_of(np.array([41, 3, 40, 25, -1])).tolist()
    [2, 0, 1]
    """
    videos = clips[clips >= 0] // CLIPS
    _, first = np.unique(videos, return_index=True)
    return videos[np.sort(first)][:K]


def make_flat(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    import faiss

    index = faiss.IndexFlatIP(DIM)
    index.add(clips)
    yield FLAT, lambda asked: [videos_of(row) for row in index.search(asked, EXACT_CLIPS)[1]]


def make_blocked(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    def search(asked: Floats) -> list[Found]:
        best = np.concatenate(
            [
                (clips[i : i + 8000] @ asked.T).reshape(-1, CLIPS, len(asked)).max(axis=1)
                for i in range(0, len(clips), 8000)
            ]
        )
        top = np.argpartition(-best, K - 1, axis=0)[:K]
        return list(np.take_along_axis(top, np.argsort(-np.take_along_axis(best, top, axis=0), axis=0), axis=0).T)

    yield BLOCKED, search


def make_ivf(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    import faiss

    lists = int(4 * len(clips) ** 0.5) // 2
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(DIM), DIM, lists, faiss.METRIC_INNER_PRODUCT)
    index.train(clips[np.random.default_rng(0).choice(len(clips), min(len(clips), 40 * lists), replace=False)])
    index.add(clips)

    def search(asked: Floats, probes: int) -> list[Found]:
        index.nprobe = probes
        return [videos_of(row) for row in index.search(asked, EXACT_CLIPS)[1]]

    for probes in (lists // 64, lists // 8):
        yield f"FAISS IVF{lists}, nprobe {probes}", lambda asked, probes=probes: search(asked, probes)


def make_hnsw(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    import faiss

    graph = faiss.IndexHNSWFlat(DIM, LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_EFFORT
    graph.add(clips)

    def search(asked: Floats, effort: int) -> list[Found]:
        graph.hnsw.efSearch = effort
        return [videos_of(row) for row in graph.search(asked, GRAPH_CLIPS)[1]]

    for effort in SEARCH_EFFORTS:
        yield f"FAISS HNSW{LINKS}, ef {effort}", lambda asked, effort=effort: search(asked, effort)


def make_usearch(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    from usearch.index import Index

    graph = Index(ndim=DIM, metric="ip", dtype="i8", connectivity=LINKS, expansion_add=BUILD_EFFORT)
    graph.add(np.arange(len(clips)), clips)

    def search(asked: Floats, effort: int) -> list[Found]:
        graph.expansion_search = effort
        return [videos_of(row.astype(np.int64)) for row in np.atleast_2d(graph.search(asked, GRAPH_CLIPS).keys)]

    for effort in SEARCH_EFFORTS:
        yield f"usearch int8, ef {effort}", lambda asked, effort=effort: search(asked, effort)


def make_hnswlib(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    import hnswlib

    graph = hnswlib.Index(space="ip", dim=DIM)
    graph.init_index(max_elements=len(clips), ef_construction=BUILD_EFFORT, M=LINKS)
    graph.add_items(clips)

    def search(asked: Floats, effort: int) -> list[Found]:
        graph.set_ef(effort)
        return [videos_of(row.astype(np.int64)) for row in graph.knn_query(asked, GRAPH_CLIPS)[0]]

    for effort in SEARCH_EFFORTS:
        yield f"hnswlib, ef {effort}", lambda asked, effort=effort: search(asked, effort)


def make_lancedb(clips: Floats, folder: Path) -> Iterator[tuple[str, Search]]:
    import lancedb
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(clips.reshape(-1)), DIM)
    table = lancedb.connect(folder).create_table("clips", pa.table({"id": np.arange(len(clips)), "vector": vectors}))

    def nearest(query: Floats) -> Found:
        asked = table.search(query).distance_type("dot").select(["id", "_distance"]).limit(EXACT_CLIPS)
        return videos_of(asked.to_arrow()["id"].to_numpy())

    yield "LanceDB, no index", lambda asked: [nearest(query) for query in asked]


def make_qdrant(clips: Floats, _: Path) -> Iterator[tuple[str, Search]]:
    from qdrant_client import QdrantClient, models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it advises a server for more than 20,000 points
        client = QdrantClient(":memory:")
        vectors = models.VectorParams(size=DIM, distance=models.Distance.DOT)
        client.create_collection("clips", vectors_config=vectors)
        client.upload_collection("clips", vectors=clips, ids=range(len(clips)))

    def nearest(query: Floats) -> Found:
        answer = client.query_points("clips", query=query, limit=EXACT_CLIPS, with_payload=False)
        return videos_of(np.array([point.id for point in answer.points], np.int64))

    yield "Qdrant, local", lambda asked: [nearest(query) for query in asked]


def make_milvus(clips: Floats, folder: Path) -> Iterator[tuple[str, Search]]:
    from pymilvus import DataType, MilvusClient

    client = MilvusClient(str(folder / "milvus.db"))
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("video", DataType.INT64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=DIM)
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="IP")
    client.create_collection("clips", schema=schema, index_params=index)
    for first in range(0, len(clips), ROWS_PER_INSERT):
        rows = enumerate(clips[first : first + ROWS_PER_INSERT], first)
        client.insert("clips", [{"id": i, "video": i // CLIPS, "vector": row} for i, row in rows])
    client.load_collection("clips")

    def search(asked: Floats) -> list[Found]:
        found = client.search("clips", data=list(asked), limit=K, group_by_field="video", output_fields=["video"])
        return [np.array([hit["entity"]["video"] for hit in hits], np.int64) for hits in found]

    yield "milvus-lite, FLAT, grouped", search


PEERS = {
    "flat": PeerKind(make_flat, 100_000),
    "numpy": PeerKind(make_blocked, 100_000),
    "ivf": PeerKind(make_ivf, 100_000, is_exact=False),
    "hnsw": PeerKind(make_hnsw, 10_000, is_exact=False),
    "usearch": PeerKind(make_usearch, 10_000, is_exact=False),
    "hnswlib": PeerKind(make_hnswlib, 10_000, is_exact=False),
    "lancedb": PeerKind(make_lancedb, 1000),
    "qdrant": PeerKind(make_qdrant, 1000),
    "milvus": PeerKind(make_milvus, 1000),
}


def make_peers(names: Sequence[str], clips: Floats, folder: Path, record: Record) -> dict[str, Peer]:
    """The peers that are installed, each with all clips taken in."""
    made: dict[str, Peer] = {}
    for name in names:
        begun = time.perf_counter()
        room = folder / f"peer-{name}"
        room.mkdir()
        try:
            for title, search in PEERS[name].make(clips, room):
                made[title] = Peer(title, search, time.perf_counter() - begun, PEERS[name].is_exact)
        except ModuleNotFoundError:
            record.skip(name, "is not installed")
    return made
