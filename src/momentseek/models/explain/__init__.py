"""Why a trained model answers a query as it does: its words' weights, its curves, its filters, beside the truth."""

from momentseek.models.explain.explanation import Explanation, PredictedMoment, VideoView, explain
from momentseek.models.explain.question import Question, question

__all__ = ["Explanation", "PredictedMoment", "Question", "VideoView", "explain", "question"]
