"""The modalities of a model by name, checked, and their part of a batch."""

from __future__ import annotations

from torch import Tensor

from momentseek.errors import MomentseekError
from momentseek.models.batch import Clips
from momentseek.models.model import ModelConfig

MODALITIES = ("video", "subtitle")


def streams(config: ModelConfig) -> tuple[str, ...]:
    """The modalities a config asks for, video first.

    >>> streams(ModelConfig(modalities="subtitle+video"))
    ('video', 'subtitle')
    """
    wanted = config.modalities.split("+")
    if set(wanted) - set(MODALITIES):
        raise MomentseekError(f"modalities must be video, subtitle or video+subtitle, not {config.modalities!r}")
    return tuple(name for name in MODALITIES if name in wanted)


def features(clips: Clips, stream: str) -> Tensor:
    """A modality's features in a batch."""
    found = clips.video if stream == "video" else clips.subtitle
    if found is None:
        raise MomentseekError(f"the batch has no {stream} features, and the model needs them; set modalities")
    return found
