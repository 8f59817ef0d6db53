"""Getting a model: from the hub, from a mirror, or from a folder that somebody carried over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from momentseek.atomic import drop_temporary, flush_folder
from momentseek.encoders.folders import models_folder
from momentseek.encoders.hashes import hashes, sha256
from momentseek.encoders.hub import lock
from momentseek.encoders.hub.catalogue import HubFile, HubModel
from momentseek.encoders.hub.download import MissingFileError, download
from momentseek.encoders.hub.trial import try_model
from momentseek.errors import MomentseekError
from momentseek.progress import ShowCount

MB = 1_000_000
MAX_SIZE_FACTOR = 4
"""A file whose hash is not known may be this many times larger than the catalogue says, and 10 MB more."""
POINTER = b"version https://git-lfs"
"""What a file begins with that Git has left on the server (LFS)."""


def missing_files(model: HubModel) -> list[str]:
    """The model's files that are not downloaded yet, or are not what they should be."""
    folder, first = lock.model_folder(model.name), lock.read_lock(model.name)
    pinned = {**first, **model.hashes}
    there = [file for file in model.files if file in first and (folder / file).is_file()]
    found = hashes(folder / file for file in there)
    return [file for file in model.files if file not in there or found[folder / file] != pinned[file]]


def fetch_model(
    model: HubModel,
    source: str | None = None,
    *,
    progress: ShowCount | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Path:
    """Make the model's folder complete, try the model, and give the folder.

    ``source`` is a URL or folder with the same files. ``progress`` is called with the megabytes that have arrived and
    those that are missing in all; ``note`` with what a person should know of the model that came.

    Every file is written beside its place and renamed when whole; its hash is written down at once, so that an
    interrupted download keeps what is finished.
    """
    source = source or model.address
    folder, first = lock.model_folder(model.name), lock.read_lock(model.name)
    missing = missing_files(model)
    _check_room(model, missing)
    report = progress or (lambda done, total: None)
    arrived, total = 0.0, sum(model.files[file].size for file in missing) / MB

    def advance(count: int) -> None:
        nonlocal arrived
        arrived += count / MB
        if total >= 1:  # some sizes are rounded, so that the end is not certain before the last file
            report(min(round(arrived), round(total) - 1), round(total))

    take = _download if "://" in source else _copy
    for file in missing:
        expected = HubFile(model.files[file].size, model.files[file].sha256 or first.get(file))
        first[file] = take(model, source, file, folder / file, expected, advance)
        lock.write_lock(model.name, source, first)
    if total >= 1:
        report(round(total), round(total))
    for problem in try_model(model, folder):
        note(problem)
    return folder


def _download(
    model: HubModel, source: str, file: str, target: Path, expected: HubFile, advance: Callable[[int], None]
) -> str:
    pinned = model.files[file].sha256 is not None
    limit = expected.size if pinned else expected.size * MAX_SIZE_FACTOR + 10 * MB
    try:
        return download(
            f"{source.rstrip('/')}/{file}",
            target,
            digest=expected.sha256,
            otherwise=lock.what_differs(model, file),
            limit=limit,
            advance=advance,
        )
    except MissingFileError as e:
        raise MomentseekError(f"{e}; {_by_hand(model, file)}") from None


def _by_hand(model: HubModel, file: str) -> str:
    """What to do if a file is not where it was: which one is looked for, and how it is given to us."""
    known = model.files[file]
    about = f"{known.size:,} bytes, SHA-256 {known.sha256}" if known.sha256 else f"about {known.size / MB:,.1f} MB"
    return (
        f"the repository may have been moved or laid out anew: look for {PurePosixPath(file).name} ({about}) of "
        f'{model.repository}, put it into a folder with the other files and name the folder (source="FOLDER")'
    )


def _copy(
    model: HubModel, source: str, file: str, target: Path, expected: HubFile, advance: Callable[[int], None]
) -> str:
    """From a folder, laid out as in the repository or flat."""
    places = [Path(source).expanduser() / file, Path(source).expanduser() / PurePosixPath(file).name]
    place = next((path for path in places if path.is_file()), None)
    if place is None:
        raise MomentseekError(
            f"{source}: has no {file}; give a folder with all files of the model: {', '.join(model.files)}"
        )
    temporary = target.with_name(f".{target.name}.copy")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, temporary)
        found = sha256(temporary)
        if expected.sha256 not in (None, found):
            raise MomentseekError(f"{place}: {_what_it_is(temporary) or lock.what_differs(model, file)}")
        temporary.replace(target)
        flush_folder(target.parent)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    finally:
        drop_temporary(temporary)
    advance(target.stat().st_size)
    return found


def _what_it_is(path: Path) -> str:
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            return "is a pointer of Git LFS, not the file itself; fetch it with `git lfs pull`"
    return ""


def _check_room(model: HubModel, missing: list[str]) -> None:
    root = models_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
    except OSError as e:
        raise MomentseekError(
            f"{root}: cannot be made ({e.strerror}); choose a folder with MOMENTSEEK_MODELS"
        ) from None
    need = sum(model.files[file].size for file in missing)
    if need > free:
        raise MomentseekError(
            f"{root}: has {free / MB:,.0f} MB free, the model needs {need / MB:,.0f} MB more; "
            "make room, or choose another folder with MOMENTSEEK_MODELS"
        )
