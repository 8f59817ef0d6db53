"""Preprocess images and texts as in a model's training, by ``preprocessor_config.json`` and ``tokenizer.json``.

The steps and their order are those of Hugging Face transformers' Pillow image processors: resize (the shorter edge, or
both), crop the middle, scale, normalise. Missing settings have the model family's defaults.

CLIP reads up to its end mark, so texts are padded to the longest of a batch. SigLIP was trained on 64 lower-case
tokens, unmasked and padded on the right, and needs exactly that whatever its settings say: it reads the last position,
so other padding gives other vectors. SigLIP 2 pads with Gemma's ``<pad>``, number 0; the first SigLIP with its end
mark, as its settings say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.recognition.encoders.protocol import Pixels, Vectors


def require_image(image: Pixels) -> Pixels:
    """Return the image; refuse anything but ``(height, width, 3)`` of uint8, at least 1×1."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise MomentseekError(
            f"an image is {image.dtype} of shape {image.shape}; encoders take upright RGB, uint8 (height, width, 3)"
        )
    return image


def crop_square(image: Pixels, side: int) -> Pixels:
    """Return the middle square of an image, resized to ``side`` × ``side``; cropped first, to resample less.

    >>> crop_square(np.full((4, 8, 3), 7, np.uint8), 2).shape
    (2, 2, 3)
    """
    height, width = require_image(image).shape[:2]
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    middle = image[top : top + short, left : left + short]
    if short == side:
        return middle
    pillow = optional_module("PIL.Image", "search")
    return np.asarray(pillow.fromarray(np.ascontiguousarray(middle)).resize((side, side), pillow.Resampling.BICUBIC))


