"""What a row scores: the values of every query, predicted and measured once, and kept.

A file of scores is named after all that decides it: the weights, the data, the measures and how they were asked for. An
interrupted table therefore goes on where it stopped, and a second time is read rather than computed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from momentseek import __version__
from momentseek.atomic import make_folder, write_bytes
from momentseek.baselines import BASELINES, BaselineSettings
from momentseek.errors import MomentseekError
from momentseek.evaluation import evaluate
from momentseek.evaluation.groups import labels_of
from momentseek.features.data import Data
from momentseek.measures import parse_all
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray
from momentseek.registry import did_you_mean
from momentseek.reproduction.paper_table import PaperTable, TableColumn, TableRow
from momentseek.reproduction.tasks import RowTask
from momentseek.training.folder import find_checkpoint
from momentseek.training.prediction import predict_split


def task_scores(table: PaperTable, task: RowTask, data: Data, out: Path) -> list[FloatArray]:
    """The values of every column's queries, for a trained row with one seed."""
    row = task.row
    videos = find_checkpoint(task.needs[row.videos].checkpoint) if row.videos else None
    checkpoint = find_checkpoint(task.checkpoint)
    files = [_digest(checkpoint), _digest(videos) if videos else "", row.first]

    def predict(split: str, depth: int) -> Run:
        return predict_split(checkpoint, data, split, task=table.task, top=depth, videos=videos, first=row.first).run

    return _column_values(table, data, out, predict, files)


def baseline_scores(table: PaperTable, row: TableRow, seed: int, train: str, data: Data, out: Path) -> list[FloatArray]:
    """The same of a blind baseline with one seed."""
    name = row.baseline or ""
    if name not in BASELINES:
        raise MomentseekError(f"row {row.name}: there is no baseline {name!r}; {did_you_mean(name, BASELINES)}")

    def predict(split: str, depth: int) -> Run:
        settings = BaselineSettings(seed=seed, top=depth)
        return BASELINES[name].predict(data.split(train).timed_truth, data.split(split).timed_truth, settings)

    return _column_values(table, data, out, predict, [name, seed, train, data.fingerprint_of([train])])


def _column_values(table: PaperTable, data: Data, out: Path, predict: Any, files: Sequence[Any]) -> list[FloatArray]:
    values: dict[str, dict[str, list[float | None]]] = {}
    for split in dict.fromkeys(column.split for column in table.columns):
        names = list(dict.fromkeys(c.measure for c in table.columns if c.split == split))
        asked = [table.task, table.protocol, split, names, data.fingerprint_of([split]), __version__, *files]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
        file = out / "scores" / f"{digest}.json"
        known = _read(file)
        if known is None:
            known = _measure(table, data.split(split).timed_truth, names, predict(split, _depth(names)))
            make_folder(file.parent)
            write_bytes(file, (json.dumps({"asked": asked, "values": known}) + "\n").encode())
        values[split] = known
    return [_of_group(column, values[column.split][column.measure], data) for column in table.columns]


def _measure(table: PaperTable, truth: Judgements, names: Sequence[str], run: Run) -> dict[str, list[float | None]]:
    found = evaluate(run, truth, names, protocol=table.protocol, missing="zero")
    columns = found.values.T.tolist()
    return {name: [None if math.isnan(v) else v for v in column] for name, column in zip(names, columns, strict=True)}


def _of_group(column: TableColumn, values: Sequence[float | None], data: Data) -> FloatArray:
    """The values of the queries that a column is about; those that do not count are NaN."""
    found = np.array([math.nan if value is None else value for value in values])
    for field, label in column.group.items():
        found = np.where(labels_of(data.split(column.split).truth, field) == label, found, math.nan)
    return found


def _depth(names: Sequence[str]) -> int:
    """Predictions per query that measures look at; ten at least, so that suppression has something to choose from."""
    return max([10, *(measure.reach or 0 for measure in parse_all(names))])


def _read(file: Path) -> dict[str, list[float | None]] | None:
    try:
        values: dict[str, list[float | None]] = json.loads(file.read_text(encoding="utf-8"))["values"]
    except (OSError, ValueError, KeyError, TypeError):  # computing again does no harm
        return None
    return values


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
