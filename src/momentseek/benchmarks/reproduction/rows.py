"""The training tasks of a table: one per row and seed, in a folder named after its settings and data.

The folder's name has a fingerprint of everything that determines the weights: settings, data, and the rows it continues
from. So tables share common rows, finished rows are not trained again, and different settings never share a folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from momentseek import __version__
from momentseek.benchmarks.baselines import BASELINES, BaselineSettings
from momentseek.benchmarks.reproduction.paper_table import CAPTIONS, PaperTable, TableColumn, TableRow
from momentseek.core.atomic import make_folder, write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import to_plain
from momentseek.measuring.evaluate import HIGHLIGHTS, evaluate
from momentseek.measuring.measures import parse_all
from momentseek.measuring.measures.captions.meteor import what_meteor_lacks
from momentseek.measuring.result import labels_of
from momentseek.models.features.data import Data
from momentseek.models.tower_files import DEFAULT_TOWER
from momentseek.models.training.captions import describe_split, prepare_captions
from momentseek.models.training.checkpoint import SavedTraining, load_captioner, load_checkpoint
from momentseek.models.training.config import TrainConfig, TrainingSettings, apply_settings
from momentseek.models.training.folder import find_checkpoint, is_checkpoint
from momentseek.models.training.prediction import predict_split
from momentseek.models.training.presets import configure, preset_table
from momentseek.models.training.setup import check_training, resolve_config, used_splits

WITHOUT_EFFECT = ("device", "threads", "cache_mb", "prefetch", "save_minutes")
"""Settings that do not affect the trained weights."""


@dataclass(frozen=True)
class Budget:
    """How much is trained: seeds, steps (None: from the table or preset), and settings that override all others."""

    seeds: int = 3
    steps: int | None = None
    settings: Sequence[str] = ()


@dataclass(frozen=True)
class RowTask:
    """One row with one seed, to be trained in ``folder`` or already trained there."""

    row: TableRow
    seed: int
    folder: Path
    fingerprint: str
    config: TrainConfig | None = None
    needs: Mapping[str, RowTask] = field(default_factory=dict)
    """The tasks this one continues from, by row name."""

    @property
    def checkpoint(self) -> Path:
        """The folder of the training run used for this row."""
        return self.needs[self.row.of].checkpoint if self.row.of else self.folder


def row_tasks(
    table: PaperTable,
    rows: Sequence[TableRow],
    data: Data,
    out: Path,
    budget: Budget,
    finished: Mapping[str, Sequence[Path]],
) -> dict[str, list[RowTask]]:
    """Return the tasks of every row, seed by seed, with all settings checked; baselines have none."""
    found: dict[str, list[RowTask]] = {}
    for row in rows:
        if row.baseline:
            continue
        if given := finished.get(row.name):
            check_given(table, row, given, training_config(table, row, data.simulated, data.location, budget), data)
            found[row.name] = [RowTask(row, seed, run, "given") for seed, run in enumerate(given)]
            continue
        count = min([budget.seeds, *(len(found[need]) for need in row.needs)])
        needs = [{need: found[need][seed] for need in row.needs} for seed in range(count)]
        found[row.name] = [_task(table, row, data, out, budget, seed, needs[seed]) for seed in range(count)]
    return found


def check_tasks(tasks: Mapping[str, Sequence[RowTask]], data: Data) -> None:
    """Check names of settings, features, lengths and splits of all tasks before anything is trained."""
    for row in tasks.values():
        first = row[0]
        if first.config is not None:
            try:
                if first.config.describes:
                    prepare_captions(first.config, data, used_splits(first.config))
                else:
                    check_training(first.config, data, stages=not first.needs)
            except MomentseekError as e:
                raise MomentseekError(f"row {first.row.name}: {e}") from None


def training_config(table: PaperTable, row: TableRow, simulated: bool, path: str, budget: Budget) -> TrainConfig:
    """Return the settings of a row on real or simulated data, without its seed and the rows it continues from."""
    simulation = table.simulation
    simulated = simulated and bool(simulation)  # a user's table may have simulated data without such a section
    name = simulation.get("preset", "simulation") if simulated else (row.preset or table.preset)
    settings: dict[str, Any] = {**table.settings, **row.settings}
    if simulated:
        groups = simulation.get("settings", {})
        for group in ("all", *row.use):
            settings |= groups.get(group, {})
        settings |= row.simulated
    steps = budget.steps or (simulation.get("steps") if simulated else None)
    if steps is not None and "training.steps" not in settings:
        settings["training.steps"] = steps = max(1, round(steps * row.share))
        settings["training.validate_every"] = max(1, steps // int(simulation.get("validations", 10)))
    settings |= {"data.test": None, "training.report": []}
    own = {} if table.task == CAPTIONS else {"training": {"task": table.task, "measure": table.columns[0].measure}}
    sections = preset_table(name) if name else own
    where = table.place("rows", row.name) if table.file else f"table {table.name}, row {row.name}"
    try:
        config = configure(sections, row.model, settings, where)
    except MomentseekError as e:
        raise e if str(e).startswith(where) else MomentseekError(f"{where}: {e}") from None
    config = config.with_changes(budget.settings) if budget.settings else config
    return replace(config, data=replace(config.data, path=path))


LENGTHS = ("validate_every", "validations", "minutes", "steps", "epochs")
NOT_COMPARED = (*WITHOUT_EFFECT, *LENGTHS, "name", "seed", "report")
"""Settings that do not count as a difference from a paper, or are reported in another way."""


def setting_differences(ours: TrainConfig, other: TrainConfig) -> list[str]:
    """Describe the differences between two configs of a model, such as ``hidden 32 (512)``: ours, then the other's."""
    mine, theirs = ours.table(), other.table()
    if theirs["model"].get("tower") == "auto":  # the paper's, whether it is downloaded here or not
        theirs["model"]["tower"] = DEFAULT_TOWER
    found = [
        f"{name} {_setting_text(value)} ({_setting_text(theirs[section][name])})"
        for section in ("model", "training")
        for name, value in mine[section].items()
        if name not in NOT_COMPARED and value != theirs[section].get(name, value)
    ]
    lengths = [f"{t.steps:,} steps" if t.steps else f"{t.epochs:g} epochs" for t in (ours.training, other.training)]
    return found + ([f"{lengths[0]} ({lengths[1]})"] if lengths[0] != lengths[1] else [])


