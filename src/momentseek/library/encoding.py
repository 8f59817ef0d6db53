"""Which encoders a library uses, and that they are still the same."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from momentseek.encoders.protocol import ImageTextEncoder, TextEncoder, fingerprint
from momentseek.encoders.registry import MODEL
from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.paths import LibraryPaths
from momentseek.trained.encoder import TrainedEncoder, load_trained_encoder, resolve_encoder
from momentseek.trained.manifest import CLIPS_GRAPH, MANIFEST_FILE, WORDS_GRAPH, read_kind
from momentseek.trained.manifest import read_encoder_manifest as manifest

DEFAULT = "labels"
SPEECH = "minilm"
DIGITS = 16
"""Of a model's fingerprint, in the name of its folder in the library."""


def check_spec(catalog: Catalog, spec: str, library: Path) -> None:
    """Refuse to mix: vectors of two encoders cannot be compared."""
    used = vision_spec(catalog)
    if named(spec) != used:
        raise MomentseekError(
            f"{library}: its vectors were made by {used!r}, and {spec!r} cannot be mixed with it; "
            f"to make them all anew run: {command(library, spec)}"
        )


def vision_spec(catalog: Catalog) -> str:
    """The spec of the encoder of frames."""
    row = catalog.encoder("vision")
    return row.spec if row else str(catalog.get("encoder", DEFAULT))


def vision(catalog: Catalog, library: Path) -> ImageTextEncoder:
    """The encoder of frames; refused if it is not the one that made the vectors, although it has its name."""
    spec = vision_spec(catalog)
    encoder = load(spec, library)
    row = catalog.encoder("vision")
    if row is not None and not is_by(row, encoder):
        raise MomentseekError(
            f"{library}: its vectors were made by another {spec!r} than the one here ({row.name}); "
            f"bring that back, or make them anew: {command(library, spec)}"
        )
    return encoder


def speech(catalog: Catalog, library: Path) -> TextEncoder | None:
    """The encoder of cues; None where it is not installed and the library has no vectors by it either."""
    from momentseek.encoders import text_encoder

    row = catalog.encoder("speech")
    if row is None:
        return speech_encoder()
    encoder = text_encoder(row.spec)
    if not is_by(row, encoder):
        raise MomentseekError(
            f"{library}: what is said was encoded by another {row.spec!r} than the one here; "
            f"bring that back, or encode anew: {command(library, vision_spec(catalog))}"
        )
    return encoder


def speech_encoder() -> TextEncoder | None:
    """The encoder of cues, if it is installed."""
    from momentseek.encoders import text_encoder

    try:
        return text_encoder(SPEECH)
    except MomentseekError:
        return None


def load(spec: str, library: Path) -> ImageTextEncoder:
    """An image-text encoder by its spec; a model from the library's own copy of it."""
    return resolve_encoder(f"{MODEL}{_copy(spec, library)}" if spec.startswith(MODEL) else spec)


def model_kind(catalog: Catalog, library: Path) -> str:
    """What the library's trained model keeps vectors of, asked without loading it; empty where there is none."""
    spec = vision_spec(catalog)
    return read_kind(_copy(spec, library)) if spec.startswith(MODEL) else ""


def span_rows(catalog: Catalog, library: Path) -> Callable[[int], int]:
    """How many rows for spans a video has, by its clips: one each, or as many as a map model keeps moments."""
    spec = vision_spec(catalog)
    if model_kind(catalog, library) != "map":
        return lambda clips: clips
    moments = manifest(_copy(spec, library)).moments
    assert moments is not None
    return lambda clips: len(moments.of(clips)) if clips else 0


def _copy(spec: str, library: Path) -> Path:
    """The folder of the library's own copy of its model; refused if a part of it is gone."""
    folder = LibraryPaths(library).models / spec.removeprefix(MODEL)
    if not all((folder / name).is_file() for name in (MANIFEST_FILE, CLIPS_GRAPH, WORDS_GRAPH)):
        raise MomentseekError(
            f"{library}: the library's copy of its model is gone; make its vectors anew: "
            f"momentseek reencode --model FOLDER --library {shlex.quote(str(library))}"
        )
    return folder


def named(spec: str) -> str:
    """A spec as the catalog keeps it: a model goes by its fingerprint, wherever its folder lies."""
    if not spec.startswith(MODEL):
        return spec
    return f"{MODEL}{manifest(_folder(spec)).fingerprint[:DIGITS]}"


def check_model(spec: str | None, clip_seconds: float) -> None:
    """Refuse, before a library is made, a model that could not be used in it."""
    if spec is None or not spec.startswith(MODEL):
        return
    model = load_trained_encoder(_folder(spec))
    if abs(model.about.clip_seconds - clip_seconds) > 1e-9:
        raise MomentseekError(
            f"{_folder(spec)}: was trained on clips of {model.about.clip_seconds:g} s, and the library has clips of "
            f"{clip_seconds:g} s; make one with --clip-seconds {model.about.clip_seconds:g}"
        )
    model.check_speech(speech_encoder())
    if model.frames.dim != model.about.video.dim or model.texts.dim != model.about.query.dim:  # type: ignore[union-attr]
        raise MomentseekError(f"{_folder(spec)}: was trained on vectors of other sizes than its encoders give here")


def adopted(spec: str, library: Path) -> str:
    """The spec by which a library knows an encoder; a trained model is copied into the library first."""
    if not spec.startswith(MODEL):
        return spec
    found = named(spec)
    target = LibraryPaths(library).models / found.removeprefix(MODEL)
    if _whole(target):
        return found
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
        try:
            beside.chmod(0o755)
            for name in (MANIFEST_FILE, CLIPS_GRAPH, WORDS_GRAPH):
                shutil.copyfile(_folder(spec) / name, beside / name)
            shutil.rmtree(target, ignore_errors=True)  # what is left of a copy that lost a part
            beside.replace(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as e:
        raise MomentseekError(f"{target}: the model cannot be copied there ({e.strerror}); make room") from None
    return found


def _whole(copy: Path) -> bool:
    try:
        manifest(copy)
    except MomentseekError:
        return False
    return True


def _folder(spec: str) -> Path:
    return Path(spec.removeprefix(MODEL)).expanduser().absolute()


def row_of(stream: str, spec: str, encoder: TextEncoder) -> EncoderRow:
    """What the catalog keeps of an encoder."""
    return EncoderRow(stream, spec, encoder.name, fingerprint(encoder) or encoder.name, encoder.dim)


def is_by(row: EncoderRow, encoder: TextEncoder) -> bool:
    """Whether an encoder is the one that the catalog keeps."""
    return row.fingerprint == row_of(row.stream, row.spec, encoder).fingerprint


def spans_row(spec: str, model: TrainedEncoder) -> EncoderRow:
    """What the catalog keeps of a model's vectors for spans."""
    return EncoderRow("spans", spec, model.name, model.fingerprint, model.about.spans)


def command(library: Path, spec: str) -> str:
    """The command that makes a library's vectors anew."""
    return f"momentseek reencode --library {shlex.quote(str(library))} --encoder {shlex.quote(spec)}"
