"""Build training lists from a library itself, with its spoken sentences and descriptions as queries.

Each sentence is a query whose own moment is where it is said, or what it describes; the other moments of its list are
those with the most similar sentences (TVR-Ranking, section 3.3). One video in ten is held out: its sentences have only
their own moments, and show how well the model works on videos that it was not trained on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from momentseek.benchmarks.datasets.common import normalise
from momentseek.benchmarks.datasets.pseudo_training import (
    CaptionedMoment,
    CaptionedMoments,
    find_pseudo_training,
    training_json,
)
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.database import CAPTIONS, SPEECH, TrackKind
from momentseek.library.encoders import SPEECH_ENCODER
from momentseek.library.store import LibraryStore
from momentseek.library.video import Video
from momentseek.library.words import content_words
from momentseek.recognition.encoders.registry import text_encoder

LIST_LENGTH = 40
PRESET = "library"
"""Preset for training on such lists."""
MIN_CONTENT_WORDS = 3
"""Minimum number of content words of a sentence that is used as a query."""
MIN_SENTENCES, MIN_VIDEOS = 50, 4
"""With fewer, there is too little to learn from and to hold out."""
FEW_SENTENCES = 1000
"""With fewer, the model hardly generalises beyond these videos (docs/ranker.md has a figure)."""
VAL_EVERY = 10


@dataclass(frozen=True)
class OwnLists:
    """The lists that were written, and what they were made from."""

    files: dict[str, Path]
    """The file of each split."""
    said: int
    """Number of spoken sentences."""
    described: int
    """Number of sentences that describe a scene."""
    videos: int
    """Number of videos with any sentence."""
    note: str = ""
    """A warning about the lists; empty if there is none."""


def write_own_lists(library: LibraryStore, folder: Path, length: int = LIST_LENGTH) -> OwnLists:
    """Write ``train.json`` and ``val.json`` with lists of moments for the sentences of a library's own texts."""
    videos = library.videos()
    names, found, kinds = own_names(videos), dict[str, list[CaptionedMoment]](), Counter[str]()
    for video in videos:
        for kind in (SPEECH, CAPTIONS):
            some = _moments(library, video, names[video.id], kind)
            kinds[kind.name] += len(some)
            if some:
                found.setdefault(names[video.id], []).extend(some)
    total = sum(kinds.values())
    if total < MIN_SENTENCES or len(found) < MIN_VIDEOS:
        raise MomentseekError(
            f"{library.path}: has {count(total, 'sentence')} of {MIN_CONTENT_WORDS} words with content or more in "
            f"{count(len(found), 'video')}, too little to learn from ({MIN_SENTENCES} in {MIN_VIDEOS} at least); add "
            "subtitles or transcripts (momentseek transcribe), or describe the videos (momentseek describe)"
        )
    kept = sorted(found)[VAL_EVERY // 2 :: VAL_EVERY] or sorted(found)[-1:]
    train = _collection([m for name, some in found.items() if name not in kept for m in some], 1)
    val = _collection([m for name in kept for m in found[name]], len(train.moments) + 1)
    encoder, files = text_encoder(SPEECH_ENCODER), {split: folder / f"{split}.json" for split in ("train", "val")}
    lists = find_pseudo_training(train, encoder, min(length, train.size))
    files["train"].write_bytes(training_json(lists, length))
    files["val"].write_bytes(training_json(find_pseudo_training(val, encoder, 1), 1))
    note = ""
    if total < FEW_SENTENCES:
        note = (
            f"{count(total, 'sentence')} are few to learn from ({FEW_SENTENCES:,} or more are better); compare the "
            "trained model with the untrained search before you use it"
        )
    return OwnLists(files, kinds[SPEECH.name], kinds[CAPTIONS.name], len(found), note)


def own_names(videos: list[Video]) -> dict[int, str]:
    """Return a unique name without folders for each video, by id."""
    stems = Counter(PurePosixPath(video.name).stem for video in videos)
    return {
        video.id: stem if stems[stem := PurePosixPath(video.name).stem] == 1 else f"{stem}-{video.id}"
        for video in videos
    }


def _moments(library: LibraryStore, video: Video, name: str, kind: TrackKind) -> list[CaptionedMoment]:
    """Return the sentences of a video with enough content words, at their times; repeated ones count once."""
    out: dict[str, CaptionedMoment] = {}
    for cue in library.catalog.own_cues(video.id, kind):
        end = min(cue.end, video.duration)
        if cue.start < end and len(content_words(cue.text)) >= MIN_CONTENT_WORDS:
            text = " ".join(cue.text.split())
            out.setdefault(normalise(text), CaptionedMoment(name, cue.start, end, video.duration, text))
    return list(out.values())


def _collection(moments: list[CaptionedMoment], first: int) -> CaptionedMoments:
    """Return moments with their own sentences as queries, numbered from ``first``."""
    queries = {str(first + at): moment.caption for at, moment in enumerate(moments)}
    return CaptionedMoments(queries, moments, {query: (at,) for at, query in enumerate(queries)})