def _setting_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) if value != "" else "none"


def paper_differences(table: PaperTable, tasks: Mapping[str, Sequence[RowTask]]) -> str:
    """Describe every setting of the rows that is not the paper's, with the paper's in brackets; empty if none."""
    rows: dict[str, list[str]] = {}
    unknown: list[str] = []
    searched: dict[str, list[str]] = {}
    for trained in tasks.values():
        row = trained[0].row
        if row.of:
            if row.first != (printed := table.rows[row.name].first):
                searched.setdefault(f"videos {row.first} ({printed})", []).append(row.label)
            continue
        if not (row.preset or table.preset):
            unknown.append(row.label)
            continue
        config = trained[0].config or _saved_run(table, trained[0].folder).config
        found = setting_differences(config, training_config(table, row, False, "", Budget()))
        if found:
            rows[row.label] = found
    shared = [d for d in next(iter(rows.values()), []) if len(rows) > 1 and all(d in r for r in rows.values())]
    parts = [f"all rows: {', '.join(shared)}"] if shared else []
    own = {label: [d for d in found if d not in shared] for label, found in rows.items()}
    parts += [f"{label}: {', '.join(found)}" for label, found in own.items() if found]
    parts += [f"{', '.join(labels)}: {depth}" for depth, labels in searched.items()]
    parts += [f"{', '.join(unknown)}: the paper prints no settings"] if unknown else []
    return "; ".join(parts)


def _saved_run(table: PaperTable, run: Path) -> SavedTraining:
    return (load_captioner if table.task == CAPTIONS else load_checkpoint)(find_checkpoint(run))


