"""Variants of the simulated corpus: what the default makes too easy, one difficulty at a time.

The default corpus is kind to linear models that pool clips: clips are sums of fixed vectors, noise is independent from
clip to clip, all that happens is captioned, and every test query's own moment stands in a training list. A system that
is better on the default and on these variants is not better only because it fits the generator.
"""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.registry import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Departures from the default corpus; the default values change nothing."""

    about: str = "the corpus as it always was"
    hard: float | None = None
    """Difficulty in place of ``SimulationSettings.hard``."""
    event_variance: float = 0.0
    """Length of a deviation that all clips of an event share, next to an action's 1; series look different, too."""
    unannotated: float = 0.0
    """Further events without a caption, never listed and never judged, as a multiple of the annotated ones."""
    camera: bool = False
    """Clips are seen through ``tanh(g A y)`` with a gain g per clip, and a fifth of them are noise."""
    mentions: float = 0.3
    """How often the object of an action is mentioned while it is used."""
    speech_lag: int = 0
    """Speech comes up to this many clips after what it is about."""
    subtitles: bool = True
    """Whether anybody speaks at all."""
    new_library: bool = False
    """Training lists hold the first 80 % of the videos; val and test search the other 20 %."""
    similarity_error: float = 0.3
    """Length of the error in a sentence's vector, by which lists are made, next to the sentence's 1."""
    annotator_error: float = 0.12
    """How often an annotator is one level too high, and as often one too low."""
    distractors: int = 0
    """Further videos without listed or judged moments, as a multiple of the videos."""
    repeats: bool = False
    """An event happens two or three times in most videos, and "B, then A" answers "A, then B" by level 2 at most."""


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
"""All variants by name, but for one that is made of real captions."""
WORDS_AS_PICTURES = "words-as-pictures"


def find_variant(name: str) -> Variant:
    """The variant of a name.

    >>> find_variant("camera").camera
    True
    """
    if name not in VARIANTS:
        raise MomentseekError(
            f"there is no variant {name!r} ({parameter('variant')}); {did_you_mean(name, list(VARIANTS))}"
        )
    return VARIANTS[name]
