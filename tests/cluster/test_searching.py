"""Asking shards on a cluster that is only played: who is asked, who is waited for, and what is said of the others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from momentseek.cluster.connection import Cluster
from momentseek.cluster.manifest import ShardManifest, write_manifest
from momentseek.cluster.searching import RayShards
from momentseek.core.errors import MomentseekError


class GoneError(Exception):
    """What the played Ray raises for an actor that died."""


class TaskError(Exception):
    """What the played Ray raises for a task that failed."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class PlayedActor:
    """An actor that answers questions with its name, or owes the answer while it is away."""

    def __init__(self, place: str, neighbours: int) -> None:
        self.name, self.neighbours = Path(place).name, neighbours
        self.away, self.asked = False, 0
        self.error: Exception | None = None
        self.ask = SimpleNamespace(remote=self._ask)

    def _ask(self, method: str, argument: object) -> Any:
        self.asked += 1
        return PlayedRef(self)


class PlayedRef:
    """An answer that is owed."""

    def __init__(self, actor: PlayedActor) -> None:
        self.actor = actor


class PlayedRay:
    """As much of Ray as shards are asked by."""

    exceptions = SimpleNamespace(RayTaskError=TaskError, RayError=GoneError)

    def __init__(self) -> None:
        self.waits: list[float] = []

    def remote(self, **options: Any) -> Any:
        return lambda kind: SimpleNamespace(remote=PlayedActor)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True}]

    def wait(
        self, refs: list[PlayedRef], num_returns: int = 1, timeout: float = 0.0
    ) -> tuple[list[PlayedRef], list[PlayedRef]]:
        self.waits.append(timeout)
        return [one for one in refs if not one.actor.away], [one for one in refs if one.actor.away]

    def get(self, ref: PlayedRef) -> str:
        if ref.actor.error is not None:
            raise ref.actor.error
        return ref.actor.name


@pytest.fixture
def shards(tmp_path: Path) -> RayShards:
    (tmp_path / "library").mkdir()
    write_manifest(tmp_path / "library", ShardManifest.of(2, 1.5, "things"))
    made = RayShards(Cluster(PlayedRay()), tmp_path / "library", replicas=2, seconds=3.0)
    made._opened = True
    return made


def test_a_replica_that_owes_an_answer_is_not_asked_until_it_gives_it(shards: RayShards) -> None:
    first, second = shards.actors[1]
    assert shards.ask("search", {0: "x", 1: "x"}).answers == {0: "shard-000", 1: "shard-001"}
    first.away = second.away = True
    for _ in range(2):  # each replica lets one search wait
        assert shards.ask("search", {0: "x", 1: "x"}).failed == {1: "did not answer within 3 s"}
    asked = first.asked + second.asked
    told = shards.ask("search", {0: "x", 1: "x"})
    assert (told.answers, told.failed) == ({0: "shard-000"}, {1: "has not answered an earlier question"})
    assert first.asked + second.asked == asked
    assert shards.ask("search", {1: "x"}).failed == {1: "has not answered an earlier question"}
    second.away = False
    for _ in range(2):  # whosever turn it is
        assert shards.ask("search", {1: "x"}).answers == {1: "shard-001"}
    assert first.asked + second.asked == asked + 2
    first.away = False
    before = first.asked
    for _ in range(2):
        shards.ask("search", {1: "x"})
    assert first.asked == before + 1


def test_wrong_request_is_raised_and_dead_actor_is_reported(shards: RayShards) -> None:
    for actor in shards.actors[0]:
        actor.error = GoneError("the actor died\nand more")
    assert shards.ask("search", {0: "x", 1: "x"}).failed == {0: "the actor died"}
    for actor in shards.actors[0]:
        actor.error = TaskError(MomentseekError("there is no localiser"))
    with pytest.raises(MomentseekError, match="there is no localiser"):
        shards.ask("search", {0: "x"})


def test_replicas_on_a_machine_share_its_processors(shards: RayShards) -> None:
    assert [actor.neighbours for one in shards.actors for actor in one] == [4] * 4
