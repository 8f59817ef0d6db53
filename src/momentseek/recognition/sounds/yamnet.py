"""YAMNet, which detects 521 classes of sounds (AudioSet) in windows of 0.975 seconds, run by LiteRT.

Its weights are one file that ``momentseek models get yamnet`` downloads; the file also holds the class names. It runs
in a separate process, on sound that another process decodes, and its results are stored every two minutes.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, missing_package, optional_module
from momentseek.core.workers import JobProcess, JobWords
from momentseek.media.decode import SAMPLE_RATE, Samples
from momentseek.recognition.sounds.detectors import SOUND_DETECTORS, SoundEvent, make_events, stretches
from momentseek.recognition.sounds.kinds import KINDS_FILE, sound_kinds
from momentseek.recognition.weights.catalog import HUB_MODELS
from momentseek.recognition.weights.files import model_in_environment, sha256
from momentseek.recognition.weights.hub import check_model, lock_file

YAMNET = "yamnet"
SOUNDS_EXTRA = "sounds"
SOUNDS_VARIABLE = "MOMENTSEEK_SOUNDS"
"""Environment variable that turns sound detection off (``off``), or names another detector."""
RECIPE = "2"
"""Part of the fingerprint; change it whenever the same weights would give other spans."""
WINDOW_SAMPLES = 15_600
STEP_SAMPLES = WINDOW_SAMPLES // 2
PART_WINDOWS = 256
"""Number of half windows after which results are stored: two minutes."""
MIN_LOUDNESS = 1e-3
"""A window with a lower root mean square is silent (-60 dB); detections there would be spurious."""
MAX_LABELS_BYTES = 1 << 20


@dataclass(frozen=True)
class HeardPart:
    """The sounds in a part of a file, up to ``done`` seconds."""

    done: float
    stretches: tuple[SoundEvent, ...]


def is_installed() -> bool:
    """Whether YAMNet's runtime is installed and its weights are downloaded."""
    return find_spec("ai_edge_litert") is not None and lock_file(YAMNET).exists()


def default_sound_detector() -> str | None:
    """Return the default detector of ``add``: the environment's, else YAMNet if it is installed."""
    chosen = model_in_environment(SOUNDS_VARIABLE)
    if isinstance(chosen, str):
        return chosen
    return YAMNET if chosen is not False and is_installed() else None


def weights_file() -> Path:
    """Return the file with YAMNet's weights, after verifying its hash."""
    if find_spec("ai_edge_litert") is None:
        raise missing_package("ai-edge-litert", SOUNDS_EXTRA)
    return check_model(HUB_MODELS[YAMNET]) / "yamnet.tflite"


def class_names(file: Path) -> list[str]:
    """Read the class names from the archive at the end of a weights file."""
    try:
        with zipfile.ZipFile(file) as archive:
            (name,) = [info for info in archive.infolist() if info.filename.endswith("label_list.txt")]
            if name.file_size > MAX_LABELS_BYTES:
                raise ValueError
            return archive.read(name).decode().splitlines()
    except (OSError, ValueError, zipfile.BadZipFile):
        raise MomentseekError(
            f"{file}: has no names of classes in it; get it again with: momentseek models get {YAMNET}"
        ) from None


