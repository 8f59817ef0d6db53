"""Which of a video's subtitles to search."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.media.cue import Cue
from momentseek.media.subtitles.beside import Sidecar, find_sidecars
from momentseek.media.subtitles.embedded import TextTrack, by_preference, text_tracks, track_cues
from momentseek.media.subtitles.languages import preference
from momentseek.media.subtitles.merge import MAX_CUES_PER_SECOND, join_sentences, thin_out
from momentseek.media.subtitles.read import read_subtitles


@dataclass(frozen=True)
class VideoCues:
    """What is said in a video, and where that was found."""

    cues: tuple[Cue, ...] = ()
    """Cues joined into sentences, by start."""
    sources: tuple[str, ...] = ()
    """Where they come from: a subtitle file's path, or a track of the video."""
    problems: tuple[str, ...] = ()
    """What could not be read, one sentence each; none of it is fatal."""


def cues_of(
    video: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    languages: Sequence[str] | None = None,
    duration: float | None = None,
    links: bool = True,
) -> VideoCues:
    """What is said in a video, from the best subtitles it has, joined into sentences.

    Subtitles in ``folder`` go before those beside the video, and those before tracks inside it; of each kind the first
    of ``languages`` that is there wins (unnamed, English and others follow), complete subtitles before those with
    forced cues alone, which come last of all. A file that cannot be read is noted as a problem and the next one taken.
    Given the video's ``duration`` in seconds, more cues than anybody could say in it are left out, which is noted too.
    Subtitle files that are links, or lie behind one, are read only with ``links``.
    """
    wanted = tuple(languages or ())
    problems: list[str] = []
    for source in _sources(video, folder, wanted, problems):
        try:
            if isinstance(source, Sidecar):
                found, name = read_subtitles(source.file(links), source.language), str(source.path)
            else:
                found, name = track_cues(video, source), str(source)
        except MomentseekError as e:
            problems.append(str(e))
            continue
        if found:
            joined = join_sentences(found)
            kept = joined if duration is None else thin_out(joined, duration)
            if len(kept) < len(joined):
                problems.append(
                    f"{name}: {len(joined) - len(kept):,} of {len(joined):,} cues left out, more than "
                    f"{MAX_CUES_PER_SECOND} per second of video; check that the subtitles belong to it"
                )
            return VideoCues(tuple(kept), (name,), tuple(problems))
    return VideoCues(problems=tuple(problems))


def _sources(
    video: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None,
    languages: tuple[str, ...],
    problems: list[str],
) -> Iterator[Sidecar | TextTrack]:
    """Everything that may hold the words, best first; the video is opened only when its turn comes."""
    files = _files_by_preference(find_sidecars(video, folder), folder, languages)
    yield from (file for file in files if "forced" not in file.flags)
    inside: list[TextTrack] = []
    try:
        inside = by_preference(text_tracks(video), languages)
    except MomentseekError as e:
        problems.append(str(e))
    yield from (track for track in inside if "forced" not in track.flags)
    yield from (file for file in files if "forced" in file.flags)
    yield from (track for track in inside if "forced" in track.flags)


def _files_by_preference(
    files: Sequence[Sidecar], folder: str | os.PathLike[str] | None, languages: tuple[str, ...]
) -> list[Sidecar]:
    given = None if folder is None else Path(folder)

    def key(file: Sidecar) -> tuple[bool, int, str, bool]:
        elsewhere = given is not None and given not in file.path.parents
        return (elsewhere, *preference(file.language, languages), "sdh" in file.flags)

    return sorted(files, key=key)
