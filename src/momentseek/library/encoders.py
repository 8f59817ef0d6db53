"""The encoders of a library: which ones it uses, whether they are unchanged, and its copy of a trained model."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from momentseek.core.atomic import make_folder, write_all
from momentseek.core.errors import MomentseekError, parameter
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.paths import LibraryPaths
from momentseek.recognition.encoders.fused import SEPARATOR, FusedEncoder
from momentseek.recognition.encoders.protocol import ImageTextEncoder, TextEncoder, fingerprint
from momentseek.recognition.encoders.registry import (
    FILE_PREFIX,
    HUB_PREFIX,
    IMAGE_TEXT_ENCODERS,
    MEAN_PREFIX,
    MODEL_PREFIX,
    REMOVED_ENCODER,
    image_text_encoder,
    text_encoder,
)
from momentseek.recognition.exported.encoder import TrainedEncoder, load_trained_encoder, resolve_encoder
from momentseek.recognition.exported.manifest import (
    CLIPS_GRAPH,
    MANIFEST_FILE,
    WORDS_GRAPH,
    read_encoder_manifest,
    read_kind,
)

FIRST_ENCODER = "things"
"""The spec of the encoder that makes a new library searchable first; earlier versions used it alone."""
DEFAULT_ENCODER = "things+clip"
"""The default spec of a new library's image-text encoder."""
SHOWN_NAMES = {"clip": "CLIP"}
"""Names of encoders in sentences, if they differ from their specs."""
ENCODER_VARIABLE = "MOMENTSEEK_ENCODER"
"""Environment variable that names another encoder for new libraries."""
SPEECH_ENCODER = "minilm"
"""The spec of the text encoder of cues."""
FINGERPRINT_DIGITS = 16
"""Digits of a model's fingerprint in the name of its folder in the library."""


class LibraryEncoders:
    """The encoders that make a library's vectors, each loaded on first use."""

    def __init__(self, catalog: Catalog, paths: LibraryPaths) -> None:
        self._catalog, self._folder = catalog, paths.folder
        self._vision: ImageTextEncoder | None = None
        self._speech: TextEncoder | None = None

    @property
    def vision(self) -> ImageTextEncoder:
        """The encoder of the library's frames; raises an error if it is not the one that made the vectors."""
        if self._vision is None:
            spec = vision_spec(self._catalog)
            row = self._catalog.encoder("vision")
            try:
                encoder = load_encoder(spec, self._folder)
            except MomentseekError:
                known = not spec.isidentifier() or spec == REMOVED_ENCODER or spec in IMAGE_TEXT_ENCODERS
                if row is None or known:
                    raise
                raise MomentseekError(
                    f"{self._folder}: its vectors were made by the encoder {spec!r} of a plug-in, which is missing; "
                    f"install the plug-in, or load its file: {parameter('plugin', 'FILE')}"
                ) from None
            if row is not None and not is_by(row, encoder):
                raise MomentseekError(
                    f"{self._folder}: its vectors were made by another version of {spec!r} than the one here; "
                    f"restore that version, or encode the videos again: {reencode_command(self._folder, spec)}"
                )
            self._vision = encoder
        return self._vision

    @property
    def speech(self) -> TextEncoder | None:
        """The encoder of cues; None if it is not installed and the library has no vectors of it."""
        if self._speech is None:
            row = self._catalog.encoder("speech")
            encoder = installed_speech_encoder() if row is None else text_encoder(row.spec)
            if row is not None and encoder is not None and not is_by(row, encoder):
                raise MomentseekError(
                    f"{self._folder}: what is said was encoded by another {row.spec!r} than the one here; "
                    "restore that version, or encode again: "
                    f"{reencode_command(self._folder, vision_spec(self._catalog))}"
                )
            self._speech = encoder
        return self._speech

    @property
    def model(self) -> TrainedEncoder | None:
        """The trained model that makes the library's vectors; None if none does."""
        return encoder if isinstance(encoder := self.vision, TrainedEncoder) else None

    @property
    def fused(self) -> FusedEncoder | None:
        """The library's two encoders in one; None if it has only one."""
        return encoder if isinstance(encoder := self.vision, FusedEncoder) else None

    @property
    def has_model(self) -> bool:
        """Whether a trained model makes the library's vectors, answered without loading it."""
        return vision_spec(self._catalog).startswith(MODEL_PREFIX)

    @property
    def model_kind(self) -> str:
        """``clips`` or ``map``: what the trained model keeps vectors of, read without loading it; or empty."""
        return model_kind(self._catalog, self._folder)

    def for_queries(self, stream: str) -> TextEncoder:
        """The encoder of queries to a stream: ``vision``, ``speech``, or a trained model's ``spans``."""
        if stream == "vision":
            return self.vision
        if stream == "spans" and self.model is not None:
            return self.model.for_spans
        if self.speech is None:
            raise MomentseekError("the text encoder minilm is not installed; get it with: momentseek models get minilm")
        return self.speech

    def forget(self) -> None:
        """Unload the encoders; the next use loads those of the catalog."""
        self._vision = self._speech = None

    def forget_others(self, rows: Iterable[EncoderRow]) -> None:
        """Unload encoders that ``rows`` do not name, because another process may have made the vectors again."""
        for row in rows:
            if row.stream == "vision" and self._vision is not None and not is_by(row, self._vision):
                self._vision = None
            if row.stream == "speech" and self._speech is not None and not is_by(row, self._speech):
                self._speech = None


