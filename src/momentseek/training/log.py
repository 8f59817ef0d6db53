"""The log of training: log.csv to read, and an event file for TensorBoard, with the same figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.training.events import EventFile
from momentseek.training.folder import LOG_FILE


class TrainingLog:
    """Writes a row of figures per step; when training continues from a step, the rows after it are dropped."""

    def __init__(self, folder: Path, step: int = 0) -> None:
        self.path = folder / LOG_FILE
        self._rows: list[dict[str, str]] = []
        if step and self.path.is_file():
            with self.path.open(newline="", encoding="utf-8") as f:
                self._rows = [
                    r for r in csv.DictReader(f) if (r.get("step") or "").isdigit() and int(r["step"]) <= step
                ]
        self._events = EventFile(folder, step)
        self._columns = list(self._rows[0]) if self._rows else ["step"]
        if self._rows:
            self._rewrite()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the row of a step; columns for which it has no value stay empty."""
        self._rows.append({"step": str(step)} | {name: f"{value:.6g}" for name, value in values.items()})
        known = len(self._columns)
        self._columns += [name for name in values if name not in self._columns]
        self._events.add(step, values)
        if len(self._columns) > known or len(self._rows) == 1 or not self.path.is_file():
            self._rewrite()
            return
        with self.path.open("a", newline="", encoding="utf-8") as f:
            csv.DictWriter(f, self._columns, lineterminator="\n").writerow(self._rows[-1])

    def _rewrite(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        write_bytes(self.path, text.getvalue().encode())

    def close(self) -> None:
        """Close the event file."""
        self._events.close()
