"""Trace models as ONNX graphs with torch's exporter, and compare the graphs with torch.

The exporter is that of TorchScript (``dynamo=False``). Its successor fails on LSTMs and on six of seven variants of
2D-TAN and MDD, and takes minutes where this one takes seconds. It traces one call and fixes the sizes that it sees,
except for named axes; so every graph is tested with other sizes.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.core.errors import optional_module
from momentseek.models.model import CorpusModel
from momentseek.recognition.runtime import session

OPSET = 17

Inputs = Mapping[str, Tensor]
Axes = Mapping[str, tuple[str, ...]]
"""Names of the axes of inputs and outputs whose sizes may vary, starting with the first; "" for a fixed axis."""


@dataclass(frozen=True, eq=False)
class ModelGraphs:
    """The ONNX graphs of a model, and the ``head`` section of its manifest."""

    graphs: Mapping[str, bytes]
    """File name → graph."""
    modalities: tuple[str, ...]
    """Modalities of a video that the graphs use."""
    head: Mapping[str, Any]
    """What search needs besides the graphs, for the manifest."""
    difference: float
    """The largest difference between the graphs and torch, relative to the largest value."""


@dataclass(frozen=True, eq=False)
class ExportableKind:
    """A kind of model that can be exported."""

    takes: tuple[type[CorpusModel], ...]
    names: tuple[str, ...]
    """Names of the models of this kind."""
    draw: Callable[[Any, Mapping[str, Any]], ModelGraphs]
    """Traces the graphs of a model in evaluation mode, with settings of the export (``end_time``, ``window``, …)."""


class PartOfModel(nn.Module):
    """A part of a model as a module of its own, to be traced as one graph."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


def trace(module: nn.Module, given: Inputs, outputs: Sequence[str], axes: Axes) -> bytes:
    """Trace a module as an ONNX graph from one call with the arguments ``given``; unused arguments are left out."""
    optional_module("onnx", "train")
    free = {name: {i: axis for i, axis in enumerate(names) if axis} for name, names in axes.items()}
    file, fast, log = io.BytesIO(), torch.backends.mha.get_fastpath_enabled(), torch._C._jit_onnx_log
    torch.onnx.register_custom_op_symbolic("aten::log_sigmoid", _log_sigmoid, OPSET)
    torch.backends.mha.set_fastpath_enabled(False)  # the exporter does not know its operator
    torch._C._jit_onnx_log = lambda *_: None  # it would print the whole graph of a module that fails
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # about the deprecated exporter, and branches that depend on fixed sizes
            torch.onnx.export(
                module.eval(), tuple(given.values()), file, dynamo=False, opset_version=OPSET,
                input_names=list(given), output_names=list(outputs), dynamic_axes=free,
            )  # fmt: skip
    finally:
        torch._C._jit_onnx_log = log
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.onnx.unregister_custom_op_symbolic("aten::log_sigmoid", OPSET)
    return file.getvalue()


def _log_sigmoid(graph: Any, x: Any) -> Any:
    """``-log(1 + exp(-x))``, because the exporter's ``log(sigmoid(x))`` is off by 5e-3 for x far below 0."""
    return graph.op("Neg", graph.op("Softplus", graph.op("Neg", x)))


@torch.no_grad()
def difference_from_torch(module: nn.Module, graph: bytes, samples: Sequence[Inputs]) -> float:
    """The largest difference between a graph and torch, relative to the largest value.

    Entries whose score (the last output) is minus infinity are ignored; if these entries differ, the result is
    infinite.
    """
    module.eval()
    run, worst = session(graph), 0.0
    names, taken = [o.name for o in run.get_outputs()], {i.name for i in run.get_inputs()}
    for given in samples:
        found = module(*given.values())
        theirs = [x.numpy() for x in (found if isinstance(found, tuple) else (found,))]
        ours = run.run(names, {name: values.numpy() for name, values in given.items() if name in taken})
        real = theirs[-1] > -np.inf
        if any(x.shape != y.shape for x, y in zip(ours, theirs, strict=True)):
            return math.inf
        if not np.array_equal(ours[-1] > -np.inf, real):
            return math.inf
        for x, y in zip(ours, theirs, strict=True):
            worst = max(worst, relative_difference(x, y, real if y.shape == real.shape else np.True_))
    return worst


def relative_difference(ours: NDArray[Any], torchs: NDArray[Any], mask: Any = np.True_) -> float:
    """The largest difference where the mask is true, relative to the largest value (at least 1).

    It is infinite if NaNs are in different places.

    >>> relative_difference(np.array([1.0, 5.0]), np.array([1.5, 9.0]), np.array([True, False]))
    0.3333333333333333
    """
    ours, torchs = np.where(mask, ours, 0), np.where(mask, torchs, 0)
    if not np.array_equal(np.isnan(ours), np.isnan(torchs)):
        return math.inf
    return float(np.abs(ours - torchs).max(initial=0) / max(1.0, np.abs(torchs).max(initial=0)))


def random_rows(rows: int, columns: int, counts: Sequence[int], rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random tables of ``counts`` rows, padded with zeros to ``rows``, and the mask of the real rows."""
    mask = torch.arange(rows) < torch.tensor(counts)[:, None]
    return torch.randn(len(counts), rows, columns, generator=rng) * mask[..., None], mask
