"""Videos of a library, and their selection by name or pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from momentseek.core.errors import MomentseekError
from momentseek.core.pinned_file import PinnedFile
from momentseek.library.file_stamp import printable
from momentseek.library.location import is_elsewhere
from momentseek.media.decode import Sampling


@dataclass(frozen=True)
class Video:
    """A video in the library.

    An ``id`` is never reused, not even for a changed version of the same file. ``name`` is for display: the path
    relative to the folder that was added, or the file name.
    """

    id: int
    path: Path
    name: str
    size: int
    mtime_ns: int
    hash: str
    """Hash of the file's bytes."""
    duration: float
    width: int
    height: int
    rate: Fraction
    codec: str
    clips: int
    cues: int
    shots: tuple[float, ...]
    """Times at which new shots begin, in seconds."""
    added: float
    """When the video was added, in seconds since 1970."""
    notes: tuple[str, ...] = ()
    """Problems with the file, such as a damaged end or an unreadable subtitle file."""
    audio: bool = False
    """Whether the video has sound."""
    sampling: Sampling = "exact"
    """How frames were sampled when it was added; encoding it again uses the same sampling."""
    recorded: float | None = None
    """When it was recorded, in seconds since 1970, if the file says so."""
    place: tuple[float, float] | None = None
    """Latitude and longitude in degrees of where it was recorded, if the file says so."""
    changed: bool = False
    """Whether the file has changed and could not be read, so that its moments are those of the old file."""

    @property
    def date(self) -> float:
        """The time that ``after:`` and ``before:`` use, in seconds since 1970: of the recording, or of the file."""
        return self.mtime_ns / 1e9 if self.recorded is None else self.recorded

    @property
    def file(self) -> PinnedFile:
        """The file that was added, for reading; raises an error if it has been replaced, or is a link."""
        return PinnedFile(self.path, self.size, self.mtime_ns)


class VideoCard(NamedTuple):
    """The properties of a video that ranking and localising need."""

    id: int
    duration: float
    hash: str
    shots: tuple[float, ...] = ()
    part: int = 0
    """The part of the library that has it."""


AnyVideo = Video | VideoCard


@dataclass(frozen=True)
class Failure:
    """A file that could not be added, and why."""

    path: Path
    reason: str
    at: float
    tries: int


def is_missing(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether the file of a video is missing: not on this machine, and not a copy of a file in object storage."""
    return not os.path.lexists(path) and not is_elsewhere(path)


def matcher(patterns: Iterable[str], *, within: bool = False) -> Callable[[str], bool]:
    """Return a function that tells whether a name matches any of the globs, ignoring case and the encoding of accents.

    ``*`` matches anything, ``?`` one character, ``[abc]`` one of these, ``[!abc]`` or ``[^abc]`` one of the others. A
    glob is compared with the whole name and with its last part. A pattern without wildcards must equal the name, or,
    with ``within``, be a part of it.

    >>> holiday = matcher(["holiday*"])
    >>> [name for name in ("Holiday.mp4", "2019/holiday 2.mp4", "my holiday.mp4") if holiday(name)]
    ['Holiday.mp4', '2019/holiday 2.mp4']
    >>> matcher(["ärger"], within=True)("Ärger im Büro.mp4"), matcher(["[^a]*"])("b.mp4"), matcher(["b"])("b.mp4")
    (True, True, False)
    """
    exact: set[str] = set()
    globs: list[str] = []
    for pattern in map(fold, patterns):
        exact.add(pattern)  # a name may have brackets in it
        if any(c in pattern for c in "*?["):
            globs.append(translate(re.sub(r"\[\^(?=[^]]|\].*\])", "[!", pattern)))
        elif within:
            globs.append(translate(f"*{pattern}*"))
    compiled = [re.compile(glob) for glob in globs]

    def matches(name: str) -> bool:
        whole = fold(name)
        forms = {whole, whole.rsplit("/", 1)[-1]}
        return not exact.isdisjoint(forms) or any(glob.match(form) for glob in compiled for form in forms)

    return matches


def fold(text: str) -> str:
    """Normalise a text for comparing names: without case, and with composed accents (macOS decomposes them).

    >>> fold("A\\u0308RGER") == fold("ärger")
    True
    """
    return normalize("NFC", normalize("NFC", text).casefold())


def name_text(name: str) -> str:
    """The words of a video's name, for the name stream.

    >>> name_text("Holiday_2019/BeachWalk-part2.mp4")
    'Holiday 2019 Beach Walk part 2'
    """
    stem = re.sub(r"\.\w{1,5}$", "", name)
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])", " ", stem)
    return " ".join(re.findall(r"\w+", spaced.replace("_", " ")))


class VideoPlace(NamedTuple):
    """The path and the name of a video, by which it can be selected."""

    id: int
    path: str
    name: str


FindPlaces = Callable[[Collection[str] | None], list[VideoPlace]]
"""The videos at some paths, or all videos."""


def select_videos(find: FindPlaces, patterns: Sequence[str], missing: bool = False) -> list[int]:
    """Ids of the videos that match any of the patterns: paths of files or folders, names, or globs for names.

    The path of a file selects only that file, even if it could be read as a glob (see ``matcher``). All videos are
    listed only if there are other patterns.
    """
    paths = {pattern: {os.path.abspath(pattern), os.path.realpath(pattern)} for pattern in patterns}
    at = {place.path: place.id for place in find(set().union(*paths.values()))} if patterns else {}
    others = [pattern for pattern in patterns if at.keys().isdisjoint(paths[pattern])]
    every = find(None) if others or missing else []
    chosen = set(at.values())
    for pattern in others:
        found = _match_videos(every, pattern, paths[pattern])
        if not found:
            raise MomentseekError(
                f"{printable(pattern)}: is not a video of this library; list them with: momentseek list"
            )
        chosen.update(found)
    if missing:
        chosen.update(place.id for place in every if is_missing(place.path))
    return sorted(chosen)


def _match_videos(places: Sequence[VideoPlace], pattern: str, paths: set[str]) -> list[int]:
    folders = tuple(os.path.join(path, "") for path in paths)
    matches = matcher([pattern])
    return [place.id for place in places if place.path.startswith(folders) or matches(place.name)]
