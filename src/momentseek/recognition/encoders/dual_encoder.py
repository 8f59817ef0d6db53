"""CLIP and SigLIP from a folder of ONNX files: ``file:FOLDER``.

The folder is laid out as optimum and transformers.js do: ``vision_model.onnx`` and ``text_model.onnx`` (in ``onnx/``
or at the top; ``_fp16``, ``_quantized`` and the like also serve), ``config.json``, ``preprocessor_config.json`` and
``tokenizer.json``. The inputs and outputs are read from the graphs themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.preprocessing import (
    Preprocessing,
    TextTokenizer,
    load_tokenizer,
    read_preprocessing,
)
from momentseek.recognition.encoders.protocol import Pixels, Vectors
from momentseek.recognition.runtime import run_graph, session
from momentseek.recognition.weights.files import hashes, load_or_make

INPUT_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class EncoderTower:
    """The image or text half of a dual encoder: a graph whose embeddings are scaled to unit vectors."""

    def __init__(self, path: Path, outputs: tuple[str, ...], family: str, threads: int | None) -> None:
        self._path = path
        self._session = session(path, threads)
        self._inputs = {given.name: given for given in self._session.get_inputs()}
        self._output = self._embedding(outputs, family)

    def __call__(self, **values: NDArray[Any]) -> Vectors:
        """Return unit rows for a batch; values that the graph does not use are ignored."""
        missing = sorted(set(self._inputs) - set(values))
        if missing:
            raise MomentseekError(f"{self._path}: has unknown inputs ({', '.join(missing)}); export it again")
        given = {name: values[name].astype(INPUT_TYPES[takes.type]) for name, takes in self._inputs.items()}
        (found,) = run_graph(self._session, [self._output], given, self._path)
        rows = np.asarray(found, np.float32)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(length).all() and (length > 0).all()):
            raise MomentseekError(f"{self._path}: gave a vector that is zero or not finite; try another export of it")
        unit: Vectors = rows / length
        return unit

    def shape(self, name: str) -> list[int | str | None]:
        """Return the sizes of an input; variable sizes are names."""
        return list(self._inputs[name].shape) if name in self._inputs else []

    @property
    def batch(self) -> int | None:
        """The batch size of a graph that was exported with a fixed one."""
        sizes = {shape[0] for name in self._inputs if (shape := self.shape(name)) and isinstance(shape[0], int)}
        if sizes - {1}:
            raise MomentseekError(f"{self._path}: takes exactly {max(sizes)} at once; export it with a dynamic batch")
        return 1 if sizes else None

    def _embedding(self, outputs: tuple[str, ...], family: str) -> str:
        """Return the name of the embedding; CLIP's ``pooler_output`` lacks the projection, so it does not qualify."""
        names = [given.name for given in self._session.get_outputs()]
        for name in outputs:
            if name in names and not (family == "clip" and name == "pooler_output"):
                return name
        raise MomentseekError(
            f"{self._path}: gives {', '.join(names)}, but no {outputs[0]}; export the model with its projection"
        )


GRAPH_SUFFIXES = ("", "_fp16", "_quantized", "_int8", "_uint8", "_q4f16", "_q4", "_bnb4")
"""Endings of file names, the most precise first."""
DYNAMIC_8_BIT = ("_quantized", "_int8", "_uint8")
"""Endings of graphs that quantise by a batch's largest value, so that a row depends on the others in its batch."""
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
        """Every file that the vectors depend on, including external weights of a graph."""
        weights = [
            path
            for graph in (self.vision, self.text)
            for path in sorted(graph.parent.iterdir())
            if path.name.startswith((f"{graph.name}_data", f"{graph.name}.data")) and path.is_file()
        ]
        settings = [self.config, self.preprocessor, self.folder / "tokenizer.json"]
        optional = self.folder / "tokenizer_config.json"
        return [self.vision, self.text, *weights, *settings, *([optional] if optional.is_file() else [])]


def rounds_batches(graph: Path) -> bool:
    """Whether a graph's name shows that an input's vector depends on its batch."""
    return graph.stem.endswith(DYNAMIC_8_BIT)


def find_files(folder: Path) -> DualEncoderFiles:
    """Find the files of a model folder; raise an error that names a missing one."""
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
    """Read a JSON object; a missing ``optional`` file counts as empty."""
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
    raise MomentseekError(f"{folder}: has no {name}.onnx, neither in onnx/ nor next to config.json; {EXPORT_HINT}")


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    for variant in GRAPH_SUFFIXES:
        yield folder / "onnx" / f"{name}{variant}.onnx"
        yield folder / f"{name}{variant}.onnx"


