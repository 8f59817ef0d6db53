"""Three machines, three cables: kill nodes and cut cables while videos are added, and search while a cable is cut.

    python bench/cluster_cable.py [--videos 200] [--kills 3] [--cuts 3]

The machines are network namespaces (bench/wires.py), each with a Ray node, an object store and a working folder of its
own; films and library lie in a server that speaks S3 (see bench/s3_storage.py). A cable is cut for a few seconds, or
for longer than Ray waits before it gives a node up. At the end every video must be there once, in its shard, with
vectors equal bit for bit to those of an ordinary ``add``, and ``verify`` must find nothing. Then the library is
searched on the same machines: while a cable is cut, answers must be marked as incomplete and come in time, and whole
answers must return afterwards.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
from obstore.store import from_url

from cluster_kills import RAY, compare_with_one_machine, join_patiently, kill_tree, make_videos, wait_for
from momentseek.api.library import Library, open_store
from momentseek.cluster.adding import add_on_cluster
from momentseek.cluster.connection import Cluster
from momentseek.cluster.searching import RayShards
from momentseek.cluster.shard_writer import WriterSettings, list_videos
from momentseek.cluster.shards.making import make_elsewhere, make_shards
from momentseek.core.errors import LibraryError
from momentseek.library.files import FoundFiles
from momentseek.library.location import library_folder
from s3_storage import free_port, serve_s3
from wires import HERE, Wires, can_make_namespaces

MACHINES, SHARDS = 3, 4
HEALTH = {"period_ms": 1000, "timeout_ms": 3000, "failure_threshold": 3, "initial_delay_ms": 3000}
"""Ray gives a node up that has not answered so often, so that a test need not wait for minutes."""
CUT_SECONDS = (4.0, 30.0)
"""A cable is cut for so long, in turns: what comes back is the same node, or one that was given up."""
SEARCH_CUT_SECONDS = (10.0, 40.0)
"""The same, while the library is searched."""
SEARCH_SECONDS = 3.0
"""How long a shard may take to answer."""


class Machine:
    """A machine with a Ray node, which can be killed; the next one has its address, and an empty working folder."""

    made = 0

    def __init__(self, wires: Wires, number: int, head: str, place: Path) -> None:
        self._wires, self.number, self._head, self._place = wires, number, head, place
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        Machine.made += 1
        own = self._place / f"machine-{Machine.made}"
        (own / "cache").mkdir(parents=True)
        # a namespace has mounts of its own: the cache is at the same path everywhere, and a folder of each machine
        ray = (
            f"{RAY} start --address {self._head} --node-ip-address {self._wires.address(self.number)} --num-cpus 1 "
            f"--object-store-memory 80000000 --temp-dir {own}/ray --block"
        )
        script = f"mount --bind {own}/cache {self._place}/cache && exec {ray}"
        return subprocess.Popen(
            [*self._wires.inside(self.number), "sh", "-c", script],
            stdout=subprocess.DEVNULL, stderr=(own / "log").open("wb"),
        )  # fmt: skip

    def kill(self) -> None:
        """Kill the node with all of its processes."""
        kill_tree(self.process)

    def replace(self) -> None:
        """Start another node in place of one that is gone."""
        self.process = self._start()


class Cruelty(threading.Thread):
    """Kills nodes and cuts cables in turns, and starts nodes anew that are gone, until it is stopped."""

    def __init__(self, wires: Wires, machines: list[Machine], kills: int, cuts: int) -> None:
        super().__init__(daemon=True)
        self._wires, self._machines, self._kills, self._cuts = wires, machines, kills, cuts
        self.halt, self.done = threading.Event(), []  # type: tuple[threading.Event, list[str]]
        self._begun = time.monotonic()

    def run(self) -> None:
        """Hurt somebody every few seconds."""
        dice = random.Random(5)
        acts = ["kill"] * self._kills + ["cut"] * self._cuts
        dice.shuffle(acts)
        cuts = 0
        for act in acts:
            if self._wait(dice.uniform(4.0, 10.0)):
                return
            victim = dice.choice(self._machines)
            if act == "kill":
                victim.kill()
                self._note(f"machine {victim.number} killed")
            else:
                seconds = CUT_SECONDS[cuts % 2]
                cuts += 1
                self._wires.cut(victim.number)
                self._note(f"cable {victim.number} cut for {seconds:g} s")
                stopped = self._wait(seconds)
                self._wires.join(victim.number)
                if stopped:
                    return
        while not self._wait(1.0):
            pass

    def _wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.halt.wait(0.5):
                return True
            for machine in self._machines:
                if machine.process.poll() is not None:
                    machine.replace()
                    self._note(f"machine {machine.number} begun anew")
        return False

    def _note(self, what: str) -> None:
        self.done.append(what)
        print(f"{time.monotonic() - self._begun:5.0f} s: {what}", flush=True)


@contextmanager
def start_head(place: Path, machines: int) -> Iterator[str]:
    """A head without processors on this machine; yields its address."""
    address = f"{HERE}:{free_port(HERE)}"
    head = subprocess.Popen(
        [RAY, "start", "--head", "--port", address.rpartition(":")[2], "--num-cpus", "0", "--include-dashboard=false",
         "--node-ip-address", HERE, "--temp-dir", str(place / "head"), "--object-store-memory", "80000000", "--block"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {f"RAY_health_check_{name}": str(value) for name, value in HEALTH.items()},
    )  # fmt: skip
    try:
        wait_for(address, time.monotonic() + 120)
        yield address
    finally:
        kill_tree(head)


def wait_until(true: Callable[[], bool], seconds: float) -> float:
    """Wait until something is true; the seconds that it took. Raises TimeoutError."""
    begun = time.monotonic()
    while not true():
        if time.monotonic() - begun > seconds:
            raise TimeoutError(f"not so after {seconds:g} s")
        time.sleep(0.2)
    return time.monotonic() - begun


def wait_for_machines(cluster: Cluster, machines: list[Machine]) -> None:
    """Wait until the nodes of machines are alive, with others in place of those that did not start."""

    def alive() -> bool:
        for machine in machines:
            if machine.process.poll() is not None:
                machine.replace()
        return len(cluster.alive_nodes()) == 1 + len(machines)

    wait_until(alive, 240)


def search_with_a_cut_cable(cluster: Cluster, wires: Wires, library: Path) -> None:
    """Search before, while and after the cable of a machine with a shard is cut."""
    shards = RayShards(cluster, library, seconds=SEARCH_SECONDS)
    shards.wait()
    with Library.open(library, shard_client=shards) as opened:

        def ask() -> tuple[float, tuple[str, ...], list[tuple[str, float, float, float]]]:
            begun = time.monotonic()
            found = opened.search("something red", all=True, k=50)
            return (
                time.monotonic() - begun,
                found.missing,
                [(hit.name, hit.start, hit.end, hit.score) for hit in found],
            )

        def is_whole() -> bool:
            try:
                return not ask()[1]
            except LibraryError:  # on a busy machine no shard may answer in time at first
                return False

        wait_until(is_whole, 120)
        _, _, right = ask()
        for seconds in SEARCH_CUT_SECONDS:
            nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in cluster.alive_nodes()}
            homes = {node for one in shards.status() for node in one.nodes}
            used = {address for id, address in nodes.items() if id.startswith(tuple(homes))}
            machine = next(m for m in wires.machines if wires.address(m) in used)
            wires.cut(machine)
            begun, times, whole = time.monotonic(), [], 0
            while time.monotonic() - begun < seconds:
                took, missing, hits = ask()
                times.append(took)
                whole += not missing
                assert missing or hits == right, "an answer lacks moments and does not say so"
                assert took < 2 * SEARCH_SECONDS, f"an answer took {took:.1f} s"
            wires.join(machine)
            back = wait_until(is_whole, 120)
            assert ask()[2] == right, "the answer is not what it was"
            print(
                f"cable {machine} cut for {seconds:g} s: {len(times)} searches, {len(times) - whole} incomplete, "
                f"the longest took {max(times):.2f} s; whole again {back:.1f} s after it was joined",
                flush=True,
            )
    shards.close()


def main() -> None:
    """Hurt three machines, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=200)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--cuts", type=int, default=3)
    asked = parser.parse_args()
    if not can_make_namespaces():
        sys.exit("network namespaces cannot be made here: be root, and have iproute2")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left behind
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    with tempfile.TemporaryDirectory(prefix="ms-", ignore_cleanup_errors=True) as name, Wires(MACHINES) as wires:
        place = Path(name)
        films, cache = place / "films", place / "cache"
        films.mkdir()
        cache.mkdir()
        os.environ["MOMENTSEEK_CACHE"] = str(cache)
        make_videos(films, asked.videos)
        with serve_s3("bucket", HERE), start_head(place, MACHINES) as head, join_patiently(head) as cluster:
            store = from_url("s3://bucket", client_options={"allow_http": True})
            for film in films.iterdir():
                obstore.put(store, f"films/{film.name}", film)
            make_elsewhere("s3://bucket/library", lambda into: make_shards(into, SHARDS))
            library = library_folder("s3://bucket/library")
            machines: list[Machine] = []
            try:
                for number in wires.machines:  # one after another: Ray gives up a node that takes long to start
                    machines.append(Machine(wires, number, head, place))
                    wait_for_machines(cluster, machines)
                print(f"{MACHINES} machines, {cluster.processors()} processors", flush=True)
                cruelty = Cruelty(wires, machines, asked.kills, asked.cuts)
                cruelty.start()
                found = FoundFiles(files=list(list_videos("s3://bucket/films", library)))
                report = add_on_cluster(cluster, library, found, settings=WriterSettings())
                cruelty.halt.set()
                cruelty.join()
                print(f"cluster: {report}; {'; '.join(cruelty.done)}", flush=True)
                wait_for_machines(cluster, machines)
                open_store(library, create=False).close()
                search_with_a_cut_cable(cluster, wires, library)
            finally:
                for machine in machines:
                    machine.kill()
            compare_with_one_machine(library, films, place)


if __name__ == "__main__":
    main()
