"""One loop that trains every model, its settings, its data, its checkpoints. Needs ``momentseek[train]``."""

from momentseek.training.checkpoint import Checkpoint, load, save
from momentseek.training.config import Source, TrainConfig, Training
from momentseek.training.loop import train
from momentseek.training.progress import Outcome, Progress

__all__ = ["Checkpoint", "Outcome", "Progress", "Source", "TrainConfig", "Training", "load", "save", "train"]
