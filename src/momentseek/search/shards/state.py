"""What a coordinator knows of a sharded library between two searches: how large it is, and its sample of clips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from momentseek.encoders.protocol import Vectors
from momentseek.errors import MomentseekError
from momentseek.library.encoders import LibraryEncoders
from momentseek.search.sampling import SampledRows
from momentseek.search.shards.answers import SampleAsk, SampleKind, ShardCounts, ShardSample
from momentseek.search.shards.fan_out import Asker, FanOut
from momentseek.search.state import SAMPLE_CLIPS, KeyedRows, QueryEncoder, sample_step, window_step
from momentseek.trained.boundary_head import BoundaryHead
from momentseek.trained.moment_map import MomentMap


@dataclass(frozen=True, eq=False)
class ShardedIndex:
    """One stream of all shards as a query is judged by it; samples are fetched when they are first needed."""

    shards: FanOut
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
        parts: list[ShardSample] = list(asker.ask_all("sample", SampleAsk(kind, step)).values())
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
        cls, shards: FanOut, encoders: LibraryEncoders, encoder: QueryEncoder, counts: Mapping[int, ShardCounts]
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


def check_encoders(shards: FanOut, counts: Mapping[int, ShardCounts]) -> None:
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
