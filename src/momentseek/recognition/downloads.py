"""Models to download and encoders that are here: get one from the hub, a mirror or a folder, try it, and list all."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from momentseek.core.atomic import drop_temporary, flush_folder
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.progress import ShowCount
from momentseek.core.registry import did_you_mean
from momentseek.recognition.encoders import minilm, things
from momentseek.recognition.encoders.dual_encoder import DualEncoder, find_files, load_dual_encoder, read_json
from momentseek.recognition.encoders.protocol import Pixels
from momentseek.recognition.encoders.registry import HUB_PREFIX, IMAGE_TEXT_ENCODERS, TEXT_ENCODERS
from momentseek.recognition.weights import hub
from momentseek.recognition.weights.catalog import HUB_MODELS, HubFile, HubModel
from momentseek.recognition.weights.files import (
    PackagedWeights,
    are_installed,
    hashes,
    locate,
    models_folder,
    sha256,
    verify,
)
from momentseek.recognition.weights.hub import MissingFileError, download

COLOURS = {"red": (220, 20, 20), "green": (20, 160, 40), "blue": (20, 40, 220)}
FAINT_COLOUR = (142, 120, 130)
SENTENCE = "a plain {} picture"
PICTURE_PIXELS = 64
SAME_COSINE = 0.999
"""Cosine below which two vectors of one picture are not the same."""
SPEECH_MARK = b"WhisperSpec\0"
"""What CTranslate2 writes into a Whisper model, behind a version and the mark's length."""


def try_model(model: HubModel, folder: Path) -> list[str]:
    """What is doubtful about a downloaded model, in sentences; raises if it cannot be used."""
    if model.kind == "speech":
        _check_speech(model, folder)
        return []
    find_files(folder)  # complains if something is missing
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return [f"{model.name} was not tried, since what runs it is missing: pip install 'momentseek[search]'"]
    return _try_encoder(model, load_dual_encoder(folder, name=f"hub:{model.name}"), folder)


def _try_encoder(model: HubModel, encoder: DualEncoder, folder: Path) -> list[str]:
    faint = plain_picture(FAINT_COLOUR)
    *rows, together = encoder.encode_images([*(plain_picture(colour) for colour in COLOURS.values()), faint])
    lines = encoder.encode([SENTENCE.format(name) for name in COLOURS])
    if len(together) != model.dim:
        raise MomentseekError(
            f"{folder}: its vectors have {len(together)} numbers, {model.name} has {model.dim}; "
            f"these are files of another model, so get them from another source ({parameter('source')})"
        )
    problems = []
    names = list(COLOURS)
    seen = [names[int(np.argmax(lines @ row))] for row in rows]
    wrong = [pair for pair in zip(names, seen, strict=True) if pair[0] != pair[1]]
    if wrong:
        problems.append(
            f"{model.name} takes a {wrong[0][0]} picture for a {wrong[0][1]} one; "
            "it may be exported otherwise than we read it, so look at some searches before you add many videos"
        )
    if float(encoder.encode_images([faint])[0] @ together) < SAME_COSINE:
        problems.append(
            f"{model.name} gives a picture another vector alone than together with others; "
            "prefer an export without 8-bit weights"
        )
    return problems


def plain_picture(colour: tuple[int, int, int]) -> Pixels:
    """A picture of one colour."""
    return np.full((PICTURE_PIXELS, PICTURE_PIXELS, 3), colour, np.uint8)


def _check_speech(model: HubModel, folder: Path) -> None:
    for file in model.files:
        if not (folder / file).is_file():
            raise MomentseekError(f"{folder / file}: is missing; get it with: momentseek models get {model.name}")
        if file.endswith(".json") and not file.startswith("vocabulary"):
            read_json(folder / file)
    weights = folder / "model.bin"
    with weights.open("rb") as handle:
        head = handle.read(6 + len(SPEECH_MARK))
    length = struct.unpack("<IH", head[:6])[1] if len(head) > 6 else 0
    if length != len(SPEECH_MARK) or head[6:] != SPEECH_MARK:
        raise MomentseekError(
            f"{weights}: is no Whisper model in CTranslate2's form; get it from another source ({parameter('source')})"
        )


MB = 1_000_000
MAX_SIZE_FACTOR = 4
"""A file whose hash is not known may be this many times larger than the catalog says, and 10 MB more."""
POINTER = b"version https://git-lfs"
"""What a file begins with that Git has left on the server (LFS)."""


