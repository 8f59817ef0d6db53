"""Clients for the shards of a library during searches, in this process or elsewhere.

A sharded library returns exactly the moments that one library with the same videos would return: each shard answers for
its own videos (:class:`momentseek.search.part.LibraryPart`), and the search combines the answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.core.reports import count
from momentseek.library.reader import LibraryReader
from momentseek.search.hit import Results
from momentseek.search.part import WarmState
from momentseek.search.requests import PartStatistics


@dataclass(frozen=True)
class ShardAnswers:
    """The answers of shards, by their numbers, and the reasons why others did not answer."""

    answers: dict[int, Any] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardStatus:
    """The current status of a shard."""

    name: str
    replicas: int = 1
    """Number of copies that take turns."""
    answering: int = 1
    """Number of copies that answered just now."""
    nodes: tuple[str, ...] = ()
    """The machines that they run on; empty for this process."""
    lag: float | None = 0.0
    """Seconds until the slowest of them answered; None if none answered."""


class ShardClient(ABC):
    """Sends requests to the shards of a library, to all at once if possible."""

    names: Sequence[str]
    """The names of the shards, in the order of their numbers."""

    @abstractmethod
    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> ShardAnswers:
        """Call a method of :class:`momentseek.search.part.LibraryPart` on some shards, each with its own arguments.

        A shard that does not answer in time is among the ``failed``; an error in the request itself is raised.
        """

    @abstractmethod
    def status(self) -> list[ShardStatus]:
        """The status of each shard, in the order of their numbers; takes at most a second."""

    def begin(self) -> ShardQuestions:
        """Begin a search over all shards."""
        return ShardQuestions(self)


class LocalShards(ShardClient):
    """Shards in this process, which answer one after another."""

    def __init__(self, shards: Mapping[str, LibraryReader]) -> None:
        self.names = list(shards)
        self._shards = list(map(WarmState, shards.values()))

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> ShardAnswers:
        """Call a method on some shards; one whose files cannot be read has failed."""
        out = ShardAnswers()
        for number, some in arguments.items():
            try:
                out.answers[number] = self._shards[number].ask(method, some)
            except (LibraryError, OSError) as e:
                out.failed[number] = str(e)
        return out

    def status(self) -> list[ShardStatus]:
        """Each shard, which is in this process."""
        return [ShardStatus(name) for name in self.names]


class ShardQuestions:
    """Sends the requests of one search to the shards; a shard that fails once is not asked again."""

    def __init__(self, client: ShardClient) -> None:
        self._client = client
        self.parts = list(range(len(client.names)))
        self.failed: dict[int, str] = {}
        self.outdated = ""

    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """The answers of some shards, by number."""
        wanted = {number: some for number, some in arguments.items() if number in self.parts}
        if not wanted:
            return {}
        got = self._client.ask(method, wanted)
        self.failed |= got.failed
        self.parts = [number for number in self.parts if number not in self.failed]
        if not self.parts:
            raise LibraryError(f"no shard of the library answers: {next(iter(self.failed.values()))}")
        answers = {number: got.answers[number] for number in sorted(got.answers)}
        if method == "statistics":
            self._check_encoders(answers)
            self.outdated = next((one.outdated for one in answers.values() if one.outdated), self.outdated)
        return answers

    def _check_encoders(self, statistics: Mapping[int, PartStatistics]) -> None:
        """Refuse shards with vectors of different encoders, because these cannot be compared."""
        first: dict[str, tuple[str, str]] = {}
        for number, one in statistics.items():
            for row in one.counts.encoders:
                name, fingerprint = first.setdefault(row.stream, (self._client.names[number], row.fingerprint))
                if fingerprint != row.fingerprint:
                    raise MomentseekError(
                        f"the shards {name} and {self._client.names[number]} have vectors of different encoders; make "
                        "those of all again with: momentseek reencode"
                    )

    def finish(self, results: Results) -> None:
        """Note in the results which shards did not answer, and whether the answer may be outdated."""
        results.missing = tuple(self._client.names[number] for number in sorted(self.failed))
        if results.missing:
            names = ", ".join(results.missing)
            total = count(len(self._client.names), "shard")
            what = f"incomplete: {len(results.missing)} of {total} did not answer ({names})"
            results.note = f"{what}; {results.note}" if results.note else what
        results.outdated = self.outdated
        if self.outdated:
            results.note = f"{self.outdated}; {results.note}" if results.note else self.outdated
