"""Read files of public weights, and load them into a model."""

from __future__ import annotations

import json
import pickle
import re
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.limits import check_size
from momentseek.models.captioner import CAPTIONERS
from momentseek.models.model import Network
from momentseek.models.public.weights import PUBLIC_MODELS, PublicWeights, Translation
from momentseek.models.registry import MODELS, ModelSpec, build_config, plain_settings, refuse_absurd_sizes

SHOWN_NAMES = 3
"""Maximum number of names in a message."""
OPTIONS_FILE = "opt.json"
"""The file in which the programs of Moment-DETR's family store the options of a training run."""
WRAPPERS = ("model", "state_dict", "model_state_dict", "net", "weights")
"""Keys under which programs store the weights, in files that also hold the optimiser or settings."""
PARTS = {"model_sl": "sl.", "model_cg": "cg."}
"""Keys under which WSSL's program stores the weights of two networks → prefixes of their names here."""
PARALLEL_PREFIX = "module."
"""The prefix that torch adds to all names of a model trained on several devices."""
REFUSED_NAME = re.compile(r"GLOBAL ([\w.]+)|global[:\s]+[`']?([\w.]+)")


@dataclass(frozen=True, eq=False)
class PublicModel:
    """A model with public weights, in evaluation mode."""

    model: Network
    name: str
    settings: Mapping[str, Any]
    """The model's settings: those of the public code, those read from the weights' shapes, and those given."""
    assumed: Mapping[str, Any]
    """Those of ``settings`` that were neither given nor can be read from the shapes."""
    skipped: tuple[str, ...]
    """Names of public tensors that the model does not use."""


def load_public(
    name: str,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any] | None = None,
    words: Sequence[str] = (),
) -> PublicModel:
    """Build the model ``name`` with the weights of its public implementation, given by their public names.

    Settings are read from the weights' shapes where possible; ``settings`` adds others, such as the number of heads.
    ``words`` is the vocabulary, in the order of the word numbers, for a model that has one (MMT, WSSL).
    """
    if name not in PUBLIC_MODELS:
        known = "models with public weights are " + ", ".join(PUBLIC_MODELS)
        what = f"no public weights of {name} are known" if name in MODELS else f"there is no model {name!r}"
        raise MomentseekError(f"{what}; {known}")
    kind: ModelSpec = CAPTIONERS[name] if name in CAPTIONERS else MODELS[name]
    spec, asked = PUBLIC_MODELS[name], plain_settings(kind.config, settings or {})
    if not all(mark in tensors for mark in spec.marks):
        raise MomentseekError(_strangers(name, tensors))
    _refuse_unusable(tensors)
    weights = PublicWeights(tensors, words)
    found = spec.translate(weights, asked)
    if unused := weights.leftovers():
        raise MomentseekError(f"the weights have {_names(unused)}, which {name} does not know")
    for key, value in found.settings.items():
        if key in asked and asked[key] != value:
            raise MomentseekError(f"{key} is {value} by the weights, not {asked[key]}; leave it out")
    wanted = {**spec.settings, **found.assumed, **found.settings, **asked}
    config = build_config(kind.config, wanted, f"model {name}")
    refuse_absurd_sizes(config, tensors)
    model: Network = kind.model(config, found.dims)
    _load(model, found)
    assumed = {key: value for key, value in found.assumed.items() if key not in asked}
    return PublicModel(model.eval(), name, wanted, assumed, tuple(weights.skipped))


def _load(model: Network, found: Translation) -> None:
    """Copy the weights into the model; the error for a name or shape that does not fit names it."""
    own = model.state_dict()
    if missing := [name for name in own if name not in found.state and not name.endswith("num_batches_tracked")]:
        raise MomentseekError(f"the weights lack what becomes {_names(missing)} here; other settings may fit")
    if strange := [name for name in found.state if name not in own]:
        raise MomentseekError(f"with these settings the model has no {_names(strange)}; other settings may fit")
    state = dict(own)
    for name, tensor in found.state.items():
        wanted, fitted = own[name], tensor
        while fitted.dim() > wanted.dim() and fitted.shape[-1] == 1:
            fitted = fitted.squeeze(-1)
        if fitted.shape != wanted.shape:
            here, there = tuple(wanted.shape), tuple(tensor.shape)
            raise MomentseekError(f"the weights have {there} for {name}, which is {here} with these settings")
        state[name] = fitted.to(wanted.dtype)
    model.load_state_dict(state)


def _strangers(name: str, tensors: Mapping[str, Tensor]) -> str:
    """The error message for weights that are not those of model ``name``."""
    for other, spec in PUBLIC_MODELS.items():
        if all(mark in tensors for mark in spec.marks):
            return f"these are weights of {other}, not of {name}; import them as that"
    lost = next(mark for mark in PUBLIC_MODELS[name].marks if mark not in tensors)
    return f"the weights lack {lost!r}, so they are not those of {PUBLIC_MODELS[name].source}"


