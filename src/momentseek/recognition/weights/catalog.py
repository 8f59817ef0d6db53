"""Models worth downloading: image-text encoders and speech recognisers.

Revisions are commits, so that what is downloaded cannot be changed under the same name. Nobody here has fetched the
files: a size and a SHA-256 are pinned where at least two unrelated projects publish the same ones for the same path
and revision. A file without a hash is taken as it first comes; what it was is then written down (``lock``), and it
must be the same ever after.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean

HUB_ADDRESS = "https://huggingface.co"
ModelKind = Literal["image-text", "speech"]


@dataclass(frozen=True)
class HubFile:
    """A file of a repository: how large it is in bytes, and its SHA-256 if that is known.

    Without a hash the size is only what it is thought to be.
    """

    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class HubModel:
    """A repository of the hub, and of it the files that we need."""

    name: str
    repository: str
    revision: str
    files: Mapping[str, HubFile]
    dim: int | None
    """Columns of its vectors; None for a recogniser, which has none."""
    licence: str
    """Its licence; "by its weights" where the export states none and that of the original weights is taken."""
    good_for: str
    kind: ModelKind = "image-text"

    @property
    def megabytes(self) -> float:
        """All files together, about."""
        return sum(file.size for file in self.files.values()) / 1e6

    @property
    def address(self) -> str:
        """Where the files are; a file's path is put behind it."""
        hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB_ADDRESS
        return f"{hub}/{self.repository}/resolve/{self.revision}"

    @property
    def hashes(self) -> dict[str, str]:
        """Path → SHA-256, for the files whose hash is known."""
        return {path: file.sha256 for path, file in self.files.items() if file.sha256}

    @property
    def use(self) -> str:
        """The option by which a command uses it."""
        return f"--transcriber {self.name}" if self.kind == "speech" else f"--encoder hub:{self.name}"


