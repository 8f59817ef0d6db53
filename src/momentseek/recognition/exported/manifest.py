"""``model.json``, the manifest of an exported model: its settings, its encoders, and the hashes of its files."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.moment_map import MomentMap
from momentseek.recognition.exported.preparation import Preparation
from momentseek.recognition.exported.span_head import SpanHead
from momentseek.recognition.weights.files import sha256

MANIFEST_FILE = "model.json"
CLIPS_GRAPH, WORDS_GRAPH = "clips.onnx", "words.onnx"
MANIFEST_FORMAT = 1
UNREADABLE_VALUES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors raised by values of an unexpected type or size."""
JOINT_KIND = "joint"
"""Kind of models that re-rank."""


@dataclass(frozen=True)
class EncoderRef:
    """A reference to the encoder of a model's training features."""

    spec: str
    fingerprint: str
    dim: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> EncoderRef:
        """Return the encoder that these values of a manifest or a ``data.toml`` describe."""
        return cls(str(values["spec"]), str(values["fingerprint"]), int(values["dim"]))


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelManifest:
    """The manifest fields that all kinds of exported models share."""

    folder: Path
    model: str
    fingerprint: str
    """Hash of the weights and of everything else that vectors and spans depend on."""
    clip_seconds: float
    video: EncoderRef | None
    """The image encoder, for a model with video input."""
    subtitle: EncoderRef | None
    """The text encoder of cues, for a model with subtitle input."""
    query: EncoderRef
    """The word encoder of queries."""
    max_words: int
    max_clips: int
    preparation: Preparation
    """How features become the graphs' input."""
    shortest: int
    end_time: str = "inclusive"
    """Whether a span ends at the end of its last clip or (``start``) at its start, as in ReLoCLNet's public code."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EncoderManifest(ModelManifest):
    """The manifest of an exported model with vectors of clips or moments."""

    modalities: int
    """1 or 2: number of equal parts of a match vector, each of the same length."""
    match: int
    """Number of columns of the match vectors, which rank videos."""
    spans: int
    """Number of columns of the spans vectors, which find spans."""
    start: Vectors
    """The filter that responds to the start of a moment, over neighbouring clips; its length is odd."""
    end: Vectors
    longest: int
    alpha: float
    """Weight of the video's score relative to the span's."""
    moments: MomentMap | None = None
    """The moments that a map model has vectors of; None for a model of clips."""
    curves: SpanHead | None = None
    """The head that scores spans from the match vectors of clips by three curves; None for other models."""


def read_encoder_manifest(folder: Path) -> EncoderManifest:
    """Read the manifest of an exported encoder, and check the hashes of the files next to it."""
    values = read_values(folder)
    if kind_of(values) == JOINT_KIND:
        raise MomentseekError(
            f"{folder}: {values.get('model')} looks at query and video together and cannot make a library's vectors; "
            f"re-rank what a library finds with it: momentseek search --rerank {shlex.quote(str(folder))} …"
        )
    check_files(folder, values, (CLIPS_GRAPH, WORDS_GRAPH))
    return _manifest(folder, values)


def kind_of(values: Mapping[str, Any]) -> str:
    """Return the kind of a manifest's model: what its vectors are of, or ``joint`` for a re-ranker.

    Vectors are of ``clips``, of moments (``map``), or of clips that also score spans (``spans``).
    """
    head = values.get("head")
    return str(head.get("kind", "clips")) if isinstance(head, dict) else "clips"


def check_files(folder: Path, values: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse files whose hashes differ from the manifest's."""
    for name in names:
        _check(folder / name, values["files"].get(name))


def read_kind(folder: Path) -> str:
    """Return the kind of a folder's model (see ``kind_of``) without reading anything else of it."""
    return kind_of(read_values(folder))