def check_spec(catalog: Catalog, spec: str, library: Path) -> None:
    """Refuse an encoder other than the library's, because vectors of two encoders cannot be compared."""
    used = vision_spec(catalog)
    if catalogued_spec(spec) != used:
        raise MomentseekError(
            f"{library}: its vectors were made by {used!r}, and {spec!r} cannot be mixed with it; "
            f"to make them all again run: {reencode_command(library, spec)}"
        )


def default_encoder() -> str:
    """The spec of a new library's encoder if none is named: from the environment, or the default."""
    return os.environ.get(ENCODER_VARIABLE, "").strip() or DEFAULT_ENCODER


def second_encoder(spec: str) -> str:
    """The display name of the second of two encoders; empty if a spec names only one.

    >>> second_encoder("things+clip"), second_encoder("things")
    ('CLIP', '')
    """
    first, _, second = spec.partition(SEPARATOR)
    if first.startswith((FILE_PREFIX, HUB_PREFIX, MODEL_PREFIX, MEAN_PREFIX)):
        return ""
    return SHOWN_NAMES.get(second, second)


def vision_spec(catalog: Catalog) -> str:
    """The spec of the encoder that makes a library's vectors of frames."""
    row = catalog.encoder("vision")
    return row.spec if row else str(catalog.get("encoder", FIRST_ENCODER))


def installed_speech_encoder() -> TextEncoder | None:
    """The encoder of cues; None if it is not installed."""
    try:
        return text_encoder(SPEECH_ENCODER)
    except MomentseekError:
        return None


def load_encoder(spec: str, library: Path) -> ImageTextEncoder:
    """An image-text encoder by its spec; a trained model is loaded from the library's own copy of it."""
    if not spec.startswith(MODEL_PREFIX):
        return image_text_encoder(spec)

    return resolve_encoder(f"{MODEL_PREFIX}{_model_copy(spec, library)}")


def model_kind(catalog: Catalog, library: Path) -> str:
    """What the library's trained model keeps vectors of, read without loading it; empty if there is no model."""
    spec = vision_spec(catalog)
    if not spec.startswith(MODEL_PREFIX):
        return ""

    return read_kind(_model_copy(spec, library))


def span_rows(catalog: Catalog, library: Path) -> Callable[[int], int]:
    """A function that maps a video's number of clips to its number of rows for spans.

    There is one row for each clip, or for each moment of a map model.
    """
    spec = vision_spec(catalog)
    if model_kind(catalog, library) != "map":
        return lambda clips: clips

    moments = read_encoder_manifest(_model_copy(spec, library)).moments
    assert moments is not None
    return lambda clips: len(moments.of(clips)) if clips else 0


