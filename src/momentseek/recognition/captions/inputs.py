"""The input of a captioner for a moment: [CLS], its clips, [SEP]; then [BOS], the words said in it, [EOS].

Training and captioning, with torch or without, share this code, so that a captioner's input is always prepared as in
training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import IntArray

PAD, CLS, SEP, VID, BOS, EOS, UNK = SPECIAL_WORDS = ("[PAD]", "[CLS]", "[SEP]", "[VID]", "[BOS]", "[EOS]", "[UNK]")
"""Padding, start and end of the clips, the placeholder for a clip, start and end of words, an unknown word."""
MAX_WORDS = 1_000_000
MAX_WORD_CHARACTERS = 200


@dataclass(frozen=True)
class Vocabulary:
    """Words by number, the special ones first.

    >>> known = Vocabulary((*SPECIAL_WORDS, "a", "dog", "runs"))
    >>> known.numbers(["a", "cat", "runs"]), known.text([7, 8, 9, 5, 8])
    ([7, 6, 9], 'a dog runs')
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(SPECIAL_WORDS)] != SPECIAL_WORDS:
            raise MomentseekError(f"a vocabulary begins with {', '.join(SPECIAL_WORDS)}; this one does not")
        if len(set(self.words)) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise MomentseekError(f"the vocabulary has {twice!r} twice; each word must have one number")
        if len(self.words) > MAX_WORDS or any(not w or len(w) > MAX_WORD_CHARACTERS for w in self.words):
            raise MomentseekError(
                f"a vocabulary has at most {MAX_WORDS:,} words of 1 to {MAX_WORD_CHARACTERS} characters"
            )

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def number(self) -> dict[str, int]:
        """Map each word to its number."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def forbidden(self) -> IntArray:
        """Numbers of the words that captions must not contain: all special ones but [EOS]."""
        return np.array([self.number[word] for word in SPECIAL_WORDS if word != EOS], dtype=np.int64)

    def numbers(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of words; unknown ones are [UNK]."""
        unknown = self.number[UNK]
        return [self.number.get(word, unknown) for word in words]

    def text(self, numbers: Iterable[int]) -> str:
        """Return the words before the first [EOS], joined by spaces."""
        words = []
        for number in numbers:
            if self.words[number] == EOS:
                break
            words.append(self.words[number])
        return " ".join(words)


def build_vocabulary(captions: Iterable[Sequence[str]], more_than: int = 5) -> Vocabulary:
    """Build the vocabulary of captions: words that occur more than ``more_than`` times, the most frequent first.

    >>> build_vocabulary([["a", "dog", "runs"], ["a", "dog"], ["a"]], more_than=1).words[7:]
    ('a', 'dog')
    """
    counts = Counter(word for caption in captions for word in caption)
    often = [word for word, count in counts.items() if count > more_than and word not in SPECIAL_WORDS]
    return Vocabulary((*SPECIAL_WORDS, *sorted(often, key=lambda word: (-counts[word], word))))


Floats = NDArray[np.float32]
CAPTION_MODALITIES = ("video", "subtitle", "video+subtitle", "none")
"""Inputs of a captioner; ``none`` makes it a pure language model."""
END_CLIPS = ("inclusive", "official")


class SaidLine(NamedTuple):
    """A line of subtitles: its times in seconds and its words."""

    start: float
    end: float
    words: tuple[str, ...]


