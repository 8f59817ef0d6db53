"""RayShards: the shards of a library, each in an actor of its own, where its vectors stay in memory."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from momentseek.cluster.connection import Cluster
from momentseek.errors import LibraryError, MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.reader import LibraryReader
from momentseek.library.replicas.opening import bring_shard
from momentseek.library.replicas.place import shard_place
from momentseek.library.shards.manifest import read_manifest
from momentseek.search.shards.fan_out import FanAnswers, ShardStatus
from momentseek.search.shards.shard import SearchShard

ANSWER_SECONDS = 10.0
"""How long a shard may take to answer before an answer goes without it."""
START_SECONDS = 120.0
"""How long shards may take to be opened."""
STATUS_SECONDS = 1.0
"""How long a replica may take to say that it is there."""
NODE_DIGITS = 12
"""So much of a node's id tells it from others, and can be looked up with ``ray list nodes``."""


class ShardSearcher:
    """One shard that is searched; as an actor, it is begun anew elsewhere if its node dies."""

    def __init__(self, place: str) -> None:
        path = bring_shard(place)
        self._shard = SearchShard(LibraryReader(path, Catalog(path)))

    def ask(self, method: str, argument: object) -> Any:
        """Ask the shard a question."""
        return getattr(self._shard, method)(argument)

    def process(self) -> int:
        """The number of the process that this runs in."""
        return os.getpid()

    def node(self) -> str:
        """The node that this runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())


class RayShards:
    """Asks all shards at once; one that fails or is late is left out of the answer, which says so.

    ``replicas`` actors per shard take turns, so that several questions are answered at a time.
    """

    def __init__(self, cluster: Cluster, library: Path, *, replicas: int = 1, seconds: float = ANSWER_SECONDS) -> None:
        manifest = read_manifest(library)
        self._ray, self._seconds = cluster.ray, seconds
        self.names: Sequence[str] = manifest.shards
        # a question that was under way when an actor died is not asked again: it would come too late
        kind = cluster.actor(
            ShardSearcher, num_cpus=0, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        places = map(shard_place, manifest.folders(library))
        self.actors = [[kind.remote(place) for _ in range(replicas)] for place in places]
        self._turns = itertools.count()

    def wait(self) -> None:
        """Wait until the shards are open; raises LibraryError if one cannot be opened."""
        try:
            self._ray.get([actor.node.remote() for one in self.actors for actor in one], timeout=START_SECONDS)
        except self._ray.exceptions.RayError as e:
            raise LibraryError(f"a shard cannot be opened on the cluster ({_reason(e)})") from None

    def ask(self, method: str, arguments: Mapping[int, object]) -> FanAnswers:
        """Call a method on some shards, each with its own argument, and wait for what answers in time."""
        turn = next(self._turns)
        asked = {
            self.actors[number][turn % len(self.actors[number])].ask.remote(method, argument): number
            for number, argument in arguments.items()
        }
        ready, late = self._ray.wait(list(asked), num_returns=len(asked), timeout=self._seconds)
        out = FanAnswers(failed={asked[one]: f"did not answer within {self._seconds:g} s" for one in late})
        for one in ready:
            try:
                out.answers[asked[one]] = self._ray.get(one)
            except self._ray.exceptions.RayTaskError as e:
                if isinstance(e.cause, MomentseekError) and not isinstance(e.cause, LibraryError):
                    raise e.cause from None  # the question is wrong, wherever it is asked
                out.failed[asked[one]] = str(e.cause)
            except self._ray.exceptions.RayError as e:
                out.failed[asked[one]] = _reason(e)
        return out

    def status(self) -> list[ShardStatus]:
        """Each shard with its replicas, and the nodes of those that answer now, by the ids that Ray gives them."""
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
    """Why Ray could not ask, in a line."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return f"the actor is gone ({type(e).__name__})" if not lines else lines[0][:200]
