"""Texts as token numbers, by a model's ``tokenizer.json`` and ``tokenizer_config.json``.

CLIP reads up to its end mark, so texts are padded to the longest of a batch. SigLIP was trained on 64 lower-case
tokens with nothing masked, padded on the right, and must be given exactly that whatever its settings say: it reads
the last position, so other padding gives other vectors. SigLIP 2 pads with Gemma's ``<pad>``, number 0; the first
SigLIP with its end mark, as its settings say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.optional import optional_module

DEFAULT_MAX_TOKENS = {"clip": 77, "siglip": 64}
"""Tokens of a family's texts, where the settings do not say."""
GEMMA_MARKS = ("<pad>", "<eos>", "<bos>")
"""Tokens of Gemma's vocabulary, which SigLIP 2 reads by; SigLIP's own has ``</s>``."""


@dataclass(frozen=True)
class TextTokenizer:
    """Turns texts into the token numbers that a model was trained on: its case, padding and length."""

    tokenizer: Any
    pad: int
    left: bool
    lower: bool
    length: int
    whole: bool
    """Pad to ``length``, and mask nothing."""

    def __call__(self, texts: Sequence[str], length: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``(ids, mask)``, padded to the longest text, or to the model's (or the given) length."""
        found = [e.ids for e in self.tokenizer.encode_batch([t.lower() if self.lower else t for t in texts])]
        columns = length or (self.length if self.whole else max(map(len, found)))
        ids = np.full((len(found), columns), self.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(found):
            at = slice(columns - len(own), None) if self.left else slice(len(own))
            ids[row, at], mask[row, at] = own, 1
        return ids, np.ones_like(mask) if self.whole else mask


def load_tokenizer(folder: Path, config: Mapping[str, Any], settings: Mapping[str, Any], family: str) -> TextTokenizer:
    """The tokenizer of a folder; ``config`` is the model's and ``settings`` the tokenizer's own."""
    path = folder / "tokenizer.json"
    text = config.get("text_config") or {}
    try:
        tokenizer = optional_module("tokenizers", "search").Tokenizer.from_file(str(path))
    except MomentseekError:
        raise
    except Exception as e:  # tokenizers raises Exception itself
        raise MomentseekError(f"{path}: is no tokenizer ({e}); get the file again") from None
    length = int(text.get("max_position_embeddings") or DEFAULT_MAX_TOKENS[family])
    tokenizer.no_padding()
    tokenizer.enable_truncation(length)
    return TextTokenizer(
        tokenizer,
        pad=_pad(tokenizer, settings, text),
        left=family != "siglip" and settings.get("padding_side") == "left",
        lower=family == "siglip" or bool(settings.get("do_lower_case")),
        length=length,
        whole=family == "siglip",
    )


def _pad(tokenizer: Any, settings: Mapping[str, Any], text: Mapping[str, Any]) -> int:
    gemma = [tokenizer.token_to_id(token) for token in GEMMA_MARKS]
    if None not in gemma:
        return int(gemma[0])
    token = settings.get("pad_token")
    content = token.get("content") if isinstance(token, Mapping) else token
    number = tokenizer.token_to_id(content) if isinstance(content, str) else None
    if number is None:
        number = text.get("pad_token_id")
    return int(number or 0)
