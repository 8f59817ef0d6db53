"""What describes a library's scenes, by its spec: the folder of an exported captioner, or ``URL#MODEL``."""

from __future__ import annotations

from pathlib import Path

from momentseek.captioning.endpoint import CaptionBudget, open_captioner
from momentseek.captioning.scene import SceneCaptioner
from momentseek.errors import MomentseekError
from momentseek.library.reader import LibraryReader
from momentseek.trained.captioner import ExportedCaptioner


def open_scene_captioner(spec: str, library: LibraryReader, requests: int | None = None) -> SceneCaptioner:
    """The captioner of a spec, if it can describe this library; ``requests`` bounds what is asked of an endpoint."""
    if "://" in spec:
        address, _, model = spec.partition("#")
        if not model:
            raise MomentseekError(
                f"the endpoint needs the name of a model after a #, as http://localhost:8000/v1#NAME, not {address!r}"
            )
        return open_captioner(address, model, budget=CaptionBudget(requests=requests))
    if not Path(spec).expanduser().is_dir():
        raise MomentseekError(
            f"{spec}: is no folder; give that of an exported captioner (momentseek export), or URL#MODEL of an endpoint"
        )
    found = ExportedCaptioner(Path(spec).expanduser())
    found.check_vectors(library.clip_seconds, library.catalog.encoder("vision"))
    return found
