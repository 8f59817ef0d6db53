"""Parts that trained models share: projections, encoders, query pooling, boundary filters, and grids of spans."""

from momentseek.models.layers.attention import Attention, CrossEncoder, SelfEncoder
from momentseek.models.layers.boundaries import BoundaryFilters
from momentseek.models.layers.dropout import Dropout
from momentseek.models.layers.encoders import SEQUENCE_ENCODERS, Encoder, Stack, encoder
from momentseek.models.layers.initial import initialise
from momentseek.models.layers.late import best_clip
from momentseek.models.layers.modular import MaxQuery, ModularQuery
from momentseek.models.layers.projection import Positions, Projection, clip_width
from momentseek.models.layers.spans import inside, span_grid

__all__ = [
    "SEQUENCE_ENCODERS",
    "Attention",
    "BoundaryFilters",
    "CrossEncoder",
    "Dropout",
    "Encoder",
    "MaxQuery",
    "ModularQuery",
    "Positions",
    "Projection",
    "SelfEncoder",
    "Stack",
    "best_clip",
    "clip_width",
    "encoder",
    "initialise",
    "inside",
    "span_grid",
]
