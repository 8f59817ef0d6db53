"""Arrays from a file that somebody else made."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError


def read_npz(path: str | os.PathLike[str], *names: str) -> list[NDArray[Any]]:
    """The named arrays of numpy's .npz, never executing anything in it, or one sentence about what is wrong."""
    try:
        with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:  # numpy alone leaves it open
            return [file[name] for name in names]
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror or e}); check the path") from None
    except (KeyError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        raise MomentseekError(f"{path}: expected an .npz file with the arrays {', '.join(names)}") from None