CLIP_DEFAULTS = {
    "size": {"shortest_edge": 224},
    "do_center_crop": True,
    "crop_size": 224,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
SIGLIP_DEFAULTS = {"size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
BICUBIC = 3
"""Pillow's number for the filter."""


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing steps of an image; a step that is None is skipped."""

    shortest_edge: int | None
    exact: tuple[int, int] | None
    resample: int
    crop: tuple[int, int] | None
    scale: float
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    @property
    def short_side(self) -> int:
        """Shorter side in pixels that the steps keep; 0 if images are not resized."""
        return self.shortest_edge or max(self.exact or (0, 0))

    def __call__(self, image: Pixels) -> Vectors:
        """Return an image as ``(3, height, width)``."""
        pixels = self._crop(self._resize(require_image(image))).astype(np.float32) * np.float32(self.scale)
        mean, deviation = np.array(self.mean, np.float32), np.array(self.deviation, np.float32)
        return np.ascontiguousarray(((pixels - mean) / deviation).transpose(2, 0, 1))

    def _resize(self, image: Pixels) -> Pixels:
        height, width = image.shape[:2]
        wanted = self.exact or (height, width)
        if self.shortest_edge:
            short, long = sorted((height, width))
            longer = int(self.shortest_edge * long / short)
            wanted = (longer, self.shortest_edge) if width <= height else (self.shortest_edge, longer)
        if wanted == (height, width):
            return image
        pillow = optional_module("PIL.Image", "search")
        return np.asarray(pillow.fromarray(image).resize((wanted[1], wanted[0]), self.resample))

    def _crop(self, image: Pixels) -> NDArray[np.uint8]:
        """Crop the middle; an image that is too small is padded with black."""
        if not self.crop:
            return image
        for axis, wanted in enumerate(self.crop):
            room = image.shape[axis] - wanted
            if room < 0:
                around = [(0, 0)] * 3
                around[axis] = ((-room + 1) // 2, -room // 2)
                image = np.pad(image, around)
            elif room:
                image = image.take(range(room // 2, room // 2 + wanted), axis)
        return image


def read_preprocessing(settings: Mapping[str, Any], family: str, where: str) -> Preprocessing:
    """Parse the settings of a file ``where`` of a model family, ``clip`` or ``siglip``."""
    if "max_num_patches" in settings:
        raise MomentseekError(
            f"{where}: is for images of any size in patches (NaFlex), which is not supported; take a fixed-size model"
        )
    given = {
        **(CLIP_DEFAULTS if family == "clip" else SIGLIP_DEFAULTS),
        **{k: v for k, v in settings.items() if v is not None},
    }
    try:
        shortest, exact = (
            _size(given["size"], square=family != "clip") if given.get("do_resize", True) else (None, None)
        )
        crop = _pair(given.get("crop_size", 224)) if given.get("do_center_crop") else None
        normalise = given.get("do_normalize", True)
        found = Preprocessing(
            shortest_edge=shortest,
            exact=exact,
            resample=int(given.get("resample", BICUBIC)),
            crop=crop,
            scale=float(given.get("rescale_factor", 1 / 255)) if given.get("do_rescale", True) else 1.0,
            mean=_three(given["image_mean"]) if normalise else (0.0, 0.0, 0.0),
            deviation=_three(given["image_std"]) if normalise else (1.0, 1.0, 1.0),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MomentseekError(
            f"{where}: its settings for images cannot be understood; export the model again"
        ) from None
    sides = [n for n in (shortest, *(exact or ()), *(crop or ())) if n is not None]
    if not all(0 < n <= 10_000 for n in sides) or not 0 <= found.resample <= 5 or 0.0 in found.deviation:
        raise MomentseekError(f"{where}: its settings for images are impossible; export the model again")
    return found


def _size(value: Any, *, square: bool) -> tuple[int | None, tuple[int, int] | None]:
    if isinstance(value, Mapping):
        if "shortest_edge" in value:
            return int(value["shortest_edge"]), None
        return None, _pair(value)
    return (None, (int(value), int(value))) if square else (int(value), None)


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, Mapping):
        return int(value["height"]), int(value["width"])
    return int(value), int(value)


def _three(value: Any) -> tuple[float, float, float]:
    red, green, blue = (float(v) for v in value)
    return red, green, blue


DEFAULT_MAX_TOKENS = {"clip": 77, "siglip": 64}
"""Default maximum of tokens per text, by model family."""
GEMMA_MARKS = ("<pad>", "<eos>", "<bos>")
"""Special tokens of Gemma's vocabulary, which SigLIP 2 uses; SigLIP's own has ``</s>``."""


@dataclass(frozen=True)
class TextTokenizer:
    """Turns texts into the token numbers that a model was trained on: its case, padding and length."""

    tokenizer: Any
    pad: int
    left: bool
    lower: bool
    length: int
    whole: bool
    """Pad to ``length``, and mask nothing."""

    def __call__(self, texts: Sequence[str], length: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return ``(ids, mask)``, padded to the longest text, or to the model's (or the given) length."""
        found = [e.ids for e in self.tokenizer.encode_batch([t.lower() if self.lower else t for t in texts])]
        columns = length or (self.length if self.whole else max(map(len, found)))
        ids = np.full((len(found), columns), self.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(found):
            at = slice(columns - len(own), None) if self.left else slice(len(own))
            ids[row, at], mask[row, at] = own, 1
        return ids, np.ones_like(mask) if self.whole else mask


def load_tokenizer(folder: Path, config: Mapping[str, Any], settings: Mapping[str, Any], family: str) -> TextTokenizer:
    """Load the tokenizer of a folder; ``config`` is the model's and ``settings`` the tokenizer's own."""
    path = folder / "tokenizer.json"
    text = config.get("text_config") or {}
    try:
        tokenizer = optional_module("tokenizers", "search").Tokenizer.from_file(str(path))
    except MomentseekError:
        raise
    except Exception as e:  # tokenizers raises Exception itself
        raise MomentseekError(f"{path}: is no tokenizer ({e}); get the file again") from None
    length = int(text.get("max_position_embeddings") or DEFAULT_MAX_TOKENS[family])
    tokenizer.no_padding()
    tokenizer.enable_truncation(length)
    return TextTokenizer(
        tokenizer,
        pad=_pad(tokenizer, settings, text),
        left=family != "siglip" and settings.get("padding_side") == "left",
        lower=family == "siglip" or bool(settings.get("do_lower_case")),
        length=length,
        whole=family == "siglip",
    )


def _pad(tokenizer: Any, settings: Mapping[str, Any], text: Mapping[str, Any]) -> int:
    gemma = [tokenizer.token_to_id(token) for token in GEMMA_MARKS]
    if None not in gemma:
        return int(gemma[0])
    token = settings.get("pad_token")
    content = token.get("content") if isinstance(token, Mapping) else token
    number = tokenizer.token_to_id(content) if isinstance(content, str) else None
    if number is None:
        number = text.get("pad_token_id")
    return int(number or 0)
