"""Golden files: weights under public names, inputs, and what the public implementations made of them.

A module of this folder per kind of file (the first word of its name) has ``compare(golden)``, which fails where our
model with the file's weights gives something else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from momentseek.models.model import Network
from momentseek.models.public.loading import load_public
from momentseek.recognition.captions.inputs import SPECIAL_WORDS

NAMES = {"mssl": "ms_sl", "tcndcm": "tcn_dcm", "tspprl": "tsp_prl"}
"""Our names of models where a file's first word is another."""
TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-10}


@dataclass(frozen=True, eq=False)
class GoldenFile:
    """The arrays of a file as tensors of one kind of number."""

    name: str
    weight: Mapping[str, Tensor]
    input: Mapping[str, Tensor]
    output: Mapping[str, Tensor]
    gradnorm: Mapping[str, float]
    config: Mapping[str, Any]
    dtype: torch.dtype
    slack: float = 1.0
    """How many times the usual difference is allowed, where a network multiplies rounding."""

    @property
    def kind(self) -> str:
        """``mmn``, ``tan2d``, …: the first word of the file's name."""
        return self.name.split("_")[0]

    @property
    def model_name(self) -> str:
        """The name of our model."""
        return NAMES.get(self.kind, self.kind)

    def model(self, name: str, *, words: Sequence[str] = (), **settings: Any) -> Network:
        """Our model with the file's weights, in the file's kind of numbers."""
        return load_public(name, self.weight, settings, words).model.to(self.dtype)

    def check(self, ours: Tensor, name: str, mask: Tensor | None = None, *, by: float = 1.0) -> None:
        """Compare with ``output/name`` where the mask is true."""
        theirs = self.output[name].to(torch.float64)
        found = ours.detach().to(torch.float64)
        assert found.shape == theirs.shape, f"{name}: {tuple(found.shape)} and {tuple(theirs.shape)}"
        if mask is not None:
            mask = mask.bool().expand_as(theirs)
            found, theirs = found[mask], theirs[mask]
        self.check_numbers(found, theirs, name, by=by)

    def check_numbers(self, ours: Tensor, theirs: Tensor, what: str, *, by: float = 1.0) -> None:
        """Compare numbers to the digits of their kind, as shares of the largest (or of 1).

        Numbers of double precision must all agree; of single precision, the root of the mean square must, and every one
        to a hundredth of that: where a network divides by short lengths, single digits are lost with any order of sums.
        """
        difference = (ours.detach().double() - theirs.double()) / theirs.double().abs().max().clamp(min=1.0)
        worst, usual = float(difference.abs().max()), float(difference.square().mean().sqrt())
        tolerance = by * self.slack * TOLERANCES[self.dtype]
        single = self.dtype == torch.float32
        assert (usual if single else worst) <= tolerance, f"{what} differs by {usual:.1e}, at most {worst:.1e}"
        assert not single or worst <= 100 * tolerance, f"{what} differs by {worst:.1e}"

    def check_gradients(
        self, model: nn.Module, terms: Mapping[str, Tensor], names: Mapping[str, str], *, to: float = 1e-7
    ) -> None:
        """Compare the lengths of gradients of the whole loss, by our names of parameters and theirs."""
        if self.dtype != torch.float64:
            return
        parameters = dict(model.named_parameters())
        found = torch.autograd.grad(torch.stack(list(terms.values())).sum(), [parameters[name] for name in names])
        for gradient, (ours, theirs) in zip(found, names.items(), strict=True):
            assert float(gradient.norm()) == pytest.approx(self.gradnorm[theirs], rel=to), ours


@contextmanager
def outputs_of(*layers: nn.Module) -> Iterator[tuple[list[Tensor], ...]]:
    """Lists that fill up with what each layer gives while the model runs."""
    lists: tuple[list[Tensor], ...] = tuple([] for _ in layers)
    hooks = [
        layer.register_forward_hook(lambda _layer, _given, out, kept=kept: kept.append(out))
        for layer, kept in zip(layers, lists, strict=True)
    ]
    try:
        yield lists
    finally:
        for hook in hooks:
            hook.remove()


@lru_cache(maxsize=1)
def _arrays(path: Path) -> Mapping[str, Any]:
    """The arrays of a file; the last one's are kept, since it is read for one kind of numbers after the other."""
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def read_golden(path: Path, dtype: torch.dtype) -> GoldenFile:
    arrays = _arrays(path)
    parts: dict[str, dict[str, Tensor]] = {"weight": {}, "input": {}, "output": {}, "gradnorm": {}}
    for key, array in arrays.items():
        section, _, name = key.partition("/")
        if section in parts:
            tensor = torch.from_numpy(np.array(array))
            keep = section in ("weight", "output") or not tensor.is_floating_point()
            parts[section][name] = tensor if keep else tensor.to(dtype)
    config = json.loads(str(arrays["config.json"]))["config"]
    norms = {name: float(value) for name, value in parts["gradnorm"].items()}
    return GoldenFile(path.stem, parts["weight"], parts["input"], parts["output"], norms, config, dtype)


def settings_of(golden: GoldenFile) -> dict[str, Any]:
    """The settings of a file's model that its weights do not tell."""
    config = golden.config
    if golden.kind == "mmn":
        own = config["MODEL"]["MMN"]
        return {"max_clips": own["NUM_CLIPS"], "stride": own["FEATPOOL"]["KERNEL_SIZE"]}
    if golden.kind == "tan2d":
        return {
            "max_clips": config["NUM_SAMPLE_CLIPS"] // config["TARGET_STRIDE"],
            "stride": config["TAN"]["FRAME_MODULE"]["PARAMS"]["STRIDE"],
        }
    if golden.kind == "g2l":
        own = config["MODEL"]["G2L"]
        return {"max_clips": own["NUM_CLIPS"], "stride": own["FEATPOOL"]["KERNEL_SIZE"]}
    if golden.kind == "tcndcm":
        own = config["MODEL"]["TCN"]
        return {"max_clips": own["NUM_CLIPS"], "stride": own["FEATPOOL"]["KERNEL_SIZE"]}
    if golden.kind == "mssl":
        return {"heads": config["n_heads"], "parts": config["map_size"]}
    if golden.kind == "mmt":
        return {"heads": config["num_attention_heads"], "max_clips": max(1, config["max_v_len"] - 2)}
    if "n_heads" in config:
        return {"heads": config["n_heads"]}
    if "model_config" in config:
        return {"heads": config["model_config"]["bert_config"]["num_attention_heads"]}
    return {}


def words_of_file(golden: GoldenFile) -> tuple[str, ...]:
    """Words for the entries of a file's vocabulary, which has numbers alone; none where there is no vocabulary."""
    if golden.kind == "mmt":
        from_here = len(SPECIAL_WORDS)
        return (*SPECIAL_WORDS, *(f"word{n}" for n in range(from_here, golden.config["vocab_size"])))
    if golden.kind == "wssl":
        return ("<bos>", "<eos>", *(f"word{n}" for n in range(2, golden.config["vocab"] - 1)), "<oov>")
    return ()
