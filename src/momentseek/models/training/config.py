"""The settings of a training run: model, training and data, read from and written to TOML.

    [model]
    name = "reloclnet"
    hidden = 384
    [training]
    epochs = 100
    lr = 1e-4
    [data]
    train = "train_top40"
    validate = "val"

A config comes from a preset or a file, and ``key=value`` settings change it. Every name and type is checked on reading.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tomli_w

from momentseek.core.errors import MomentseekError
from momentseek.core.plugins import PluginSource, source_of
from momentseek.core.registry import did_you_mean
from momentseek.measuring.measures import parse_all
from momentseek.models.captioner import CAPTIONERS, CaptionerConfig
from momentseek.models.model import ModelConfig, above_nothing, at_least, below_one, one_of
from momentseek.models.registry import MODELS, SETTING_ALIASES, ModelSpec, build_config

CONFIG_SECTIONS = ("model", "training", "data")
Assignments = Mapping[str, Any] | Iterable[str]
"""Settings by name: a mapping such as ``{"lr": 5e-4}``, or texts such as ``"lr=5e-4"``."""
SETTING_CHOICES = {
    "optimiser": ("adamw", "bert_adam", "sgd"),
    "schedule": ("constant", "linear", "cosine"),
    "clip_by": ("all", "tensor", "value"),
    "task": ("VCMR", "SVMR", "VR"),
    "end_label": ("inclusive", "official"),
    "end_time": ("inclusive", "start"),
    "draw": ("pairs", "lists"),
}


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a model is trained: the section ``[training]`` of a config."""

    seed: int = 0
    batch: int = 128
    """Pairs per step; with ``pairs_per_video`` above 1, videos per step."""
    pairs_per_video: int = 1
    """Maximum number of pairs trained together for each drawn video, which is then encoded only once."""
    draw: str = "pairs"
    """How batches are drawn: ``pairs``, or ``lists``.

    ``lists`` draws ``batch`` videos, half of them from the lists of a few queries, with all pairs among them.
    """
    list_queries: int = 128
    """With ``draw=lists``: maximum number of queries per step. Those with the most listed moments stay."""
    alike: int = 1
    """Sort the videos of this many batches by length, which saves padding; 1 draws batches at random."""
    epochs: float = 100.0
    """Number of passes over the training pairs."""
    steps: int | None = None
    """Number of training steps, instead of ``epochs``."""
    minutes: float | None = None
    """Stop after this many minutes, even in the middle of an epoch; the learning-rate schedule still follows steps."""
    optimiser: str = "adamw"
    """``adamw``, ``bert_adam`` (Adam without bias correction, as in XML's public code) or ``sgd``."""
    momentum: float = 0.9
    """Momentum of ``sgd``."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of the running means of gradients and of their squares, for ``adamw`` and ``bert_adam``."""
    lr: float = 1e-4
    """Learning rate."""
    weight_decay: float = 0.01
    schedule: str = "constant"
    """How the learning rate falls: ``constant`` (not at all), ``linear`` (down to 0) or ``cosine``."""
    warmup: float = 0.0
    """Share of all steps, at the start, during which the learning rate rises from 0."""
    milestones: tuple[float, ...] = ()
    """Epochs at which the learning rate is multiplied by ``lower``, whatever the schedule."""
    lower: float = 0.1
    """Factor of the learning rate at each milestone."""
    clip: float = 1.0
    """Clip gradients to this norm (or value, see ``clip_by``); 0 leaves them as they are."""
    clip_by: str = "all"
    """What ``clip`` limits: the norm of ``all`` gradients together, of each ``tensor``, or each ``value``."""
    measure: str = "NDCG@20[IoU>=0.5]"
    """Measure that chooses the best checkpoint; several joined by `` + `` are summed."""
    task: str = "VCMR"
    """Task of the validation: VCMR, SVMR or VR."""
    end_time: str = "inclusive"
    """Where a predicted span ends: at the end of its last clip, or at its ``start`` (ReLoCLNet's public code)."""
    nms: float | None = None
    """Drop predictions that overlap a better one in the same video by more than this IoU."""
    validations: float = 1.0
    """Number of validations per epoch."""
    validate_every: int | None = None
    """Number of steps between validations, instead of ``validations``."""
    patience: int | None = None
    """Stop after this many validations without a better one."""
    report: tuple[str, ...] = ("NDCG@{10,20,40}[IoU>={0.3,0.5,0.7}]",)
    """Measures of the best checkpoint in the report at the end of training."""
    similarity: bool = True
    """Weight pairs by the similarity of query and caption if the data have it."""
    end_label: str = "inclusive"
    """Which clip is labelled as a moment's end: its last one, or (``official``) the clip after it.

    The public code of XML and ReLoCLNet uses ``official``.
    """
    hard_videos: int = 0
    """Number of hard negative videos per query of a step, drawn by the scores of ``begin``'s model (CroCs)."""
    hard_queries: int = 0
    """Number of hard negative queries per video of a step."""
    sharpness: float = 1.0
    """How strongly the draw prefers negatives that score like true pairs: a in ``exp(-a (score - aim)^2)``."""
    hard_pool: int = 0
    """Draw only from this many best-scored negatives; 0 draws from all."""
    list_reach: int = 1000
    """Draw wrong videos from a first stage's list down to this many ranks below the right one (CONQUER)."""
    cache_mb: float = 1024.0
    """Megabytes of features kept in memory."""
    prefetch: int = 2
    """Number of batches prepared ahead."""
    device: str = "auto"
    threads: int | None = None
    """CPU threads; None leaves it to PyTorch."""
    save_minutes: float = 5.0
    """Maximum number of minutes between two checkpoints."""
    trackers: tuple[str, ...] = ("tensorboard",)
    """Trackers of the training run, in addition to log.csv: TensorBoard if it is installed, and those of plug-ins."""

    def __post_init__(self) -> None:
        for name, allowed in SETTING_CHOICES.items():
            one_of(self, name, *allowed, section="training")
        at_least(self, 1, "batch", "pairs_per_video", "list_queries", "alike", "prefetch", section="training")
        at_least(self, 1, "steps", "validate_every", "patience", "threads", section="training")
        at_least(self, 0, "lr", "weight_decay", "clip", "cache_mb", "seed", "sharpness", section="training")
        at_least(self, 0, "hard_videos", "hard_queries", "hard_pool", "list_reach", "lower", section="training")
        if 0 < self.hard_pool < max(self.hard_videos, self.hard_queries):
            raise MomentseekError(
                f"training: hard_pool {self.hard_pool} has fewer negatives than are drawn from it (hard_videos "
                f"{self.hard_videos}, hard_queries {self.hard_queries}); raise it, or set training.hard_pool=0 for all"
            )
        above_nothing(self, "epochs", "minutes", "validations", "save_minutes", section="training")
        below_one(self, "momentum", section="training")
        if len(self.betas) != 2 or any(not isinstance(b, int | float) or not 0 <= b < 1 for b in self.betas):
            raise MomentseekError(f"training: betas are two numbers from 0 to below 1, not {self.betas!r}")
        if any(not isinstance(m, int | float) or m <= 0 for m in self.milestones):
            raise MomentseekError(f"training: milestones are epochs above 0, such as [8, 13], not {self.milestones!r}")
        if not 0 <= self.warmup < 1:
            raise MomentseekError(f"training: warmup is a share of all steps, from 0 to below 1, not {self.warmup:g}")
        if self.nms is not None and not 0 <= self.nms <= 1:
            raise MomentseekError(f"training: nms is an overlap, from 0 to 1, not {self.nms:g}")
        parse_all(summed_measures(self.measure))
        parse_all(self.report)

    def milestone_factor(self, epoch: float) -> float:
        """Factor of the learning rate after ``epoch`` epochs: ``lower`` for each milestone reached so far."""
        return float(self.lower ** sum(epoch >= milestone for milestone in self.milestones))


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which data are used: the section ``[data]`` of a config."""

    path: str = ""
    """Path of the data folder, which holds a data.toml."""
    train: str = "train"
    """Split to train on."""
    validate: str = "val"
    """Split that chooses the best checkpoint."""
    test: str | None = None
    """Split that is evaluated once, at the end, with the best checkpoint."""
    first_stage: str | None = None
    """Checkpoint of another model, or a run, that finds the videos for a model that only searches within videos."""
    lists: str | None = None
    """Checkpoint that ranks videos, or a run for the training queries, from which wrong videos are drawn (CONQUER).

    By default, this is ``first_stage``.
    """
    begin: str | None = None
    """Checkpoint whose weights training starts from: the folder of a training run, or a .safetensors file."""


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training run: the model's, the training's and the data's."""

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    data: DataSettings = field(default_factory=DataSettings)

    @property
    def model_config(self) -> ModelConfig:
        """The settings of a model that finds moments, with its defaults filled in."""
        return build_config(MODELS[self.model].config, self.settings, f"model {self.model}")

    @property
    def captioner_config(self) -> CaptionerConfig:
        """The settings of a captioner, with its defaults filled in."""
        return build_config(CAPTIONERS[self.model].config, self.settings, f"model {self.model}")

    @property
    def network_config(self) -> ModelConfig | CaptionerConfig:
        """The settings of the model, whether it finds moments or describes them."""
        return self.captioner_config if self.describes else self.model_config

    @property
    def describes(self) -> bool:
        """Whether the model is a captioner."""
        return self.model in CAPTIONERS

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str = "config") -> TrainConfig:
        """A config from the sections of a TOML file, with every name and type checked."""
        for section in table:
            if section not in CONFIG_SECTIONS and section != "about":
                raise MomentseekError(
                    f"{where}: there is no section {section!r}; sections are {', '.join(CONFIG_SECTIONS)}"
                )
        model = dict(_section(table, "model", where))
        name = model.pop("name", None)
        if not isinstance(name, str):
            raise MomentseekError(f"{where}: does not say which model; add name = ... under [model]")
        config = cls(
            name,
            model,
            build_config(TrainingSettings, _section(table, "training", where), f"{where}: training"),
            build_config(DataSettings, _section(table, "data", where), f"{where}: data"),
        )
        _ = network_spec(name)
        _ = config.network_config
        return config

    def table(self) -> dict[str, dict[str, Any]]:
        """All sections with every setting, including the model's defaults; None becomes "", as TOML has no null."""
        sections = {
            "model": {"name": self.model, **dataclasses.asdict(self.network_config)},
            "training": dataclasses.asdict(self.training),
            "data": dataclasses.asdict(self.data),
        }
        return {s: {k: _plain(v) for k, v in values.items()} for s, values in sections.items()}

    def text(self) -> str:
        """The config as the text of a TOML file, with the plug-in that the model comes from."""
        source = model_source(self.model)
        return tomli_w.dumps(self.table() | ({"about": {"plugin": source.as_dict()}} if source else {}))

    def with_changes(self, settings: Assignments) -> TrainConfig:
        """A copy of the config with some settings changed; a key may name its section (``training.lr``) or omit it."""
        return TrainConfig.of(apply_settings(self.table(), settings))


