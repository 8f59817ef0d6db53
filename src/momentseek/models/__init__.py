"""Trained models behind the search; one file each, on shared layers and losses. Needs ``momentseek[train]``."""

from momentseek.models import bet as bet
from momentseek.models import cal as cal
from momentseek.models import cet as cet
from momentseek.models import conquer as conquer
from momentseek.models import crocs as crocs
from momentseek.models import excl as excl
from momentseek.models import mcn as mcn
from momentseek.models import mdd as mdd
from momentseek.models import mee as mee
from momentseek.models import mmn as mmn
from momentseek.models import reloclnet as reloclnet
from momentseek.models import tan2d as tan2d
from momentseek.models import tef_only as tef_only
from momentseek.models import xml as xml
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words, take_rows
from momentseek.models.model import CorpusModel, Dims, ModelConfig
from momentseek.models.registry import MODELS, build, build_config, entry, register

__all__ = [
    "MODELS",
    "Batch",
    "Clips",
    "CorpusModel",
    "Dims",
    "Encodings",
    "ModelConfig",
    "BatchPairs",
    "Words",
    "build",
    "build_config",
    "entry",
    "register",
    "take_rows",
]