_SIGLIP2 = "onnx-community/siglip2-base-patch16-224-ONNX", "ba1f3b0843f24bc5417d38e19c37b287d719b2f4"
_SIGLIP2_FILES = {
    "tokenizer.json": HubFile(34_363_039, "cb9140fae3ac5122c972d37adf83e1248471a38147ad76f8215c8872c6fd8322"),
    "config.json": HubFile(435, "e43a9f7692d3819886a82cb2097048258d444f123c67d37ec825f9345b019cf2"),
    "preprocessor_config.json": HubFile(394, "9b36b57ebaf20f09bf4c22100ccc21877ea6bfe5aead0c00c59f8af8ccefacfc"),
    "tokenizer_config.json": HubFile(47_240, "7c3a247599e741bceba1a3fe0285aea88d1044dc1fad2caa1e48cdd9fd25f630"),
}
_UNSEEN_SIGLIP2_FILES = {path: HubFile(file.size) for path, file in _SIGLIP2_FILES.items()}
"""The same files of other sizes of the model, of which no hash was found."""
_WHISPER_TOKENIZER = HubFile(2_203_239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab")

HUB_MODELS = {
    model.name: model
    for model in (
        HubModel(
            "siglip2-base",
            *_SIGLIP2,
            {
                "onnx/vision_model.onnx": HubFile(
                    371_807_752, "c0573e3f4140c3a7c4e9cc5912bd6b26a033b46a6a8e8af26cbea262b163bcad"
                ),
                "onnx/text_model_fp16.onnx": HubFile(
                    564_862_230, "711da56ada0a4aa11c7dd3320df741081a3cae4f0ae1b5e5c6d5b294738d0eb0"
                ),
                **_SIGLIP2_FILES,
            },
            dim=768,
            licence="Apache-2.0, by its weights",
            good_for="recommended: free descriptions, many languages",
        ),
        HubModel(
            "siglip2-base-quick",
            "onnx-community/siglip2-base-patch32-256-ONNX",
            "7efccb86b5b6601bfe9e14326e1c11b40b68d44c",
            {
                "onnx/vision_model.onnx": HubFile(378_478_689),
                "onnx/text_model_fp16.onnx": HubFile(564_862_230),
                **_UNSEEN_SIGLIP2_FILES,
            },
            dim=768,
            licence="Apache-2.0",
            good_for="nearly as good, and adds videos 2.5 times as fast",
        ),
        HubModel(
            "siglip2-large",
            "onnx-community/siglip2-large-patch16-256-ONNX",
            "c03fb63ddd5fe363212cbd08110f92a35250db6a",
            {
                "onnx/vision_model.onnx": HubFile(1_264_345_246),
                "onnx/text_model_fp16.onnx": HubFile(1_131_647_648),
                **_UNSEEN_SIGLIP2_FILES,
            },
            dim=1024,
            licence="Apache-2.0, by its weights",
            good_for="languages other than English; slow",
        ),
        HubModel(
            "siglip2-base-small",
            *_SIGLIP2,
            {
                "onnx/vision_model_quantized.onnx": HubFile(
                    94_553_333, "5f2b401c1a4fc095702a5d45348e17ad46c4f87064085365b43c6e8eaa5c0070"
                ),
                "onnx/text_model_quantized.onnx": HubFile(
                    283_438_275, "3a0603d3a00c05a80a6ded4743c16aaac7b1e62cdcc7e362e7ce418659b96400"
                ),
                **_SIGLIP2_FILES,
            },
            dim=768,
            licence="Apache-2.0, by its weights",
            good_for="siglip2-base with 8-bit weights: smaller, less exact, no faster",
        ),
        HubModel(
            "clip-b32",
            "Xenova/clip-vit-base-patch32",
            "d15189d7028b43f1d3e65039190477f6af591c2a",
            {
                "onnx/vision_model.onnx": HubFile(
                    351_685_709, "fd6e1402a588279d1723c7534d4bcba5bc0b14b47dfab0e46f8c47b8270d7d40"
                ),
                "onnx/text_model.onnx": HubFile(
                    254_058_553, "3f6571f5bad13a97c469c1622e1cfc4d9aef78b79fdbfcff804ca357bfada8cc"
                ),
                "tokenizer.json": HubFile(
                    2_224_119, "f7f3b7af117d467b58374797691a6438d3e6b9e9cef800dfd5dced7f697a90cd"
                ),
                "config.json": HubFile(5_000),
                "preprocessor_config.json": HubFile(1_000),
                "tokenizer_config.json": HubFile(1_000),
            },
            dim=512,
            licence="MIT, by its weights",
            good_for="quick and small in memory; English, weaker",
        ),
        HubModel(
            "whisper-small",
            "Systran/faster-whisper-small",
            "536b0662742c02347bc0e980a01041f333bce120",
            {
                "model.bin": HubFile(483_546_902, "3e305921506d8872816023e4c273e75d2419fb89b24da97b4fe7bce14170d671"),
                "config.json": HubFile(2_370, "b55496ac7940a7ae47d2c01eab40edfd8701feec1229d9cce3b40014383fb828"),
                "tokenizer.json": _WHISPER_TOKENIZER,
                "vocabulary.txt": HubFile(459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
            },
            dim=None,
            licence="MIT",
            good_for="hearing more than whisper-base does, in more languages",
            kind="speech",
        ),
        HubModel(
            "whisper-large-v3-turbo",
            "dropbox-dash/faster-whisper-large-v3-turbo",
            "0a363e9161cbc7ed1431c9597a8ceaf0c4f78fcf",
            {
                "model.bin": HubFile(1_617_884_929, "e76620f83d5f5b69efd3d87e3dc180c1bd21df9fbebacfd4335e5e1efcc018da"),
                "config.json": HubFile(2_263, "b0253ea6c0d3bea6b1e19e91a02acfd3b53f4467362efcb5a3e6b16c9b3a9b7e"),
                "tokenizer.json": HubFile(
                    2_710_337, "297b13372ac43916285644fb9687add3cc62ee2a1adb60da3dc25cc94c1871fd"
                ),
                "vocabulary.json": HubFile(
                    1_068_114, "c69260f2ab26d659b7c398f9a2b2b48ed0df16c3b47d7326782fd9cba71690c1"
                ),
                "preprocessor_config.json": HubFile(
                    340, "7ccc62c6f2765af1f3b46c00c9b5894426835a05021c8b9c01eecb6dfb542711"
                ),
            },
            dim=None,
            licence="MIT",
            good_for="the best hearing, 99 languages; slow",
            kind="speech",
        ),
    )
}


def find_hub_model(name: str, kind: ModelKind | None = None) -> HubModel:
    """The model of that name, and of that kind if one is given.

    >>> find_hub_model("siglip-base")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no model 'siglip-base' to download; did you mean 'siglip2-base'?
    """
    known = {model.name: model for model in HUB_MODELS.values() if kind in (None, model.kind)}
    if name not in known:
        raise MomentseekError(f"there is no model {name!r} to download; {did_you_mean(name, known)}")
    return known[name]
