"""The requests and answers that several routes of judging share."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import Path as InPath
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from momentseek.core.errors import MomentseekError
from momentseek.server.judging.annotate import QueryState, SecondBatch
from momentseek.server.judging.evaluation import DEFAULT_MEASURE
from momentseek.server.judging.searches import SearchSetup
from momentseek.server.schemas import ALL_STREAMS, EncoderName, FusionName, LocaliserName, StreamNames, StrictModel


def _normalise_setup(value: str) -> str:
    try:
        return str(SearchSetup.parse(value))
    except MomentseekError as e:
        raise ValueError(str(e)) from None


def finite_or_none(value: float | None) -> float | None:
    """The value if JSON can carry it; None for NaN and infinity.

    >>> finite_or_none(0.5), finite_or_none(float("nan")), finite_or_none(float("inf"))
    (0.5, None, None)
    """
    return value if value is not None and math.isfinite(value) else None


Finite = Annotated[float | None, BeforeValidator(finite_or_none)]
"""A number, or null for NaN and infinity, which JSON cannot carry."""
QueryId = Annotated[int, InPath(ge=1, le=2**53, description="The query's id.", examples=[1])]
MeasureName = Annotated[str, Field(min_length=1, max_length=100, description="A measure (docs/measures.md).")]
SetupText = Annotated[
    str,
    Field(
        max_length=300,
        description="For example `localiser=scenes;streams=vision,speech;fusion=rrf;encoder=labels`; "
        "what is left out has its default.",
    ),
    AfterValidator(_normalise_setup),
]


class SetupIn(StrictModel):
    """Which search to measure."""

    localiser: LocaliserName = ""
    streams: StreamNames = ALL_STREAMS
    fusion: FusionName = SearchSetup.fusion
    encoder: EncoderName = ""
    all: Annotated[bool, Field(description="Count weak hits too, so that the whole ranking is measured.")] = True

    @model_validator(mode="after")
    def _check_setup(self) -> SetupIn:
        try:
            self.setup()
        except MomentseekError as e:
            raise ValueError(str(e)) from None
        return self

    def setup(self) -> SearchSetup:
        """The setup of the search that is measured."""
        return SearchSetup.of(self.localiser, self.streams, "true" if self.all else "false", self.fusion, self.encoder)


class EvaluationIn(SetupIn):
    """Which search to measure, and the measure."""

    measure: MeasureName = DEFAULT_MEASURE


class QueryOut(BaseModel):
    """A query and how far its judging has got."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 1, "text": "a dog runs", "depth": 20, "batch": 1, "candidates": 20,
                "judged": {"ann": 20, "bob": 12}, "kept": 11, "discarded": 0, "waiting": 9, "removed": 0,
                "open": 9, "disputed": 1, "second_batch": "waiting",
                "reason": "9 of the first batch still need annotators", "created": 1760000000.0,
            }
        }
    )  # fmt: skip
    id: int
    text: str
    depth: int = Field(description="Moments in a batch.")
    batch: int = Field(description="2 once the second batch is being judged as well.")
    candidates: int = Field(description="Moments to be judged.")
    judged: dict[str, int] = Field(description="Annotator → number of moments they have judged.")
    kept: int = Field(description="Moments on whose level the annotators agree.")
    discarded: int = Field(description="Moments on which four annotators do not agree.")
    waiting: int = Field(description="Moments that need more annotators.")
    removed: int = Field(description="How many of those belong to videos that are no longer in the library.")
    open: int = Field(description="Moments that need more annotators and can be shown.")
    disputed: int = Field(description="How many of those the first two annotators disagree on.")
    second_batch: SecondBatch = Field(description="Whether a second batch of moments is judged.")
    reason: str = Field(description="Why a second batch is judged or not.")
    created: float = Field(description="When the query was added, in seconds since 1970.")


def query_out(state: QueryState) -> QueryOut:
    """Convert the state of a query to the API's answer."""
    return QueryOut(
        id=state.row.id,
        text=state.row.text,
        depth=state.row.depth,
        batch=state.row.batches,
        candidates=len(state.moments),
        judged=dict(state.judged),
        kept=state.count("kept"),
        discarded=state.count("discarded"),
        waiting=state.count("waiting"),
        removed=state.count_removed(),
        open=len(state.open_pairs),
        disputed=state.count_disputed(),
        second_batch=state.second_batch,
        reason=state.reason,
        created=state.row.created,
    )
