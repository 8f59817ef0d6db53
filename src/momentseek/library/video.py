"""Videos of a library: what the catalog knows of a file, and which videos a name or a pattern selects."""

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
    """A video that is wholly in the library.

    ``id`` is never used again, also not for a changed version of the same file. ``name`` is how people call it: its
    path relative to the folder that was added, or its file name.
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
    """What was odd about the file: a broken tail, a subtitle file that could not be read."""
    audio: bool = False
    """Whether the video has sound."""
    sampling: Sampling = "exact"
    """How its pictures were chosen when it was added; encoding it again chooses the same."""
    recorded: float | None = None
    """When it was recorded, in seconds since 1970, if the file says so."""
    place: tuple[float, float] | None = None
    """Latitude and longitude in degrees of where it was recorded, if the file says so."""
    changed: bool = False
    """Whether the file has changed since and could not be read then, so that the moments are those of the old file."""

    @property
    def date(self) -> float:
        """The time that ``after:`` and ``before:`` go by, in seconds since 1970: of the recording, or of the file."""
        return self.mtime_ns / 1e9 if self.recorded is None else self.recorded

    @property
    def file(self) -> PinnedFile:
        """The file that was added, to read from; what is no longer that file is refused, and so are links."""
        return PinnedFile(self.path, self.size, self.mtime_ns)


@dataclass(frozen=True)
class Failure:
    """A file that could not be added, and why."""

    path: Path
    reason: str
    at: float
    tries: int


def is_missing(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether the file of a video is gone: not on this machine, and no copy of one in object storage."""
    return not os.path.lexists(path) and not is_elsewhere(path)


def matcher(patterns: Iterable[str], *, within: bool = False) -> Callable[[str], bool]:
    """A function that tells whether a name matches any of the globs, whatever the case and the coding of accents.

    ``*`` means anything, ``?`` one character, ``[abc]`` one of these, ``[!abc]`` or ``[^abc]`` one of the others. A
    glob is tried on the whole name and on its last part. A pattern without any of these is the name itself, or with
    ``within`` a part of it.

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
    """A text as names are compared: without case, and with accents coded one way (files from a Mac have them apart).

    >>> fold("A\\u0308RGER") == fold("ärger")
    True
    """
    return normalize("NFC", normalize("NFC", text).casefold())


def name_text(name: str) -> str:
    """The words of a video's name, as the name stream searches them.

    >>> name_text("Holiday_2019/BeachWalk-part2.mp4")
    'Holiday 2019 Beach Walk part 2'
    """
    stem = re.sub(r"\.\w{1,5}$", "", name)
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])", " ", stem)
    return " ".join(re.findall(r"\w+", spaced.replace("_", " ")))


class VideoPlace(NamedTuple):
    """What a video is meant by: its path, or its name."""

    id: int
    path: str
    name: str


FindPlaces = Callable[[Collection[str] | None], list[VideoPlace]]
"""The videos at some paths, or all videos."""


def select_videos(find: FindPlaces, patterns: Sequence[str], missing: bool = False) -> list[int]:
    """Ids of the videos that any of the patterns means: a file's path, a folder's path, a video's name or a glob for
    names.

    A path means its own file and no other, even where it could be read as a glob (see ``matcher``). All videos are
    looked through only for the other patterns.
    """
    paths = {pattern: {os.path.abspath(pattern), os.path.realpath(pattern)} for pattern in patterns}
    at = {place.path: place.id for place in find(set().union(*paths.values()))} if patterns else {}
    others = [pattern for pattern in patterns if at.keys().isdisjoint(paths[pattern])]
    every = find(None) if others or missing else []
    chosen = set(at.values())
    for pattern in others:
        found = _match_videos(every, pattern, paths[pattern])
        if not found:
            raise MomentseekError(f"{printable(pattern)}: is no video of this library; list them with: momentseek list")
        chosen.update(found)
    if missing:
        chosen.update(place.id for place in every if is_missing(place.path))
    return sorted(chosen)


def _match_videos(places: Sequence[VideoPlace], pattern: str, paths: set[str]) -> list[int]:
    folders = tuple(os.path.join(path, "") for path in paths)
    matches = matcher([pattern])
    return [place.id for place in places if place.path.startswith(folders) or matches(place.name)]
