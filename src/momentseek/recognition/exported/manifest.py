"""``model.json``: what an exported model was trained for, on which encoders' vectors, and the hashes of its files."""

from __future__ import annotations

import hashlib
import json
import shlex
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
from momentseek.recognition.weights.files import sha256

MANIFEST_FILE = "model.json"
CLIPS_GRAPH, WORDS_GRAPH = "clips.onnx", "words.onnx"
MANIFEST_FORMAT = 1
UNREADABLE_VALUES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What values of another type or size than expected raise when they are read."""
JOINT_KIND = "joint"
"""The kind of models that re-rank."""


@dataclass(frozen=True)
class EncoderRef:
    """Which encoder made the vectors that a model was trained on."""

    spec: str
    fingerprint: str
    dim: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> EncoderRef:
        """The encoder that a manifest or a ``data.toml`` describes by these values."""
        return cls(str(values["spec"]), str(values["fingerprint"]), int(values["dim"]))


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelManifest:
    """What the folder of an exported model says about it, whatever kind it is of."""

    folder: Path
    model: str
    fingerprint: str
    """Hash of the weights and of everything else that vectors and spans depend on."""
    clip_seconds: float
    video: EncoderRef | None
    """The encoder of frames, for a model that sees them."""
    subtitle: EncoderRef | None
    """The encoder of cues, for a model that reads them."""
    query: EncoderRef
    """The encoder of the queries' words."""
    max_words: int
    max_clips: int
    preparation: Preparation
    """How features become the graphs' input."""
    shortest: int
    end_time: str = "inclusive"
    """Whether a span ends with its last clip, or (``start``) where that begins, as ReLoCLNet's public code has it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EncoderManifest(ModelManifest):
    """What the folder of an exported model of clips or moments says about it."""

    modalities: int
    """1 or 2: in how many equal parts a match vector falls, each of the same length."""
    match: int
    """Columns of the vectors that rank videos, of length 1."""
    spans: int
    """Columns of the vectors that find spans."""
    start: Vectors
    """The filter that answers to where a moment starts, over neighbouring clips; odd in length."""
    end: Vectors
    longest: int
    alpha: float
    """Weight of the video's score against the span's."""
    moments: MomentMap | None = None
    """The moments that a map model keeps vectors of; None for a model of clips."""


def read_encoder_manifest(folder: Path) -> EncoderManifest:
    """The manifest of an export; the files next to it must be those it was written with."""
    values = read_values(folder)
    if kind_of(values) == JOINT_KIND:
        raise MomentseekError(
            f"{folder}: {values.get('model')} looks at query and video together and cannot make a library's vectors; "
            f"re-rank what a library finds with it: momentseek search --rerank {shlex.quote(str(folder))} …"
        )
    check_files(folder, values, (CLIPS_GRAPH, WORDS_GRAPH))
    return _manifest(folder, values)


def kind_of(values: Mapping[str, Any]) -> str:
    """What the model of a manifest keeps: vectors of ``clips``, or of moments (``map``); ``joint`` ones re-rank."""
    head = values.get("head")
    return str(head.get("kind", "clips")) if isinstance(head, dict) else "clips"


def check_files(folder: Path, values: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse files that are not those the manifest was written with."""
    for name in names:
        _check(folder / name, values["files"].get(name))


def read_kind(folder: Path) -> str:
    """``clips`` for a model that keeps vectors of clips, ``map`` for one that keeps them of moments, ``joint`` for one
    that keeps none and re-ranks; nothing else of the folder is read.
    """
    return kind_of(read_values(folder))


def fingerprint_of(values: Mapping[str, Any]) -> str:
    """The hash of a manifest's values, its own fingerprint left out; the files are in it by their hashes."""
    rest = {k: v for k, v in values.items() if k not in ("fingerprint", "trained")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_values(folder: Path) -> dict[str, Any]:
    """The values of the manifest in a folder; a folder that is no export, or was changed since, is refused."""
    if not folder.exists():
        raise MomentseekError(f"{folder}: there is no such folder; name one that momentseek export has written")
    if folder.is_file() or not (folder / MANIFEST_FILE).is_file():
        again = f"momentseek export {shlex.quote(str(folder))} --out FOLDER"
        raise MomentseekError(f"{folder}: is no exported model; if it is a checkpoint, export it first: {again}")

    from momentseek.measuring.formats.document import open_document  # which loads all formats

    try:
        values = open_document(folder / MANIFEST_FILE).json
        known = (
            isinstance(values, dict) and values.get("format") == MANIFEST_FORMAT and isinstance(values["files"], dict)
        )
        json.dumps(values, allow_nan=False)  # infinite numbers and absurd depths are refused too
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
        moments = _moments(head, config) if head.get("kind") == "map" else None
        return EncoderManifest(
            **_shared_values(folder, values, ["query"], config if moments else {**config, "fit": "truncate"}),
            modalities=1 if moments else int(head["modalities"]),
            match=int(head["match"]),
            spans=int(head["spans"]),
            start=np.asarray([] if moments else head["start"], np.float32),
            end=np.asarray([] if moments else head["end"], np.float32),
            longest=int(config["longest"]),
            alpha=float(config["alpha"]),
            moments=moments,
        )


def _shared_values(
    folder: Path, values: Mapping[str, Any], needed: Sequence[str], config: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a `ModelManifest`; ``needed`` are the kinds of features whose encoders must be named."""
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
    """Refuse a manifest that lacks something."""
    try:
        yield
    except UNREADABLE_VALUES:
        raise MomentseekError(f"{folder / MANIFEST_FILE}: lacks what a model must say; export it again") from None


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
    """The encoders that made the features of a data folder, by ``video``, ``subtitle`` and ``query``: the section
    ``[encoders]`` of its ``data.toml``, empty where there is none.
    """
    found = read_toml(file).get("encoders", {})
    try:
        return {kind: EncoderRef.of(values) for kind, values in found.items()}
    except UNREADABLE_VALUES:
        raise MomentseekError(f"{file}: [encoders] is not understood; write the features again") from None


JOINT_GRAPH = "joint.onnx"
SPANS_OUTPUT = "spans"
"""Output of a graph that scores spans of clips, by first clip and length."""
TIMES_OUTPUTS = ("start", "end", "score")
"""Outputs of a graph that predicts times: shares of what the clips cover, and scores."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RerankerManifest(ModelManifest):
    """What the folder of an exported re-ranker says about it."""

    roles: bool
    """Whether the model also takes the roles of a query's words (verbs, nouns)."""
    nms: float | None
    """The overlap above which it was trained to drop the worse of two moments."""
    window: float | None
    """Seconds of the longest video it is given at once."""
    rows: int
    """Rows of a video that the graph takes, one video at a time."""
    parse: str = "auto"
    """Name of the parser that found the words' roles in training."""
    times: bool = False
    """Whether the model predicts times, and not spans of clips."""

    @property
    def window_clips(self) -> int:
        """Clips of a video that the model reads at once; longer videos are read in windows."""
        if self.preparation.fit == "truncate" or self.window is None:
            return self.max_clips
        return max(self.max_clips if self.preparation.fit == "resample" else 1, round(self.window / self.clip_seconds))


def read_reranker_manifest(folder: Path) -> RerankerManifest:
    """The manifest of an exported re-ranker; the graph next to it must be the one it was written with."""
    values = read_values(folder)
    if kind_of(values) != JOINT_KIND:
        raise MomentseekError(
            f"{folder}: {values.get('model')} makes a library's vectors (momentseek add --model) and does not re-rank; "
            "models that read both together do (tan2d, mdd, cet, ctrl, …: docs/reranking.md)"
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
