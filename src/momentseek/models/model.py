"""The base class of all models: it encodes queries and videos, matches them, scores spans, and computes a loss.

Video retrieval (VR) uses ``match``. Moment retrieval in a known video (SVMR) uses ``spans``. Over a corpus (VCMR, RVMR)
``spans`` searches the best videos by ``match``, and a moment's score is ``span + alpha * match``, which orders moments
as XML's ``p_start p_end exp(alpha s)`` does (TVR, section 4.4). All three use the same encodings. A model that predicts
times rather than clips has ``moments`` instead of ``spans`` and is searched in the same way.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.recognition.exported.preparation import FIT_METHODS, MODALITIES, Preparation, parse_modalities

REST = ""
"""The group of all parameters that are in no other group."""
Predicted = tuple[Tensor, Tensor, Tensor]
"""Predicted moments: starts and ends as shares of the video, and scores, each (n, k)."""


@dataclass(frozen=True)
class Phase:
    """A phase of training: the factor of the learning rate for each group of parameters."""

    name: str = ""
    """The model's name for the phase, which its ``loss`` may read."""
    rates: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Factors of the learning rate by group of parameters; 1 by default, and 0 freezes a group."""
    stage: int = 0
    """Number of the stage; the best checkpoint of a later stage replaces that of an earlier one, whatever its value."""

    def rate(self, group: str) -> float:
        """The factor of a group's learning rate.

        >>> Phase("leaf", {"root": 0.0}).rate("root"), Phase().rate("root")
        (0.0, 1.0)
        """
        return self.rates.get(group, 1.0)


EVERYTHING = Phase()
"""The phase that trains all parameters at the same rate, for models without phases of their own."""


def group_of(parameter: str, groups: Iterable[str]) -> str:
    """The group of a parameter: the longest group that is a prefix of its name, in whole dotted parts.

    >>> group_of("leaf.2.weight", ["leaf", "leaf.2"]), group_of("leafage.weight", ["leaf"])
    ('leaf.2', '')
    """
    return max((g for g in groups if parameter == g or parameter.startswith(f"{g}.")), key=len, default=REST)


def at_least(config: Any, least: float, *names: str, section: str = "model") -> None:
    """Refuse settings below ``least`` or infinite; skips those that are None or that the config lacks.

    >>> at_least(ModelConfig(alpha=-1.0), 0, "videos", "alpha")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: model: alpha must be at least 0, not -1
    """
    for name in names:
        value = getattr(config, name, None)
        if value is not None and not least <= value < math.inf:
            raise MomentseekError(f"{section}: {name} must be at least {least:g}, not {value:g}")


def above_nothing(config: Any, *names: str, section: str = "model") -> None:
    """Refuse settings that are not above 0."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not 0 < value < math.inf:
            raise MomentseekError(f"{section}: {name} must be above 0, not {value:g}")


def below_one(config: Any, *names: str, section: str = "model") -> None:
    """Refuse settings that are not from 0 to below 1."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise MomentseekError(f"{section}: {name} must be from 0 to below 1, not {getattr(config, name):g}")


def one_of(config: Any, name: str, *choices: str, section: str = "model") -> None:
    """Refuse a setting that is none of the choices."""
    value = getattr(config, name)
    if value not in choices:
        raise MomentseekError(f"{section}: {name} must be {' or '.join(choices)}, not {value!r}")


class Network(nn.Module, ABC):
    """A network with settings and a loss: the base class of ``CorpusModel`` and ``Captioner``."""

    rate_groups: ClassVar[tuple[str, ...]] = ()
    """Prefixes of parameter names whose learning rates ``phase_at`` can set separately."""

    def __init__(self, config: Any, dims: Any) -> None:
        super().__init__()
        self.config = config
        self.dims = dims
        self.phase = EVERYTHING
        """The phase of the current training step; training sets it before it computes the loss."""

    def phase_at(self, step: int, epoch: int) -> Phase:
        """The phase of a step (counted from 0) of an epoch; by default, all parameters at the same rate."""
        return EVERYTHING

    @abstractmethod
    def loss(self, batch: Any, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The weighted terms of the loss by name; training minimises their sum. Sampling uses ``rng``."""


