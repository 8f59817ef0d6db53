"""Getting a model: from the hub, from a mirror, or from a folder that somebody carried over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from momentseek.encoders.dual_encoder.files import find_files
from momentseek.encoders.folders import models_folder
from momentseek.encoders.hashes import hashes
from momentseek.encoders.hub import lock
from momentseek.encoders.hub.catalogue import HubModel
from momentseek.encoders.hub.download import download
from momentseek.errors import MomentseekError
from momentseek.progress import ShowCount

MB = 1_000_000
MAX_SIZE_FACTOR = 4
"""A file may be this many times larger than the catalogue says (whose sizes are rounded), and 10 MB more."""


def missing_files(model: HubModel) -> list[str]:
    """The model's files that are not downloaded yet, or have changed since."""
    folder, pinned = lock.model_folder(model.name), lock.read_lock(model.name)
    there = [file for file in model.files if file in pinned and (folder / file).is_file()]
    found = hashes(folder / file for file in there)
    return [file for file in model.files if file not in there or found[folder / file] != pinned[file]]


def fetch_model(model: HubModel, source: str | None = None, *, progress: ShowCount | None = None) -> Path:
    """Make the model's folder complete, and give it; ``source`` is a URL or folder with the same files.

    ``progress`` is called with the megabytes that have arrived and those that are missing in all, by the catalogue.

    Every file is written beside its place and renamed when whole; its hash is written down at once, so that an
    interrupted download keeps what is finished.
    """
    source = source or model.address
    folder, digests = lock.model_folder(model.name), lock.read_lock(model.name)
    missing = missing_files(model)
    _check_room(model, missing)
    report = progress or (lambda done, total: None)
    arrived, total = 0.0, sum(model.files[file] for file in missing)

    def advance(count: int) -> None:
        nonlocal arrived
        arrived += count / MB
        if total >= 1:  # the catalogue's sizes are rounded, so that the end is not certain before the last file
            report(min(round(arrived), round(total) - 1), round(total))

    take = _download if "://" in source else _copy
    for file in missing:
        digests[file] = take(source, file, folder / file, digests.get(file), _limit(model.files[file]), advance)
        lock.write_lock(model.name, source, digests)
    if total >= 1:
        report(round(total), round(total))
    find_files(folder)  # complains if something is missing
    return folder


def _download(
    source: str, file: str, target: Path, digest: str | None, limit: int, advance: Callable[[int], None]
) -> str:
    return download(f"{source.rstrip('/')}/{file}", target, digest=digest, limit=limit, advance=advance)


def _copy(source: str, file: str, target: Path, digest: str | None, limit: int, advance: Callable[[int], None]) -> str:
    """From a folder, laid out as in the repository or flat."""
    places = [Path(source).expanduser() / file, Path(source).expanduser() / PurePosixPath(file).name]
    place = next((path for path in places if path.is_file()), None)
    if place is None:
        raise MomentseekError(f"{source}: has no {file}; give a folder with all files of the model")
    temporary = target.with_name(f".{target.name}.copy")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, temporary)
        found = hashes([temporary])[temporary]
        if digest is not None and found != digest:
            raise MomentseekError(f"{place}: is not the file that was downloaded first (its SHA-256 differs)")
        temporary.replace(target)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    finally:
        temporary.unlink(missing_ok=True)
    advance(target.stat().st_size)
    return found


def _check_room(model: HubModel, missing: list[str]) -> None:
    root = models_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
    except OSError as e:
        raise MomentseekError(
            f"{root}: cannot be made ({e.strerror}); choose a folder with MOMENTSEEK_MODELS"
        ) from None
    need = sum(model.files[file] for file in missing) * MB
    if need > free:
        raise MomentseekError(
            f"{root}: has {free / MB:,.0f} MB free, the model needs {need / MB:,.0f} MB more; "
            "make room, or choose another folder with MOMENTSEEK_MODELS"
        )


def _limit(megabytes: float) -> int:
    return int(megabytes * MB * MAX_SIZE_FACTOR + 10 * MB)
