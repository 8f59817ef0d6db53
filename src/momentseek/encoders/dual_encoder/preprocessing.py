"""Pixels as a model was trained on them, by the settings in its ``preprocessor_config.json``.

The steps and their order are those of Hugging Face transformers' Pillow image processors: resize (the shorter edge,
or both), cut out the middle, scale, normalise. Settings that the file leaves out have the family's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.pixels import require_image
from momentseek.encoders.protocol import Pixels, Vectors
from momentseek.errors import MomentseekError
from momentseek.optional import optional_module

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
    """What is done to an image; a step that is None is left out."""

    shortest_edge: int | None
    exact: tuple[int, int] | None
    resample: int
    crop: tuple[int, int] | None
    scale: float
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    @property
    def short_side(self) -> int:
        """Pixels of the shorter side beyond which more detail is thrown away; 0 if images stay as they are."""
        return self.shortest_edge or max(self.exact or (0, 0))

    def __call__(self, image: Pixels) -> Vectors:
        """One image as ``(3, height, width)``."""
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
        """The middle; where the image is too small, black around it."""
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
    """The settings of a file ``where`` of a model family, ``clip`` or ``siglip``."""
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