def _refuse_unusable(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise MomentseekError(f"the weights' {name!r} holds numbers that are not finite")


def _names(names: list[str]) -> str:
    """The first names of a list, and the number of others.

    >>> _names(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    shown = ", ".join(map(repr, names[:SHOWN_NAMES]))
    return shown if len(names) <= SHOWN_NAMES else f"{shown} and {len(names) - SHOWN_NAMES} more"


def read_public_weights(file: Path) -> dict[str, Tensor]:
    """Read the tensors of a file by name, without the optimiser, settings and the like."""
    if not file.is_file():
        raise MomentseekError(f"{file}: there is no such file; name one with weights (.safetensors, .pt, .pth, .ckpt)")
    try:
        size = file.stat().st_size
        check_size(f"{file}: the file", size, size)
        with file.open("rb") as opened:
            head = opened.read(10)
        content = _read_safetensors(file) if head[8:10] == b'{"' else _read_torch(file)
        return _plain_tensors(content, file)
    except OSError as e:
        raise MomentseekError(f"{file}: cannot be read ({e.strerror or e}); check the path") from None


def read_public_words(file: Path) -> tuple[str, ...]:
    """Read a vocabulary, in the order of the word numbers: a JSON list, or an object from words to numbers."""
    try:
        found = json.loads(file.read_text())
    except OSError as e:
        raise MomentseekError(f"{file}: cannot be read ({e.strerror or e}); check the path") from None
    except ValueError:
        raise MomentseekError(f"{file}: is no JSON; write the vocabulary as a list of words in their order") from None
    if isinstance(found, dict) and sorted(found.values(), key=str) == sorted(range(len(found)), key=str):
        found = sorted(found, key=found.__getitem__)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise MomentseekError(f"{file}: is no list of words and no object from words to the numbers 0, 1, …")
    return tuple(found)


def read_options(file: Path) -> dict[str, Any]:
    """Read the options that a public program stored next to its weights; empty if there is no such file."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MomentseekError(f"{file}: is no JSON object of options; repair it, or move it away")
    return found


def _read_safetensors(file: Path) -> dict[str, Tensor]:
    safetensors = optional_module("safetensors", "train")
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            return {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except OSError:
        raise
    except Exception as e:  # safetensors and torch have classes of their own for damaged files
        raise MomentseekError(f"{file}: is cut off or damaged ({_first_line(e)}); copy it again") from None


def _read_torch(file: Path) -> Any:
    damaged = f"{file}: is neither a safetensors nor a torch file, or it is cut off; copy it again"
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                sizes = [(part.file_size, part.compress_size) for part in archive.infolist()]
        else:
            sizes = []
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        raise MomentseekError(damaged) from None
    check_size(f"{file}: its content", sum(s for s, _ in sizes), sum(c for _, c in sizes))
    settings: list[Any] = [(_Settings, "easydict.EasyDict"), (_Settings, "argparse.Namespace")]
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(settings):
            warnings.simplefilter("ignore")  # of pickles' versions
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as e:
        if found := REFUSED_NAME.search(str(e)):
            raise MomentseekError(
                f"{file}: calls {found[1] or found[2]} when it is read, so it is not; ask for the weights alone "
                "(safetensors, or torch.save(model.state_dict()))"
            ) from None
        raise MomentseekError(damaged) from None
    except Exception:  # torch has a class of its own for each way in which a file can be damaged
        raise MomentseekError(damaged) from None


class _Settings:
    """Replaces classes of settings in pickles: creates a mapping that is not used."""

    def __new__(cls, *_: object) -> Any:
        return OrderedDict[str, Any]()


def _plain_tensors(content: Any, file: Path) -> dict[str, Tensor]:
    """Find the state dict in a file's content."""
    found = _state_dict(content)
    if found is None:
        inside = content if isinstance(content, Mapping) else {}
        both = inside.get("dynamic_params", inside)
        if isinstance(both, Mapping) and all((_state_dict(both.get(name))) for name in PARTS):
            found = {PARTS[name] + key: tensor for name in PARTS for key, tensor in both[name].items()}
    if found is None:
        found = next((s for name in WRAPPERS if (s := _state_dict(inside.get(name))) is not None), None)
    if not found:
        raise MomentseekError(f"{file}: holds no state dict (tensors by name); save model.state_dict()")
    stored = file.stat().st_size
    weights: dict[str, Tensor] = {}
    for name, tensor in found.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
            raise MomentseekError(f"{file}: {name!r} is no plain tensor; save the weights as they are trained")
        check_size(f"{file}: {name!r}", tensor.numel() * tensor.element_size(), stored)
        if tensor.numel() * tensor.element_size() > stored:
            raise MomentseekError(f"{file}: {name!r} claims {tensor.numel():,} numbers, more than the file holds")
        plain = tensor.detach().contiguous()
        weights[name] = plain.float() if plain.is_floating_point() else plain
    if all(name.startswith(PARALLEL_PREFIX) for name in weights):
        weights = {name.removeprefix(PARALLEL_PREFIX): tensor for name, tensor in weights.items()}
    return weights


def _state_dict(value: Any) -> dict[str, Tensor] | None:
    if not isinstance(value, Mapping) or not value:
        return None
    tensors = all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in value.items())
    return dict(value) if tensors else None


def _first_line(e: Exception) -> str:
    return (str(e) or type(e).__name__).splitlines()[0].strip()
