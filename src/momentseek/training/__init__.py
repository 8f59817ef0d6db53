"""One loop that trains every model, with its settings, data and checkpoints. Needs ``momentseek[train]``."""

from momentseek.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from momentseek.training.config import DataSettings, TrainConfig, TrainingSettings
from momentseek.training.loop import train
from momentseek.training.prediction import Prediction, predict_split
from momentseek.training.progress import TrainingCallback, TrainingOutcome, TrainingProgress
from momentseek.training.seeds import SeedsOutcome
from momentseek.training.session import resume_training, train_model, train_model_with_seeds

__all__ = [
    "Checkpoint",
    "DataSettings",
    "Prediction",
    "SeedsOutcome",
    "TrainConfig",
    "TrainingCallback",
    "TrainingOutcome",
    "TrainingProgress",
    "TrainingSettings",
    "load_checkpoint",
    "predict_split",
    "resume_training",
    "save_checkpoint",
    "train",
    "train_model",
    "train_model_with_seeds",
]