class MomentParts(NamedTuple):
    """A captioner's input for one moment: its clips, (clips, columns), and the words said in it."""

    clips: Floats
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CaptionPreparation:
    """Settings for turning a moment into a captioner's input."""

    modalities: str = "video+subtitle"
    max_clips: int = 18
    max_words: int = 28
    end_clip: str = "inclusive"
    """The last clip of a moment: the one in which it ends, or the one after it (``official``, as MMT's public code)."""
    columns: tuple[int, int] | None = None
    """Range of columns of the video features to use (such as those of ResNet or I3D); None for all."""

    def __post_init__(self) -> None:
        if self.modalities not in CAPTION_MODALITIES:
            raise MomentseekError(f"modalities must be {' or '.join(CAPTION_MODALITIES)}, not {self.modalities!r}")
        if self.end_clip not in END_CLIPS:
            raise MomentseekError(f"end_clip must be {' or '.join(END_CLIPS)}, not {self.end_clip!r}")

    @property
    def sees(self) -> bool:
        """Whether it reads clips."""
        return "video" in self.modalities

    @property
    def reads(self) -> bool:
        """Whether it reads subtitles."""
        return "subtitle" in self.modalities

    def part(self, start: float, end: float, rows: Floats, lines: Iterable[SaidLine], seconds: float) -> MomentParts:
        """Return the clips and words of a moment, given its video's features (one row per clip) and lines.

        >>> lines = [SaidLine(0, 2, ("hello",)), SaidLine(2, 5, ("good", "bye"))]
        >>> part = CaptionPreparation(max_clips=2).part(1.5, 4.5, np.arange(5, dtype=np.float32)[:, None], lines, 1.5)
        >>> part.clips.ravel().tolist(), part.words
        ([1.0, 2.0], ('hello', 'good', 'bye'))
        """
        first, last = clips_of_moment(start, end, len(rows), seconds, self.end_clip)
        words = [
            w for line in lines if line.start < (last + 1) * seconds and line.end > first * seconds for w in line.words
        ]
        chosen = rows[first : last + 1]
        if self.columns is not None:
            chosen = chosen[:, slice(*self.columns)]
        if len(chosen) > self.max_clips:
            chosen = chosen[np.linspace(0, len(chosen) - 1, self.max_clips).astype(np.int64)]
        return MomentParts(chosen if self.sees else chosen[:0], tuple(words[: self.max_words]) if self.reads else ())


def clips_of_moment(start: float, end: float, count: int, seconds: float, end_clip: str) -> tuple[int, int]:
    """Return the first and last clip of a moment, both inclusive: ⌊s / 1.5⌋ and ⌈e / 1.5⌉ − 1, within the video.

    >>> clips_of_moment(2.0, 6.0, 10, 1.5, "inclusive"), clips_of_moment(2.0, 6.0, 10, 1.5, "official")
    ((1, 3), (1, 4))
    """
    if not count:
        return 0, -1
    first = min(int(start // seconds), count - 1)
    last = int(np.ceil(end / seconds)) - (end_clip == "inclusive")
    return first, min(max(last, first), count - 1)


@dataclass(frozen=True, eq=False)
class MomentInputs:
    """Moments as arrays, padded to the longest; clips come first."""

    clips: Floats
    """(moments, clips + 2, columns): rows of zeros for [CLS], [SEP] and padding."""
    tokens: NDArray[np.int64]
    """(moments, clips + 2 + words + 2): the number of each word; a clip's is [VID]."""
    mask: NDArray[np.bool_]
    """(moments, clips + 2 + words + 2): False where there is padding."""

    def __len__(self) -> int:
        return len(self.tokens)


def stack_moments(
    parts: Sequence[MomentParts], vocabulary: Vocabulary, columns: int, modalities: str = "video+subtitle"
) -> MomentInputs:
    """Stack the parts of moments into one input; both marks of an unused modality are padding."""
    number, count = vocabulary.number, len(parts)
    seen = 2 + max((len(p.clips) for p in parts), default=0)
    read = 2 + max((len(p.words) for p in parts), default=0)
    clips = np.zeros((count, seen, columns), np.float32)
    tokens = np.full((count, seen + read), number[PAD], np.int64)
    for row, part in enumerate(parts):
        length, said = len(part.clips), [number[BOS], *vocabulary.numbers(part.words), number[EOS]]
        if length:
            clips[row, 1 : 1 + length] = part.clips
        tokens[row, : length + 2] = [number[CLS], *[number[VID]] * length, number[SEP]]
        tokens[row, seen : seen + len(said)] = said
    if modalities == "subtitle":
        tokens[:, :seen] = number[PAD]
    elif modalities == "video":
        tokens[:, seen:] = number[PAD]
    return MomentInputs(clips, tokens, tokens != number[PAD])


def caption_words(text: str) -> tuple[str, ...]:
    """Split a text into words and punctuation, like the measures of captions.

    >>> caption_words("Nora isn't handing Victor the mug.")
    ('nora', 'is', "n't", 'handing', 'victor', 'the', 'mug', '.')
    """
    from momentseek.measuring.measures.captions.ptb import ptb_tokens  # loads all measures

    return tuple(ptb_tokens(text))
