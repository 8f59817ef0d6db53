"""Which encoders made the features of a data folder: the section ``[encoders]`` of its ``data.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from momentseek.encoders.trained.manifest import Source
from momentseek.errors import MomentseekError


def sources_of(file: Path) -> dict[str, Source]:
    """Encoders by ``video``, ``subtitle`` and ``query``; empty where the data do not say."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8")).get("encoders", {})
        return {
            kind: Source(str(values["spec"]), str(values["fingerprint"]), int(values["dim"]))
            for kind, values in found.items()
        }
    except OSError as e:
        raise MomentseekError(f"{file}: cannot be read ({e.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MomentseekError(f"{file}: [encoders] is not understood; write the features again") from None
