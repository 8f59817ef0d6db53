"""One half of a dual encoder: a graph from images, or from tokens, to unit vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.protocol import Vectors
from momentseek.encoders.runtime import session
from momentseek.errors import MomentseekError

INPUT_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class EncoderTower:
    """The image or the text half of a dual encoder: a graph whose embedding is taken as unit vectors."""

    def __init__(self, path: Path, outputs: tuple[str, ...], family: str, threads: int | None) -> None:
        self._path = path
        self._session = session(path, threads)
        self._inputs = {given.name: given for given in self._session.get_inputs()}
        self._output = self._embedding(outputs, family)

    def __call__(self, **values: NDArray[Any]) -> Vectors:
        """Unit rows for a batch; values that the graph does not take are left out."""
        missing = sorted(set(self._inputs) - set(values))
        if missing:
            raise MomentseekError(f"{self._path}: asks for {', '.join(missing)}, which we do not have; export it again")
        given = {name: values[name].astype(INPUT_TYPES[takes.type]) for name, takes in self._inputs.items()}
        try:
            (rows,) = self._session.run([self._output], given)
        except Exception as e:  # as in session()
            raise MomentseekError(f"{self._path}: ONNX Runtime stopped ({str(e).splitlines()[0]})") from None
        rows = np.asarray(rows, np.float32)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(length).all() and (length > 0).all()):
            raise MomentseekError(f"{self._path}: gave a vector that is zero or not finite; try another export of it")
        unit: Vectors = rows / length
        return unit

    def shape(self, name: str) -> list[int | str | None]:
        """Sizes of an input; those that may differ are names."""
        return list(self._inputs[name].shape) if name in self._inputs else []

    @property
    def batch(self) -> int | None:
        """How many at once, for a graph that was exported with a fixed number."""
        sizes = {shape[0] for name in self._inputs if (shape := self.shape(name)) and isinstance(shape[0], int)}
        if sizes - {1}:
            raise MomentseekError(f"{self._path}: takes exactly {max(sizes)} at once; export it with a dynamic batch")
        return 1 if sizes else None

    def _embedding(self, outputs: tuple[str, ...], family: str) -> str:
        """CLIP's ``pooler_output`` comes before the projection into the common space, so it will not do."""
        names = [given.name for given in self._session.get_outputs()]
        for name in outputs:
            if name in names and not (family == "clip" and name == "pooler_output"):
                return name
        raise MomentseekError(
            f"{self._path}: gives {', '.join(names)}, but no {outputs[0]}; export the model with its projection"
        )