def missing_files(model: HubModel) -> list[str]:
    """The model's files that are not downloaded yet, or are not what they should be."""
    folder, first = hub.model_folder(model.name), hub.read_lock(model.name)
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

    Every file is written under another name and renamed when whole; its hash is written down at once, so that an
    interrupted download keeps what is finished.
    """
    source = source or model.address
    folder, first = hub.model_folder(model.name), hub.read_lock(model.name)
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
        hub.write_lock(model.name, source, first)
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
            otherwise=hub.what_differs(model, file),
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
        f"the repository may have been moved or rearranged: look for {PurePosixPath(file).name} ({about}) of "
        f"{model.repository}, put it into a folder with the other files and name the folder "
        f"({parameter('source', 'FOLDER')})"
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
            raise MomentseekError(f"{place}: {_what_it_is(temporary) or hub.what_differs(model, file)}")
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


EncoderKind = Literal["text", "image-text", "speech"]
EncoderState = Literal["ready", "absent", "damaged"]


@dataclass(frozen=True, kw_only=True)
class EncoderEntry:
    """An encoder, where it comes from, and whether its files are here and unchanged."""

    name: str
    kind: EncoderKind
    dim: int | None = None
    source: str = "registered"
    state: EncoderState = "ready"
    problem: str = ""
    megabytes: float | None = None
    licence: str = ""
    good_for: str = ""


def inventory(*, fresh: bool = False, only: str | None = None) -> list[EncoderEntry]:
    """All encoders, or the one called ``only``; ``fresh`` computes every hash again.

    >>> inventory(only="thinks")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no encoder 'thinks'; did you mean 'things'?
    """
    entries = _entries(fresh)
    if only is None:
        return [make() for make in entries.values()]
    for name in (only, f"{HUB_PREFIX}{only}"):
        if name in entries:
            return [entries[name]()]
    raise MomentseekError(f"there is no encoder {only!r}; {did_you_mean(only, entries)}")


def _entries(fresh: bool) -> dict[str, Callable[[], EncoderEntry]]:
    texts = minilm.ASSET
    about_texts = "comparing sentences, subtitles; English"
    about_things = "offline default: 1,000 kinds of things, no actions"
    found: dict[str, Callable[[], EncoderEntry]] = {
        "minilm": lambda: _from_packages("minilm", "text", (texts,), about_texts, fresh),
        "things": lambda: _from_packages("things", "image-text", (things.ASSET, texts), about_things, fresh, 417),
    }
    found |= {_spec(model): partial(_downloadable, model, fresh) for model in HUB_MODELS.values()}
    for name in (*TEXT_ENCODERS, *IMAGE_TEXT_ENCODERS):
        kind: EncoderKind = "text" if name in TEXT_ENCODERS else "image-text"
        found.setdefault(name, partial(EncoderEntry, name=name, kind=kind))
    return found


def _from_packages(
    name: str, kind: EncoderKind, assets: tuple[PackagedWeights, ...], good_for: str, fresh: bool, dim: int = 384
) -> EncoderEntry:
    def check() -> None:
        for asset in assets:
            verify(asset, fresh=fresh)

    state, problem = _state(check, not are_installed(*assets))
    return EncoderEntry(
        name=name,
        kind=kind,
        dim=dim,
        source="package " + ", ".join(asset.package for asset in assets),
        state=state,
        problem=problem,
        megabytes=_size_of(assets),
        licence="Apache-2.0",
        good_for=good_for,
    )


def _downloadable(model: HubModel, fresh: bool) -> EncoderEntry:
    absent = not hub.lock_file(model.name).exists() or not hub.model_folder(model.name).is_dir()
    state, problem = _state(lambda: hub.check_model(model, fresh=fresh), absent)
    return EncoderEntry(
        name=_spec(model),
        kind=model.kind,
        dim=model.dim,
        source=model.repository,
        state=state,
        problem=problem,
        megabytes=round(model.megabytes),
        licence=model.licence,
        good_for=model.good_for,
    )


def _spec(model: HubModel) -> str:
    """What a command calls it: a recogniser goes by its bare name."""
    return model.name if model.kind == "speech" else f"{HUB_PREFIX}{model.name}"


def _state(check: Callable[[], object], absent: bool) -> tuple[EncoderState, str]:
    try:
        check()
    except MomentseekError as e:
        return ("absent" if absent else "damaged"), str(e)
    return "ready", ""


def _size_of(assets: tuple[PackagedWeights, ...]) -> float | None:
    size = 0
    with suppress(MomentseekError, OSError):
        for asset in assets:
            folder: Path = locate(asset)
            size += sum((folder / name).stat().st_size for name in asset.files)
        return round(size / 1e6)
    return None
