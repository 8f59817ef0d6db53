"""Vectors that another model made, by text: ``--encoder file:simcse.npz``.

The file is numpy's .npz with ``texts`` (n strings) and ``vectors`` (n × d numbers). It lets the papers' own encoder
(SimCSE, which needs torch and a download) be run elsewhere, and everything here be done with its similarities.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from momentseek.encoders.npz import read_npz
from momentseek.encoders.protocol import Vectors
from momentseek.errors import MomentseekError


class VectorFileEncoder:
    """An encoder that knows a fixed set of texts.

    >>> known = VectorFileEncoder("mine", ["a man runs", "a dog barks"], np.array([[3, 4], [0, 2]], np.float32))
    >>> known.encode(["a dog barks", "a man runs"]).tolist()
    [[0.0, 1.0], [0.6000000238418579, 0.800000011920929]]
    """

    def __init__(self, name: str, texts: Sequence[str], vectors: Vectors) -> None:
        self.name = name
        self.dim = int(vectors.shape[1])
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(vectors).all() and (length > 0).all()):
            raise MomentseekError(f"{name}: a vector is zero or not finite; make them again")
        self._vectors: Vectors = (vectors / length).astype(np.float32)
        self._place = {text: at for at, text in enumerate(texts)}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The rows of ``texts``, all of which must be in the file."""
        try:
            return self._vectors[np.fromiter((self._place[text] for text in texts), np.int64, len(texts))]
        except KeyError as e:
            raise MomentseekError(f"{self.name}: has no vector for {e.args[0]!r}; encode every text") from None


def read_vector_file(path: str | os.PathLike[str]) -> VectorFileEncoder:
    """The vectors of a file."""
    texts, vectors = read_npz(path, "texts", "vectors")
    if texts.ndim != 1 or texts.dtype.kind != "U" or vectors.ndim != 2 or len(texts) != len(vectors):
        raise MomentseekError(
            f"{path}: texts has shape {texts.shape} and vectors {vectors.shape}; expected n strings and n rows"
        )
    if vectors.dtype.kind not in "fiu":
        raise MomentseekError(f"{path}: vectors are {vectors.dtype}; expected numbers")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, which the encoder refuses
        return VectorFileEncoder(Path(path).name, texts.tolist(), vectors.astype(np.float32))
