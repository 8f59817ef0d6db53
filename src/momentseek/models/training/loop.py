"""The loop that trains every model.

The random draws of a step (pairs, dropout, negatives) depend only on the seed and the step's number. A checkpoint holds
the weights, the optimiser's state and the loop's counters. Training that was killed therefore continues from its last
checkpoint and reaches the same weights as without the interruption, bit for bit on a CPU.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.core.workers import BackgroundIterator
from momentseek.models.batch import Batch
from momentseek.models.captioner import CaptionBatch
from momentseek.models.features.data import Data
from momentseek.models.inference.encode import device_of
from momentseek.models.model import CorpusModel
from momentseek.models.training.batches import Batches
from momentseek.models.training.checkpoint import save_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import (
    BEST_CHECKPOINT,
    LAST_CHECKPOINT,
    TrainingCallback,
    TrainingOutcome,
    TrainingProgress,
)
from momentseek.models.training.negatives import read_lists, score_hard_negatives
from momentseek.models.training.optimisers import (
    clip_gradients,
    optimiser_tensors,
    rate_factor,
    restore_optimiser,
    set_rates,
    spare_frozen,
)
from momentseek.models.training.prediction import write_report
from momentseek.models.training.processes import Interrupts, Processes, TrainingInterrupted, join_processes
from momentseek.models.training.setup import TrainingSetup, prepare_training
from momentseek.models.training.trackers import TrackedRun, Trackers

STEPS_PER_LOG_ROW = 50
"""Steps between two rows of the log, unless a validation comes first."""


@dataclass
class LoopState:
    """The counters of the training loop; a checkpoint holds them all."""

    step: int = 0
    best: float | None = None
    best_step: int | None = None
    best_stage: int = 0
    without_gain: int = 0
    validated: int = 0
    value: float | None = None
    seconds: float = 0.0
    begun: dict[str, Any] | None = None
    """The checkpoint that training began from: its path, model, step, value and a digest of its weights."""


def train(
    config: TrainConfig,
    data: Data,
    out: Path,
    resume: bool = False,
    *,
    progress: TrainingCallback | None = None,
    force: bool = False,
) -> TrainingOutcome:
    """Train a model on ``data`` in the folder ``out``; ``resume`` continues the training run in that folder.

    It writes config.toml, log.csv, best.safetensors, last.safetensors and report.json, and the files of trackers.
    """
    with join_processes() as processes:
        prepared = prepare_training(config, data, out, resume, processes, force)
        with Interrupts() as interrupts:
            return TrainingLoop(prepared, out, processes, interrupts, progress).run()


class TrainingLoop:
    """Trains one model: steps, validations, checkpoints and the report at the end."""

    def __init__(
        self,
        prepared: TrainingSetup,
        out: Path,
        processes: Processes,
        interrupts: Interrupts,
        progress: TrainingCallback | None,
    ) -> None:
        self.config, self.data, self.model = prepared.config, prepared.data, prepared.model
        self.training = self.config.training
        self.optimiser, self.order, self.batches = prepared.optimiser, prepared.order, prepared.batches
        self.validation, self.fingerprint = prepared.validation, prepared.fingerprint
        self.out, self.processes, self.interrupts, self.progress = out, processes, interrupts, progress
        self.per_epoch = math.ceil(self.order.per_epoch / processes.count)
        self.steps = self.training.steps or max(1, math.ceil(self.training.epochs * self.per_epoch))
        self.every = self.training.validate_every or max(1, round(self.per_epoch / self.training.validations))
        self.scorer = prepared.scorer
        self.counts = LoopState(begun=prepared.begun)
        if prepared.resumed is not None:
            restore_optimiser(self.optimiser, dict(prepared.resumed.optimiser))
            self.counts = LoopState(**prepared.resumed.state)
        followed = TrackedRun(out, self.config.table(), self.counts.step)
        self.trackers = Trackers(followed, self.training.trackers) if processes.first else None
        self._sums: dict[str, float] = {}
        self._summed = 0
        self._began = time.monotonic() - self.counts.seconds
        self._session = (time.monotonic(), self.counts.step)
        self._saved = time.monotonic()
        self._kept: dict[str, Any] | None = None
        self._pairs = 0

    def run(self) -> TrainingOutcome:
        """Train to the end, or until interrupted."""
        outcome: TrainingOutcome | None = None
        try:
            outcome = self._run()
        finally:
            if self.trackers is not None:
                self.trackers.finish(outcome)
        return outcome

    def _run(self) -> TrainingOutcome:
        self.model.train()
        try:
            self._score()
            stopped = self._steps()
        except TrainingInterrupted:
            stopped = "interrupted"
        self._save()
        report: dict[str, Any] = {}
        if stopped != "interrupted" and self.processes.first:
            try:
                report = write_report(self.out, self.validation, asdict(self.counts), stopped, self.interrupts.check)
            except TrainingInterrupted:
                stopped = "interrupted"  # all steps are saved: continuing only evaluates
        counts = self.counts
        return TrainingOutcome(
            self.out, counts.step, self.steps, counts.best, counts.best_step, stopped, counts.seconds, report
        )

    def _score(self) -> None:
        """Score training queries and videos with the model that training began from, if hard negatives are drawn.

        For a model that draws wrong videos from a first stage's lists, read these lists instead.
        """

        def report_scoring(done: int, total: int) -> None:
            self.interrupts.check()
            self._report_progress("scoring", done / total)

        if not isinstance(self.batches, Batches) or not isinstance(self.model, CorpusModel):
            return  # captioners learn without negatives
        if self.scorer is None:
            self.batches.hard = read_lists(self.config, self.model, self.data, self.batches.pairs, report_scoring)
            return
        trained = self.scorer.to(device_of(self.model))
        split = self.data.split(self.config.data.train)
        pairs = self.batches.pairs
        self.batches.hard = score_hard_negatives(trained, self.data, split, pairs, self.training, report_scoring)
        self.scorer = None

    def _steps(self) -> str:
        todo = map(self.batch_of, range(self.counts.step, self.steps))
        with BackgroundIterator(todo, depth=self.training.prefetch) as ready:
            while True:
                if self._due() and self.counts.validated != self.counts.step:
                    self._validate()
                if self.counts.step >= self.steps:
                    return "done"
                if self.training.patience is not None and self.counts.without_gain >= self.training.patience:
                    return "patience"
                if self.processes.any(self.interrupts.requested):
                    raise TrainingInterrupted
                if self.processes.any(self.processes.first and self._out_of_time()):
                    return "time"
                self._step(next(ready))

    def batch_of(self, step: int) -> Batch | CaptionBatch:
        """The batch of a step for this process; processes take the epoch's batches in turn."""
        epoch, index = divmod(step, self.per_epoch)
        mine = (index * self.processes.count + self.processes.rank) % self.order.per_epoch
        rng = np.random.default_rng([self.training.seed, step, self.processes.rank, 2])
        return self.batches.batch(self.order.batch_at(epoch, mine), rng)

    def _step(self, batch: Batch | CaptionBatch) -> None:
        step, training = self.counts.step, self.training
        rng = torch.Generator().manual_seed(step_seed(training.seed, step, self.processes.rank, 1))
        _seed_device(device_of(self.model), step_seed(training.seed, step, self.processes.rank, 0))
        rate = training.lr * rate_factor(training.schedule, step, self.steps, training.warmup)
        rate *= training.milestone_factor(step / self.per_epoch)
        epoch = step // self.per_epoch
        self.model.phase = self.model.phase_at(step, epoch)
        set_rates(self.optimiser, rate, self.model.phase)
        self.optimiser.zero_grad(set_to_none=True)
        terms = self.model.loss(batch.to(device_of(self.model)), epoch, rng)
        loss = torch.stack(list(terms.values())).sum()
        if not bool(torch.isfinite(loss)):
            raise self._not_finite(terms)
        loss.backward()  # type: ignore[no-untyped-call]
        self.processes.average_gradients(self.model)
        spare_frozen(self.optimiser, self.model.phase)
        clip_gradients(self.model, training.clip, training.clip_by)
        self.optimiser.step()
        self.counts.step += 1
        self._note(terms, len(batch), rate)

    def _not_finite(self, terms: dict[str, Tensor]) -> MomentseekError:
        shown = ", ".join(f"{name} {float(value.detach()):g}" for name, value in terms.items())
        kept = f"; {self.out / LAST_CHECKPOINT} is from before" if (self.out / LAST_CHECKPOINT).is_file() else ""
        return MomentseekError(
            f"the loss is NaN or infinite at step {self.counts.step:,} ({shown}); lower the learning rate "
            f"(lr={self.training.lr / 10:g}) or check the features{kept}"
        )

    def _note(self, terms: dict[str, Tensor], pairs: int, rate: float) -> None:
        counts = self.counts
        for name, value in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value.detach())
        self._summed += 1
        self._pairs += pairs
        counts.seconds = time.monotonic() - self._began
        self._report_progress("training")
        if self._due() or counts.step % STEPS_PER_LOG_ROW == 0:
            row = {f"loss/{name}": value for name, value in self._means().items()}
            row = {"epoch": counts.step / self.per_epoch, "loss": sum(row.values()), **row, "lr": rate}
            if self.trackers is not None:
                self.trackers.log(counts.step, row | {"minutes": counts.seconds / 60})
            self._last_terms = self._means()
            self._sums, self._summed = {}, 0
        if time.monotonic() - self._saved > self.training.save_minutes * 60:
            self._save()

    def _validate(self) -> None:
        self._report_progress("validating")
        value = math.nan
        if self.processes.first:
            value = self.validation.value(self.model, self.interrupts.check)
        value = self.processes.agree(value)
        counts = self.counts
        counts.validated, counts.value = counts.step, value
        counts.seconds = time.monotonic() - self._began
        stage = self.model.phase_at(counts.step - 1, (counts.step - 1) // self.per_epoch).stage
        if counts.best is None or stage > counts.best_stage or value > counts.best:
            counts.best, counts.best_step, counts.best_stage, counts.without_gain = value, counts.step, stage, 0
            if self.processes.first:
                self._write(BEST_CHECKPOINT, value)
        else:
            counts.without_gain += 1
        if self.trackers is not None:
            self.trackers.log(counts.step, {f"val/{self.training.measure}": value})
        self._save()
        self._report_progress("validated")

    def _due(self) -> bool:
        return self.counts.step > 0 and (self.counts.step % self.every == 0 or self.counts.step >= self.steps)

    def _out_of_time(self) -> bool:
        limit = self.training.minutes
        return limit is not None and time.monotonic() - self._began > limit * 60

    def _save(self) -> None:
        counts = asdict(self.counts)
        if self.processes.first and counts != self._kept:  # unchanged counters would write the same file
            self._write(LAST_CHECKPOINT, self.counts.value, optimiser_tensors(self.optimiser), counts)
            self._kept = counts
        self._saved = time.monotonic()

    def _write(self, name: str, value: float | None, *memory: Any) -> None:
        save_checkpoint(self.out / name, self.model, self.config, self.fingerprint, self.counts.step, value, *memory)

    def _means(self) -> dict[str, float]:
        return {name: value / max(self._summed, 1) for name, value in self._sums.items()} or self._last_terms

    _last_terms: dict[str, float] = {}  # noqa: RUF012

    def _report_progress(self, doing: str, share: float = math.nan) -> None:
        if self.progress is None or not self.processes.first:
            return
        began, first = self._session
        spent, done = time.monotonic() - began, self.counts.step - first
        left = (self.steps - self.counts.step) * spent / done if done else math.nan
        if self.training.minutes is not None:
            left = min(left, max(0.0, self.training.minutes * 60 - self.counts.seconds))
        counts, rate = self.counts, self._pairs * self.processes.count / spent if spent else 0.0
        self.progress(
            TrainingProgress(
                step=counts.step,
                steps=self.steps,
                epoch=counts.step / self.per_epoch,
                terms=self._means(),
                value=counts.value,
                best=counts.best,
                pairs_per_second=rate,
                seconds_left=left,
                doing=doing,
                share=share,
                measure=self.training.measure,
            )
        )


def step_seed(*parts: int) -> int:
    """A seed derived from several numbers, such as the run's seed, the step and the purpose."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _seed_device(device: torch.device, seed: int) -> None:
    """Seed the device's generator; on a CPU without ``torch.manual_seed``, which queues a call per absent device."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
