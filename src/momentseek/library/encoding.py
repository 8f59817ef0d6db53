"""Which encoders a library uses, and that they are still the same."""

from __future__ import annotations

import shlex
from pathlib import Path

from momentseek.encoders.protocol import ImageTextEncoder, TextEncoder, fingerprint
from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog, EncoderRow

DEFAULT = "labels"
SPEECH = "minilm"


def check_spec(catalog: Catalog, spec: str, library: Path) -> None:
    """Refuse to mix: vectors of two encoders cannot be compared."""
    used = vision_spec(catalog)
    if spec != used:
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
    encoder = load(spec)
    row = catalog.encoder("vision")
    if row is not None and row.fingerprint != row_of("vision", spec, encoder).fingerprint:
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
    if row.fingerprint != row_of("speech", row.spec, encoder).fingerprint:
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


def load(spec: str) -> ImageTextEncoder:
    """An image-text encoder by its spec."""
    from momentseek.encoders import image_text_encoder

    encoder: ImageTextEncoder = image_text_encoder(spec)
    return encoder


def row_of(stream: str, spec: str, encoder: TextEncoder) -> EncoderRow:
    """What the catalog keeps of an encoder."""
    return EncoderRow(stream, spec, encoder.name, fingerprint(encoder) or encoder.name, encoder.dim)


def command(library: Path, spec: str) -> str:
    """The command that makes a library's vectors anew."""
    return f"momentseek reencode --library {shlex.quote(str(library))} --encoder {shlex.quote(spec)}"