def network_spec(name: str) -> ModelSpec:
    """The specification of a model by name, whether it finds moments or describes them.

    >>> network_spec("mtm")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no model 'mtm'; did you mean 'mmt'?
    """
    found: ModelSpec | None = CAPTIONERS.get(name) or MODELS.get(name)
    if found is None:
        raise MomentseekError(f"there is no model {name!r}; {did_you_mean(name, [*MODELS, *CAPTIONERS])}")
    return found


def model_source(name: str) -> PluginSource | None:
    """The plug-in that a model comes from, which a checkpoint records; None for a built-in model."""
    known = CAPTIONERS if name in CAPTIONERS else MODELS
    return known.source(name) or source_of(network_spec(name).model.__module__)


def refuse_missing_plugin(name: object, stored: object, where: str) -> None:
    """Refuse a model whose plug-in, named in a checkpoint, is not installed; the message says how to get it."""
    if isinstance(name, str) and isinstance(stored, Mapping) and stored and name not in {*MODELS, *CAPTIONERS}:
        source = PluginSource.of(stored)
        raise MomentseekError(
            f"{where}: needs the model {name} of the plug-in {source}, which is missing; {source.remedy}"
        )


def summed_measures(text: str) -> list[str]:
    """The measures that a setting such as ``R@1 + R@5`` adds up.

    >>> summed_measures("R@1[IoU>=0.5] + R@1[IoU>=0.7]")
    ['R@1[IoU>=0.5]', 'R@1[IoU>=0.7]']
    """
    return [part.strip() for part in text.split(" + ")]


