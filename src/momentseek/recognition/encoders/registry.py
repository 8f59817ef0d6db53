"""Encoders by name; each is loaded once per process, at first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import Registry
from momentseek.recognition.encoders.clip import ClipEncoder, PlainClipEncoder
from momentseek.recognition.encoders.dual_encoder import load_dual_encoder
from momentseek.recognition.encoders.fused import SEPARATOR, FusedEncoder
from momentseek.recognition.encoders.minilm import load_minilm
from momentseek.recognition.encoders.protocol import ImageTextEncoder, TextEncoder, Vectors, WordEncoder
from momentseek.recognition.encoders.things import load_thing_encoder
from momentseek.recognition.encoders.vector_file import read_vector_file
from momentseek.recognition.encoders.window_mean import WindowMean
from momentseek.recognition.weights.catalog import find_hub_model
from momentseek.recognition.weights.hub import check_model

FILE_PREFIX, HUB_PREFIX, MODEL_PREFIX, MEAN_PREFIX = "file:", "hub:", "model:", "mean:"
REMOVED_ENCODER = "labels"
"""Name of the first offline encoder, used by libraries of early versions."""
E = TypeVar("E")

TEXT_ENCODERS: Registry[Callable[[], TextEncoder]] = Registry("text encoder", group="encoders")
"""Loaders of text encoders by name."""
IMAGE_TEXT_ENCODERS: Registry[Callable[[], ImageTextEncoder]] = Registry("image-text encoder", group="encoders")
"""Loaders of image-text encoders by name."""


@TEXT_ENCODERS.register("minilm")
def _load_minilm() -> TextEncoder:
    return load_minilm()


@IMAGE_TEXT_ENCODERS.register("things")
def _load_things() -> ImageTextEncoder:
    return load_thing_encoder(text_encoder("minilm"))


@IMAGE_TEXT_ENCODERS.register("clip")
def _load_clip() -> ImageTextEncoder:
    return ClipEncoder(text_encoder("minilm"))


@IMAGE_TEXT_ENCODERS.register("clip-b16")
def _load_plain_clip() -> ImageTextEncoder:
    return PlainClipEncoder()


def register(name: str, load: Callable[[], TextEncoder]) -> None:
    """Register your own text encoder, for use as ``--encoder NAME`` and ``text_encoder(NAME)``."""
    TEXT_ENCODERS.add(name, load)


def register_image_text(name: str, load: Callable[[], ImageTextEncoder]) -> None:
    """Register your own image-text encoder, for use as ``--encoder NAME`` and ``image_text_encoder(NAME)``."""
    if name.startswith((FILE_PREFIX, HUB_PREFIX, MODEL_PREFIX, MEAN_PREFIX)):
        places = f"{FILE_PREFIX}, {HUB_PREFIX}, {MODEL_PREFIX} or {MEAN_PREFIX}"
        raise MomentseekError(f"{name!r} begins like a place to load from ({places}); choose another name")
    IMAGE_TEXT_ENCODERS.add(name, load)


def text_encoder(name: str = "minilm") -> TextEncoder:
    """Return the text encoder called ``name``, or for ``file:PATH`` the vectors of another model (``vector_file``).

    >>> text_encoder("minilmm")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no text encoder 'minilmm'; did you mean 'minilm'?
    """
    if name.startswith(FILE_PREFIX):
        return read_vector_file(name.removeprefix(FILE_PREFIX))
    return _load_once(TEXT_ENCODERS[name])


def word_encoder(name: str) -> WordEncoder:
    """Return the text encoder called ``name``; refuse one without vectors of words."""
    encoder = text_encoder(name)
    if not isinstance(encoder, WordEncoder):
        raise MomentseekError(f"the text encoder {encoder.name} gives no vectors of words; the model needs them")
    return encoder


def encode_texts(name: str, texts: list[str]) -> Vectors:
    """Encode texts with the text encoder called ``name``."""
    return text_encoder(name).encode(texts)


def image_text_encoder(spec: str = "things") -> ImageTextEncoder:
    """Return the image-text encoder for ``spec``.

    ``things`` is an offline encoder; ``file:FOLDER`` an ONNX export of CLIP or SigLIP; ``hub:NAME`` a model that
    ``momentseek models get NAME`` has downloaded; ``NAME+SPEC`` two of them in one row (``fused``), the first by a
    registered name; ``mean:SPEC`` any of these on three frames of a clip instead of one (``window_mean``); any other
    spec is a name given to ``register_image_text``. Trained models (``model:FOLDER``) are opened by
    ``recognition.exported.encoder.resolve_encoder``. Nothing is downloaded here. ``MOMENTSEEK_THREADS`` sets the number
    of threads; by default all cores are used.

    >>> image_text_encoder("thinks")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no image-text encoder 'thinks'; did you mean 'things'?
    """
    if spec.startswith(MODEL_PREFIX):
        raise MomentseekError(
            f"{spec}: is a trained model; open it with momentseek.recognition.exported.encoder.resolve_encoder"
        )
    if spec.startswith(MEAN_PREFIX):
        return WindowMean(image_text_encoder(spec.removeprefix(MEAN_PREFIX)), name=spec)
    if spec.startswith(FILE_PREFIX):
        return _load_once(load_dual_encoder, spec.removeprefix(FILE_PREFIX), None)
    if spec.startswith(HUB_PREFIX):
        folder = check_model(find_hub_model(spec.removeprefix(HUB_PREFIX), "image-text"))
        return _load_once(load_dual_encoder, folder, spec)
    first, plus, second = spec.partition(SEPARATOR)
    if plus and first in IMAGE_TEXT_ENCODERS and spec not in IMAGE_TEXT_ENCODERS:
        return FusedEncoder(image_text_encoder(first), image_text_encoder(second), name=spec)
    if spec == REMOVED_ENCODER and spec not in IMAGE_TEXT_ENCODERS:
        raise MomentseekError(
            f"the encoder {spec} is gone, and things takes its place; encode the library again with: "
            "momentseek reencode --encoder things"
        )
    return _load_once(IMAGE_TEXT_ENCODERS[spec])


# Loaded encoders are cached by their loaders, so that another loader of the same name gives another encoder. While one
# thread is loading an encoder, other threads wait for it.

_LOADING = threading.RLock()


def _load_once(load: Callable[..., E], *arguments: Hashable) -> E:
    with _LOADING:
        encoder: E = _load(load, *arguments)
        return encoder


@cache
def _load(load: Callable[..., Any], *arguments: Hashable) -> Any:
    return load(*arguments)
