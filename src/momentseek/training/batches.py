"""What a training step needs of the data; ``models.inputs`` prepares features, for training and searching alike."""

from __future__ import annotations

from momentseek.errors import MomentseekError
from momentseek.features.data import Data
from momentseek.models.inputs import clips_of, tables, words_of
from momentseek.models.model import Dims, ModelConfig

__all__ = ["clips_of", "dims_of", "words_of"]


def dims_of(data: Data, config: ModelConfig, split: str | None = None) -> Dims:
    """Columns of the features as ``clips_of`` and ``words_of`` make them.

    The two columns of the endpoint feature are counted, and a modality the config leaves out is None.
    """
    columns = data.dims_of(split) if split else data.dims
    video, subtitle = tables(data, config)
    more = 2 if config.endpoints else 0
    if video is None and subtitle is None:
        raise MomentseekError(f"{data.path}: has no features for the model; set modalities")
    return Dims(
        columns.query,
        columns.video + more if video is not None and columns.video else None,
        columns.subtitle + more if subtitle is not None and columns.subtitle else None,
    )
