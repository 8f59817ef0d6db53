"""A library in shards on a cluster of this machine's own: added to, searched, and hurt."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from momentseek.cluster.adding import add_on_cluster
from momentseek.cluster.connection import Cluster
from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.searching import RayShards
from momentseek.cluster.shards.making import make_shards
from momentseek.core.errors import MomentseekError
from momentseek.library.file_stamp import content_hash
from momentseek.library.files import find_videos
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.search.engine import Engine
from momentseek.search.hit import Results
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

COLOURS = ((220, 20, 20), (20, 220, 20), (20, 20, 220))
pytestmark = [pytest.mark.figures, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::FutureWarning")]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory, make_video: Callable[..., Path]) -> Path:
    folder = tmp_path_factory.mktemp("films")
    for number in range(5):
        colours = [(1.5, COLOURS[(number + at) % 3]) for at in range(1 + number % 2)]
        make_video(folder / f"{number}.mp4", colours, rate=4, size=(48, 32))
    (folder / "broken.mp4").write_bytes(b"no video")
    return folder


@pytest.fixture(scope="module")
def sharded(cluster: Cluster, films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards, filled on the cluster."""
    folder = tmp_path_factory.mktemp("sharded") / "library"
    make_shards(folder, 2)
    report = add_on_cluster(cluster, folder, find_videos([films]))
    assert (report.added, [failure.path.name for failure in report.failed]) == (5, ["broken.mp4"])
    return folder


@pytest.fixture(scope="module")
def whole(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same videos in one library."""
    folder = tmp_path_factory.mktemp("whole") / "library"
    with LibraryStore.open(folder, create=True) as store:
        store.options = replace(store.options, transcriber=None)
        store.add(films)
    return folder


def vectors(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Name → hash and the bits of its vectors."""
    with LibraryStore.open(folder, create=False) as store:
        held = store.snapshot().vision
        found = {}
        for video in store.catalog.videos():
            stored = StoredVectors.find(held, video.id)
            assert stored is not None
            found[video.name] = video.hash, stored.codes.tobytes() + stored.scales.tobytes() + stored.half.tobytes()
        return found


def test_every_video_is_in_its_shard_once_with_the_same_vectors(sharded: Path, whole: Path) -> None:
    manifest = read_manifest(sharded)
    parts = [vectors(folder) for folder in manifest.folders(sharded)]
    assert all(manifest.shard_of(one[0]) == number for number, part in enumerate(parts) for one in part.values())
    assert sum(map(len, parts)) == 5
    assert {name: one for part in parts for name, one in part.items()} == vectors(whole)


def test_a_file_whose_content_changed_leaves_its_old_shard(
    cluster: Cluster, tmp_path: Path, make_video: Callable[..., Path]
) -> None:
    folder = tmp_path / "library"
    manifest = make_shards(folder, 2)
    film, homes = tmp_path / "film.mp4", set()
    for number, colour in enumerate(COLOURS * 4):
        make_video(film, [(1.5 + number / 2, colour)], rate=4, size=(48, 32))
        homes.add(manifest.shard_of(content_hash(film)))
        if len(homes) == 2 or number == 0:
            add_on_cluster(cluster, folder, find_videos([film]))
        if len(homes) == 2:
            break
    assert [len(vectors(one)) for one in manifest.folders(folder)].count(1) == 1
    assert sum(len(vectors(one)) for one in manifest.folders(folder)) == 1


def test_adding_again_adds_nothing(cluster: Cluster, sharded: Path, films: Path) -> None:
    steps: list[object] = []
    report = add_on_cluster(cluster, sharded, find_videos([films]), progress=steps.append)
    assert (report.added, report.unchanged, report.failed_before) == (0, 5, 1)
    assert steps


def found(results: Results) -> list[tuple[str, float, float, float, str]]:
    return [(hit.name, hit.start, hit.end, hit.score, hit.level) for hit in results]


def test_a_search_is_that_of_one_library_and_says_what_is_missing(cluster: Cluster, sharded: Path, whole: Path) -> None:
    query, options = Query.parse("something red"), SearchOptions()
    folders = read_manifest(sharded).folders(sharded)
    with LibraryStore.open(whole, create=False) as one, LibraryStore.open(folders[0], create=False) as about:
        right = found(Engine(one).search(query, options))
        shards = RayShards(cluster, sharded, seconds=20)
        try:
            shards.wait()
            engine = Engine(about, shards)
            assert found(engine.search(query, options)) == right
            assert [(one.name, one.replicas, one.answering) for one in shards.status()] == [
                ("shard-000", 1, 1),
                ("shard-001", 1, 1),
            ]
            cluster.ray.kill(shards.actors[0][0], no_restart=False)
            hurt = engine.search(query, options)
            assert hurt.missing in ((), ("shard-000",))
            assert [*hurt] or hurt.missing
            until = time.monotonic() + 120
            while (again := engine.search(query, options)).missing and time.monotonic() < until:
                time.sleep(0.1)
            assert not again.missing
            assert found(again) == right
        finally:
            shards.close()


def test_a_server_searches_on_the_cluster(cluster: Cluster, sharded: Path) -> None:
    from fastapi.testclient import TestClient

    from momentseek.server.app import create_app

    shards = RayShards(cluster, sharded, seconds=20)
    with (
        TestClient(create_app(sharded), base_url="http://localhost") as plain,
        TestClient(create_app(sharded, shard_client=shards), base_url="http://localhost") as spread,
    ):
        asked = [one.get("/api/v1/search", params={"q": "something red"}).json() for one in (plain, spread)]
        told = [one.get("/api/v1/status").json()["shards"] for one in (plain, spread)]
    shards.close()
    assert asked[0]["hits"]
    assert asked[0]["hits"] == asked[1]["hits"]
    assert [(one["name"], one["replicas"], one["answering"]) for one in told[1]] == [
        ("shard-000", 1, 1),
        ("shard-001", 1, 1),
    ]
    assert [one["videos"] for one in told[0]] == [one["videos"] for one in told[1]]
    assert [(one["nodes"], one["lag"]) for one in told[0]] == [([], 0.0)] * 2
    here = cluster.alive_nodes()[0]["NodeID"]
    assert all(here.startswith(*one["nodes"]) and 0 < one["lag"] < 1 for one in told[1])


def test_a_search_from_the_command_line_is_the_same_on_the_cluster(cluster: Cluster, sharded: Path) -> None:
    asked = [sys.executable, "-m", "momentseek", "search", "something red", "--json", "--library", str(sharded)]
    address = cluster.ray.get_runtime_context().gcs_address
    here, there = (
        subprocess.run([*asked, *more], capture_output=True, text=True, timeout=120) for more in ([], ["--on", address])
    )
    assert (here.returncode, there.returncode, there.stderr) == (0, 0, here.stderr)
    plain, spread = (json.loads(one.stdout) for one in (here, there))
    assert plain["hits"]
    assert plain["complete"]
    assert {**plain, "took": 0} == {**spread, "took": 0}


def test_an_ordinary_library_is_refused(cluster: Cluster, whole: Path, films: Path) -> None:
    with pytest.raises(MomentseekError, match="momentseek shard"):
        add_on_cluster(cluster, whole, find_videos([films]))
