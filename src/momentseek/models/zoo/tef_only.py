"""The blind baseline of TVR, Table 3, which knows only a moment's position in its video."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import normalize

from momentseek.models.batch import Clips, Encodings
from momentseek.models.features.data import Dims
from momentseek.models.registry import register
from momentseek.models.zoo.mcn import DistanceConfig, DistanceModel, endpoints_of


@dataclass(frozen=True, kw_only=True)
class TEFOnlyConfig(DistanceConfig):
    """Settings of the endpoint-only model, which knows the number of clips but not their content."""

    hidden: int = 64


class TEFOnly(DistanceModel):
    """MCN without content: ``unit(W2 relu(W1 [s/L, e/L]))``; its results show the bias of the data."""

    config: TEFOnlyConfig

    def __init__(self, config: TEFOnlyConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.moment = self.moment_mlp(2)

    def encode_clips(self, clips: Clips) -> Encodings:
        return {"mask": clips.mask}

    def moment_vectors(self, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        where = endpoints_of(videos["mask"], first, last, self.query.weight.dtype)
        return normalize(self.moment(where), dim=-1)


register("tef-only", TEFOnlyConfig, TEFOnly, "blind baseline: only where a moment lies in its video", format=2)
