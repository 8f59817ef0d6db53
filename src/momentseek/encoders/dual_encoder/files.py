"""Which files of a folder make up an exported model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError

GRAPH_SUFFIXES = ("", "_fp16", "_quantized", "_int8", "_uint8", "_q4f16", "_q4", "_bnb4")
"""Endings of file names, the most exact first."""
DYNAMIC_8_BIT = ("_quantized", "_int8", "_uint8")
"""Endings of graphs that round each batch by its own largest value, so that a row depends on its neighbours."""
EXPORT_HINT = "docs/encoders.md says which files to get"


@dataclass(frozen=True)
class DualEncoderFiles:
    """The files of a model of a ``family``, ``clip`` or ``siglip``."""

    folder: Path
    family: str
    vision: Path
    text: Path
    config: Path
    preprocessor: Path

    def all(self) -> list[Path]:
        """Every file that the vectors depend on, weights that lie beside a graph included."""
        beside = [
            path
            for graph in (self.vision, self.text)
            for path in sorted(graph.parent.iterdir())
            if path.name.startswith((f"{graph.name}_data", f"{graph.name}.data")) and path.is_file()
        ]
        settings = [self.config, self.preprocessor, self.folder / "tokenizer.json"]
        optional = self.folder / "tokenizer_config.json"
        return [self.vision, self.text, *beside, *settings, *([optional] if optional.is_file() else [])]


def rounds_batches(graph: Path) -> bool:
    """Whether a graph, by its name, gives an input other vectors in a batch than alone."""
    return graph.stem.endswith(DYNAMIC_8_BIT)


def find_files(folder: Path) -> DualEncoderFiles:
    """The files of a folder, or one sentence about the one that is missing."""
    if not folder.is_dir():
        raise MomentseekError(f"{folder}: is not a folder with an exported model; check the path")
    config = _require_file(folder, "config.json")
    _require_file(folder, "tokenizer.json")
    return DualEncoderFiles(
        folder,
        family=_family(config),
        vision=_graph(folder, "vision_model"),
        text=_graph(folder, "text_model"),
        config=config,
        preprocessor=_require_file(folder, "preprocessor_config.json", "processor_config.json"),
    )


def read_json(path: Path, *, optional: bool = False) -> dict[str, Any]:
    """A JSON object; an ``optional`` file that is missing is empty."""
    if optional and not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the path") from None
    except (ValueError, RecursionError):
        raise MomentseekError(f"{path}: is not JSON; get the file again") from None
    if not isinstance(found, dict):
        raise MomentseekError(f"{path}: is not a JSON object; get the file again")
    return found


def _family(config: Path) -> str:
    kind = str(read_json(config).get("model_type", ""))
    for family in ("siglip", "clip"):
        if kind in (family, f"{family}2", f"{family}_model"):
            return family
    raise MomentseekError(f"{config}: is for a model of type {kind!r}; clip, siglip and siglip2 are supported")


def _graph(folder: Path, name: str) -> Path:
    for path in _candidates(folder, name):
        if path.is_file():
            return path
    whole = next((place for place in (folder / "onnx" / "model.onnx", folder / "model.onnx") if place.is_file()), None)
    if whole is not None:
        raise MomentseekError(f"{whole}: has both halves of the model in one graph, which is not read; {EXPORT_HINT}")
    raise MomentseekError(f"{folder}: has no {name}.onnx, neither in onnx/ nor beside config.json; {EXPORT_HINT}")


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    for variant in GRAPH_SUFFIXES:
        yield folder / "onnx" / f"{name}{variant}.onnx"
        yield folder / f"{name}{variant}.onnx"


def _require_file(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise MomentseekError(f"{folder}: has no {' or '.join(names)}; copy it from the model's repository")