def _require_file(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise MomentseekError(f"{folder}: has no {' or '.join(names)}; copy it from the model's repository")


IMAGES_PER_BATCH, TEXTS_PER_BATCH = 8, 32
"""Batch sizes of images and texts."""
RECIPE = "2"
"""Part of the fingerprint; change it whenever the same files would give other vectors."""


class DualEncoder:
    """CLIP or SigLIP from a folder of ONNX files: images and texts in one space.

    Each half is loaded at first use: encoding texts does not load the image model, and vice versa.
    """

    def __init__(self, files: DualEncoderFiles, name: str, *, template: str = "{}", threads: int | None = None) -> None:
        self.name = name
        self._files = files
        self._template = template
        self._threads = threads
        found = hashes(files.all())
        parts = (RECIPE, template, *(f"{path.name} {found[path]}" for path in files.all()))
        self.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def short_side(self) -> int:
        """Pixels of the shorter side that the model uses."""
        return self._preprocessing.short_side or 224

    @cached_property
    def dim(self) -> int:
        """The dimension of the vectors; it is found once, by encoding a text, and cached."""
        found = load_or_make("dimension", self.fingerprint, lambda: str(self._encode(["a"]).shape[1]).encode())
        return int(found)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; texts longer than the model's limit are truncated."""
        size = self._texts.batch or _batch_size(self._files.text, TEXTS_PER_BATCH)
        return self._rows([self._encode(texts[at : at + size]) for at in range(0, len(texts), size)])

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return one row per image."""
        size = self._images.batch or _batch_size(self._files.vision, IMAGES_PER_BATCH)
        return self._rows([self._encode_images(images[at : at + size]) for at in range(0, len(images), size)])

    def _encode(self, texts: Sequence[str]) -> Vectors:
        shape = self._texts.shape("input_ids")
        fixed = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None
        ids, mask = self._tokens([self._template.format(text) for text in texts], fixed)
        return self._texts(input_ids=ids, attention_mask=mask)

    def _encode_images(self, images: Sequence[Pixels]) -> Vectors:
        return self._images(pixel_values=np.stack([self._preprocessing(image) for image in images]))

    def _rows(self, batches: list[Vectors]) -> Vectors:
        rows = np.concatenate(batches) if batches else np.empty((0, self.dim), np.float32)
        if rows.shape[1] != self.dim:
            raise MomentseekError(
                f"{self._files.folder}: images have {rows.shape[1]} numbers and texts {self.dim}; "
                "take both halves from one export"
            )
        return rows

    @cached_property
    def _texts(self) -> EncoderTower:
        return EncoderTower(self._files.text, ("text_embeds", "pooler_output"), self._files.family, self._threads)

    @cached_property
    def _images(self) -> EncoderTower:
        return EncoderTower(self._files.vision, ("image_embeds", "pooler_output"), self._files.family, self._threads)

    @cached_property
    def _tokens(self) -> TextTokenizer:
        settings = read_json(self._files.folder / "tokenizer_config.json", optional=True)
        return load_tokenizer(self._files.folder, read_json(self._files.config), settings, self._files.family)

    @cached_property
    def _preprocessing(self) -> Preprocessing:
        settings = read_json(self._files.preprocessor)
        nested = settings.get("image_processor")
        return read_preprocessing(
            nested if isinstance(nested, Mapping) else settings, self._files.family, str(self._files.preprocessor)
        )


def _batch_size(graph: Path, usual: int) -> int:
    return 1 if rounds_batches(graph) else usual


def load_dual_encoder(
    folder: str | os.PathLike[str], name: str | None = None, *, template: str = "{}", threads: int | None = None
) -> DualEncoder:
    """Load the model of a folder; queries are put into ``template``, such as ``"a photo of {}"``.

    Its name is ``name``, or else ``file:`` and the folder, which loads it again.
    """
    path = Path(folder).expanduser().absolute()
    return DualEncoder(find_files(path), name or f"file:{path}", template=template, threads=threads)


class TextTower:
    """Only the text half of CLIP, from a folder with ``text_model.onnx`` and ``tokenizer.json``."""

    def __init__(self, folder: Path, name: str, threads: int | None = None) -> None:
        self.name = name
        self._folder, self._threads = folder, threads
        self._graph = _graph(folder, "text_model")
        self._files = [self._graph, _require_file(folder, "tokenizer.json")]
        found = hashes(self._files)
        parts = (RECIPE, *(f"{path.name} {found[path]}" for path in self._files))
        self.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def dim(self) -> int:
        """The dimension of the vectors, found by encoding a text."""
        return int(self.encode(["a"]).shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; texts longer than the model's limit are truncated."""
        size = self._tower.batch or _batch_size(self._graph, TEXTS_PER_BATCH)
        shape = self._tower.shape("input_ids")
        fixed = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None
        rows = []
        for at in range(0, len(texts), size):
            ids, mask = self._tokens(texts[at : at + size], fixed)
            rows.append(self._tower(input_ids=ids, attention_mask=mask))
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    @cached_property
    def _tower(self) -> EncoderTower:
        return EncoderTower(self._graph, ("text_embeds",), "clip", self._threads)

    @cached_property
    def _tokens(self) -> TextTokenizer:
        return load_tokenizer(self._folder, {}, {}, "clip")
