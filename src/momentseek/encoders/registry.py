"""Encoders by name; each is loaded once per process, at its first use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import cache

from momentseek.encoders.protocol import ImageTextEncoder, TextEncoder
from momentseek.errors import MomentseekError

FILE, HUB, MODEL = "file:", "hub:", "model:"


def _minilm() -> TextEncoder:
    from momentseek.encoders.minilm import load

    return load()


def _labels() -> ImageTextEncoder:
    from momentseek.encoders.labels.encoder import load

    return load(text_encoder("minilm"))


TEXT_ENCODERS: dict[str, Callable[[], TextEncoder]] = {"minilm": _minilm}
"""Name → what loads it."""
IMAGE_TEXT_ENCODERS: dict[str, Callable[[], ImageTextEncoder]] = {"labels": _labels}
"""Name → what loads it."""


def register(name: str, load: Callable[[], TextEncoder]) -> None:
    """Add a text encoder of your own, so that ``--encoder NAME`` and ``text_encoder(NAME)`` find it."""
    if name in TEXT_ENCODERS:
        raise MomentseekError(f"a text encoder called {name!r} is there already; choose another name")
    TEXT_ENCODERS[name] = load


def register_image_text(name: str, load: Callable[[], ImageTextEncoder]) -> None:
    """Add an image-text encoder of your own, so that ``image_text_encoder(NAME)`` finds it."""
    if name in IMAGE_TEXT_ENCODERS:
        raise MomentseekError(f"an image-text encoder called {name!r} is there already; choose another name")
    if name.startswith((FILE, HUB, MODEL)):
        places = f"{FILE}, {HUB} or {MODEL}"
        raise MomentseekError(f"{name!r} begins like a place to load from ({places}); choose another name")
    IMAGE_TEXT_ENCODERS[name] = load


def text_encoder(name: str = "minilm") -> TextEncoder:
    """The encoder called ``name``, or ``file:PATH``: vectors that another model made (see ``lookup``).

    >>> text_encoder("minilmm")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no text encoder 'minilmm'; did you mean 'minilm'?
    """
    if name.startswith(FILE):
        from momentseek.encoders.lookup import read

        return read(name.removeprefix(FILE))
    if name not in TEXT_ENCODERS:
        raise _unknown("text", name, TEXT_ENCODERS)
    return _loaded_text(name)


def image_text_encoder(spec: str = "labels") -> ImageTextEncoder:
    """The encoder for images and texts that ``spec`` names.

    ``labels`` is the offline default; ``file:FOLDER`` an ONNX export of CLIP or SigLIP; ``hub:NAME`` one that
    ``momentseek models get NAME`` has downloaded; any other a name given to ``register_image_text``. Trained models
    (``model:FOLDER``) are opened by :func:`momentseek.trained.encoder.resolve_encoder`. Nothing is downloaded here.
    ``MOMENTSEEK_THREADS`` says how many threads it uses, else all cores.

    >>> image_text_encoder("lables")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no image-text encoder 'lables'; did you mean 'labels'?
    """
    if spec.startswith(MODEL):
        raise MomentseekError(f"{spec}: is a trained model; open it with momentseek.trained.encoder.resolve_encoder")
    if not spec.startswith((FILE, HUB)) and spec not in IMAGE_TEXT_ENCODERS:
        raise _unknown("image-text", spec, IMAGE_TEXT_ENCODERS)
    return _loaded_image_text(spec)


@cache
def _loaded_text(name: str) -> TextEncoder:
    return TEXT_ENCODERS[name]()


@cache
def _loaded_image_text(spec: str) -> ImageTextEncoder:
    if spec.startswith(FILE):
        from momentseek.encoders.exported.folder import load

        return load(spec.removeprefix(FILE))
    if spec.startswith(HUB):
        from momentseek.encoders.hub.installed import load as load_installed

        return load_installed(spec.removeprefix(HUB))
    return IMAGE_TEXT_ENCODERS[spec]()


def _unknown(kind: str, name: str, known: Iterable[str]) -> MomentseekError:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return MomentseekError(f"there is no {kind} encoder {name!r}; {hint}")
