"""What every model does: encode queries, encode videos, match the two, score spans, and give its loss.

Video retrieval (VR) is ``match``; moment retrieval in a known video (SVMR) is ``spans``; over a corpus (VCMR, RVMR)
the best videos by ``match`` are searched by ``spans`` and a moment's score is ``span + alpha * match``, which orders
moments as XML's ``p_start p_end exp(alpha s)`` does (TVR, section 4.4). All three come from the same encodings. Models
that predict times rather than clips give ``moments`` instead of ``spans``, and are searched in the same way.
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
"""The group of all parameters that no other group names."""
Predicted = tuple[Tensor, Tensor, Tensor]
"""Predicted moments: starts and ends as shares of the video, and scores, each (n, k)."""


@dataclass(frozen=True)
class Phase:
    """What is trained in a step."""

    name: str = ""
    """What the model calls it; its ``loss`` may look."""
    rates: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Factors of the learning rate by group of parameters, 1 where nothing is said; 0 leaves a group as it is."""

    def rate(self, group: str) -> float:
        """The factor of a group's learning rate.

        >>> Phase("leaf", {"root": 0.0}).rate("root"), Phase().rate("root")
        (0.0, 1.0)
        """
        return self.rates.get(group, 1.0)


EVERYTHING = Phase()
"""All parameters at the same rate: what models without phases train in every step."""


def group_of(parameter: str, groups: Iterable[str]) -> str:
    """The group of a parameter: the longest prefix of its name, at whole parts, that is one of the groups.

    >>> group_of("leaf.2.weight", ["leaf", "leaf.2"]), group_of("leafage.weight", ["leaf"])
    ('leaf.2', '')
    """
    return max((g for g in groups if parameter == g or parameter.startswith(f"{g}.")), key=len, default=REST)


