"""RayShards: the shards of a library, each in its own actor; and a web application as replicas of Ray Serve."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from momentseek.cluster.connection import Cluster
from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.replicas.place import shard_place
from momentseek.cluster.replicas.replica import update_shard
from momentseek.cluster.shard_client import ShardAnswers, ShardClient, ShardStatus
from momentseek.core.errors import LibraryError, MomentseekError, optional_module
from momentseek.library.catalog import Catalog
from momentseek.library.reader import LibraryReader
from momentseek.recognition.runtime import THREADS_VARIABLE, available_cores
from momentseek.search.part import WarmState

ANSWER_SECONDS = 10.0
"""How long to wait for the answer of a shard before continuing without it."""
START_SECONDS = 120.0
"""How long opening the shards may take."""
STATUS_SECONDS = 1.0
"""How long a replica may take to report its status."""
NODE_DIGITS = 12
"""Number of digits of a node's id that are shown; ``ray list nodes`` finds the node by them."""


class ShardSearcher:
    """Searches one shard; as an actor, it is restarted elsewhere if its node dies."""

    def __init__(self, place: str, neighbours: int = 1) -> None:
        # shards on the same machine share its cores
        os.environ.setdefault(THREADS_VARIABLE, str(max(1, available_cores() // neighbours)))
        path = update_shard(place)
        self._shard = WarmState(LibraryReader(path, Catalog(path)))

    def ask(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Answer a request about the shard."""
        return self._shard.ask(method, arguments)

    def process(self) -> int:
        """The number of the process that this runs in."""
        return os.getpid()

    def node(self) -> str:
        """The node that this runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())


class RayShards(ShardClient):
    """Sends requests to all shards at once; a shard that fails or is late is reported as missing.

    ``replicas`` actors per shard take turns, so that several requests are answered at the same time.
    """

    def __init__(self, cluster: Cluster, library: Path, *, replicas: int = 1, seconds: float = ANSWER_SECONDS) -> None:
        manifest = read_manifest(library)
        self._ray, self._seconds = cluster.ray, seconds
        self.names = manifest.shards
        # a request that was lost with its actor is not repeated: the answer would be too late
        kind = cluster.actor(
            ShardSearcher, num_cpus=0, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        places = list(map(shard_place, manifest.folders(library)))
        neighbours = -(-len(places) * replicas // max(1, len(cluster.alive_nodes())))
        self.actors = [[kind.remote(place, neighbours) for _ in range(replicas)] for place in places]
        self._turns = itertools.count()
        self._opened = False
        self._late: dict[tuple[int, int], Any] = {}
        """Shard and replica → the request that it has not answered in time."""

    def wait(self) -> None:
        """Wait until the shards are open; raises LibraryError if one cannot be opened."""
        try:
            self._ray.get([actor.node.remote() for one in self.actors for actor in one], timeout=START_SECONDS)
        except self._ray.exceptions.RayError as e:
            raise LibraryError(f"a shard cannot be opened on the cluster ({_reason(e)})") from None
        self._opened = True

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> ShardAnswers:
        """Call a method on some shards, each with its own arguments, and collect the answers that arrive in time.

        A shard whose replicas are all late with an answer is skipped; otherwise searches would wait for it again, and
        requests would pile up.
        """
        if not self._opened:
            self.wait()
        turn, out, asked = next(self._turns), ShardAnswers(), {}
        for number, some in arguments.items():
            if (replica := self._free_replica(number, turn)) is None:
                out.failed[number] = "has not answered an earlier question"
            else:
                asked[self.actors[number][replica].ask.remote(method, some)] = number, replica
        if not asked:
            return out
        ready, late = self._ray.wait(list(asked), num_returns=len(asked), timeout=self._seconds)
        for one in late:
            number, replica = asked[one]
            self._late[number, replica] = one
            out.failed[number] = f"did not answer within {self._seconds:g} s"
        for one in ready:
            number, _ = asked[one]
            try:
                out.answers[number] = self._ray.get(one)
            except self._ray.exceptions.RayTaskError as e:
                if isinstance(e.cause, MomentseekError) and not isinstance(e.cause, LibraryError):
                    raise e.cause from None  # the request itself is wrong
                out.failed[number] = str(e.cause)
            except self._ray.exceptions.RayError as e:
                out.failed[number] = _reason(e)
        return out

    def _free_replica(self, number: int, turn: int) -> int | None:
        """The next replica of a shard that is not late with an answer; None if all are."""
        count = len(self.actors[number])
        for replica in ((turn + at) % count for at in range(count)):
            late = self._late.get((number, replica))
            if late is not None and self._ray.wait([late], timeout=0)[0]:
                del self._late[number, replica]
                late = None
            if late is None:
                return replica
        return None

    def status(self) -> list[ShardStatus]:
        """The status of each shard: its replicas, and Ray's ids of the nodes of those that answer now."""
        begun = time.monotonic()
        asked = {actor.node.remote(): number for number, one in enumerate(self.actors) for actor in one}
        nodes: list[list[str]] = [[] for _ in self.actors]
        lags: list[float | None] = [None for _ in self.actors]
        waiting = list(asked)
        while waiting and (left := begun + STATUS_SECONDS - time.monotonic()) > 0:
            ready, waiting = self._ray.wait(waiting, num_returns=1, timeout=left)
            for one in ready:
                with suppress(self._ray.exceptions.RayError):
                    nodes[asked[one]].append(self._ray.get(one)[:NODE_DIGITS])
                    lags[asked[one]] = time.monotonic() - begun
        return [
            ShardStatus(name, len(actors), len(there), tuple(sorted(set(there))), lag)
            for name, actors, there, lag in zip(self.names, self.actors, nodes, lags, strict=True)
        ]

    def close(self) -> None:
        """End the actors."""
        for actor in itertools.chain.from_iterable(self.actors):
            with suppress(Exception):  # an actor that is gone already
                self._ray.kill(actor)


def _reason(e: Exception) -> str:
    """The reason of a Ray error, in one line."""
    if type(e).__name__ == "ActorUnavailableError":
        return "its actor is away"
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return f"the actor is gone ({type(e).__name__})" if not lines else lines[0][:200]


WAITING_REQUESTS = 8
"""Number of ongoing requests per replica above which another replica is started."""


def serve_replicas(build: Callable[[], Any], *, max_replicas: int = 1, name: str = "momentseek") -> Any:
    """Create what ``serve run`` runs: up to ``max_replicas`` replicas, each with an application made by ``build``."""
    serve = optional_module("ray.serve", "ray-serve")
    scaling = {"min_replicas": 1, "max_replicas": max_replicas, "target_ongoing_requests": WAITING_REQUESTS}
    made = serve.deployment(name=name, autoscaling_config=scaling, max_ongoing_requests=10 * WAITING_REQUESTS)

    def build_there() -> Any:  # Ray Serve takes a partial for the application itself
        return build()

    return made(serve.ingress(build_there)()).bind()
