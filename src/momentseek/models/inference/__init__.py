"""Searching with a trained model: the corpus encoded once, two stages in bounded memory, a Run at the end."""

from momentseek.models.inference.encode import encode_corpus, encode_queries
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.run import predict
from momentseek.models.inference.second import spans_of
from momentseek.models.inference.videos import Candidates, from_run, from_scores, from_truth, retrieve

__all__ = [
    "Candidates",
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