def apply_settings(table: Mapping[str, Any], settings: Assignments) -> dict[str, Any]:
    """Return the sections changed by settings: a mapping, or ``key=value`` texts whose values are TOML or plain words.

    The value None, or ``key=``, removes a setting.

    >>> apply_settings({"model": {"name": "xml"}, "training": {"lr": 1e-4}}, ["lr=0.001", "data.train=train_top20"])
    {'model': {'name': 'xml'}, 'training': {'lr': 0.001}, 'data': {'train': 'train_top20'}}
    """
    changed = {k: dict(v) if isinstance(v, Mapping) else v for k, v in table.items()}
    for name, value in settings.items() if isinstance(settings, Mapping) else map(_parse_assignment, settings):
        section, key = _place(name, changed)
        changed.setdefault(section, {})[key] = value
        if (section, key) == ("training", "epochs"):
            changed[section].pop("steps", None)
    return changed


def _parse_assignment(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise MomentseekError(f"{text!r} is not a setting; write key=value, such as lr=0.0005")
    return key.strip(), _value(value.strip())


def _place(key: str, table: Mapping[str, Any]) -> tuple[str, str]:
    section, dot, name = key.partition(".")
    if key in SETTING_ALIASES or (section == "model" and name in SETTING_ALIASES):
        section, dot, name = "model", ".", SETTING_ALIASES[name or key]
    if dot:
        if section not in CONFIG_SECTIONS:
            raise MomentseekError(
                f"there is no section {section!r} to set {key} in; sections are {', '.join(CONFIG_SECTIONS)}"
            )
        return section, name
    model = _section(table, "model", "config").get("name", "")
    known = {
        "training": [f.name for f in dataclasses.fields(TrainingSettings)],
        "data": [f.name for f in dataclasses.fields(DataSettings)],
        "model": [f.name for f in dataclasses.fields(network_spec(model).config)] if model and "model" in table else [],
    }
    holders = [s for s, names in known.items() if key in names]
    if len(holders) == 1:
        return holders[0], key
    if holders:
        raise MomentseekError(f"{key} is a setting of {' and '.join(holders)}; write {holders[0]}.{key}=...")
    every = [name for names in known.values() for name in names]
    hint = did_you_mean(key, every, "`momentseek train --list` shows what can be set")
    raise MomentseekError(f"there is no setting {key!r}; {hint}")


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"v = {text}")["v"] if text else None
    except (ValueError, RecursionError):
        return text


def _section(table: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    section = table.get(name, {})
    if not isinstance(section, Mapping):
        raise MomentseekError(f"{where}: {name} must be a section [{name}], not {section!r}")
    return {key: None if value == "" and key != "path" else value for key, value in section.items()}


def _plain(value: Any) -> Any:
    """A value as TOML or JSON returns it after writing and reading: "" for None, a list for a tuple."""
    return "" if value is None else list(value) if isinstance(value, tuple) else value
