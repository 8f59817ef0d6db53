"""Compare systems on a usual and a changed test split: read or train them, and write a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.benchmarks.debias.documents import as_json, csv_files, markdown
from momentseek.benchmarks.debias.figures import draw
from momentseek.benchmarks.debias.report import MIN_VERB_QUERIES, DebiasReport, Truths, debias_report
from momentseek.benchmarks.debias.systems import Entrant, FilesEntrant, System, blind_systems, parse_entrants
from momentseek.core.atomic import write_all
from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import Policy
from momentseek.measuring.evaluate import refuse_unknown
from momentseek.measuring.formats import read_corpus, read_runs, read_truth
from momentseek.measuring.result import Missing
from momentseek.models.features.data import Data

if TYPE_CHECKING:
    from momentseek.cluster.tasks import ClusterTask
    from momentseek.models.training.folder import TrainingCallback

Announce = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class DebiasOptions:
    """Which systems are compared on which data, and how they are trained and reported."""

    models: Sequence[str] = ()
    """Models, training runs and files of predictions, as ``parse_entrant`` reads them."""
    data: str | None = None
    train: str = "train"
    iid: str = "test_iid"
    ood: str = "test_ood"
    truth_iid: str | None = None
    truth_ood: str | None = None
    truth_train: str | None = None
    seeds: int = 3
    preset: str | None = None
    config: str | None = None
    settings: Sequence[str] = ()
    """Settings of all models, each as ``key=value``."""
    out: str | None = None
    verbs: int = 0
    baseline_seeds: int = 5
    plots: bool = True
    missing: Missing = "error"
    videos: str | None = None
    invalid: Policy | None = None


def compare_systems(
    options: DebiasOptions,
    *,
    announce: Announce = lambda _: None,
    progress: TrainingCallback | None = None,
    spread: Callable[[Sequence[ClusterTask]], bool] | None = None,
) -> DebiasReport | None:
    """Compare systems and write the report to ``out``, if that is given; None if training was stopped.

    ``spread`` runs the training on a cluster and returns whether it was finished.
    """
    given = parse_entrants(options.models)
    training = any(not isinstance(each, FilesEntrant) for found in given.values() for each in found)
    _check(options, bool(given), training, spread is not None)
    plots = options.plots and options.out is not None
    if plots and find_spec("matplotlib") is None:
        plots = False
        announce("note: no figures are drawn; they need matplotlib: pip install 'momentseek[plots]'")
    if options.out:
        try:
            Path(options.out).mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise MomentseekError(
                f"{options.out}: cannot be created as a folder ({e.strerror}); choose another"
            ) from None
    if training:
        for package in ("torch", "h5py", "safetensors"):
            optional_module(package, "train")
    trained: dict[str, System] | None = {}
    known: Judgements | None
    if options.data:
        with Data.open(options.data) as data:
            truths, known, note = _truths_of_data(data, options)
            systems = _read_systems(given, truths, options)
            if training:
                trained = _train(given, data, options, announce, progress, spread)
    else:
        truths, known, note = _truths_of_files(options)
        systems = _read_systems(given, truths, options)
    if trained is None:
        return None
    ordered = [(systems | trained)[label] for label in given]
    if options.baseline_seeds:
        announce("blind baselines …")
        for blind in blind_systems(truths.iid, truths.ood, known, options.baseline_seeds):
            ordered.append(replace(blind, name=f"{blind.name} (ours)") if blind.name in given else blind)
    report = debias_report(truths, ordered, known, verbs=options.verbs, missing=options.missing, note=note)
    if len(report.verbs) < options.verbs:
        announce(
            f"note: by verb: {len(report.verbs)} instead of {options.verbs}; the others have fewer than "
            f"{MIN_VERB_QUERIES} queries in train or in ood"
        )
    if options.out:
        write_report(report, Path(options.out), plots)
        announce(f"wrote {Path(options.out) / 'report.md'}")
    return report


def write_report(report: DebiasReport, out: Path, plots: bool = True) -> None:
    """Write the figures first, so that a report never refers to missing files; then all tables together."""
    pictures = [str(p.relative_to(out)) for p in draw(report, out / "figures") if p.suffix == ".png"] if plots else []
    text = json.dumps(as_json(report), ensure_ascii=False, indent=1) + "\n"
    files = {**csv_files(report), "report.json": text.encode(), "report.md": markdown(report, pictures).encode()}
    write_all({out / name: content for name, content in files.items()})


def _check(options: DebiasOptions, given: bool, training: bool, spread: bool) -> None:
    files = (options.truth_iid, options.truth_ood, options.truth_train)
    data, out, iid, ood, train = map(parameter, ("data", "out", "truth_iid", "truth_ood", "truth_train"))
    if not given:
        raise MomentseekError("there is nothing to compare: momentseek debias MODEL… --data DIR --out FOLDER")
    if options.data and any(files):
        raise MomentseekError(f"{data} names the truths already; leave out {iid}, {ood} and {train}")
    if training and not (options.data and options.out):
        raise MomentseekError(f"models need data and a folder to be trained in; give both ({data} and {out})")
    if not options.data and not all(files[:2]):
        raise MomentseekError(f"no truth is given; give files ({iid} and {ood}), or data ({data})")
    if spread and not training:
        raise MomentseekError(
            f"{parameter('on')} is for models to be trained; predictions are compared here, so leave it out"
        )


def _truths_of_data(data: Data, options: DebiasOptions) -> tuple[Truths, Judgements, str]:
    """Return the truths of a data folder, with the durations from its files or clips."""
    train, iid, ood = (data.split(name).timed_truth for name in (options.train, options.iid, options.ood))
    return Truths(iid, ood, (options.iid, options.ood)), train, _note(data.name) if data.simulated else ""


def _truths_of_files(options: DebiasOptions) -> tuple[Truths, Judgements | None, str]:
    corpus = read_corpus(options.videos) if options.videos else None
    paths = (options.truth_iid, options.truth_ood, options.truth_train)
    iid, ood, train = (read_truth(p, corpus=corpus, invalid=options.invalid or "error") if p else None for p in paths)
    assert iid is not None
    assert ood is not None
    notes = (_note_of_folder(Path(path).parent) for path in paths if path)
    return Truths(iid, ood), train, next(filter(None, notes), "")


def _note_of_folder(folder: Path) -> str:
    """Return a note for truths in the folder of a simulation; empty for real videos."""
    try:
        about = read_toml(folder / "data.toml")
    except MomentseekError:
        return ""
    return _note(str(about.get("name", folder.name))) if about.get("simulated") else ""


def _note(name: str) -> str:
    return f"SIMULATED DATA ({name}): these figures do not describe real videos."


def _read_systems(given: Mapping[str, list[Entrant]], truths: Truths, options: DebiasOptions) -> dict[str, System]:
    """Read the systems whose predictions are files; this comes before training, so that wrong names show early."""
    found = {}
    for label, each in given.items():
        files = [one for one in each if isinstance(one, FilesEntrant)]
        if files and len(files) < len(each):
            raise MomentseekError(f"{label!r} names both files and folders; give each its own name")
        if files:
            found[label] = System(
                label,
                tuple((_read_run(f.iid, truths.iid, options), _read_run(f.ood, truths.ood, options)) for f in files),
            )
    return found


def _read_run(path: str, truth: Judgements, options: DebiasOptions) -> Run | None:
    if not path:
        return None
    corpus = read_corpus(options.videos) if options.videos else None
    lists = [r for r in read_runs(path, corpus=corpus, invalid=options.invalid or "error") if r.task != "VR"]
    if not lists:
        raise MomentseekError(f"{path}: ranks only videos; give predictions of moments")
    run = next((r for r in lists if r.task == "SVMR"), lists[0])
    refuse_unknown(run, truth)
    return run


def _train(
    given: Mapping[str, list[Entrant]],
    data: Data,
    options: DebiasOptions,
    announce: Announce,
    progress: TrainingCallback | None,
    spread: Callable[[Sequence[ClusterTask]], bool] | None,
) -> dict[str, System] | None:
    """Train the models that are not trained yet, and predict both splits with each; None if that was stopped."""
    from momentseek.benchmarks.debias.training import DEFAULT_TABLE, carry_out_task, cluster_tasks, debias_tasks
    from momentseek.models.training.presets import settings_table

    assert options.out is not None
    preset = "films" if data.simulated else None
    sections, where = settings_table(options.preset, options.config, default=preset)
    wanted = [each for found in given.values() for each in found if not isinstance(each, FilesEntrant)]
    fixed = [f"data.train={options.train}", "data.test=", *options.settings]
    runs = Path(options.out) / "runs"
    tasks = debias_tasks(wanted, sections or DEFAULT_TABLE, fixed, options.seeds, runs, where, data.location)
    splits = (options.iid, options.ood)
    if spread is not None and not spread(cluster_tasks(tasks, data, splits)):
        return None
    pairs: dict[str, list[tuple[Run | None, Run | None]]] = {}
    for number, task in enumerate(tasks, start=1):
        announce(f"{number} of {len(tasks)}: {task.folder.name}")
        answered = carry_out_task(task, data, splits, progress=progress)
        if answered is None:
            return None
        pairs.setdefault(task.label, []).append((answered[0], answered[1]))
    return {label: System(label, tuple(found)) for label, found in pairs.items()}
