"""Runs that differ only in their seed: mean and standard deviation of what they score (TVR-Ranking, Table 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.evaluation.spread import SeedSpread, spread
from momentseek.features.data import Data
from momentseek.training import beginning, checkpoint
from momentseek.training.config import TrainConfig, Training
from momentseek.training.loop import train
from momentseek.training.progress import Outcome, Tell
from momentseek.training.report import read_report
from momentseek.training.setup import CONFIG, located, splits_of

ENDED = {"minutes": "time", "patience": "patience"}
"""Limits that may end a run before its last step, and how it says so."""


def spreads(reports: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, SeedSpread]]:
    """Split → measure → mean ± sd over the runs' reports."""
    values: dict[str, dict[str, list[float]]] = {}
    for report in reports:
        for split, scores in report["scores"].items():
            for name, value in scores.items():
                values.setdefault(split, {}).setdefault(name, []).append(value)
    return {split: {name: spread(v) for name, v in scores.items()} for split, scores in values.items()}


def train_or_read(
    config: TrainConfig, data: Data, out: Path, *, tell: Tell | None = None, force: bool = False
) -> tuple[Mapping[str, Any], Outcome | None]:
    """The report of a run: read if it is finished, gone on with if it was stopped, else begun.

    The outcome is None for a run that was finished before. A report without scores means that training was stopped.
    A run that was finished on other data or after other steps, or whose earlier stage was trained again, is refused;
    ``force`` begins every run anew.
    """
    report = read_report(out) if out.is_dir() and not force else None
    if report is not None and _same(report.get("config"), located(config).table()):
        if report.get("data", {}).get("fingerprint") != data.fingerprint_of(splits_of(config)):
            raise MomentseekError(
                f"{out}: its report is of other data than {data.path} has now; give the data it was trained on, or "
                "train in another folder"
            )
        _refuse_other_stages(report, located(config), out)
        return report, None
    if report is not None:
        _refuse_other_limits(report, config, out)
    outcome = train(config, data, out, resume=(out / CONFIG).is_file() and not force, tell=tell, force=force)
    return outcome.report, outcome


def train_seeds(
    config: TrainConfig,
    data: Data,
    out: Path,
    count: int,
    *,
    tell: Tell | None = None,
    begin: Callable[[int, Path], None] | None = None,
    force: bool = False,
) -> list[Mapping[str, Any]]:
    """Train with ``count`` seeds, from the config's on, each in its folder; what is finished is not trained again.

    Unless ``force`` asks for it. Returns the reports; fewer than asked for if training was stopped.
    """
    reports = []
    for seed in range(config.training.seed, config.training.seed + count):
        folder = out / f"seed-{seed}"
        if begin is not None:
            begin(seed, folder)
        seeded = replace(config, training=replace(config.training, seed=seed))
        report, _ = train_or_read(seeded, data, folder, tell=tell, force=force)
        if not report:
            break
        reports.append(report)
    return reports


def _refuse_other_limits(report: Mapping[str, Any], config: TrainConfig, out: Path) -> None:
    """Refuse to make another run of one that is finished: its rate fell with the steps it was given.

    One that ran out of time or patience goes on if it is given more.
    """
    try:
        was, wanted = TrainConfig.of(report["config"]).training, config.training
    except (KeyError, TypeError, AttributeError, MomentseekError):
        return  # of another version; what may change when a run goes on is checked there
    for name in ("steps", *ENDED):
        if _limit(was, name) == _limit(wanted, name):
            continue
        old, new = getattr(was, name), getattr(wanted, name)
        if name in ENDED and report.get("stopped") == ENDED[name] and (new is None or new > (old or 0)):
            continue
        raise MomentseekError(
            f"{out}: holds a finished run of {_limit(was, name)} and not {_limit(wanted, name)}; choose another "
            "folder, or train anew (train --force)"
        )


def _limit(training: Training, name: str) -> str:
    """How long a run is; epochs count where no steps are given."""
    value = getattr(training, name)
    if name == "steps" and not value:
        return f"epochs={training.epochs:g}"
    return f"no {name}" if value is None else f"{name}={value:g}"


def _refuse_other_stages(report: Mapping[str, Any], config: TrainConfig, out: Path) -> None:
    """Refuse a report if what it began from, or whose videos it searched, is another by now.

    What is no longer there cannot be another. Reports of earlier versions do not say what their first stage was.
    """
    begin, first = config.data.begin, report.get("first_stage")
    if begin is not None and Path(begin).exists():
        weights = beginning.digest(checkpoint.load(begin).model)
        beginning.refuse_other_weights(report.get("began_from"), weights, config, out)
    if isinstance(first, Mapping) and config.data.first_stage is not None and Path(config.data.first_stage).exists():
        source = Path(config.data.first_stage)
        if first.get("digest") != beginning.digest_of(source):
            raise MomentseekError(
                f"{source}: is another first stage than {out} was measured with; put it back, or train in another "
                "folder"
            )


def _same(one: Any, two: Mapping[str, Any]) -> bool:
    """Whether a report's config is this one, but for where the data lie: their fingerprint says which they are."""
    if not isinstance(one, Mapping) or not isinstance(one.get("data"), Mapping):
        return False
    try:
        filled = located(TrainConfig.of(one)).table()  # a setting that is newer than the report was at its default
    except MomentseekError:
        return False
    return {**filled, "data": {**filled["data"], "path": two["data"]["path"]}} == two
