"""CAL's public weights: those of MCN, read clip by clip."""

from __future__ import annotations

from momentseek.models.cal import CALConfig
from momentseek.models.public.mcn import CAL_MARKS, CAL_SOURCE, translate
from momentseek.models.public.registry import register_public

register_public("cal", translate, marks=CAL_MARKS, source=CAL_SOURCE, settings=CALConfig.official)
