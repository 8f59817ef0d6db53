"""What a recogniser heard: words with times, joined to cues as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_CUE_SECONDS = 7.0
MAX_CUE_LETTERS = 90
MIN_PAUSE_SECONDS = 0.7
"""Silence between two words that ends a cue."""
SENTENCE_ENDS = ".?!…。？！"
MIN_CUE_SECONDS = 0.05


@dataclass(frozen=True)
class SpokenWord:
    """A word and when it is spoken, in seconds of the video. ``text`` keeps the space before it, where it has one."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class SpokenCue:
    """Words that are read together: a sentence, or a part of a long one."""

    words: tuple[SpokenWord, ...]

    @property
    def start(self) -> float:
        """When its first word begins, in seconds."""
        return self.words[0].start

    @property
    def end(self) -> float:
        """When its last word ends, in seconds."""
        return max(self.words[-1].end, self.start + MIN_CUE_SECONDS)

    @property
    def text(self) -> str:
        """Its words as a line."""
        return "".join(word.text for word in self.words).strip()


@dataclass(frozen=True)
class HeardPart:
    """What was heard in a part of a file."""

    heard: float
    """Seconds of the file that are heard after this part; the next one begins there."""
    language: str | None
    """Code of the language, once it is sure."""
    cues: tuple[SpokenCue, ...]


def cues_from_words(words: Iterable[SpokenWord]) -> list[SpokenCue]:
    """Join words to cues: a cue ends with its sentence, at a pause, or when it gets too long to read.

    >>> spoken = [(0.0, 0.4, " Hello"), (0.4, 0.9, " there."), (1.0, 1.3, " Sit"), (2.5, 2.8, " down")]
    >>> [cue.text for cue in cues_from_words(SpokenWord(*word) for word in spoken)]
    ['Hello there.', 'Sit', 'down']
    """
    cues: list[SpokenCue] = []
    line: list[SpokenWord] = []
    for word in words:
        if line and _ends_before(line, word):
            cues.append(SpokenCue(tuple(line)))
            line = []
        line.append(word)
    if line:
        cues.append(SpokenCue(tuple(line)))
    return [cue for cue in cues if cue.text]


def _ends_before(line: Sequence[SpokenWord], word: SpokenWord) -> bool:
    if word.text[:1] in ("-", "'", "’"):  # the rest of the word before
        return False
    letters = sum(len(w.text) for w in line) + len(word.text)
    return (
        (line[-1].text.rstrip("\"'”’)")[-1:] in SENTENCE_ENDS and len(line) > 1)
        or word.start - line[-1].end >= MIN_PAUSE_SECONDS
        or word.end - line[0].start > MAX_CUE_SECONDS
        or letters > MAX_CUE_LETTERS
    )
