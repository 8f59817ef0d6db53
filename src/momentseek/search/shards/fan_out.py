"""Asking shards: in this process, or wherever a :class:`FanOut` reaches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from momentseek.errors import LibraryError
from momentseek.search.shards.shard import SearchShard


@dataclass(frozen=True)
class FanAnswers:
    """What shards answered, by their numbers, and why others did not."""

    answers: dict[int, Any] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardStatus:
    """How a shard is at the moment."""

    name: str
    replicas: int = 1
    """Copies of it that take turns."""
    answering: int = 1
    """Those that answered just now."""
    nodes: tuple[str, ...] = ()
    """The machines that they are on, where it is not this process."""
    lag: float | None = 0.0
    """Seconds until the last of them answered: how long a question waits before its turn. None if none answered."""


class FanOut(Protocol):
    """A way to ask the shards of a library, all at once where that is possible."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the shards, in the order of their numbers."""

    def ask(self, method: str, arguments: Mapping[int, object]) -> FanAnswers:
        """Call a method of :class:`SearchShard` on some shards, each with its own argument.

        A shard that cannot be reached, or not in time, is among the ``failed``; what is wrong with the question itself
        is raised.
        """

    def status(self) -> list[ShardStatus]:
        """How each shard is, in the order of their numbers; takes a second at most."""


class LocalShards:
    """Shards in this process, asked one after another."""

    def __init__(self, shards: Mapping[str, SearchShard]) -> None:
        self._shards = dict(shards)

    @property
    def names(self) -> Sequence[str]:
        """The names of the shards, in the order of their numbers."""
        return list(self._shards)

    def ask(self, method: str, arguments: Mapping[int, object]) -> FanAnswers:
        """Call a method on some shards; one whose files cannot be read has failed."""
        shards, out = list(self._shards.values()), FanAnswers()
        for number, argument in arguments.items():
            try:
                out.answers[number] = getattr(shards[number], method)(argument)
            except (LibraryError, OSError) as e:
                out.failed[number] = str(e)
        return out

    def status(self) -> list[ShardStatus]:
        """Each shard, which is in this process."""
        return [ShardStatus(name) for name in self._shards]


class Asker:
    """Asks the shards of a library during one search; one that fails once is left out from then on."""

    def __init__(self, shards: FanOut) -> None:
        self._shards = shards
        self.left = list(range(len(shards.names)))
        """Numbers of the shards that have answered so far."""
        self.failed: dict[int, str] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the shards that did not answer."""
        return tuple(self._shards.names[number] for number in sorted(self.failed))

    def fail(self, failed: Mapping[int, str]) -> None:
        """Leave shards out from now on, for these reasons."""
        self.failed |= failed
        self.left = [number for number in self.left if number not in failed]

    def ask_all(self, method: str, argument: object) -> dict[int, Any]:
        """The answers of all shards to one question, by number."""
        return self.ask(method, dict.fromkeys(self.left, argument))

    def ask(self, method: str, arguments: Mapping[int, object]) -> dict[int, Any]:
        """The answers of some shards to a question of each one's own, by number."""
        wanted = {number: argument for number, argument in arguments.items() if number in self.left}
        if not wanted:
            return {}
        got = self._shards.ask(method, wanted)
        self.fail(got.failed)
        if not self.left:
            raise LibraryError(f"no shard of the library answers: {next(iter(self.failed.values()))}")
        return {number: got.answers[number] for number in sorted(got.answers)}
