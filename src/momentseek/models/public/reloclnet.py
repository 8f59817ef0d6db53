"""ReLoCLNet's public weights (TVR-Ranking's ``modules/ReLoCLNet.py``, ``ReLoCLNet``): XML's with more encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from momentseek.models.public.weights import PublicWeights, Translation, register_public
from momentseek.models.public.xml import translate_streams
from momentseek.models.zoo.reloclnet import ReLoCLNetConfig

RELOCLNET_HEADS = 8


def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
    """Translate the weights; shapes show neither the number of heads nor whether there are endpoints."""
    return translate_streams(weights, asked, ("query_encoder", "query_encoder1"), heads=RELOCLNET_HEADS)


register_public(
    "reloclnet",
    translate,
    marks=("query_input_proj.net.1.weight", "query_encoder1.self.query.weight"),
    source="Ranking-VMR/TVR-Ranking, modules/ReLoCLNet.py: ReLoCLNet",
    settings={**ReLoCLNetConfig.official, "shortest": 3, "longest": 16},
    training={"end_label": "official", "end_time": "start"},
)
