"""Evaluate, compare and diagnose runs, given as objects or as files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from momentseek.api.files import Videos, open_corpus
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import Policy
from momentseek.measuring import official
from momentseek.measuring.compare import System, unique_labels
from momentseek.measuring.compare import compare as compare_evaluations
from momentseek.measuring.comparison import Comparison
from momentseek.measuring.diagnose import diagnosis
from momentseek.measuring.diagnose.diagnosis import Diagnosis
from momentseek.measuring.evaluate import evaluate as evaluate_run
from momentseek.measuring.formats import read_answers, read_standard, read_truth
from momentseek.measuring.result import Evaluation, Missing, label_of

Path = str | os.PathLike[str]
RunLike: TypeAlias = "Run | Sequence[Run] | CaptionTable | Path"
"""A run, the runs of several tasks (TVR), captions, or the path of a file with predictions or captions."""
TruthLike: TypeAlias = "Judgements | CaptionTable | Path"
"""Judgements, reference captions, or the path of a file with ground truth."""
RunsLike: TypeAlias = "Sequence[RunLike] | Mapping[str, RunLike]"
"""Several runs, under their own names or under those of a mapping."""


def evaluate(
    run: RunLike,
    truth: TruthLike,
    measures: Iterable[str] | str | None = None,
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    videos: Videos = None,
    invalid: Policy = "error",
    label: str | None = None,
) -> Evaluation:
    """Score a run (the ranked moments of a system) or captions against ground truth.

    Run and truth may be files in any known format. ``measures`` are names such as ``"NDCG@{10,20}[IoU>=0.5]"``; by
    default those of the protocol are computed. ``protocol`` says whose rules to follow (``momentseek measures`` lists
    measures and protocols). A judged query without predictions is an error unless ``missing`` is ``"zero"`` (it counts
    as 0) or ``"skip"`` (it is left out of the mean). ``videos`` and ``invalid`` are as for ``read_run``; ``label``
    names the run in tables.

    >>> result = evaluate("examples/kitchen/careful.jsonl", "examples/kitchen/truth.jsonl", "NDCG@10[IoU>={0.5,0.7}]")
    >>> print({name: round(mean, 4) for name, mean in result.means.items()})
    {'NDCG@10[IoU>=0.5]': 0.8961, 'NDCG@10[IoU>=0.7]': 0.8328}
    """
    corpus = open_corpus(videos)
    answers = _answers(run, corpus, invalid)
    return evaluate_run(
        answers,
        _standard(truth, answers, corpus, invalid),
        measures,
        protocol=protocol,
        missing=missing,
        label=label,
    )


def evaluate_all(
    runs: RunsLike,
    truth: TruthLike,
    measures: Iterable[str] | str | None = None,
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    videos: Videos = None,
    invalid: Policy = "error",
) -> list[Evaluation]:
    """Score several runs against one truth; the options are those of :func:`evaluate`."""
    corpus = open_corpus(videos)
    opened = _label_runs(runs, corpus, invalid)
    standard = _standard(truth, opened[0][1] if opened else (), corpus, invalid)
    return [
        evaluate_run(given, standard, measures, protocol=protocol, missing=missing, label=name)
        for name, given in opened
    ]


def evaluate_systems(
    systems: Mapping[str, Sequence[RunLike]], truth: TruthLike, measures: Iterable[str] | str | None = None, **read: Any
) -> list[list[Evaluation]]:
    """Score the runs of several systems, one run per seed; the options are those of :func:`evaluate`."""
    flat = {
        name if len(runs) == 1 else f"{name} #{number}": run
        for name, runs in systems.items()
        for number, run in enumerate(runs, start=1)
    }
    found = iter(evaluate_all(flat, truth, measures, **read))
    return [[replace(next(found), run=name) for _ in runs] for name, runs in systems.items()]


def official_report(
    run: RunLike,
    truth: TruthLike,
    *,
    protocol: str | None = None,
    missing: Missing = "error",
    videos: Videos = None,
    invalid: Policy = "keep",
) -> tuple[str, list[str]]:
    """Return what an official evaluator prints for a run, character by character, and notes about the files.

    ``protocol`` names the evaluator; by default it is the one for this kind of truth.
    """
    corpus = open_corpus(videos)
    answers = _answers(run, corpus, invalid)
    standard = _standard(truth, answers, corpus, invalid)
    tables = (standard, *(answers if isinstance(answers, tuple) else (answers,)))
    notes = [f"{table.source}: {finding}" for table in tables for finding in table.findings]
    name = protocol or home_protocol(standard)
    text = official.render(name, answers, standard, missing)
    if missing != "error":
        gone = evaluate_run(answers, standard, protocol=name, missing=missing).missing
        what = "judged queries without predictions" if isinstance(answers, tuple) else "moments without a caption"
        notes.append(f"{len(gone):,} {what} ({missing})")
    return text, notes


def home_protocol(truth: Judgements | CaptionTable) -> str:
    """The protocol of the official evaluator for this kind of truth."""
    if isinstance(truth, CaptionTable):
        return "tvc"
    if truth.saliency is not None:
        return "qvhighlights"
    if len(truth.relevance) and truth.relevance.max() > 1:
        return "tvr-ranking"
    if "type" in truth.fields:
        return "tvr"
    raise MomentseekError(
        f"{truth.source}: no official evaluator is known for this kind of truth; name one "
        f"({parameter('protocol', 'tvr')}, …)"
    )


def compare(
    runs: RunsLike | Mapping[str, Sequence[RunLike]] | Sequence[Evaluation],
    truth: TruthLike | None = None,
    measures: Iterable[str] | str | None = None,
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    test: str = "randomisation",
    correction: str = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    cluster: str = "video",
    videos: Videos = None,
    invalid: Policy = "error",
) -> Comparison:
    """Compare runs query by query: who is better, by how much, and whether chance could explain it.

    ``runs`` are runs or files (or a mapping from names to them, or to lists of them: the seeds of a system), scored
    against ``truth`` as ``evaluate`` does; or evaluations, which need no truth. ``test`` is ``"randomisation"``,
    ``"t"`` or ``"tukey"``, ``correction`` is ``"holm"`` or ``"none"``, and a difference is significant if its p-value
    is at most ``alpha``. Queries that share a video are resampled together, unless ``cluster`` is ``"none"``.

    >>> kitchen = "examples/kitchen/"
    >>> compare([kitchen + "careful.jsonl", kitchen + "hasty.jsonl"], kitchen + "truth.jsonl", "NDCG@10[IoU>=0.5]")
    <Comparison of careful and hasty: 1 measure, 27 queries, test randomisation>
    """
    chosen = (measures,) if isinstance(measures, str) else tuple(measures or ())
    if not isinstance(runs, Mapping) and all(isinstance(run, Evaluation) for run in runs):
        if truth is not None or chosen:
            raise MomentseekError(
                f"evaluations already have their truth and measures; leave out {parameter('truth')} and "
                f"{parameter('measures')}"
            )
        systems: Sequence[System] = [run for run in runs if isinstance(run, Evaluation)]
    else:
        if truth is None:
            raise MomentseekError(f"a comparison of runs needs ground truth; give it ({parameter('truth')})")
        read: dict[str, Any] = {"protocol": protocol, "missing": missing, "videos": videos, "invalid": invalid}
        if isinstance(runs, Mapping) and all(
            isinstance(run, list) and not isinstance(run[0], Run) for run in runs.values()
        ):
            systems = evaluate_systems(cast(Mapping[str, Sequence[RunLike]], runs), truth, chosen, **read)
        else:
            systems = evaluate_all(cast(RunsLike, runs), truth, chosen, **read)
    return compare_evaluations(systems, test=test, correction=correction, alpha=alpha, seed=seed, cluster=cluster)


def diagnose(
    runs: RunLike | RunsLike,
    truth: TruthLike | Sequence[TruthLike],
    measures: Sequence[str] | str = (),
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    only: Collection[str] = (),
    annotators: Sequence[TruthLike] = (),
    noise: Sequence[float] = (),
    clip_noise: bool = False,
    videos: Videos = None,
    invalid: Policy = "error",
    seed: int = 0,
) -> Diagnosis:
    """Check whether the figures of runs can be trusted: flaws of the measures, and biases of the data.

    ``only`` names the checks to run: axioms, ties, noise, location or performance; by default all that are possible
    run. ``annotators`` are re-annotations of the truth's queries, ``noise`` holds the standard deviations of the noise
    on IoUs. ``truth`` may be two ground truths: first the one distributed like the training data (iid), then the other
    (ood).

    >>> found = diagnose("examples/kitchen/careful.jsonl", "examples/kitchen/truth.jsonl", "AxIoU@1", only=["axioms"])
    >>> [verdict.broken for verdict in found.axioms.measures[0].verdicts]
    [0, 0]
    """
    corpus = open_corpus(videos)
    truths = [truth] if isinstance(truth, Judgements | CaptionTable | str | os.PathLike) else list(truth)
    several = [runs] if isinstance(runs, Run | CaptionTable | str | os.PathLike) else runs
    return diagnosis.diagnose(
        [(name, ranked_moments(given)) for name, given in _label_runs(several, corpus, invalid)],
        [_judgements(each, corpus, invalid) for each in truths],
        (measures,) if isinstance(measures, str) else measures,
        protocol=protocol,
        missing=missing,
        annotators=[
            read_truth(each, format="hidden-challenges", invalid=invalid)
            if isinstance(each, str | os.PathLike)
            else _judgements(each, corpus, invalid)
            for each in annotators
        ],
        gammas=noise,
        only=only,
        clip_noise=clip_noise,
        seed=seed,
    )


def _standard(
    truth: TruthLike, answers: tuple[Run, ...] | CaptionTable, corpus: Corpus | None, invalid: Policy
) -> Judgements | CaptionTable:
    if isinstance(truth, Judgements | CaptionTable):
        return truth
    return read_standard(truth, answers, corpus=corpus, invalid=invalid)


def _answers(run: RunLike, corpus: Corpus | None, invalid: Policy) -> tuple[Run, ...] | CaptionTable:
    if isinstance(run, CaptionTable):
        return run
    if isinstance(run, Run):
        return (run,)
    if isinstance(run, str | os.PathLike):
        return read_answers(run, corpus=corpus, invalid=invalid)
    return tuple(run)


def _label_runs(
    runs: RunsLike, corpus: Corpus | None, invalid: Policy
) -> list[tuple[str, tuple[Run, ...] | CaptionTable]]:
    """Each run with its name; equal names are numbered."""
    names, given = (list(runs), list(runs.values())) if isinstance(runs, Mapping) else ([], list(runs))
    opened = [_answers(run, corpus, invalid) for run in given]
    sources = [each.source if isinstance(each, CaptionTable) else each[0].source for each in opened]
    labels = unique_labels(names or [label_of(source) for source in sources])
    return list(zip(labels, opened, strict=True))


def _judgements(truth: TruthLike, corpus: Corpus | None, invalid: Policy) -> Judgements:
    if isinstance(truth, CaptionTable):
        raise MomentseekError(f"{truth.source}: holds captions, not judged moments; give ground truth of moments")
    return truth if isinstance(truth, Judgements) else read_truth(truth, corpus=corpus, invalid=invalid)


def ranked_moments(runs: Sequence[Run] | CaptionTable) -> Run:
    """The run of a file that ranks moments, preferably one that ranks those of all videos (VCMR)."""
    if isinstance(runs, CaptionTable):
        raise MomentseekError(f"{runs.source}: holds captions, not ranked moments; give a run of moments")
    lists = [run for run in runs if run.task != "VR"]
    if not lists:
        raise MomentseekError(f"{runs[0].source}: ranks videos only; give a run of moments")
    return next((run for run in lists if run.task == "VCMR"), lists[0])
