"""A downloaded model as an encoder: ``hub:NAME``. Nothing is downloaded here."""

from __future__ import annotations

from momentseek.encoders.exported.folder import Exported
from momentseek.encoders.exported.folder import load as load_folder
from momentseek.encoders.hub.catalogue import model_called
from momentseek.encoders.hub.lock import check


def load(name: str) -> Exported:
    """The model, if it was downloaded and has not changed since."""
    return load_folder(check(model_called(name).name), name=f"hub:{name}")
