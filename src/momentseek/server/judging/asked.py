"""What clients ask when they measure or compare searches."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from momentseek.errors import MomentseekError
from momentseek.search.engine import STREAMS
from momentseek.server.answers import Strict
from momentseek.server.asked import EncoderName, FusionName, LocaliserName
from momentseek.server.judging.evaluation import MEASURE
from momentseek.server.judging.setup import Setup


def _readable(value: str) -> str:
    try:
        return str(Setup.parse(value))
    except MomentseekError as e:
        raise ValueError(str(e)) from None


MeasureName = Annotated[str, Field(min_length=1, max_length=100, description="A measure (docs/measures.md).")]
SetupText = Annotated[
    str,
    Field(
        max_length=300,
        description="As `localiser=scenes;streams=vision,speech;fusion=rrf;encoder=labels`; the rest is as usual.",
    ),
    AfterValidator(_readable),
]


class MeasuredIn(Strict):
    """Which search, and the measure."""

    localiser: LocaliserName = ""
    streams: Annotated[str, Field(max_length=60, description="Some of vision, speech and name, with commas.")] = (
        ",".join(STREAMS)
    )
    fusion: FusionName = Setup.fusion
    encoder: EncoderName = ""
    all: Annotated[bool, Field(description="Also weak hits: the whole ranking is measured.")] = True
    measure: MeasureName = MEASURE

    @model_validator(mode="after")
    def _known(self) -> MeasuredIn:
        try:
            self.setup()
        except MomentseekError as e:
            raise ValueError(str(e)) from None
        return self

    def setup(self) -> Setup:
        """The search."""
        return Setup.of(self.localiser, self.streams, "true" if self.all else "false", self.fusion, self.encoder)


def number(value: float) -> float | None:
    """A number that JSON has; None for others.

    >>> number(0.5), number(float("nan")), number(float("inf"))
    (0.5, None, None)
    """
    return value if math.isfinite(value) else None
