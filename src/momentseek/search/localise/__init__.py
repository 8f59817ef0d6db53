"""Where in a video the moment lies: localisers turn a curve of clip scores into ranked spans.

Importing this package registers all of them; docs/localising.md says how they work and how they compare.
"""

from momentseek.search.localise import (  # noqa: F401
    contrast,
    learned,
    merge,
    moment_map,
    scenes,
    tag,
    watershed,
    whole,
    window,
)
from momentseek.search.localise.curve import Background, Curve
from momentseek.search.localise.long import localise
from momentseek.search.localise.registry import DEFAULT, LOCALISERS, Localiser, localiser, register
from momentseek.search.localise.spans import Spans, suppress

__all__ = [
    "DEFAULT",
    "LOCALISERS",
    "Background",
    "Curve",
    "Localiser",
    "Spans",
    "localise",
    "localiser",
    "register",
    "suppress",
]