def at_least(config: Any, least: float, *names: str, section: str = "model") -> None:
    """Refuse settings below ``least`` or infinite; those that a config does not have, or None, are left out.

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
    """A network with settings; ``CorpusModel`` and ``Captioner`` say what else it does."""

    rate_groups: ClassVar[tuple[str, ...]] = ()
    """Parts of the model, by the prefixes of their parameters' names, that ``phase_at`` gives rates of their own."""

    def __init__(self, config: Any, dims: Any) -> None:
        super().__init__()
        self.config = config
        self.dims = dims
        self.phase = EVERYTHING
        """The phase of the step that is being trained; training sets it before it asks for the loss."""

    def phase_at(self, step: int, epoch: int) -> Phase:
        """What is trained in a step, counted from 0, of an epoch: everything at the same rate, if not said."""
        return EVERYTHING

    @abstractmethod
    def loss(self, batch: Any, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms of the loss by name, weighted; training minimises their sum. ``rng`` decides what is sampled."""


def parse_columns(text: str | None) -> tuple[int, int] | None:
    """The first column that is used and the first after them; None for all.

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
    """Settings that make the model compute what the public implementation does, quirks included (``as=official``)."""

    hidden: int = 256
    dropout: float = 0.1
    max_words: int = 30
    max_clips: int = 100
    fit: str = "truncate"
    """How videos are fitted to ``max_clips``: ``truncate`` (XML), ``resample`` (ReLoCLNet), ``stretch`` (2D-TAN), or
    ``rounded`` (as its public code stretches, by whole rows)."""
    modalities: str = "video+subtitle"
    """``video``, ``subtitle`` or both."""
    normalise: bool = True
    """Normalise feature rows to length 1."""
    normalise_words: bool | None = None
    """Normalise the rows of queries' words; nothing: as ``normalise`` says."""
    normalise_subtitles: bool | None = None
    """Normalise the rows of subtitles; nothing: as ``normalise`` says."""
    fit_first: bool = True
    """Fit videos to their number of clips before rows are normalised; false: after (2D-TAN, MMN)."""
    streams: tuple[int, ...] = ()
    """Columns of each file of video features, which are then normalised each by itself (Moment-DETR: SlowFast's 2304
    and CLIP's 512); nothing: rows are normalised as a whole."""
    endpoints: bool = False
    """Append the temporal endpoint feature (TEF) [i/L, (i+1)/L] to the clip features."""
    shortest: int = 1
    """Clips of the shortest span considered."""
    longest: int = 16
    """Clips of the longest span considered."""
    alpha: float = 20.0
    """Weight of the video's score next to the span's."""
    videos: int = 100
    """Videos searched for moments, per query."""

    def __post_init__(self) -> None:
        heads: int | None = getattr(self, "heads", None)
        at_least(self, 1, "hidden", "heads", "max_words", "max_clips")
        at_least(self, 1, "shortest", "longest", "videos")
        if self.shortest > self.longest:
            raise MomentseekError(f"model: shortest ({self.shortest}) must not be above longest ({self.longest})")
        below_one(self, "dropout")
        if heads is not None and self.hidden % heads:
            raise MomentseekError(
                f"model: hidden {self.hidden} cannot be shared out among {heads} heads; choose a multiple"
            )
        one_of(self, "fit", *FIT_METHODS)
        parse_modalities(self.modalities)

    @property
    def preparation(self) -> Preparation:
        """How features become the model's input."""
        return Preparation.of(vars(self))

    @property
    def modality_names(self) -> tuple[str, ...]:
        """The modalities the model uses, video first.

        >>> ModelConfig(modalities="subtitle+video").modality_names
        ('video', 'subtitle')
        """
        named = parse_modalities(self.modalities)
        return tuple(name for name in MODALITIES if name in named)


@dataclass(frozen=True, kw_only=True)
class GroundingConfig(ModelConfig):
    """Settings of models that find moments in given videos: they see, and another model's few videos are searched."""

    modalities: str = "video"
    alpha: float = 0.0
    videos: int = 5
    dropout: float = 0.0


@dataclass(frozen=True, eq=False)
class CurveFilters:
    """Spans by two filters over a curve: what the curve is the mean of, and the filters of starts and ends.

    A term names a query's vector, the clips' vectors that are multiplied by it, and what multiplies the products (or
    nothing). ``weights`` are (2, taps); what they answer becomes probabilities over the video's clips.
    """

    terms: tuple[tuple[str, str, str], ...]
    weights: FloatArray


class CorpusModel(Network):
    """The base class of all models: ``training`` trains it, and ``models.inference`` searches with it."""

    retrieves: ClassVar[bool] = True
    """Whether ``match`` can rank videos; if not, the videos must come from another model."""
    hard_negatives: ClassVar[bool] = False
    """Whether the loss uses hard negatives (``BatchPairs.hard_videos``); ``match`` is then a score's logarithm."""
    whole_queries: ClassVar[bool] = False
    """Whether a training step has all moments of a query in a video, and the clips' ratings where there are any."""
    rates_clips: ClassVar[bool] = False
    """Whether the model says how salient clips are (``saliency``)."""

    config: ModelConfig
    dims: Dims

    def __init__(self, config: ModelConfig, dims: Dims) -> None:
        super().__init__(config, dims)

    @property
    def listed_negatives(self) -> int:
        """How many wrong videos of each query the loss takes from a first stage's list."""
        return 0

    def prepare(self, queries: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Look at the training queries, each a text and its words' features, before the first step of new training."""

    @property
    def goes_on(self) -> bool:
        """Whether the settings are those of a later stage, which begins from the checkpoint of an earlier one."""
        return False

    def check_lengths(self, clips: Mapping[str, int]) -> None:
        """Refuse videos, given by their numbers of clips, that the model cannot be trained on; by default none."""

    @abstractmethod
    def encode_words(self, words: Words) -> Encodings:
        """Encode the words of queries; the encodings do not depend on any video."""

    @abstractmethod
    def encode_clips(self, clips: Clips) -> Encodings:
        """Encode videos; the encodings always have a ``mask``, (videos, clips). Padding changes nothing else."""

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(queries, videos): the score of each video for each query.

        If a model does not say otherwise, that of its best span, or moment, pair by pair: costly, for small sets.
        """
        mask, found = videos["mask"], []
        for i in range(len(next(iter(queries.values())))):
            asked = take_rows(queries, torch.full((len(mask),), i, device=mask.device))
            scores = self.moments(asked, videos)[2] if self.continuous else self.spans(asked, videos).flatten(1)
            found.append(scores.amax(1))
        return torch.stack(found)

    @property
    def best_clip_parts(self) -> tuple[str, ...]:
        """Encodings of queries and clips for which ``match`` is the mean of the best clips' dot products, if it is."""
        return ()

    @property
    def unit_depth(self) -> int:
        """How many parts of all videos together moments are made of (``unit_scores``); 0: of any part of a video."""
        return 0

    def unit_scores(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, parts): the score of each part of video i for query i; minus infinity where there is none.

        Where ``unit_depth`` is above 0, ``moments`` gets the score of each query's last part as ``cutoff``.
        """
        raise NotImplementedError(f"{type(self).__name__} retrieves no parts of videos")

    @property
    def continuous(self) -> bool:
        """Whether the model predicts times (``moments``), which need not lie between clips, and not ``spans``."""
        return type(self).moments is not CorpusModel.moments

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """Moments of video i for query i at any time: starts, ends and scores, each (n, k) with any k.

        Starts and ends are shares of the time that the video's clips cover, as ``BatchPairs.times`` are; a score of
        minus infinity stands where there is no moment. What leaves the video is cut when the times become seconds, and
        what is then empty is dropped. A model has either this or ``spans``.
        """
        raise NotImplementedError(f"{type(self).__name__} predicts spans of clips")

    def to_seconds(
        self, start: FloatArray, end: FloatArray, score: FloatArray, covered: FloatArray, duration: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Predicted shares (n, k) as seconds inside their videos, and the scores that go with them.

        ``covered`` are the seconds that a video's clips cover, ``duration`` those that it lasts (NaN if unknown), both
        (n, 1).
        """
        last = np.fmin(covered, duration)
        return np.clip(start * covered, 0, last), np.clip(end * covered, 0, last), score

    def saliency(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips): how salient each clip of video i is for query i."""
        raise NotImplementedError(f"{type(self).__name__} rates no clips")

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips, lengths): row i scores spans of video i for query i, by first clip and length.

        Entry ``[i, s, w]`` is the span of clips ``s`` to ``s + shortest - 1 + w`` (included), with
        ``w < longest - shortest + 1``; spans that leave the video are minus infinity. Scores are logarithms of
        probabilities where the model has such.
        """
        raise NotImplementedError(f"{type(self).__name__} predicts moments at any time")

    @property
    def curve_filters(self) -> CurveFilters | None:
        """What ``spans`` are made of where it is this and nothing else."""
        return None

    @property
    def pair_numbers(self) -> int:
        """Numbers that are held for each clip, besides its encodings, while one pair of query and video is scored."""
        return 0

    def weigh_first_stage(self, scores: FloatArray) -> FloatArray:
        """What ``alpha`` multiplies of another system's scores of videos: the scores themselves, if not said."""
        return scores

    @abstractmethod
    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms of the loss by name, weighted; training minimises their sum. ``rng`` decides what is sampled."""
