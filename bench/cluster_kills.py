"""Kill nodes of a Ray cluster on this machine while videos are added, then compare with one machine.

    python bench/cluster_kills.py [--videos 200] [--kills 6] [--storage s3]

Starts a head without processors and two worker nodes by ``ray start``, each with an object store and a cache of its
own, makes small videos, adds them to a library in four shards, and kills a worker node with all of its processes
(SIGKILL) at random instants, starting another one each time, with an empty cache. At the end every video must be there
once, in its shard, with vectors equal bit for bit to those of an ordinary ``add``, and ``verify`` must find nothing.

With ``--storage s3`` the library lies in a server that speaks S3 and is started for it: moto's, which must be
installed (``pip install 'moto[server]'``, in an environment of its own) and named by ``MOMENTSEEK_MOTO_SERVER``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import av
import numpy as np

from momentseek.api.library import open_store
from momentseek.cluster.adding import add_on_cluster
from momentseek.cluster.connection import Cluster, join_cluster
from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.shard_writer import WriterSettings
from momentseek.cluster.shards.making import make_elsewhere, make_shards
from momentseek.core.errors import MomentseekError
from momentseek.library.files import find_videos
from momentseek.library.location import library_folder
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from s3_storage import free_port, serve_s3
from services import RAY, process_tree


def make_videos(folder: Path, count: int, seed: int = 7) -> None:
    rng = np.random.default_rng(seed)
    for number in range(count):
        with av.open(str(folder / f"{number:04d}.mp4"), "w") as out:
            stream = out.add_stream("libx264", rate=4)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for _ in range(int(rng.integers(1, 4))):
                picture = np.repeat(np.repeat(rng.integers(0, 255, (6, 8, 3), np.uint8), 8, 0), 8, 1)
                for _ in range(6):
                    out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
            out.mux(stream.encode())


def kill_tree(top: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, at once."""
    for pid in process_tree(top.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    top.wait()


def wait_for(address: str, deadline: float) -> None:
    """Wait until something listens at an address."""
    host, _, port = address.rpartition(":")
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            time.sleep(0.3)


@contextmanager
def join_patiently(head: str) -> Iterator[Cluster]:
    """Join a cluster whose head may not be ready yet."""
    with ExitStack() as stack:
        for attempt in range(10):
            try:
                cluster = stack.enter_context(join_cluster(head))
                break
            except MomentseekError:
                if attempt == 9:
                    raise
                time.sleep(3)
        yield cluster


class Node:
    """A worker node: a process of ``ray start``, and those that it starts; it begins with an empty cache."""

    made = 0

    def __init__(self, head: str, caches: Path) -> None:
        Node.made += 1
        self.process = subprocess.Popen(
            [RAY, "start", "--address", head, "--num-cpus", "1", "--object-store-memory", "80000000", "--block"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "MOMENTSEEK_CACHE": str(caches / f"node-{Node.made}")},
        )  # fmt: skip

    def kill(self) -> None:
        kill_tree(self.process)


def bits(folder: Path) -> dict[str, tuple[str, bytes]]:
    with LibraryStore.open(folder, create=False) as store:
        held, found = store.snapshot().vision, {}
        for video in store.catalog.videos():
            one = StoredVectors.find(held, video.id)
            assert one is not None
            assert video.name not in found, f"{video.name} is there twice"
            found[video.name] = video.hash, one.codes.tobytes() + one.scales.tobytes() + one.half.tobytes()
        return found


def compare_with_one_machine(library: Path, films: Path, place: Path) -> None:
    """Every film must be in the library once, in its shard, with the vectors that an ordinary ``add`` gives it."""
    whole, videos = place / "whole", len(list(films.iterdir()))
    with LibraryStore.open(whole, create=True) as store:
        store.options = replace(store.options, transcriber=None)
        print(f"one machine: {store.add(films)}")
    open_store(library, create=False).close()  # a replica is brought up to date
    manifest = read_manifest(library)
    parts = [bits(folder) for folder in manifest.folders(library)]
    together = {video: one for part in parts for video, one in part.items()}
    assert sum(map(len, parts)) == len(together) == videos, "a video is missing or there twice"
    assert all(manifest.shard_of(h) == at for at, part in enumerate(parts) for h, _ in part.values())
    assert together == bits(whole), "vectors differ"
    for folder in manifest.folders(library):
        with LibraryStore.open(folder, create=False) as store:
            found = store.verify()
            assert not found.problems, found
    with open_store(library, create=False) as store:
        found = store.verify()
        print(f"verify: {found.notes}")
        assert not found.problems, found
        store.compact()
        assert not store.verify().problems
        assert not [note for note in store.verify().notes if "nothing names" in note]
    print(f"every one of {videos} videos once, vectors equal bit for bit, verify clean")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=200)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--between", type=float, nargs=2, default=(3.0, 9.0), help="seconds between kills")
    parser.add_argument("--storage", choices=("folder", "s3"), default="folder", help="where the library lies")
    asked = parser.parse_args()
    with serve_s3("bucket") if asked.storage == "s3" else nullcontext():
        kill_and_compare(asked)


def kill_and_compare(asked: argparse.Namespace) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.environ["MOMENTSEEK_CACHE"] = str(place / "head")
        films = place / "films"
        films.mkdir()
        make_videos(films, asked.videos)
        if asked.storage == "s3":
            make_elsewhere("s3://bucket/library", lambda into: make_shards(into, 4))
            library = library_folder("s3://bucket/library")
        else:
            library = place / "library"
            make_shards(library, 4)
        head = f"127.0.0.1:{free_port()}"
        started = subprocess.Popen(
            [RAY, "start", "--head", "--port", head.rpartition(":")[2], "--num-cpus", "0", "--include-dashboard=false",
             "--node-ip-address", "127.0.0.1", "--temp-dir", str(place / "ray"), "--object-store-memory", "80000000",
             "--block"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        nodes: list[Node] = []
        killed: list[float] = []
        stop = threading.Event()

        def hurt() -> None:
            dice = random.Random(11)
            while len(killed) < asked.kills and not stop.wait(dice.uniform(*asked.between)):
                victim = nodes.pop(dice.randrange(len(nodes)))
                victim.kill()
                killed.append(time.monotonic() - begun)
                nodes.append(Node(head, place))

        try:
            deadline = time.monotonic() + 120
            wait_for(head, deadline)
            with join_patiently(head) as cluster:  # before there are others: this process dies with the node it joins
                nodes += [Node(head, place), Node(head, place)]
                while len(cluster.alive_nodes()) < 3 and time.monotonic() < deadline:
                    time.sleep(0.5)
                begun = time.monotonic()
                print(f"{len(cluster.alive_nodes())} nodes, {cluster.processors()} processors", flush=True)
                thread = threading.Thread(target=hurt)
                thread.start()
                report = add_on_cluster(cluster, library, find_videos([films]), settings=WriterSettings())
                stop.set()
                thread.join()
            print(f"cluster: {report}; {len(killed)} nodes killed at {', '.join(f'{at:.0f} s' for at in killed)}")
        finally:
            stop.set()
            for node in nodes:
                node.kill()
            kill_tree(started)
        compare_with_one_machine(library, films, place)


if __name__ == "__main__":
    main()
