"""The shapes of what several routes of judging answer with."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.server.judging.states import Batch, QueryState

QueryId = Annotated[int, InPath(ge=1, le=2**53, description="The query's id.", examples=[1])]


class QueryOut(BaseModel):
    """A query and how far its judging is."""

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
    depth: int
    batch: int = Field(description="2 once the second batch is judged as well.")
    candidates: int = Field(description="Moments to be judged.")
    judged: dict[str, int] = Field(description="Annotator → moments judged.")
    kept: int = Field(description="Moments with a level.")
    discarded: int = Field(description="Moments on which four annotators do not agree.")
    waiting: int = Field(description="Moments that need annotators.")
    removed: int = Field(description="Of those, moments of videos that are no longer in the library.")
    open: int = Field(description="Moments that need annotators and can be shown.")
    disputed: int = Field(description="Of those, moments on which the first two do not agree.")
    second_batch: Batch = Field(description="Whether 20 more moments are judged.")
    reason: str = Field(description="Why so.")
    created: float = Field(description="Seconds since 1970.")


def query_out(state: QueryState) -> QueryOut:
    """A query as the API shows it."""
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
        removed=state.removed,
        open=len(state.open),
        disputed=state.disputed,
        second_batch=state.second_batch,
        reason=state.reason,
        created=state.row.created,
    )
