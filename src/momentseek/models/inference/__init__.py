"""Searching with a trained model: the corpus encoded once, two stages in bounded memory, a Run at the end."""

from momentseek.models.inference.encode import encode_corpus, encode_queries
from momentseek.models.inference.first_stage import RankedVideos, from_run, from_scores, from_truth, retrieve
from momentseek.models.inference.prediction import predict
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.second_stage import spans_of

__all__ = [
    "RankedVideos",
    "EncodedCorpus",
    "encode_corpus",
    "encode_queries",
    "from_run",
    "from_scores",
    "from_truth",
    "predict",
    "retrieve",
    "spans_of",
]
