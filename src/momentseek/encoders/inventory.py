"""Every encoder there is, and whether it can be used: for ``momentseek models`` and ``momentseek doctor``."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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


def inventory(*, fresh: bool = False, only: str | None = None) -> list[Entry]:
    """All of them, or the one called ``only``; ``fresh`` computes every hash anew.

    >>> inventory(only="lables")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no encoder 'lables'; did you mean 'labels'?
    """
    entries = _entries(fresh)
    if only is None:
        return [make() for make in entries.values()]
    for name in (only, f"{HUB}{only}"):
        if name in entries:
            return [entries[name]()]
    near = difflib.get_close_matches(only, entries, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(entries)}"
    raise MomentseekError(f"there is no encoder {only!r}; {hint}")


def _entries(fresh: bool) -> dict[str, Callable[[], Entry]]:
    from momentseek.encoders import minilm
    from momentseek.encoders.labels import encoder as labels

    texts, images = minilm.ASSET, labels.ASSET
    about_texts = "comparing sentences, subtitles; English"
    about_images = "offline default: 1,000 kinds of things, no actions"
    found: dict[str, Callable[[], Entry]] = {
        "minilm": lambda: _from_packages("minilm", "text", (texts,), about_texts, fresh),
        "labels": lambda: _from_packages("labels", "image-text", (images, texts), about_images, fresh),
    }
    found |= {f"{HUB}{name}": partial(_downloadable, model, fresh) for name, model in MODELS.items()}
    for name in (*TEXT_ENCODERS, *IMAGE_TEXT_ENCODERS):
        kind: Kind = "text" if name in TEXT_ENCODERS else "image-text"
        found.setdefault(name, partial(Entry, name, kind, None, "registered", "ready", "", None, "", ""))
    return found


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
