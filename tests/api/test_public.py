# ruff: noqa: E501
"""What is public: a change of a name or a signature must show here."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from pkgutil import iter_modules

import pytest

import momentseek

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
CLASSES = {
    "CaptionTable",
    "Comparison",
    "Corpus",
    "Diagnosis",
    "Evaluation",
    "Hit",
    "Judgements",
    "Library",
    "Moment",
    "MomentseekError",
    "Query",
    "Results",
    "Run",
}
FUNCTIONS = {
    "baseline": "(name: str, test: Judgements | Path, *, train: Judgements | Path | None = None, top: int = 10, seed: int = 0, samples: int = 100, bandwidth: float | None = None, videos: Videos = None) -> Run",
    "compare": "(runs: RunsLike | Mapping[str, Sequence[RunLike]] | Sequence[Evaluation], truth: TruthLike | None = None, measures: Iterable[str] | str | None = None, *, protocol: str = 'paper', missing: Missing = 'error', test: str = 'randomisation', correction: str = 'holm', alpha: float = 0.05, seed: int = 0, cluster: str = 'video', videos: Videos = None, invalid: Policy = 'error') -> Comparison",
    "convert": "(source: Path, target: Path, *, to: str | None = None, format: str | None = None, videos: Videos = None, invalid: Policy = 'error', task: str | None = None, force: bool = False) -> Conversion",
    "diagnose": "(runs: RunLike | RunsLike, truth: TruthLike | Sequence[TruthLike], measures: Sequence[str] | str = (), *, protocol: str = 'paper', missing: Missing = 'error', only: Collection[str] = (), annotators: Sequence[TruthLike] = (), noise: Sequence[float] = (), clip_noise: bool = False, videos: Videos = None, invalid: Policy = 'error', seed: int = 0) -> Diagnosis",
    "evaluate": "(run: RunLike, truth: TruthLike, measures: Iterable[str] | str | None = None, *, protocol: str = 'paper', missing: Missing = 'error', videos: Videos = None, invalid: Policy = 'error', label: str | None = None) -> Evaluation",
    "predict": "(checkpoint: Path, data: Data | Path, split: str, *, out: Path | None = None, to: str | None = None, task: str | None = None, top: int | None = None, videos: Path | None = None, first: int | None = None, whole_corpus: bool = False, nms: float | None = None, device: str = 'auto') -> Run",
    "read_captions": "(path: Path, *, format: str | None = None, videos: Videos = None, invalid: Policy = 'error') -> CaptionTable",
    "read_corpus": "(path: Path) -> Corpus",
    "read_judgements": "(path: Path, *, format: str | None = None, videos: Videos = None, invalid: Policy = 'error') -> Judgements",
    "read_run": "(path: Path, *, format: str | None = None, videos: Videos = None, invalid: Policy = 'error') -> Run",
    "simulate": "(out: Path, *, like: str = 'tvr', videos: int | None = None, queries: int | None = None, seed: int = 0, hard: float | None = None, variant: str | None = None, bias: float | None = None, verb_bias: float | None = None, pool: int | None = None, video_dim: int | None = None, text_dim: int | None = None, force: bool = False) -> SimulationReport | GroundingReport",
    "train": "(model: str | None = None, *, data: Data | Path | None = None, preset: str | None = None, config: Path | None = None, settings: Mapping[str, Any] | Sequence[str] = (), out: Path | None = None, seeds: int | None = None, resume: Path | None = None, force: bool = False, progress: TrainingCallback | None = None) -> TrainingOutcome | SeedsOutcome",
    "write_captions": "(captions: CaptionTable, path: Path, *, to: str | None = None, videos: Videos = None) -> None",
    "write_judgements": "(judgements: Judgements, path: Path, *, to: str | None = None, videos: Videos = None) -> None",
    "write_run": "(run: Run, path: Path, *, to: str | None = None, videos: Videos = None) -> None",
}


class Verbatim(str):
    """An annotation that is printed as it is written in the source."""

    def __repr__(self) -> str:
        return str(self)


def signature_of(function: Callable[..., object]) -> str:
    """The parameters of a function, their types as the source has them."""
    signature = inspect.signature(function)
    parameters = [each.replace(annotation=Verbatim(each.annotation)) for each in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=Verbatim(signature.return_annotation)))


def test_these_names_are_public_and_no_others() -> None:
    assert set(momentseek.__all__) == {*CLASSES, *FUNCTIONS, "__version__"}
    assert dir(momentseek) == sorted(momentseek.__all__)
    assert all(inspect.isclass(getattr(momentseek, name)) for name in CLASSES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_called_as_before(name: str) -> None:
    assert signature_of(getattr(momentseek, name)) == FUNCTIONS[name]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'find'"):
        momentseek.find  # noqa: B018


def test_every_public_name_is_on_the_page_of_the_api_once() -> None:
    listed = re.findall(r"^::: momentseek\.(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(set(momentseek.__all__) - {"__version__"})


@pytest.mark.parametrize("name", sorted({*CLASSES, *FUNCTIONS}))
def test_every_public_docstring_begins_with_a_sentence(name: str) -> None:
    first = (inspect.getdoc(getattr(momentseek, name)) or "").split("\n\n")[0]
    assert first.endswith(".")


def test_no_room_has_the_name_of_something_public() -> None:
    rooms = {module.name for module in iter_modules(momentseek.__path__)}
    assert not rooms & set(momentseek.__all__)  # importing the room would put it in the place of the function
