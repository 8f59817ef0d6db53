"""Transcripts: recognised words with times, joined into readable cues, and manual corrections.

A correction applies to a span of time, not to a line, so it stays valid if another recogniser transcribes the video.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from momentseek.media.subtitles.cues import Cue, SpokenWord

MAX_CUE_SECONDS = 7.0
MAX_CUE_LETTERS = 90
MIN_PAUSE_SECONDS = 0.7
"""A pause between two words of at least this length ends a cue."""
SENTENCE_ENDS = ".?!…。？！"
MIN_CUE_SECONDS = 0.05


def spoken_cue(words: Sequence[SpokenWord]) -> Cue:
    """Return a cue of consecutive words: a sentence, or a part of a long one."""
    start = words[0].start
    text = "".join(word.text for word in words).strip()
    return Cue(start, max(words[-1].end, start + MIN_CUE_SECONDS), text, words=tuple(words))


@dataclass(frozen=True)
class TranscribedPart:
    """The transcript of a part of a file."""

    heard: float
    """End of this part, in seconds of the file; the next part starts there."""
    language: str | None
    """Code of the language, once it is certain enough."""
    cues: tuple[Cue, ...]


def cues_from_words(words: Iterable[SpokenWord]) -> list[Cue]:
    """Join words into cues; a cue ends with its sentence, at a pause, or when it gets too long to read.

    >>> spoken = [(0.0, 0.4, " Hello"), (0.4, 0.9, " there."), (1.0, 1.3, " Sit"), (2.5, 2.8, " down")]
    >>> [cue.text for cue in cues_from_words(SpokenWord(*word) for word in spoken)]
    ['Hello there.', 'Sit', 'down']
    """
    cues: list[Cue] = []
    line: list[SpokenWord] = []
    for word in words:
        if line and _ends_before(line, word):
            cues.append(spoken_cue(line))
            line = []
        line.append(word)
    if line:
        cues.append(spoken_cue(line))
    return [cue for cue in cues if cue.text]


def _ends_before(line: Sequence[SpokenWord], word: SpokenWord) -> bool:
    if word.text[:1] in ("-", "'", "’"):  # continues the word before
        return False
    letters = sum(len(w.text) for w in line) + len(word.text)
    return (
        (line[-1].text.rstrip("\"'”’)")[-1:] in SENTENCE_ENDS and len(line) > 1)
        or word.start - line[-1].end >= MIN_PAUSE_SECONDS
        or word.end - line[0].start > MAX_CUE_SECONDS
        or letters > MAX_CUE_LETTERS
    )


LEAST_WORD_SECONDS = 0.02


@dataclass(frozen=True)
class CueEdit:
    """A manual correction of what is said from ``start`` to ``end`` seconds; an empty text means nothing is said."""

    start: float
    end: float
    text: str

    @classmethod
    def of(cls, start: float, end: float, text: str) -> CueEdit:
        """Return a correction as it is stored: times to the millisecond, the text on one line.

        >>> CueEdit.of(1.00049, 1.0005, " two  words ")
        CueEdit(start=1.0, end=1.05, text='two words')
        """
        start = round(max(0.0, start), 3)
        return cls(start, round(max(end, start + MIN_CUE_SECONDS), 3), " ".join(text.split()))

    def covers(self, word: SpokenWord) -> bool:
        """Whether the middle of a word lies in the corrected time."""
        return self.start <= (word.start + word.end) / 2 < self.end


def apply_edits(cues: Iterable[Cue], edits: Sequence[CueEdit]) -> list[Cue]:
    """Replace the recognised words by corrections, and sort the cues by time. Applying it twice changes nothing more.

    >>> heard = [spoken_cue([SpokenWord(1.0, 1.4, " a"), SpokenWord(1.4, 2.0, " tail"), SpokenWord(2.0, 2.5, " too")])]
    >>> (cue,) = apply_edits(heard, [CueEdit(1.0, 2.5, "A tale, too")])
    >>> [(word.start, word.text) for word in cue.words]
    [(1.0, ' A'), (1.4, ' tale,'), (2.0, ' too')]
    >>> apply_edits(heard, [CueEdit(1.0, 2.5, "")])
    []
    """
    held = list(cues)
    out = []
    for cue in held:
        for corrected, words in groupby(cue.words, lambda word: any(edit.covers(word) for edit in edits)):
            if not corrected:
                out.append(spoken_cue(list(words)))
    for edit in edits:
        if edit.text:
            heard = [word for cue in held for word in cue.words if edit.covers(word)]
            out.append(corrected_cue(heard, edit))
    return sorted((cue for cue in out if cue.text), key=lambda cue: (cue.start, cue.end))


def corrected_cue(heard: Sequence[SpokenWord], edit: CueEdit) -> Cue:
    """Return a correction as a cue: recognised words keep their times, new ones share the time between them."""
    texts, old = edit.text.split(), _join_pieces(heard)
    matcher = SequenceMatcher(None, [_key(word.text) for word in old], [_key(text) for text in texts], autojunk=False)
    words: list[SpokenWord | None] = [None] * len(texts)
    for at, place, size in matcher.get_matching_blocks():
        for step in range(size):
            word = old[at + step]
            words[place + step] = SpokenWord(
                max(word.start, edit.start), min(word.end, edit.end), f" {texts[place + step]}"
            )
    _fill_gaps(words, texts, edit)
    latest = max(edit.start, edit.end - LEAST_WORD_SECONDS)
    timed = [SpokenWord(min(word.start, latest), word.end, word.text) for word in words if word is not None]
    timed[0] = timed[0]._replace(start=edit.start)
    timed[-1] = timed[-1]._replace(end=edit.end)
    return spoken_cue([word._replace(end=max(word.start, word.end)) for word in timed])


def _fill_gaps(words: list[SpokenWord | None], texts: Sequence[str], edit: CueEdit) -> None:
    """Give times to new words: the time between their neighbours, or part of the neighbours' own."""
    for fresh, places in groupby(range(len(words)), lambda at: words[at] is None):
        run = list(places)
        if not fresh:
            continue
        before = words[run[0] - 1] if run[0] else None
        after = words[run[-1] + 1] if run[-1] + 1 < len(words) else None
        left = before.end if before is not None else edit.start
        right = after.start if after is not None else edit.end
        if right - left < LEAST_WORD_SECONDS * len(run):
            if before is not None:
                left = round((before.start + before.end) / 2, 3)
                words[run[0] - 1] = before._replace(end=left)
            if after is not None:
                right = round((after.start + after.end) / 2, 3)
                words[run[-1] + 1] = after._replace(start=right)
        words[run[0] : run[-1] + 1] = _share_time([texts[at] for at in run], left, max(left, right))


def _share_time(texts: Sequence[str], start: float, end: float) -> list[SpokenWord]:
    """Divide a span of time among words in proportion to their letters.

    >>> [(word.start, word.end) for word in _share_time(["a", "long"], 1.0, 2.0)]
    [(1.0, 1.2), (1.2, 2.0)]
    """
    total = sum(map(len, texts))
    out, done = [], 0
    for text in texts:
        begin = round(start + (end - start) * done / total, 3)
        done += len(text)
        out.append(SpokenWord(begin, round(start + (end - start) * done / total, 3), f" {text}"))
    return out


def _join_pieces(words: Iterable[SpokenWord]) -> list[SpokenWord]:
    """Join the pieces of words between spaces: a recogniser may return "self" and "-made" separately."""
    out: list[SpokenWord] = []
    for word in words:
        if out and word.text[:1] not in ("", " "):
            out[-1] = SpokenWord(out[-1].start, max(word.end, out[-1].end), out[-1].text + word.text)
        else:
            out.append(word)
    return out


def _key(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum()) or text.strip()