def check_given(table: PaperTable, row: TableRow, runs: Sequence[Path], config: TrainConfig, data: Data) -> None:
    """Raise an error for finished training runs of another model, row, split or data.

    Compared are the settings that any row of this model writes, such as ``modalities``. Other settings may differ; the
    caption says which are not the paper's.
    """
    for run in runs:
        saved = _saved_run(table, run)
        for what, found, wanted in _row_marks(table, row, config, saved):
            if found != wanted:
                texts = _setting_text(found), _setting_text(wanted)
                raise MomentseekError(f"row {row.name}: {run} has {what} {texts[0]}, not {texts[1]}; give another run")
        splits = [config.data.train, saved.config.data.validate]
        if not saved.imported and data.fingerprint_of(splits) != saved.fingerprint:
            raise MomentseekError(f"row {row.name}: {run} was trained on other data than {data.path}; give another run")


def _row_marks(table: PaperTable, row: TableRow, config: TrainConfig, saved: SavedTraining) -> Iterator[Sequence[Any]]:
    """Yield what tells a row from others: its name, the finished run's value, and the row's."""
    yield "the model", saved.config.model, config.model
    yield "the training split", saved.config.data.train, config.data.train
    found, wanted = saved.config.table(), config.table()
    written = {name: None for other in table.rows.values() if other.model == row.model for name in other.settings}
    for section in ("model", "training") if not saved.imported else ("model",):
        for name in apply_settings({"model": {"name": row.model}}, written).get(section, {}):
            if name in wanted[section] and name not in (*NOT_COMPARED, "lr", "measure"):
                yield name, found[section].get(name), wanted[section][name]
    stages = ("begin", "first_stage") if table.task == "VCMR" else ("begin",)  # only a corpus needs a first stage
    for stage in stages if not saved.imported else ():
        source, needed = getattr(saved.config.data, stage) or "", getattr(row, stage) or ""
        if not source or not needed:
            yield stage, source, needed
        elif is_checkpoint(Path(source)):
            yield stage, load_checkpoint(source).config.model, table.rows[needed].model


def _task(
    table: PaperTable, row: TableRow, data: Data, out: Path, budget: Budget, number: int, needs: Mapping[str, RowTask]
) -> RowTask:
    if row.of:
        source, groups = needs[row.of], table.simulation.get("settings", {}) if data.simulated else {}
        depths = [groups[name]["videos"] for name in row.use if "videos" in groups.get(name, {})]
        row = replace(row, first=[row.first, *depths][-1])
        return RowTask(row, source.seed, source.folder, source.fingerprint, needs=needs)
    config = training_config(table, row, data.simulated, data.location, budget)
    seed = config.training.seed + number
    stages = {"begin": row.begin, "first_stage": row.first_stage}
    paths = {key: str(needs[name].checkpoint) for key, name in stages.items() if name}
    config = replace(config, training=replace(config.training, seed=seed), data=replace(config.data, **paths))
    print_ = _fingerprint(config, data, needs)
    return RowTask(row, seed, out / "runs" / f"{row.model}-{seed}-{print_}", print_, config, needs)


def _fingerprint(config: TrainConfig, data: Data, needs: Mapping[str, RowTask]) -> str:
    sections = resolve_config(config).table()
    for name in WITHOUT_EFFECT:
        sections["training"].pop(name)
    if config.training.betas == TrainingSettings.betas:  # folders keep the names they had without this setting
        sections["training"].pop("betas")
    for name in ("path", "begin", "first_stage", "lists"):
        sections["data"].pop(name)
    stages = {name: (task.fingerprint, str(task.folder) if task.config is None else "") for name, task in needs.items()}
    seen = json.dumps([sections, data.fingerprint_of(used_splits(config)), stages], sort_keys=True)
    return hashlib.sha256(seen.encode()).hexdigest()[:10]


@dataclass(frozen=True)
class RowScores:
    """The values of every column's queries, and the search time of the first column's split in seconds."""

    columns: list[FloatArray]
    seconds: float | None
    parts: list[FloatArray | None]
    """For columns whose figure is not a mean (BLEU, METEOR), what each caption adds to it; None for the others."""


def task_scores(table: PaperTable, task: RowTask, data: Data, out: Path) -> RowScores:
    """Compute the values of every column's queries, for a trained row with one seed."""
    row = task.row
    videos = find_checkpoint(task.needs[row.videos].checkpoint) if row.videos else None
    checkpoint = find_checkpoint(task.checkpoint)
    files = [_digest(checkpoint), _digest(videos) if videos else "", row.first]

    def predict(split: str, depth: int) -> Run | CaptionTable:
        if table.task == CAPTIONS:
            return describe_split(checkpoint, data, split).captions
        return predict_split(checkpoint, data, split, task=table.task, top=depth, videos=videos, first=row.first).run

    return _column_values(table, data, out, predict, files)


