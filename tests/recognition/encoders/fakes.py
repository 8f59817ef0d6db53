"""An encoder for tests: the words of a text, hashed into a few dimensions. Same words, same vector."""

import importlib.util
import re
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.minilm import ASSET
from momentseek.recognition.encoders.things import ASSET as CLASSIFIER
from momentseek.recognition.weights.files import PackagedWeights, locate


class Words:
    name = "words"
    dim = 64

    def __init__(self) -> None:
        self.fingerprint = "1"
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        rows = np.full((len(texts), self.dim), 1e-3, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[zlib.crc32(word.encode()) % self.dim] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _installed(*assets: PackagedWeights) -> bool:
    try:
        for asset in assets:
            locate(asset)
    except MomentseekError:
        return False
    return all(importlib.util.find_spec(name) for name in ("onnxruntime", "tokenizers"))


needs_minilm = pytest.mark.skipif(not _installed(ASSET), reason="the weights are not downloaded")
needs_labels = pytest.mark.skipif(not _installed(ASSET, CLASSIFIER), reason="the weights are not downloaded")
