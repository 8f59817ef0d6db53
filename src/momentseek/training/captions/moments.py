"""The moments of a split as a captioner reads them: clips from the features, words from the subtitles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from momentseek.captioning.moment_input import CaptionPreparation, MomentInputs, MomentParts, SaidLine, stack_moments
from momentseek.captioning.vocabulary import Vocabulary
from momentseek.captioning.words import caption_words
from momentseek.errors import MomentseekError
from momentseek.features.cache import ArrayCache
from momentseek.features.data import CaptionSplit, Data
from momentseek.features.subtitles import SubtitleLine


class CaptionMoments:
    """The moments of a split; clips that were read are kept, up to ``cache_mb``."""

    def __init__(self, data: Data, split: CaptionSplit, preparation: CaptionPreparation, cache_mb: float = 256) -> None:
        self.split, self.preparation = split, preparation
        self._data = data
        self._cache = ArrayCache(cache_mb)
        self._words: dict[int, tuple[str, ...]] = {}
        self._lines: dict[str, list[SaidLine]] = {}
        self.columns = used_columns(data, preparation)
        table = split.table
        several = next((i for i, n in zip(table.query_ids, table.counts.tolist(), strict=True) if n != 1), None)
        if several is not None:
            raise MomentseekError(
                f"{table.source}: {several} has not exactly one moment; a captioner needs the video and times of each"
            )

    def __len__(self) -> int:
        return len(self.split.table)

    def check(self) -> None:
        """Check, without reading them, that the features and subtitles that are needed are there."""
        if self.preparation.reads and not self.split.subtitles:
            raise MomentseekError(
                f'{self._data.path}: names no subtitles (subtitles = "…jsonl"), and the captioner reads them; '
                "set modalities=video"
            )
        table = self.split.table
        for video in table.videos if self.preparation.sees else ():
            assert self._data.video is not None
            self._data.video.rows(video)

    def part(self, place: int) -> MomentParts:
        """The clips and words of one moment."""

        def read() -> NDArray[np.float32]:
            part = self._read(place)
            self._words[place] = part.words
            return part.clips

        clips = self._cache.get(("clips", place), read)
        return MomentParts(clips, self._words[place])

    def _read(self, place: int) -> MomentParts:
        table, seconds = self.split.table, self._data.clip_seconds
        video, start, end = table.videos[table.video[place]], float(table.start[place]), float(table.end[place])
        rows = np.zeros((int(np.ceil(end / seconds)) + 1, 0), np.float32)
        if self.preparation.sees:
            assert self._data.video is not None
            rows = self._data.video.read(video)
        lines = self._lines_of(video) if self.preparation.reads else []
        part = self.preparation.part(start, end, rows, lines, seconds)
        return MomentParts(part.clips.copy(), part.words)  # of the whole video's rows only these are kept

    def inputs(self, places: Iterable[int], vocabulary: Vocabulary) -> MomentInputs:
        """Some moments as input of a captioner."""
        return stack_moments([self.part(place) for place in places], vocabulary, self.columns)

    def in_batches(self, size: int) -> Iterator[Sequence[int]]:
        """The places of all moments, in batches."""
        for first in range(0, len(self), size):
            yield range(first, min(first + size, len(self)))

    def _lines_of(self, video: str) -> list[SaidLine]:
        if video not in self._lines:
            self._lines[video] = [said_line(line) for line in self.split.subtitles.get(video, ())]
        return self._lines[video]


def said_line(line: SubtitleLine) -> SaidLine:
    """A line of subtitles as words."""
    return SaidLine(line.start, line.end, caption_words(line.text))


def used_columns(data: Data, preparation: CaptionPreparation) -> int:
    """Columns of a clip that a captioner with this preparation sees; 0 if it sees none."""
    if not preparation.sees:
        return 0
    if data.video is None:
        raise MomentseekError(f"{data.path}: has no video features, and the captioner needs them; set modalities")
    if preparation.columns is None:
        return data.video.dim
    first, last = preparation.columns
    if last > data.video.dim:
        raise MomentseekError(
            f"{data.path}: its video features have {data.video.dim:,} columns, and columns={first}:{last} needs more"
        )
    return last - first