def parse_columns(text: str | None) -> tuple[int, int] | None:
    """The first used column and the end of the range; None for all columns.

    >>> parse_columns("2048:3072"), parse_columns(None)
    ((2048, 3072), None)
    """
    if not text:
        return None
    first, colon, last = text.partition(":")
    if colon and first.isdecimal() and last.isdecimal() and int(first) < int(last):
        return int(first), int(last)
    raise MomentseekError(f"columns must be two numbers such as 0:2048, not {text!r}")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings that every model has; each model adds its own in a subclass."""

    official: ClassVar[Mapping[str, Any]] = {}
    """Settings that reproduce the public implementation, including its quirks (``as=official``)."""

    hidden: int = 256
    """Number of hidden units."""
    dropout: float = 0.1
    max_words: int = 30
    """Maximum number of words of a query; further words are cut off."""
    max_clips: int = 100
    """Maximum number of clips of a video; ``fit`` says how longer videos are fitted to it."""
    fit: str = "truncate"
    """How videos are fitted to ``max_clips``: ``truncate`` (XML), ``resample`` (ReLoCLNet), ``stretch`` (2D-TAN), or
    ``rounded`` (stretching by whole rows, as in 2D-TAN's public code)."""
    modalities: str = "video+subtitle"
    """``video``, ``subtitle`` or both."""
    normalise: bool = True
    """Normalise feature rows to length 1."""
    normalise_words: bool | None = None
    """Normalise the feature rows of queries; by default, the value of ``normalise``."""
    normalise_subtitles: bool | None = None
    """Normalise the feature rows of subtitles; by default, the value of ``normalise``."""
    fit_first: bool = True
    """Fit videos to ``max_clips`` before normalising their rows; false fits them afterwards (2D-TAN, MMN)."""
    streams: tuple[int, ...] = ()
    """Number of columns of each kind of video features, to normalise each kind separately.

    Moment-DETR uses SlowFast's 2304 and CLIP's 512 columns. By default, rows are normalised as a whole.
    """
    endpoints: bool = False
    """Append the temporal endpoint feature (TEF) [i/L, (i+1)/L] to the clip features."""
    shortest: int = 1
    """Length of the shortest span considered, in clips."""
    longest: int = 16
    """Length of the longest span considered, in clips."""
    alpha: float = 20.0
    """Weight of the video's score that is added to the span's score."""
    videos: int = 100
    """Number of videos searched for moments, per query."""

    def __post_init__(self) -> None:
        heads: int | None = getattr(self, "heads", None)
        at_least(self, 1, "hidden", "heads", "max_words", "max_clips")
        at_least(self, 1, "shortest", "longest", "videos")
        if self.shortest > self.longest:
            raise MomentseekError(f"model: shortest ({self.shortest}) must not be above longest ({self.longest})")
        below_one(self, "dropout")
        if heads is not None and self.hidden % heads:
            raise MomentseekError(
                f"model: hidden {self.hidden} cannot be divided among {heads} heads; choose a multiple"
            )
        one_of(self, "fit", *FIT_METHODS)
        parse_modalities(self.modalities)

    @property
    def preparation(self) -> Preparation:
        """How features are prepared as the model's input."""
        return Preparation.of(vars(self))

    @property
    def modality_names(self) -> tuple[str, ...]:
        """The modalities that the model uses, video first.

        >>> ModelConfig(modalities="subtitle+video").modality_names
        ('video', 'subtitle')
        """
        named = parse_modalities(self.modalities)
        return tuple(name for name in MODALITIES if name in named)


@dataclass(frozen=True, kw_only=True)
class GroundingConfig(ModelConfig):
    """Settings of models that find moments in given videos, by video features only.

    They search a few videos, which another model finds.
    """

    modalities: str = "video"
    alpha: float = 0.0
    videos: int = 5
    dropout: float = 0.0


@dataclass(frozen=True, eq=False)
class CurveFilters:
    """A description of span scores as two filters (for starts and ends) over a curve.

    The curve is the mean of ``terms``. A term names a query's vector, the clips' vectors that it is multiplied by, and
    a factor of the products (or ""). ``weights`` (2, taps) are the filters; a softmax over the video's clips turns
    their responses into probabilities.
    """

    terms: tuple[tuple[str, str, str], ...]
    weights: FloatArray


class CorpusModel(Network):
    """The base class of all models that find moments; ``training`` trains and ``inference`` uses it."""

    retrieves: ClassVar[bool] = True
    """Whether ``match`` can rank videos; if not, another model must find the videos."""
    hard_negatives: ClassVar[bool] = False
    """Whether the loss uses hard negatives (``BatchPairs.hard_videos``); ``match`` is then the logarithm of a score."""
    whole_queries: ClassVar[bool] = False
    """Whether a training step needs all moments of a query in a video, and the clips' ratings if the data have them."""
    rates_clips: ClassVar[bool] = False
    """Whether the model rates the saliency of clips (``saliency``)."""

    config: ModelConfig
    dims: Dims

    def __init__(self, config: ModelConfig, dims: Dims) -> None:
        super().__init__(config, dims)

    @property
    def listed_negatives(self) -> int:
        """Number of wrong videos per query that the loss takes from a first stage's list."""
        return 0

    @property
    def mined_videos(self) -> int:
        """Maximum number of videos per step from a first stage's lists, with all their pairs; 0 for no limit."""
        return 0

    def prepare(self, queries: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Prepare a new training run with its queries, each a text and its word features, before the first step."""

    @property
    def goes_on(self) -> bool:
        """Whether the settings are of a later stage of training, which needs the checkpoint of an earlier one."""
        return False

    def check_lengths(self, clips: Mapping[str, int]) -> None:
        """Refuse videos (name → number of clips) that the model cannot be trained on; by default none."""

    @abstractmethod
    def encode_words(self, words: Words) -> Encodings:
        """Encode the words of queries; the encodings do not depend on any video."""

    @abstractmethod
    def encode_clips(self, clips: Clips) -> Encodings:
        """Encode videos; the encodings include a ``mask`` (videos, clips) and do not depend on padding."""

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(queries, videos): the score of each video for each query.

        By default, this is the score of the video's best span or moment, computed pair by pair, which is slow.
        """
        mask, found = videos["mask"], []
        for i in range(len(next(iter(queries.values())))):
            asked = take_rows(queries, torch.full((len(mask),), i, device=mask.device))
            scores = self.moments(asked, videos)[2] if self.continuous else self.spans(asked, videos).flatten(1)
            found.append(scores.amax(1))
        return torch.stack(found)

    @property
    def best_clip_parts(self) -> tuple[str, ...]:
        """Names of encodings for which ``match`` is the mean, over these names, of the best clip's dot product.

        Empty if ``match`` is anything else.
        """
        return ()

    @property
    def unit_depth(self) -> int:
        """Number of best parts of all videos that moments may consist of (see ``unit_scores``); 0 for no limit."""
        return 0

    def unit_scores(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, parts): the score of each part of video i for query i; minus infinity for padding.

        If ``unit_depth`` is above 0, ``moments`` gets the score of each query's last part as ``cutoff``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not score parts of videos")

    @property
    def continuous(self) -> bool:
        """Whether the model predicts arbitrary times (``moments``) instead of spans of clips (``spans``)."""
        return type(self).moments is not CorpusModel.moments

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """Predict moments of video i for query i at arbitrary times: starts, ends and scores, each (n, k).

        Starts and ends are shares of the time that the video's clips cover, like ``BatchPairs.times``. Missing moments
        have a score of minus infinity. ``to_seconds`` cuts times that leave the video, and moments that are then empty
        are dropped. A model has either this method or ``spans``.
        """
        raise NotImplementedError(f"{type(self).__name__} predicts spans of clips")

    def to_seconds(
        self, start: FloatArray, end: FloatArray, score: FloatArray, covered: FloatArray, duration: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Convert predicted shares (n, k) to seconds inside their videos; returns starts, ends and scores.

        ``covered`` (n, 1) is the number of seconds that a video's clips cover, ``duration`` (n, 1) its duration, NaN if
        unknown.
        """
        last = np.fmin(covered, duration)
        return np.clip(start * covered, 0, last), np.clip(end * covered, 0, last), score

    def saliency(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips): the saliency of each clip of video i for query i."""
        raise NotImplementedError(f"{type(self).__name__} does not rate clips")

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips, lengths): the scores of spans of video i for query i, by first clip and length.

        Entry ``[i, s, w]`` is the span of clips ``s`` to ``s + shortest - 1 + w`` (included), with
        ``w < longest - shortest + 1``. Spans that leave the video score minus infinity. Scores are log-probabilities
        if the model has probabilities.
        """
        raise NotImplementedError(f"{type(self).__name__} predicts moments at arbitrary times")

    @property
    def curve_filters(self) -> CurveFilters | None:
        """The filters that ``spans`` consists of, so that a kernel can compute it; None for any other ``spans``."""
        return None

    @property
    def pair_numbers(self) -> int:
        """Number of temporary values per clip, besides its encodings, while one query and video are scored."""
        return 0

    def weigh_first_stage(self, scores: FloatArray) -> FloatArray:
        """Transform the video scores of another first stage before ``alpha`` multiplies them; by default, unchanged."""
        return scores

    @abstractmethod
    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The weighted terms of the loss by name; training minimises their sum. Sampling uses ``rng``."""
