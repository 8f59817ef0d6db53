"""What the folder of an exported re-ranker says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from momentseek.errors import MomentseekError
from momentseek.trained.manifest import (
    JOINT_KIND,
    MANIFEST_FILE,
    UNREADABLE_VALUES,
    EncoderRef,
    check_files,
    kind_of,
    read_values,
)

if TYPE_CHECKING:
    from momentseek.features.preparation import Preparation

JOINT_GRAPH = "joint.onnx"
SPANS_OUTPUT = "spans"
"""Output of a graph that scores spans of clips, by first clip and length."""
TIMES_OUTPUTS = ("start", "end", "score")
"""Outputs of a graph that predicts times: shares of what the clips cover, and scores."""


@dataclass(frozen=True, eq=False)
class RerankerManifest:
    """What the folder of an exported re-ranker says about it."""

    folder: Path
    model: str
    fingerprint: str
    clip_seconds: float
    video: EncoderRef | None
    """The encoder of frames, for a model that sees them."""
    subtitle: EncoderRef | None
    """The encoder of cues, for a model that reads them."""
    query: EncoderRef
    max_words: int
    max_clips: int
    preparation: Preparation
    """How features become the graph's input."""
    shortest: int
    roles: bool
    """Whether the model also takes the roles of a query's words (verbs, nouns)."""
    end_time: str
    nms: float | None
    """The overlap above which it was trained to drop the worse of two moments."""
    window: float | None
    """Seconds of the longest video it is given at once."""
    parse: str = "auto"
    """Name of the parser that found the words' roles in training."""
    rows: int | None = None
    """Rows of a video that the graph takes, one video at a time; None if it takes any number of both."""
    times: bool = False
    """Whether the model predicts times, and not spans of clips."""

    @property
    def most(self) -> int:
        """Clips of a video that the model reads at once; longer videos are read in windows."""
        if self.preparation.fit == "truncate" or self.window is None:
            return self.max_clips
        return max(self.max_clips if self.preparation.fit == "resample" else 1, round(self.window / self.clip_seconds))


def read_reranker_manifest(folder: Path) -> RerankerManifest:
    """The manifest of an exported re-ranker; the graph beside it must be the one it was written with."""
    values = read_values(folder)
    if kind_of(values) != JOINT_KIND:
        raise MomentseekError(
            f"{folder}: {values.get('model')} makes a library's vectors (momentseek add --model) and does not re-rank; "
            "models that read both together do (tan2d, mdd, cet, ctrl, …: docs/reranking.md)"
        )
    check_files(folder, values, (JOINT_GRAPH,))
    try:
        return _about(folder, values)
    except UNREADABLE_VALUES:
        raise MomentseekError(f"{folder / MANIFEST_FILE}: lacks what a model must say; export it again") from None


def _about(folder: Path, values: Mapping[str, Any]) -> RerankerManifest:
    from momentseek.features.preparation import Preparation  # here, because a plain library needs none of it

    encoders, config, head = values["encoders"], values["config"], values["head"]
    sources = {kind: EncoderRef.of(source) for kind, source in encoders.items()}
    used = [*str(config["modalities"]).split("+"), "query"]
    if any(kind not in sources for kind in used):
        raise MomentseekError(
            f"{folder / MANIFEST_FILE}: does not say which encoders its features were made by, so no query can be "
            "encoded for it; export it with features that `momentseek data features` wrote "
            "(momentseek export … --data FOLDER)"
        )
    return RerankerManifest(
        folder=folder,
        model=str(values["model"]),
        fingerprint=str(values["fingerprint"]),
        clip_seconds=float(values["clip_seconds"]),
        video=sources.get("video"),
        subtitle=sources.get("subtitle"),
        query=sources["query"],
        max_words=int(config["max_words"]),
        max_clips=int(config["max_clips"]),
        preparation=Preparation.of(config),
        shortest=int(config["shortest"]),
        roles=bool(head["roles"]),
        end_time=str(head["end_time"]),
        nms=None if head["nms"] is None else float(head["nms"]),
        window=None if head["window"] is None else float(head["window"]),
        parse=str(head.get("parse", "auto")),
        rows=None if head.get("rows") is None else int(head["rows"]),
        times=bool(head.get("times", False)),
    )
