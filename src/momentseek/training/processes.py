"""Training by several processes that share gradients; started by ``torchrun``, which sets RANK and WORLD_SIZE.

Each process takes every n-th batch; the gradients are averaged before each step, so all hold the same weights. Process
0 validates, logs and writes; the others wait for what it decides. Negatives come from a process's own batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from momentseek.errors import MomentseekError

MAX_PROCESS_WAIT = timedelta(hours=6)
"""How long the other processes wait while process 0 validates."""


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
        """The mean of all processes' gradients, everywhere; a parameter one process did not use counts as 0 there."""
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
        """Process 0's value, everywhere."""
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
    """Join the other processes if ``torchrun`` (or the like) started several."""
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