def _model_copy(spec: str, library: Path) -> Path:
    """The folder of the library's copy of its model; raises MomentseekError if a file is missing."""

    folder = LibraryPaths(library).models / spec.removeprefix(MODEL_PREFIX)
    if not all((folder / name).is_file() for name in (MANIFEST_FILE, CLIPS_GRAPH, WORDS_GRAPH)):
        raise MomentseekError(
            f"{library}: the library's copy of its model is gone; make its vectors again: "
            f"momentseek reencode --model FOLDER --library {shlex.quote(str(library))}"
        )
    return folder


def catalogued_spec(spec: str) -> str:
    """A spec as it is stored in the catalog: a model is named by its fingerprint, not by its folder."""
    if not spec.startswith(MODEL_PREFIX):
        return spec

    return f"{MODEL_PREFIX}{read_encoder_manifest(_model_folder(spec)).fingerprint[:FINGERPRINT_DIGITS]}"


def check_model(spec: str | None, clip_seconds: float) -> None:
    """Refuse a model that cannot be used in a library, before the library is created."""
    if spec is None or not spec.startswith(MODEL_PREFIX):
        return

    folder = _model_folder(spec)
    model = load_trained_encoder(folder)
    if abs(model.about.clip_seconds - clip_seconds) > 1e-9:
        raise MomentseekError(
            f"{folder}: was trained on clips of {model.about.clip_seconds:g} s, and the library has clips of "
            f"{clip_seconds:g} s; make one with clip_seconds={model.about.clip_seconds:g}"
        )
    model.check_speech(installed_speech_encoder())
    if model.frames.dim != model.about.video.dim or model.texts.dim != model.about.query.dim:  # type: ignore[union-attr]
        raise MomentseekError(f"{folder}: was trained on vectors of other sizes than its encoders give here")


def adopt_encoder(spec: str, library: Path) -> str:
    """Return the encoder spec to store in a library's catalog; a trained model is first copied into the library."""
    if not spec.startswith(MODEL_PREFIX):
        return spec
    adopted = catalogued_spec(spec)
    target = LibraryPaths(library).models / adopted.removeprefix(MODEL_PREFIX)
    if not _is_whole(target):
        _copy_model(_model_folder(spec), target)
    return adopted


def _copy_model(folder: Path, target: Path) -> None:
    """Copy a model's files; the manifest comes last, because a copy is only valid with it."""
    try:
        make_folder(target)
        names = (CLIPS_GRAPH, WORDS_GRAPH, MANIFEST_FILE)
        files: dict[str | os.PathLike[str], bytes] = {target / name: (folder / name).read_bytes() for name in names}
    except OSError as e:
        raise MomentseekError(f"{target}: the model cannot be copied there ({e.strerror}); make room") from None
    (target / MANIFEST_FILE).unlink(missing_ok=True)  # from an incomplete copy
    write_all(files)


def _is_whole(copy: Path) -> bool:
    try:
        read_encoder_manifest(copy)
    except MomentseekError:
        return False
    return True


def _model_folder(spec: str) -> Path:
    return Path(spec.removeprefix(MODEL_PREFIX)).expanduser().absolute()


def encoder_row(stream: str, spec: str, encoder: TextEncoder) -> EncoderRow:
    """The catalog's row about an encoder of a stream."""
    return EncoderRow(stream, spec, encoder.name, fingerprint(encoder) or encoder.name, encoder.dim)


def is_by(row: EncoderRow, encoder: TextEncoder) -> bool:
    """Whether an encoder is the one in a row of the catalog."""
    return row.fingerprint == encoder_row(row.stream, row.spec, encoder).fingerprint


def spans_row(spec: str, model: TrainedEncoder) -> EncoderRow:
    """The catalog's row about a trained model's vectors for spans."""
    return EncoderRow("spans", spec, model.name, model.fingerprint, model.about.spans)


def reencode_command(library: Path, spec: str) -> str:
    """The command that makes a library's vectors again."""
    return f"momentseek reencode --library {shlex.quote(str(library))} --encoder {shlex.quote(spec)}"
