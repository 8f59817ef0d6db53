"""How the pictures of a video are chosen when it is added."""

from __future__ import annotations

import os
from typing import Literal, get_args

from momentseek.errors import MomentseekError

Sampling = Literal["exact", "quick"]
"""Whether every picture is decoded, or only what is cheap and near the wanted times (`media.quick`)."""

SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)
DEFAULT_SAMPLING: Sampling = "exact"
SAMPLING_VARIABLE = "MOMENTSEEK_SAMPLING"
"""Environment variable that names another default."""


def default_sampling() -> Sampling:
    """The sampling that ``add`` uses if none is named: what the environment says, else exact."""
    named = os.environ.get(SAMPLING_VARIABLE, "").strip().lower() or DEFAULT_SAMPLING
    for sampling in SAMPLINGS:
        if named == sampling:
            return sampling
    raise MomentseekError(f"{SAMPLING_VARIABLE} is {named!r}; set it to {' or '.join(SAMPLINGS)}, or unset it")
