"""Image-text models worth downloading.

Revisions are commits, so that what is downloaded cannot be changed under the same name. Sizes are as published and
rounded; no hash is pinned here, since the files could not be fetched where this table was made. A file's SHA-256 is
written down when it is first downloaded, and must be the same ever after (``lock``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from momentseek.errors import MomentseekError
from momentseek.registry import did_you_mean

HUB_ADDRESS = "https://huggingface.co"
SETTINGS_FILES = {"config.json": 0.001, "preprocessor_config.json": 0.001, "tokenizer_config.json": 0.05}


@dataclass(frozen=True)
class HubModel:
    """A repository of the hub, and of it the files that we need with their sizes in MB."""

    name: str
    repository: str
    revision: str
    files: Mapping[str, float]
    dim: int
    licence: str
    good_for: str

    @property
    def megabytes(self) -> float:
        """All files together, about."""
        return sum(self.files.values())

    @property
    def address(self) -> str:
        """Where the files are; a file's path is put behind it."""
        return f"{HUB_ADDRESS}/{self.repository}/resolve/{self.revision}"


_SIGLIP2 = "onnx-community/siglip2-base-patch16-224-ONNX", "ba1f3b0843f24bc5417d38e19c37b287d719b2f4"
_CLIP = "Xenova/clip-vit-base-patch32", "d15189d7028b43f1d3e65039190477f6af591c2a"
HUB_MODELS = {
    model.name: model
    for model in (
        HubModel(
            "siglip2-base",
            *_SIGLIP2,
            {"onnx/vision_model.onnx": 372, "onnx/text_model_fp16.onnx": 565, "tokenizer.json": 34.4, **SETTINGS_FILES},
            dim=768,
            licence="Apache-2.0",
            good_for="recommended: free descriptions, many languages",
        ),
        HubModel(
            "siglip2-base-small",
            *_SIGLIP2,
            {
                "onnx/vision_model_quantized.onnx": 95,
                "onnx/text_model_quantized.onnx": 283,
                "tokenizer.json": 34.4,
                **SETTINGS_FILES,
            },
            dim=768,
            licence="Apache-2.0",
            good_for="the same with 8-bit weights: smaller, less exact",
        ),
        HubModel(
            "clip-b32",
            *_CLIP,
            {"onnx/vision_model.onnx": 352, "onnx/text_model.onnx": 254, "tokenizer.json": 2.2, **SETTINGS_FILES},
            dim=512,
            licence="MIT",
            good_for="quickest of these; English",
        ),
    )
}


def find_hub_model(name: str) -> HubModel:
    """The model of that name.

    >>> find_hub_model("siglip-base")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no model 'siglip-base' to download; did you mean 'siglip2-base'?
    """
    if name not in HUB_MODELS:
        raise MomentseekError(f"there is no model {name!r} to download; {did_you_mean(name, HUB_MODELS)}")
    return HUB_MODELS[name]
