"""Every encoder there is, and whether it can be used: for ``momentseek models`` and ``momentseek doctor``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from momentseek.encoders.hub import lock
from momentseek.encoders.hub.catalogue import MODELS, Model
from momentseek.encoders.registry import HUB, IMAGE_TEXT_ENCODERS, TEXT_ENCODERS
from momentseek.encoders.wheel import Asset, locate, verified
from momentseek.errors import MomentseekError

Kind = Literal["text", "image-text"]
State = Literal["ready", "absent", "damaged"]


@dataclass(frozen=True)
class Entry:
    """One encoder: what it is, and how it stands with its files."""

    name: str
    kind: Kind
    dim: int | None
    source: str
    state: State
    problem: str
    megabytes: float | None
    licence: str
    good_for: str


def inventory(*, fresh: bool = False) -> list[Entry]:
    """All of them; ``fresh`` computes every hash anew instead of trusting unchanged files."""
    return [*_shipped(fresh), *(_downloadable(model, fresh) for model in MODELS.values()), *_own()]


def _shipped(fresh: bool) -> Iterator[Entry]:
    from momentseek.encoders import minilm
    from momentseek.encoders.labels import encoder as labels

    sentences, images = minilm.ASSET, labels.ASSET
    yield _from_packages("minilm", "text", (sentences,), "comparing sentences, subtitles; English", fresh)
    good_for = "offline default: 1,000 kinds of things, no actions"
    yield _from_packages("labels", "image-text", (images, sentences), good_for, fresh)


def _from_packages(name: str, kind: Kind, assets: tuple[Asset, ...], good_for: str, fresh: bool) -> Entry:
    def check() -> None:
        for asset in assets:
            verified(asset, fresh=fresh)

    state, problem = _state(check, _absent(assets))
    source = "package " + ", ".join(asset.package for asset in assets)
    return Entry(name, kind, 384, source, state, problem, _size_of(assets), "Apache-2.0", good_for)


def _downloadable(model: Model, fresh: bool) -> Entry:
    absent = not lock.lock_of(model.name).exists() or not lock.folder_of(model.name).is_dir()
    state, problem = _state(lambda: lock.check(model.name, fresh=fresh), absent)
    return Entry(
        f"{HUB}{model.name}",
        "image-text",
        model.dim,
        model.repository,
        state,
        problem,
        round(model.megabytes),
        model.licence,
        model.good_for,
    )


def _own() -> Iterator[Entry]:
    for name in TEXT_ENCODERS.keys() - {"minilm"}:
        yield Entry(name, "text", None, "registered", "ready", "", None, "", "")
    for name in IMAGE_TEXT_ENCODERS.keys() - {"labels"}:
        yield Entry(name, "image-text", None, "registered", "ready", "", None, "", "")


def _state(check: Callable[[], object], absent: bool) -> tuple[State, str]:
    try:
        check()
    except MomentseekError as e:
        return ("absent" if absent else "damaged"), str(e)
    return "ready", ""


def _absent(assets: tuple[Asset, ...]) -> bool:
    try:
        for asset in assets:
            locate(asset)
    except MomentseekError:
        return True
    return False


def _size_of(assets: tuple[Asset, ...]) -> float | None:
    size = 0
    with suppress(MomentseekError, OSError):
        for asset in assets:
            folder: Path = locate(asset)
            size += sum((folder / name).stat().st_size for name in asset.files)
        return round(size / 1e6)
    return None
