"""The folder of a training run: the names of its files, the settings it was begun with, and making it ready."""

from __future__ import annotations

import shutil
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.toml import read_toml
from momentseek.training.config import TrainConfig

CONFIG_FILE = "config.toml"
LAST_CHECKPOINT = "last.safetensors"
BEST_CHECKPOINT = "best.safetensors"
REPORT_FILE = "report.json"
LOG_FILE = "log.csv"
MIN_FREE_BYTES = 100e6
"""Free bytes that the disk of a training run must have at the start."""


def find_checkpoint(path: Path) -> Path:
    """The checkpoint that a path means: the file itself, or the best (else the last) of a training run's folder."""
    if path.is_dir():
        for name in (BEST_CHECKPOINT, LAST_CHECKPOINT):
            if (path / name).is_file():
                return path / name
        raise MomentseekError(f"{path}: holds no checkpoint ({BEST_CHECKPOINT}); is it the folder of a training run?")
    if not path.is_file():
        raise MomentseekError(
            f"{path}: there is no such checkpoint; give a .safetensors file or the folder of a training run"
        )
    return path


def is_checkpoint(path: Path) -> bool:
    """Whether a path names a checkpoint (a training run's folder, or a .safetensors file) rather than a run's file."""
    return path.is_dir() or path.suffix == ".safetensors"


def saved_config(folder: Path) -> TrainConfig:
    """The settings that a training run was begun with, read from its folder."""
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise MomentseekError(f"{folder}: holds no training run ({CONFIG_FILE}); check the folder")
    return TrainConfig.of(read_toml(file), str(file))


def prepare_folder(folder: Path, config: TrainConfig, resume: bool, force: bool) -> None:
    """Make the folder of a training run and write its config.toml; ``force`` deletes an earlier training run there."""
    names = (CONFIG_FILE, LAST_CHECKPOINT, BEST_CHECKPOINT, REPORT_FILE, LOG_FILE)
    earlier = [*(folder / name for name in names), *folder.glob("events.out.tfevents.*")]
    if not resume and any(path.exists() for path in earlier):
        if not force:
            raise MomentseekError(
                f"{folder}: holds a training run already; continue it (`resume`), choose another folder, or overwrite "
                "it (force=True)"
            )
        for path in earlier:
            path.unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as e:
        raise MomentseekError(f"{folder}: cannot be made ({e.strerror}); choose another folder") from None
    if free < MIN_FREE_BYTES:
        raise MomentseekError(f"{folder}: the disk has only {free / 1e6:.0f} MB left; free some, or choose another")
    (folder / REPORT_FILE).unlink(missing_ok=True)
    write_bytes(folder / CONFIG_FILE, config.text().encode())