def baseline_scores(table: PaperTable, row: TableRow, seed: int, train: str, data: Data, out: Path) -> RowScores:
    """Compute the same for a blind baseline with one seed."""
    name = row.baseline or ""
    if name not in BASELINES:
        raise MomentseekError(f"row {row.name}: there is no baseline {name!r}; {did_you_mean(name, BASELINES)}")

    def predict(split: str, depth: int) -> Run:
        asked = data.split(split)
        corpus = {v: asked.durations[v] for v in asked.corpus if table.task != "SVMR" and asked.truth.pools is None}
        settings = BaselineSettings(seed=seed, top=depth, corpus=corpus, distinct=table.task == "VR")
        return BASELINES[name].predict(data.split(train).timed_truth, asked.timed_truth, settings)

    return _column_values(table, data, out, predict, [name, seed, train, data.fingerprint_of([train]), "corpus"])


def _column_values(table: PaperTable, data: Data, out: Path, predict: Any, files: Sequence[Any]) -> RowScores:
    values: dict[str, dict[str, list[float | None]]] = {}
    parts: dict[str, dict[str, list[list[float]]]] = {}
    took: list[float | None] = []
    lacking = table.task == CAPTIONS and what_meteor_lacks() is not None
    for split in dict.fromkeys(column.split for column in table.columns):
        names = list(dict.fromkeys(c.measure for c in table.columns if c.split == split))
        names = [name for name in names if not (lacking and name == "METEOR")]
        asked = [table.task, table.protocol, split, names, data.fingerprint_of([split]), __version__, *files]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
        file = out / "scores" / f"{digest}.json"
        known, seconds, added = _read(file)
        if known is None:
            # At least ten predictions, so that suppression has something to choose from.
            began = time.perf_counter()
            run = predict(split, max([10, *(measure.max_rank or 0 for measure in parse_all(names))]))
            seconds = time.perf_counter() - began
            rated = isinstance(run, Run) and run.saliency is not None  # without it, highlights cannot be measured
            measured = [n for n in names if rated or parse_all([n])[0].NAME not in HIGHLIGHTS]
            result = evaluate(run, column_truth(table, data, split), measured, protocol=table.protocol, missing="zero")
            known = dict(zip(measured, to_plain(result.values.T), strict=True))
            own = dict(zip(measured, result.names, strict=True))
            added = {name: result.parts[own[name]].tolist() for name in measured if own[name] in result.parts}
            make_folder(file.parent)
            found = {"asked": asked, "seconds": seconds, "values": known, "parts": added}
            write_bytes(file, (json.dumps(found) + "\n").encode())
        values[split], parts[split] = known, added
        took.append(seconds)
    return RowScores(
        [_of_group(c, values[c.split].get(c.measure), data, table) for c in table.columns],
        took[0],
        [np.array(parts[c.split][c.measure]) if c.measure in parts[c.split] else None for c in table.columns],
    )


def column_truth(table: PaperTable, data: Data, split: str) -> Judgements | CaptionTable:
    """Return what the answers of a split are compared with; a missing split raises an error."""
    return data.captions(split).table if table.task == CAPTIONS else data.split(split).timed_truth


def _of_group(column: TableColumn, values: Sequence[float | None] | None, data: Data, table: PaperTable) -> FloatArray:
    """Return the values of a column's group of queries; NaN for other queries, and for all if not measured."""
    if values is None:
        return np.full(len(column_truth(table, data, column.split)), math.nan)
    found = np.array([math.nan if value is None else value for value in values])
    for name, label in column.group.items():
        found = np.where(labels_of(data.split(column.split).truth, name) == label, found, math.nan)
    return found


def _read(file: Path) -> tuple[dict[str, list[float | None]] | None, float | None, dict[str, list[list[float]]]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        values: dict[str, list[float | None]] = found["values"]
        seconds, parts = found.get("seconds"), dict(found.get("parts", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # computing again does no harm
        return None, None, {}
    return values, seconds if isinstance(seconds, float) else None, parts


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
