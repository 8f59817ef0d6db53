"""The work file of a long rewriting: every finished batch is on disk before the next one is requested.

A kill at any instant loses at most one batch. A line that the kill cut off is ignored, and so are lines whose original
has changed since and lines that cannot be answers. What is read is only a proposal: it is checked again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from momentseek.errors import MomentseekError


class WorkFile:
    """Answers kept beside the output (``OUT.partial.jsonl``), each valid for one original and one maker."""

    def __init__(self, path: str | Path, maker: str) -> None:
        self.path = Path(path)
        self.maker = maker

    def read(self) -> dict[str, str]:
        """The rewritten query of every original, from earlier runs with the same maker."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as e:
            raise MomentseekError(f"{self.path}: cannot be read ({e.strerror}); remove it to start again") from None
        done: dict[str, str] = {}
        for line in data.splitlines():
            try:
                row = json.loads(line)
                original, query = row["original"], row["query"]
                query.encode()  # half a character could not be written
                if row["maker"] == self.maker and len(query.splitlines()) == 1:
                    done[original] = query
            except (ValueError, LookupError, TypeError, AttributeError):
                continue
        return done

    def keep(self, answers: Iterable[tuple[str, str]]) -> None:
        """Append a batch and wait until it is on disk."""
        rows = [{"maker": self.maker, "original": a, "query": b} for a, b in answers]
        if not rows:
            return
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        try:
            with self.path.open("ab") as file:
                if file.tell() and not self._ends_well():
                    data = b"\n" + data
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as e:
            raise MomentseekError(f"{self.path}: cannot be written ({e.strerror}); check the folder") from None

    def remove(self) -> None:
        """Remove the file once the output is written and nothing is left to resume."""
        self.path.unlink(missing_ok=True)

    def _ends_well(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
