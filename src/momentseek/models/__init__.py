"""Models that can be trained, one file each, on shared layers and losses. Needs ``momentseek[train]``."""

from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words, take_rows
from momentseek.models.model import CorpusModel, Dims, ModelConfig
from momentseek.models.registry import MODELS, ModelSpec, build, build_config, register

__all__ = [
    "MODELS",
    "Batch",
    "Clips",
    "CorpusModel",
    "Dims",
    "Encodings",
    "ModelConfig",
    "ModelSpec",
    "BatchPairs",
    "Words",
    "build",
    "build_config",
    "register",
    "take_rows",
]