class Yamnet:
    """YAMNet as a sound detector."""

    name = YAMNET

    def __init__(self, file: Path | None = None, threads: int = 1) -> None:
        file = file or weights_file()
        self.fingerprint, names = yamnet_fingerprint(file), class_names(file)
        interpreter = optional_module("ai_edge_litert.interpreter", SOUNDS_EXTRA).Interpreter
        try:
            self._model: Any = interpreter(str(file), num_threads=threads)
            self._model.allocate_tensors()
        except (ValueError, RuntimeError) as e:
            raise MomentseekError(f"{file}: cannot be opened ({str(e).splitlines()[0][:200]})") from None
        self._input, self._output = (
            about[0]["index"] for about in (self._model.get_input_details(), self._model.get_output_details())
        )
        place = {name: at for at, name in enumerate(names)}
        kinds = sound_kinds()
        self.labels = list(kinds)
        self._classes = np.array([place[name] for kind in kinds.values() for name in kind.classes])
        self._first = np.cumsum([0, *(len(kind.classes) for kind in kinds.values())])[:-1]

    def window_scores(self, samples: Samples) -> NDArray[np.float32]:
        """Return the score of each kind of sound in one window."""
        if float(np.sqrt(np.mean(np.square(samples)))) < MIN_LOUDNESS:
            return np.zeros(len(self.labels), np.float32)
        self._model.set_tensor(self._input, samples)
        self._model.invoke()
        scores: NDArray[np.float32] = self._model.get_tensor(self._output)[0]
        return np.maximum.reduceat(scores[self._classes], self._first)

    def detect(self, blocks: Iterable[Samples]) -> list[SoundEvent]:
        """Return the sounds of a video, given its samples from the start."""
        return make_events(event for part in self.hear(blocks) for event in part.stretches)

    def hear(self, blocks: Iterable[Samples], begin: float = 0.0) -> Iterator[HeardPart]:
        """Detect sounds part by part from ``begin`` on, where an earlier run may have stopped.

        The score of half a window is the mean of the two windows that contain it: detections in only one of them are
        mostly wrong.
        """
        first = round(begin * SAMPLE_RATE / STEP_SAMPLES)
        at = max(0, first - 1)  # the window that contains the first half and the next one
        held, skip = np.empty(0, np.float32), at * STEP_SAMPLES
        before: NDArray[np.float32] | None = None
        rows: list[NDArray[np.float32]] = []
        for block in blocks:
            dropped = min(skip, len(block))
            held, skip = np.concatenate([held, block[dropped:]]), skip - dropped
            while len(held) >= WINDOW_SAMPLES + STEP_SAMPLES:  # so that there is a last one
                scores = self.window_scores(held[:WINDOW_SAMPLES])
                if at >= first:
                    rows.append(_mean(before, scores))
                before, held, at = scores, held[STEP_SAMPLES:], at + 1
                if len(rows) == PART_WINDOWS:
                    yield self._part(rows, first, at * STEP_SAMPLES / SAMPLE_RATE)
                    first, rows = at, []
        if len(held):
            last = held[-WINDOW_SAMPLES:]
            scores = self.window_scores(np.pad(last, (0, WINDOW_SAMPLES - len(last))))
            rows.append(_mean(before, scores))
        if rows:
            yield self._part(rows, first, (at * STEP_SAMPLES + len(held)) / SAMPLE_RATE)

    def _part(self, rows: list[NDArray[np.float32]], first: int, end: float) -> HeardPart:
        """Return the part made of half windows from ``first`` on; the last of them lasts until ``end``."""
        edges = np.arange(first, first + len(rows) + 1) * (STEP_SAMPLES / SAMPLE_RATE)
        edges[-1] = end
        if first == 0 and len(rows) > 1:
            rows[0] = rows[1]  # only one window contains the beginning
        return HeardPart(end, tuple(stretches(np.stack(rows), self.labels, np.round(edges, 3))))


def _mean(before: NDArray[np.float32] | None, scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the scores of two windows, if there are two."""
    return scores if before is None else ((before + scores) / 2).astype(np.float32)


def yamnet_fingerprint(file: Path | None = None) -> str:
    """Return a hash that changes whenever YAMNet's results do."""
    parts = [RECIPE, *(sha256(one) for one in (file or weights_file(), KINDS_FILE))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


TIMEOUT_SECONDS = 300.0
"""Timeout for an answer: two minutes of sound take a second."""


class YamnetProcess(JobProcess):
    """YAMNet in a separate process, for one file at a time; close it, or use ``with``."""

    def __init__(self, threads: int = 1, timeout: float = TIMEOUT_SECONDS) -> None:
        words = JobWords("the sound detector yamnet", "its sound", "cannot be processed")
        worker = "momentseek.recognition.sounds.worker"
        super().__init__(worker, [str(threads)], words, threads=threads, timeout=timeout)

    def hear(self, path: Path, begin: float = 0.0) -> Iterator[HeardPart]:
        """Detect sounds in a file part by part from ``begin`` on; raise MediaError if that fails."""
        for part in self.ask(os.fspath(path), begin=begin):
            yield HeardPart(part["done"], tuple(SoundEvent(*row) for row in part["stretches"]))


SOUND_DETECTORS.add(YAMNET, Yamnet)
