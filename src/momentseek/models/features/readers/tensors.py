"""Single files with a tensor for every video or query: ``.safetensors``, or a dict saved by ``torch.save``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.models.features.readers.folder import load_tensors, plain_names, tensor_table
from momentseek.models.features.sources import READERS, FeatureReader, StoredTable, TableSource, say_damage


class TensorDict(TableSource):
    """A dict saved by ``torch.save``, memory-mapped so that only the used tensors are read."""

    def __init__(self, path: Path, what: str, key: str | None = None) -> None:
        super().__init__(path, what, key)
        with say_damage(f"{path}: the file"):
            found = load_tensors(path, f"{path}: the file")
        if not isinstance(found, dict):
            raise MomentseekError(
                f"{path}: holds {type(found).__name__} and not a dict by {what}; put one file per {what} into a folder"
            )
        self._tensors: dict[str, Any] = {str(name): value for name, value in found.items()}
        self._names = plain_names(self._tensors, what)

    def names(self) -> set[str]:
        """The keys of the dict."""
        return set(self._names)

    def find(self, name: str) -> StoredTable | None:
        """Find a tensor of the dict."""
        if name not in self._names:
            return None
        return tensor_table(self._tensors[self._names[name]], self.key, self.where(name), self.size)


class SafetensorsFile(TableSource):
    """A safetensors file, which is read tensor by tensor."""

    def __init__(self, path: Path, what: str, key: str | None = None) -> None:
        super().__init__(path, what, key)
        optional_module("torch", "train")
        with say_damage(f"{path}: the file"):
            self._file = optional_module("safetensors", "train").safe_open(path, framework="pt")
            self._names = plain_names(list(self._file.keys()), what)

    def names(self) -> set[str]:
        """The names of the tensors."""
        return set(self._names)

    def find(self, name: str) -> StoredTable | None:
        """Find a tensor of the file; this reads its header only."""
        if name not in self._names:
            return None
        about = self._file.get_slice(self._names[name])
        dtype = about.get_dtype()

        def read() -> Any:
            return self._file.get_tensor(self._names[name]).float().numpy()

        return StoredTable(tuple(about.get_shape()), np.dtype(bool) if dtype == "BOOL" else dtype, self.size, read)


def _claims_pt(path: Path) -> bool:
    return path.is_file() and path.suffix in (".pt", ".pth")


def _claims_safetensors(path: Path) -> bool:
    return path.is_file() and path.suffix == ".safetensors"


READERS.add("pt", FeatureReader("a .pt file of a dict", _claims_pt, TensorDict))
READERS.add("safetensors", FeatureReader("a .safetensors file", _claims_safetensors, SafetensorsFile))
