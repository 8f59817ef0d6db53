"""Ask the shards of a library during searches, in this process or elsewhere.

A library in shards gives the answers of the same videos in one library, moment for moment: each shard answers for its
own videos (:class:`momentseek.search.part.LibraryPart`), and the search makes the answers one.
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


class ShardClient(ABC):
    """A way to ask the shards of a library, all at once where that is possible."""

    names: Sequence[str]
    """The names of the shards, in the order of their numbers."""

    @abstractmethod
    def ask(self, method: str, arguments: Mapping[int, Mapping[str, Any]]) -> ShardAnswers:
        """Call a method of :class:`momentseek.search.part.LibraryPart` on some shards, each with its own arguments.

        A shard that cannot be reached, or not in time, is among the ``failed``; what is wrong with the question itself
        is raised.
        """

    @abstractmethod
    def status(self) -> list[ShardStatus]:
        """How each shard is, in the order of their numbers; takes a second at most."""

    def begin(self) -> ShardQuestions:
        """A way to ask all shards during one search."""
        return ShardQuestions(self)


class LocalShards(ShardClient):
    """Shards in this process, asked one after another."""

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
    """Asks the shards of a library during one search; one that fails once is left out from then on."""

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
        """Refuse shards whose vectors different encoders made: they cannot be compared."""
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
        """Say which shards did not answer, and whether what did may be old."""
        results.missing = tuple(self._client.names[number] for number in sorted(self.failed))
        if results.missing:
            names = ", ".join(results.missing)
            total = count(len(self._client.names), "shard")
            what = f"incomplete: {len(results.missing)} of {total} did not answer ({names})"
            results.note = f"{what}; {results.note}" if results.note else what
        results.outdated = self.outdated
        if self.outdated:
            results.note = f"{self.outdated}; {results.note}" if results.note else self.outdated