def fingerprint_of(values: Mapping[str, Any]) -> str:
    """Return the hash of a manifest's values except its fingerprint; it covers the files by their hashes."""
    rest = {k: v for k, v in values.items() if k not in ("fingerprint", "trained")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_values(folder: Path) -> dict[str, Any]:
    """Read the manifest values of a folder; refuse a folder that is no export or has changed since."""
    if not folder.exists():
        raise MomentseekError(f"{folder}: there is no such folder; name one that momentseek export has written")
    if folder.is_file() or not (folder / MANIFEST_FILE).is_file():
        again = f"momentseek export {shlex.quote(str(folder))} --out FOLDER"
        raise MomentseekError(f"{folder}: is no exported model; if it is a checkpoint, export it first: {again}")

    from momentseek.measuring.formats.document import open_document  # loads all formats

    try:
        values = open_document(folder / MANIFEST_FILE).json
        known = (
            isinstance(values, dict) and values.get("format") == MANIFEST_FORMAT and isinstance(values["files"], dict)
        )
        json.dumps(values, allow_nan=False)  # also refuses infinite numbers and absurd depths
    except (MomentseekError, *UNREADABLE_VALUES):
        known = False
    if not known:
        raise MomentseekError(
            f"{folder / MANIFEST_FILE}: does not describe a model this version knows; export it again"
        )
    found: dict[str, Any] = values
    if found.get("fingerprint") != fingerprint_of(found):
        raise MomentseekError(f"{folder / MANIFEST_FILE}: was changed after the export; export the model again")
    return found


def _check(path: Path, expected: Any) -> None:
    if not path.is_file():
        raise MomentseekError(f"{path}: is missing; export the model again")
    if sha256(path) != expected:
        raise MomentseekError(f"{path}: is not the file that was exported; export the model again")


def _manifest(folder: Path, values: Mapping[str, Any]) -> EncoderManifest:
    with _complete(folder):
        config, head = values["config"], values["head"]
        kind = kind_of(values)
        moments = _moments(head, config) if kind == "map" else None
        as_they_are = config if moments else {**config, "fit": "truncate"}
        if kind == "spans":  # of any length, in parts
            as_they_are["max_clips"] = sys.maxsize
        return EncoderManifest(
            **_shared_values(folder, values, ["query"], as_they_are),
            modalities=int(head["modalities"]) if kind == "clips" else 1,
            match=int(head["match"]),
            spans=int(head["spans"]),
            start=np.asarray(head["start"] if kind == "clips" else [], np.float32),
            end=np.asarray(head["end"] if kind == "clips" else [], np.float32),
            longest=int(config["longest"]),
            alpha=float(config["alpha"]),
            moments=moments,
            curves=_curves(head, config) if kind == "spans" else None,
        )


def _shared_values(
    folder: Path, values: Mapping[str, Any], needed: Sequence[str], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a `ModelManifest`; ``needed`` are the kinds of features whose encoders must be named."""
    sources = {kind: EncoderRef.of(source) for kind, source in values["encoders"].items()}
    if any(kind not in sources for kind in needed):
        raise MomentseekError(
            f"{folder / MANIFEST_FILE}: does not say which encoders its features were made by, so no video or query "
            "can be encoded for it; export it with features that `momentseek data features` wrote "
            "(momentseek export … --data FOLDER)"
        )
    return {
        "folder": folder,
        "model": str(values["model"]),
        "fingerprint": str(values["fingerprint"]),
        "clip_seconds": float(values["clip_seconds"]),
        "video": sources.get("video"),
        "subtitle": sources.get("subtitle"),
        "query": sources["query"],
        "max_words": int(config["max_words"]),
        "max_clips": int(config["max_clips"]),
        "preparation": Preparation.of(config),
        "shortest": int(config["shortest"]),
        "end_time": str(values["head"]["end_time"]),
    }


@contextmanager
def _complete(folder: Path) -> Iterator[None]:
    """Refuse a manifest with missing values."""
    try:
        yield
    except UNREADABLE_VALUES:
        raise MomentseekError(f"{folder / MANIFEST_FILE}: lacks what a model must say; export it again") from None


def _curves(head: Mapping[str, Any], config: Mapping[str, Any]) -> SpanHead:
    what, start, end = map(float, head["scales"])
    return SpanHead(
        columns=int(head["match"]),
        shortest=int(config["shortest"]),
        longest=int(config["longest"]),
        scales=(what, start, end),
        halo=int(head["halo"]),
        end_time=str(head["end_time"]),
    )


def _moments(head: Mapping[str, Any], config: Mapping[str, Any]) -> MomentMap:
    start, length = (np.asarray(column, np.int64) for column in head["cells"])
    return MomentMap(
        clips=int(config["max_clips"]),
        start=start,
        length=length,
        window=int(head["window"]),
        power=float(head["power"]),
        sharpness=float(head["sharpness"]),
        longest=int(config["longest"]),
        alpha=float(config["alpha"]),
        end_time=str(head["end_time"]),
        whole=int(head.get("whole", 0)),
    )


def sources_of(file: Path) -> dict[str, EncoderRef]:
    """Return the encoders of a data folder's features, by ``video``, ``subtitle`` and ``query``.

    They are the section ``[encoders]`` of its ``data.toml``; empty if there is none.
    """
    found = read_toml(file).get("encoders", {})
    try:
        return {kind: EncoderRef.of(values) for kind, values in found.items()}
    except UNREADABLE_VALUES:
        raise MomentseekError(f"{file}: [encoders] is not understood; write the features again") from None


JOINT_GRAPH = "joint.onnx"
SPANS_OUTPUT = "spans"
"""Output of a graph that scores spans, by first clip and length."""
TIMES_OUTPUTS = ("start", "end", "score")
"""Outputs of a graph that predicts times (as fractions of the clips' duration) and scores."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RerankerManifest(ModelManifest):
    """The manifest of an exported re-ranker."""

    roles: bool
    """Whether the model also uses the roles of a query's words (verbs, nouns)."""
    nms: float | None
    """IoU threshold of its non-maximum suppression; None for none."""
    window: float | None
    """Longest video in seconds that it reads at once."""
    rows: int
    """Number of rows of the graph's input, for one video."""
    parse: str = "auto"
    """Name of the parser of the words' roles in training."""
    times: bool = False
    """Whether the model predicts times instead of spans of clips."""

    @property
    def window_clips(self) -> int:
        """Number of clips that the model reads at once; longer videos are read in windows."""
        if self.preparation.fit == "truncate" or self.window is None:
            return self.max_clips
        return max(self.max_clips if self.preparation.fit == "resample" else 1, round(self.window / self.clip_seconds))


def read_reranker_manifest(folder: Path) -> RerankerManifest:
    """Read the manifest of an exported re-ranker, and check the hash of its graph."""
    values = read_values(folder)
    if kind_of(values) != JOINT_KIND:
        raise MomentseekError(
            f"{folder}: {values.get('model')} makes a library's vectors (momentseek add --model) and does not re-rank; "
            "models that read both together do (tan2d, mdd, cet, ctrl, …: docs/encoders.md)"
        )
    check_files(folder, values, (JOINT_GRAPH,))
    with _complete(folder):
        config, head = values["config"], values["head"]
        needed = [*str(config["modalities"]).split("+"), "query"]
        return RerankerManifest(
            **_shared_values(folder, values, needed, config),
            roles=bool(head["roles"]),
            nms=None if head["nms"] is None else float(head["nms"]),
            window=None if head["window"] is None else float(head["window"]),
            rows=int(head["rows"]),
            parse=str(head["parse"]),
            times=bool(head["times"]),
        )
