"""Train in several processes that share gradients, and handle signals that stop training.

``torchrun`` starts the processes and sets RANK and WORLD_SIZE. Each process takes every n-th batch. The gradients are
averaged before each step, so all processes hold the same weights. Process 0 validates, logs and writes, while the
others wait for its decisions. Negatives come from a process's own batch.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from momentseek.core.errors import MomentseekError
from momentseek.models.training.config import TrainConfig

MAX_PROCESS_WAIT = timedelta(hours=6)
"""How long the other processes wait while process 0 validates."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Processes:
    """The processes that train together: how many there are, and which of them this is."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def average_gradients(self, model: nn.Module) -> None:
        """Average the gradients of all processes; a parameter without a gradient in one process counts as 0 there."""
        if self.count == 1:
            return
        params = [p for p in model.parameters() if p.requires_grad]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in params])
        dist.all_reduce(flat)
        flat /= self.count
        at = 0
        for p in params:
            p.grad = flat[at : at + p.numel()].view_as(p).clone()
            at += p.numel()

    def share_weights(self, model: nn.Module) -> None:
        """Give every process the weights of process 0."""
        if self.count > 1:
            for tensor in model.state_dict().values():
                dist.broadcast(tensor, 0)

    def agree(self, value: float) -> float:
        """Return the value of process 0 in every process."""
        if self.count == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=torch_device("auto"))
        dist.broadcast(shared, 0)
        return float(shared.item())

    def any(self, mine: bool) -> bool:
        """Whether ``mine`` is true in any process."""
        if self.count == 1:
            return mine
        votes = torch.tensor([1.0 if mine else 0.0], device=torch_device("auto"))
        dist.all_reduce(votes)
        return bool(votes.item())


@contextmanager
def join_processes() -> Iterator[Processes]:
    """Join the other processes if ``torchrun`` (or a similar launcher) started several."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    rank = int(os.environ.get("RANK", "0"))
    try:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=MAX_PROCESS_WAIT)
    except (RuntimeError, ValueError) as e:
        raise MomentseekError(f"the {count} processes cannot find each other ({e}); start them with torchrun") from None
    try:
        yield Processes(rank, count)
    finally:
        dist.destroy_process_group()


def torch_device(name: str) -> torch.device:
    """The device called ``name``; ``auto`` is this process's GPU if there is one, else the CPU."""
    if name == "auto":
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(name)
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError) as e:
        raise MomentseekError(f"device {name!r} cannot be used ({str(e).splitlines()[0]}); set device=cpu") from None
    return found


def thread_count(config: TrainConfig | None = None) -> int:
    """The number of threads of a training run in this process: the config's, else PyTorch's default."""
    named = config.training.threads if config is not None else None
    return named if named is not None else torch.get_num_threads()


def use_threads(count: int) -> None:
    """Set the number of threads that PyTorch uses in this process."""
    torch.set_num_threads(count)


class TrainingInterrupted(Exception):
    """Raised to stop training after a signal asked for it."""


class Interrupts:
    """A context in which Ctrl-C (or SIGTERM) only sets ``requested``; a second one stops at once."""

    def __init__(self) -> None:
        self.requested = False
        self._old: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._old = {s: signal.signal(s, self._note) for s in STOP_SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for s, handler in self._old.items():
            signal.signal(s, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def check(self, *_: object) -> None:
        """Raise ``TrainingInterrupted`` if a signal arrived; can be passed as a progress callback."""
        if self.requested:
            raise TrainingInterrupted
