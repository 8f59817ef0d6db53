"""How many annotators a judgement takes: the paper's two, or one person alone."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.server.errors import BODY_ERRORS
from momentseek.server.judging.consensus import AnnotatorRule
from momentseek.server.judging.store import JudgementStore, RuleSetting, with_store
from momentseek.server.schemas import StrictBody
from momentseek.server.service import ServiceParam

router = APIRouter(prefix="/judging", tags=["judging"])


class RuleIn(StrictBody):
    """The rule to judge by."""

    setting: RuleSetting = Field(description="`auto` is `one` while one person has judged, and `two` from then on.")


class RuleOut(BaseModel):
    """The rule that counts, what was set, and who has judged."""

    model_config = ConfigDict(json_schema_extra={"example": {"rule": "one", "setting": "auto", "annotators": ["ann"]}})
    rule: AnnotatorRule = Field(description="`one` judgement is enough; or it takes `two`, four where they disagree.")
    setting: RuleSetting
    annotators: list[str] = Field(description="Everybody who has judged a moment.")


@router.get("/rule", summary="How many annotators")
async def rule(service: ServiceParam) -> RuleOut:
    """How many annotators a moment takes."""
    return await service.readers.run(with_store(service.place, _rule_out))


@router.put("/rule", summary="Set how many annotators", responses=BODY_ERRORS)
async def put_rule(service: ServiceParam, given: RuleIn) -> RuleOut:
    """Choose between one annotator, TVR-Ranking's rule of two and four, and by how many have judged."""

    def save(library: Library) -> RuleOut:
        with JudgementStore(service.place, create=True) as store:
            with store.changes():
                store.set_rule(given.setting)
            return _rule_out(store)

    return await service.readers.run(save)


def _rule_out(store: JudgementStore) -> RuleOut:
    with store.view():
        return RuleOut(rule=store.rule(), setting=store.rule_setting(), annotators=store.annotators())
