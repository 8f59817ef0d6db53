"""Transcribe a whole file with bounded memory: a few minutes at a time, cut where nobody speaks.

Voice activity is detected first, so a file without speech costs little more. Spans of speech are packed into windows of
the recogniser's input length, since a window costs the same however little it contains.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from momentseek.core.workers import JobProcess, JobWords
from momentseek.media.container import FilePath
from momentseek.media.decode import SAMPLE_RATE, Samples
from momentseek.media.sandbox.calls import sound
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.speech.models import Transcriber
from momentseek.recognition.speech.transcript import TranscribedPart, cues_from_words, spoken_cue

PART_SECONDS = 120
"""Seconds of sound that are transcribed at a time; results are stored after each part."""
WINDOW_SECONDS = 28.0
"""Seconds of speech per window; the recogniser's input is 30 seconds long."""
STRETCH_MARGIN_SECONDS = 0.3
"""Seconds of sound included before and after a span of speech."""
WORD_MARGIN_SECONDS = 0.2
"""Part of the margin before a span in which no word may begin: recognisers tend to begin with the window."""
MIN_LANGUAGE_PROBABILITY = 0.5
"""Probability from which a detected language is used for the rest of a file."""

Stretch = tuple[float, float]


def transcribe_file(
    transcriber: Transcriber, path: FilePath, begin: float = 0.0, language: str | None = None
) -> Iterator[TranscribedPart]:
    """Transcribe a file part by part from ``begin`` on, where an earlier run may have stopped."""
    at = round(begin * SAMPLE_RATE)
    skip = at
    held = np.empty(0, np.float32)
    for block in _blocks(sound(path), PART_SECONDS * SAMPLE_RATE):
        if skip >= len(block):
            skip -= len(block)
            continue
        held, skip = np.concatenate([held, block[skip:]]), 0
        if len(held) < PART_SECONDS * SAMPLE_RATE:
            continue
        stretches = transcriber.speech_spans(held)
        cut = _cut_between(stretches, len(held) / SAMPLE_RATE)
        part = _hear(transcriber, held, [s for s in stretches if s[1] <= cut], at, round(cut * SAMPLE_RATE), language)
        language = part.language or language
        at, held = at + round(cut * SAMPLE_RATE), held[round(cut * SAMPLE_RATE) :]
        yield part
    yield _hear(transcriber, held, transcriber.speech_spans(held) if len(held) else [], at, len(held), language)


def _blocks(pieces: Iterator[Samples], size: int) -> Iterator[Samples]:
    """Yield the same samples in blocks of one size; the last one may be shorter."""
    held: list[Samples] = []
    count = 0
    for piece in pieces:
        while count + len(piece) >= size:
            held.append(piece[: size - count])
            piece = piece[size - count :]
            yield np.concatenate(held)
            held, count = [], 0
        held.append(piece)
        count += len(piece)
    if count:
        yield np.concatenate(held)


def _cut_between(stretches: Sequence[Stretch], seconds: float) -> float:
    """Return where to cut between speech: before the last span if it reaches the end and is not the only one.

    >>> _cut_between([(1.0, 5.0), (100.0, 120.0)], 120.0), _cut_between([(0.0, 120.0)], 120.0), _cut_between([], 120.0)
    (99.7, 120.0, 120.0)
    """
    if stretches and stretches[-1][1] >= seconds - 1.0 and stretches[-1][0] > seconds / 2:
        return round(max(0.0, stretches[-1][0] - STRETCH_MARGIN_SECONDS), 3)
    return seconds


def _hear(
    transcriber: Transcriber, samples: Samples, stretches: Sequence[Stretch], at: int, count: int, language: str | None
) -> TranscribedPart:
    """Transcribe the spans of a part that begins at sample ``at`` of the file and has ``count`` samples."""
    offset = at / SAMPLE_RATE
    words: list[SpokenWord] = []
    sure = language
    for window in _windows(stretches, len(samples) / SAMPLE_RATE):
        packed = np.concatenate([samples[_index(start) : _index(end)] for start, end in window])
        spoken = sure
        if spoken is None:
            spoken, probability = transcriber.language(packed)
            sure = spoken if probability >= MIN_LANGUAGE_PROBABILITY else None
        words += _place(transcriber.words(packed, spoken), window, offset)
    return TranscribedPart(round((at + count) / SAMPLE_RATE, 6), sure, tuple(cues_from_words(words)))


def _index(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


def _windows(stretches: Sequence[Stretch], seconds: float) -> Iterator[list[Stretch]]:
    """Pack spans with their margins into windows; a span longer than a window is split.

    >>> [[(round(a, 1), round(b, 1)) for a, b in w] for w in _windows([(1, 3), (5, 6), (20, 70)], 100)]
    [[(0.7, 3.3), (4.7, 6.3), (19.7, 43.5)], [(43.5, 70.3)]]
    """
    window: list[Stretch] = []
    room = WINDOW_SECONDS
    last = 0.0
    for start, end in stretches:
        start, end = max(last, start - STRETCH_MARGIN_SECONDS), min(seconds, end + STRETCH_MARGIN_SECONDS)
        last = end
        while end > start:
            if room < 1.0 or (window and end - start > room and end - start <= WINDOW_SECONDS):
                yield window
                window, room = [], WINDOW_SECONDS
            taken = min(end - start, room)
            window.append((start, start + taken))
            start, room = start + taken, room - taken
    if window:
        yield window


def _place(words: Sequence[SpokenWord], window: Sequence[Stretch], offset: float) -> list[SpokenWord]:
    """Return the words of a window with times in the file.

    >>> _place([SpokenWord(0.5, 1.0, " a"), SpokenWord(2.5, 3.5, " b")], [(10.0, 12.0), (20.0, 22.0)], 100.0)
    [SpokenWord(start=110.5, end=111.0, text=' a'), SpokenWord(start=120.5, end=121.5, text=' b')]
    """
    ends = np.cumsum([end - start for start, end in window])
    placed = []
    for word in words:
        which = min(int(np.searchsorted(ends, word.start + 1e-9, side="right")), len(window) - 1)
        shift = window[which][0] - (float(ends[which - 1]) if which else 0.0)
        first, last = window[which]
        start = min(max(word.start + shift, min(first + WORD_MARGIN_SECONDS, last)), last)
        end = min(max(word.end + shift, start), last)
        placed.append(SpokenWord(round(start + offset, 3), round(max(end, start) + offset, 3), word.text))
    return placed


TIMEOUT_SECONDS = 600.0
"""Timeout for an answer: two minutes of sound take half a minute on a slow CPU."""


class TranscriberProcess(JobProcess):
    """A transcriber in a separate process, for one file at a time; close it, or use ``with``."""

    def __init__(self, spec: str, threads: int = 1, timeout: float = TIMEOUT_SECONDS) -> None:
        words = JobWords(f"the transcriber {spec}", "its sound", "cannot be processed")
        worker = "momentseek.recognition.speech.worker"
        super().__init__(worker, [spec, str(threads)], words, threads=threads, timeout=timeout)

    def hear(self, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[TranscribedPart]:
        """Transcribe a file part by part from ``begin`` on; raise MediaError if that fails."""
        for part in self.ask(os.fspath(path), begin=begin, language=language):
            cues = [spoken_cue([SpokenWord(*word) for word in cue["words"]]) for cue in part["cues"]]
            yield TranscribedPart(part["heard"], part["language"], tuple(cues))
