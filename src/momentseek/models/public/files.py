"""Files of weights, read without running anything in them: safetensors, or torch's format by its weights-only reader.

A torch file is a pickle, which may call any function when it is read. The weights-only reader builds tensors and plain
containers alone; everything else is refused by name. Settings that authors put beside the weights as ``EasyDict`` or
``Namespace`` are read as plain mappings and not used.
"""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from momentseek.errors import MomentseekError
from momentseek.limits import check_size
from momentseek.optional import optional_module

WRAPPERS = ("model", "state_dict", "model_state_dict", "net", "weights")
"""Names under which programs keep the weights beside their optimiser and settings."""
PARALLEL_PREFIX = "module."
"""What torch puts before every name of a model that was trained on several devices."""
REFUSED_NAME = re.compile(r"GLOBAL ([\w.]+)|global[:\s]+[`']?([\w.]+)")


def read_public_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a file by their names, without what stands around them."""
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
    if zipfile.is_zipfile(file):
        try:
            with zipfile.ZipFile(file) as archive:
                sizes = [(part.file_size, part.compress_size) for part in archive.infolist()]
        except (zipfile.BadZipFile, ValueError):
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
    """Stands for classes of settings: makes a mapping that nothing reads."""

    def __new__(cls, *_: object) -> Any:
        return OrderedDict[str, Any]()


def _plain_tensors(content: Any, file: Path) -> dict[str, Tensor]:
    """The state dict that a file's content is or holds."""
    found = _state_dict(content)
    if found is None:
        inside = content if isinstance(content, Mapping) else {}
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
