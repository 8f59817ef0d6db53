"""The state of a library that searches use, cached until the library changes: indices, videos, encoded texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TypeVar

from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import passages
from momentseek.library.database import SPEECH
from momentseek.library.encoders import LibraryEncoders
from momentseek.library.reader import LibraryReader, Snapshot
from momentseek.library.tracks.sounds import sound_labels
from momentseek.library.video import Video, VideoCard
from momentseek.library.words import content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import Understanding, Vectors
from momentseek.recognition.encoders.text_cache import RecentTexts, encode_cached
from momentseek.recognition.exported.boundary_head import head_of
from momentseek.search.stream_index import StreamIndex

MAX_REMEMBERED_TRANSCRIPTS = 256
MAX_KNOWN_VIDEOS = 20_000
"""Largest number of cached catalog entries of videos."""

V = TypeVar("V", VideoCard, Video)
Encode = Callable[[Sequence[str]], Vectors]
"""Turns texts into vectors, one row each."""
Evidence = Callable[[Vectors], Vectors]
"""Maps the vectors of clips to the probability (0 to 1) that each shows what a query names, by labels. If two encoders
made the vectors, each clip has a row: the probability and the second encoder's margin."""


class QueryEncoder:
    """Encodes queries for the streams of a library, and caches recent vectors."""

    def __init__(self, encoders: LibraryEncoders) -> None:
        self._encoders = encoders
        self._recent: dict[str, RecentTexts] = {}
        self._labels: dict[str, Vectors] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode these texts for the vision stream in one run of the encoder, and cache the result."""
        encoder = self._encoders.for_queries("vision")
        remember = getattr(getattr(encoder, "sentences", None), "remember", None)
        if remember is None:
            self.encode("vision", texts)
        else:
            remember([one for text in texts for one in encoder.query_sentences(text)])  # type: ignore[attr-defined]

    def encode(self, stream: str, texts: Sequence[str]) -> Vectors:
        """Encode texts for a stream (``vision``, ``speech``, or a trained model's ``spans``), a row each."""
        if stream not in self._recent:
            self._recent[stream] = RecentTexts(lambda some: self._encoders.for_queries(stream).encode(some))
        return self._recent[stream](texts)

    def blocks(self, stream: str) -> tuple[tuple[str, int], ...]:
        """Name and number of columns of each encoder if two make the vectors of a stream together; empty otherwise."""
        parts = getattr(self._encoders.for_queries(stream), "parts", ())
        return tuple((part.name, part.dim) for part in parts)

    def label_cosines(self, text: str, labels: Sequence[str]) -> dict[str, float]:
        """Cosine of a text with each label, whose vectors are cached; empty if there is no speech encoder."""
        speech = self._encoders.speech
        if speech is None or not labels or not self.knows_words("speech", [text]):
            return {}
        if new := [label for label in dict.fromkeys(labels) if label not in self._labels]:
            self._labels.update(zip(new, encode_cached(speech, new), strict=True))
        vector = self.encode("speech", [text])[0]
        return {label: float(self._labels[label] @ vector) for label in labels}

    def knows_words(self, stream: str, texts: Iterable[str]) -> bool:
        """Whether a stream's encoder knows any word of the texts; if it cannot tell, whether they contain any words."""
        knows = getattr(self._encoders.for_queries(stream), "knows", None)
        return any(map(knows or _is_legible, texts))

    def evidence(self, stream: str, text: str) -> Evidence | None:
        """The evidence function for the things that a text names; None if the stream's encoder has no labels."""
        find = getattr(self._encoders.for_queries(stream), "evidence", None)
        found: Evidence | None = None if find is None else find(text)
        return found

    def understand(self, stream: str, texts: Sequence[str]) -> Understanding:
        """What a stream's encoder recognises in texts; guessed and unknown words include content words only."""
        find = getattr(self._encoders.for_queries(stream), "understand", None)
        if find is None:
            return Understanding()
        found = reduce(Understanding.join, map(find, texts), Understanding())
        said = {word.lower() for text in texts for word in content_words(text)}
        guessed, unknown = (tuple(w for w in some if w in said) for some in (found.guessed, found.unknown))
        return replace(found, guessed=guessed, unknown=unknown)

    def forget(self) -> None:
        """Clear the cache, because another encoder now makes the library's vectors."""
        self._recent.clear()
        self._labels.clear()


def _is_legible(text: str) -> bool:
    """Whether a text has letters, digits or pictograms.

    >>> [_is_legible(text) for text in ("a dog", "😀", "* ...")]
    [True, True, False]
    """
    return any(c.isalnum() or unicodedata.category(c) == "So" for c in text)


@dataclass(frozen=True, eq=False)
class LibraryState:
    """A library in one state, with everything that the streams need."""

    catalog: Catalog
    snapshot: Snapshot
    vision: StreamIndex
    speech: StreamIndex
    known_videos: dict[int, Video] = field(default_factory=dict)
    known_cards: dict[int, VideoCard] = field(default_factory=dict)
    _spoken: dict[int, tuple[list[Cue], list[range]]] = field(default_factory=dict)

    @classmethod
    def open(cls, library: LibraryReader, snapshot: Snapshot) -> LibraryState:
        """Open a snapshot of a library for searching."""
        model = library.encoders.model if snapshot.vision and library.encoders.has_model else None
        about = None if model is None else model.about
        vision = StreamIndex(
            snapshot.vision,
            snapshot.gone,
            library.clip_seconds,
            library.paths.plan,
            spans=snapshot.spans,
            head=head_of(about),
            moments=None if about is None else about.moments,
        )
        speech = StreamIndex(snapshot.speech, snapshot.gone, library.clip_seconds, library.paths.speech_plan)
        return cls(library.catalog, snapshot, vision, speech)

    @cached_property
    def sound_labels(self) -> tuple[str, ...]:
        """All labels of sounds that were detected."""
        return tuple(sound_labels(self.catalog))

    @property
    def damaged(self) -> bool:
        """Whether vectors that are not finite were found so far."""
        return bool(self.vision.damaged_videos or self.speech.damaged_videos)

    def videos(self, ids: Iterable[int]) -> dict[int, Video]:
        """Videos by their ids; those that have just been removed are missing."""
        return _look_up(ids, self.known_videos, self.catalog.videos)

    def video_cards(self, ids: Iterable[int]) -> dict[int, VideoCard]:
        """The same as far as ranking and localising need them, which takes a fifth of the time."""
        return _look_up(ids, self.known_cards, self.catalog.video_cards)

    def find_spoken(self, videos: Sequence[int]) -> list[tuple[list[Cue], list[range]]]:
        """What is said in each of some videos: the cues, in the order of their vectors, and the passages."""
        known = self._spoken
        if len(known) + len(videos) > MAX_REMEMBERED_TRANSCRIPTS:
            known.clear()
        if new := [id for id in videos if id not in known]:
            found = self.catalog.own_cues_of(new, SPEECH)
            known.update((id, (cues, passages(cues))) for id, cues in found.items())
        return [known[id] for id in videos]


def _look_up(ids: Iterable[int], known: dict[int, V], read: Callable[[list[int]], Iterable[V]]) -> dict[int, V]:
    """Known or newly read videos by their ids; those that are not in the library are missing."""
    wanted = list(dict.fromkeys(ids))
    if new := [id for id in wanted if id not in known]:
        found = {video.id: video for video in read(new)}
        if len(known) + len(found) > MAX_KNOWN_VIDEOS:
            found |= {id: known[id] for id in wanted if id in known}
            known.clear()
        known.update(found)
    return {id: known[id] for id in wanted if id in known}
