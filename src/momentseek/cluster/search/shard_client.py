"""Ask shards, in this process or elsewhere, and what a coordinator knows of them between two searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from momentseek.cluster.search.requests import SampleKind, SampleRequest, ShardCounts, ShardSample
from momentseek.cluster.search.shard import SearchShard
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.library.encoders import LibraryEncoders
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.boundary_head import BoundaryHead
from momentseek.recognition.exported.moment_map import MomentMap
from momentseek.search.state import SAMPLE_CLIPS, KeyedRows, QueryEncoder, SampledRows, sample_step, window_step


@dataclass(frozen=True)
class ClientAnswers:
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


class ShardClient(Protocol):
    """A way to ask the shards of a library, all at once where that is possible."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the shards, in the order of their numbers."""

    def ask(self, method: str, arguments: Mapping[int, object]) -> ClientAnswers:
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

    def ask(self, method: str, arguments: Mapping[int, object]) -> ClientAnswers:
        """Call a method on some shards; one whose files cannot be read has failed."""
        shards, out = list(self._shards.values()), ClientAnswers()
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

    def __init__(self, shards: ShardClient) -> None:
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


@dataclass(frozen=True, eq=False)
class ShardedIndex:
    """One stream of all shards as a query is judged by it; samples are fetched when they are first needed."""

    shards: ShardClient
    kind: SampleKind
    clips: int
    span_rows: int = 0
    window_count: int = 0
    head: BoundaryHead | None = None
    moments: MomentMap | None = None
    failed: dict[int, str] = field(default_factory=dict)
    """Shards whose part of a sample is lacking, and why."""

    @cached_property
    def sample(self) -> Vectors:
        """Clips (or cues) taken at even steps from all videos of all shards."""
        parts = self._ask(self.kind, sample_step(self.clips))
        return SampledRows.join([part.rows for part in parts if part.rows is not None]).rows

    @cached_property
    def sample_videos(self) -> list[Vectors]:
        """Videos taken at even steps from all shards, long ones in parts as long as a model reads at a time."""
        return [rows for _, rows in self._parts("videos", sample_step(self.clips))][:SAMPLE_CLIPS]

    @cached_property
    def sample_windows(self) -> list[Vectors]:
        """The moments of windows taken at even steps from all videos of all shards."""
        return [rows for _, rows in self._parts("windows", window_step(self.span_rows, self.window_count))]

    def _parts(self, kind: SampleKind, step: int) -> list[KeyedRows]:
        return sorted((one for part in self._ask(kind, step) for one in part.parts), key=lambda one: one[0])

    def _ask(self, kind: SampleKind, step: int) -> list[ShardSample]:
        asker = Asker(self.shards)
        parts: list[ShardSample] = list(asker.ask_all("sample", SampleRequest(kind, step)).values())
        self.failed.update(asker.failed)
        return parts


@dataclass(eq=False)
class ShardedState:
    """A sharded library in one state."""

    encoder: QueryEncoder
    counts: Mapping[int, ShardCounts]
    vision: ShardedIndex
    speech: ShardedIndex
    damaged: bool = field(default=False)
    """Whether a shard met vectors that are not finite in the search that runs."""

    @classmethod
    def open(
        cls, shards: ShardClient, encoders: LibraryEncoders, encoder: QueryEncoder, counts: Mapping[int, ShardCounts]
    ) -> ShardedState:
        """A sharded library whose shards hold so much."""
        check_encoders(shards, counts)
        total = {name: sum(getattr(one, name) for one in counts.values()) for name in ("clips", "cue_vectors")}
        spans, windows = (sum(getattr(one, name) for one in counts.values()) for name in ("span_rows", "windows"))
        model = encoders.model if spans else None
        moments = None if model is None else model.about.moments
        head = None if model is None or moments is not None else BoundaryHead.of(model.about)
        vision = ShardedIndex(shards, "vision", total["clips"], spans, windows, head, moments)
        return cls(encoder, dict(counts), vision, ShardedIndex(shards, "speech", total["cue_vectors"]))

    def is_of(self, counts: Mapping[int, ShardCounts]) -> bool:
        """Whether the shards are as they were when this state was opened."""
        return dict(counts) == self.counts


def check_encoders(shards: ShardClient, counts: Mapping[int, ShardCounts]) -> None:
    """Refuse shards whose vectors different encoders made: they cannot be compared."""
    first: dict[str, tuple[str, str]] = {}
    for number, one in counts.items():
        for row in one.encoders:
            name, print_ = first.setdefault(row.stream, (shards.names[number], row.fingerprint))
            if print_ != row.fingerprint:
                raise MomentseekError(
                    f"the shards {name} and {shards.names[number]} have vectors of different encoders; make those of "
                    "all anew with: momentseek reencode"
                )
