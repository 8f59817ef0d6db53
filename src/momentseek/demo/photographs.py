"""Photographs that ship inside scikit-image and scikit-learn; neither package is imported."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

from momentseek.optional import missing, optional_module

PHOTOGRAPHS = {
    "astronaut": ("scikit-image", "skimage/data/astronaut.png"),
    "brick": ("scikit-image", "skimage/data/brick.png"),
    "cameraman": ("scikit-image", "skimage/data/camera.png"),
    "cat": ("scikit-image", "skimage/data/chelsea.png"),
    "coffee": ("scikit-image", "skimage/data/coffee.png"),
    "coins": ("scikit-image", "skimage/data/coins.png"),
    "flower": ("scikit-learn", "sklearn/datasets/images/flower.jpg"),
    "grass": ("scikit-image", "skimage/data/grass.png"),
    "gravel": ("scikit-image", "skimage/data/gravel.png"),
    "hubble": ("scikit-image", "skimage/data/hubble_deep_field.jpg"),
    "moon": ("scikit-image", "skimage/data/moon.png"),
    "motorcycle": ("scikit-image", "skimage/data/motorcycle_left.png"),
    "page": ("scikit-image", "skimage/data/page.png"),
    "rocket": ("scikit-image", "skimage/data/rocket.jpg"),
    "temple": ("scikit-learn", "sklearn/datasets/images/china.jpg"),
}
"""What a photograph shows → the package that holds it, and its place there."""


def photograph_path(name: str) -> Path:
    """The path of a photograph; refused if its package is not installed."""
    package, place = PHOTOGRAPHS[name]
    try:
        path = Path(str(metadata.distribution(package).locate_file(place)))
    except metadata.PackageNotFoundError:
        raise missing(package, "demo") from None
    if not path.is_file():
        raise missing(package, "demo")
    return path


def read_photograph(name: str, width: int, height: int) -> Any:
    """A photograph as an RGB Pillow image, no larger than a camera moving over it needs."""
    pillow = optional_module("PIL.Image", "demo")
    with pillow.open(photograph_path(name)) as file:
        picture = file.convert("RGB")
    scale = max(width / picture.width, height / picture.height) * 1.25
    if scale < 1:
        picture = picture.resize(
            (round(picture.width * scale), round(picture.height * scale)), pillow.Resampling.LANCZOS
        )
    return picture
