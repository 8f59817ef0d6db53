"""CLIP and SigLIP from a folder of ONNX files: ``file:FOLDER``.

The folder is laid out as optimum and transformers.js do: ``vision_model.onnx`` and ``text_model.onnx`` (in ``onnx/``
or at the top; ``_fp16``, ``_quantized`` and the like also serve), ``config.json``, ``preprocessor_config.json`` and
``tokenizer.json``. What the graphs take and give is asked of the graphs themselves.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from momentseek.encoders.dual_encoder.files import DualEncoderFiles, find_files, read_json, rounds_batches
from momentseek.encoders.dual_encoder.preprocessing import Preprocessing, read_preprocessing
from momentseek.encoders.dual_encoder.tokenizer import TextTokenizer, load_tokenizer
from momentseek.encoders.dual_encoder.tower import EncoderTower
from momentseek.encoders.file_cache import load_or_make
from momentseek.encoders.hashes import hashes
from momentseek.encoders.protocol import Pixels, Vectors
from momentseek.errors import MomentseekError

IMAGES_PER_BATCH, TEXTS_PER_BATCH = 8, 32
"""Number of images, and of texts, that are encoded at once."""
RECIPE = "2"
"""Part of the fingerprint; change it whenever the same files would give other vectors."""


class DualEncoder:
    """CLIP or SigLIP from a folder of ONNX files: images and texts in one space.

    Only what is needed is loaded: encoding texts needs no image model, and the other way round.
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
        """Columns of the vectors, found by encoding a text once, ever."""
        told = load_or_make("dimension", self.fingerprint, lambda: str(self._encode(["a"]).shape[1]).encode())
        return int(told)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row per text; of a text longer than the model can read, the beginning."""
        size = self._texts.batch or _batch_size(self._files.text, TEXTS_PER_BATCH)
        return self._rows([self._encode(texts[at : at + size]) for at in range(0, len(texts), size)])

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """One row per image."""
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
    folder: str | os.PathLike[str], *, name: str | None = None, template: str = "{}", threads: int | None = None
) -> DualEncoder:
    """The model of a folder; a query is put into ``template`` first, such as ``"a photo of {}"``.

    Called ``name``, or else ``file:`` and the folder, so that its name finds it again.
    """
    path = Path(folder).expanduser().absolute()
    return DualEncoder(find_files(path), name or f"file:{path}", template=template, threads=threads)
