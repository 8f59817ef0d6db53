"""Where in a video the moment lies: localisers turn a curve of clip scores into ranked spans, one file each.

docs/localising.md says how they work and how they compare.
"""

from momentseek.search.localise.localiser import (
    DEFAULT_LOCALISER,
    LOCALISERS,
    Background,
    Curve,
    Localiser,
    Proposals,
    localise,
    suppress,
)

__all__ = [
    "DEFAULT_LOCALISER",
    "LOCALISERS",
    "Background",
    "Curve",
    "Localiser",
    "Proposals",
    "localise",
    "suppress",
]
