"""Variants of the simulated corpus, each with one difficulty that the default lacks.

The default corpus favours linear models that pool clips: clips are sums of fixed vectors, noise is independent from
clip to clip, everything that happens is captioned, and every test query's own moment is in a training list. A system
that is better on the default and on these variants is not better only because it fits the generator.
"""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.registry import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Differences from the default corpus; the default values change nothing."""

    about: str = "the default corpus"
    hard: float | None = None
    """Difficulty instead of ``SimulationSettings.hard``."""
    event_variance: float = 0.0
    """Length of a deviation shared by all clips of an event, relative to 1 for an action; series look different too."""
    unannotated: float = 0.0
    """Number of extra events without captions, never listed or judged, as a multiple of the annotated ones."""
    camera: bool = False
    """Whether clips are transformed by ``tanh(g A y)`` with a gain g per clip, and a fifth of them are noise."""
    mentions: float = 0.3
    """How often the object of an action is mentioned while it is used."""
    speech_lag: int = 0
    """Maximum number of clips by which speech lags behind what it is about."""
    subtitles: bool = True
    """Whether there is any speech."""
    new_library: bool = False
    """Whether training lists use the first 80 % of the videos, and val and test search the other 20 %."""
    similarity_error: float = 0.3
    """Length of the error in the sentence vectors that define the lists, relative to 1 for the sentence."""
    annotator_error: float = 0.12
    """Probability that an annotator is one level too high, and also that of one level too low."""
    distractors: int = 0
    """Number of extra videos without listed or judged moments, as a multiple of the videos."""
    repeats: bool = False
    """Whether events repeat in most videos, and "B, then A" has at most level 2 for the query "A, then B"."""


VARIANTS = {
    "default": Variant(),
    "noise-45": Variant(about="less noise (hard 0.45)", hard=0.45),
    "noise-51": Variant(about="twice the noise (hard 0.51)", hard=0.51),
    "noise-53": Variant(about="four times the noise (hard 0.53)", hard=0.53),
    "event-variance-half": Variant(about="events deviate by half an action's length", event_variance=0.5),
    "event-variance": Variant(about="events deviate by an action's length", event_variance=1.0),
    "unannotated": Variant(about="as many events again without a caption", unannotated=1.0),
    "camera": Variant(about="a non-linear camera with gains and lost clips", camera=True),
    "no-mentions": Variant(about="nobody mentions what is used", mentions=0.0),
    "mentions": Variant(about="most of what is used is mentioned", mentions=0.9),
    "late-speech": Variant(about="speech lags one to three clips", speech_lag=3),
    "silent": Variant(about="no subtitles", subtitles=False),
    "new-library": Variant(about="val and test search videos that no training list holds", new_library=True),
    "loose-lists": Variant(about="similarity with twice the error", similarity_error=0.6),
    "exact-lists": Variant(about="similarity without error", similarity_error=0.0),
    "careless-annotators": Variant(about="annotators err twice as often", annotator_error=0.25),
    "distractors": Variant(about="four further videos for each one", distractors=4),
    "repeats": Variant(about="events repeat, and their order counts", repeats=True),
}
"""All variants by name, except the one made from real captions."""
WORDS_AS_PICTURES = "words-as-pictures"


def find_variant(name: str) -> Variant:
    """Return the variant with a name.

    >>> find_variant("camera").camera
    True
    """
    if name not in VARIANTS:
        raise MomentseekError(
            f"there is no variant {name!r} ({parameter('variant')}); {did_you_mean(name, list(VARIANTS))}"
        )
    return VARIANTS[name]
