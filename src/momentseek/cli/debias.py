"""``momentseek debias``: test whether models find moments, or only the places where moments usually are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from momentseek.benchmarks.debias.documents import as_json, as_text, csv_files, markdown
from momentseek.benchmarks.debias.documents import as_json as to_json
from momentseek.benchmarks.debias.figures import draw
from momentseek.benchmarks.debias.report import MIN_VERB_QUERIES, Truths, debias_report
from momentseek.benchmarks.debias.systems import FilesEntrant, System, blind_systems, parse_entrants
from momentseek.cli import options
from momentseek.cli.clustering import run_on
from momentseek.cli.progress import TrainingLine
from momentseek.core.atomic import write_all
from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.moments.table import Policy
from momentseek.measuring.evaluate import refuse_unknown
from momentseek.measuring.formats import read_corpus, read_runs, read_truth
from momentseek.measuring.result import Missing
from momentseek.models.features.data import Data

if TYPE_CHECKING:
    from momentseek.benchmarks.debias.report import DebiasReport
    from momentseek.benchmarks.debias.systems import Entrant
    from momentseek.core.moments.judgements import Judgements
    from momentseek.core.moments.run import Run


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1)
@click.option(
    "--run", "runs", multiple=True, metavar="NAME=IID,OOD", help="Two files of predictions that another program made."
)
@click.option("--data", "folder", metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--train", default="train", show_default=True, metavar="SPLIT", help="The training split.")
@click.option(
    "--iid",
    default="test_iid",
    show_default=True,
    metavar="SPLIT",
    help="Test split: moments lie as in training.",
)
@click.option(
    "--ood", default="test_ood", show_default=True, metavar="SPLIT", help="Test split: moments lie elsewhere."
)
@click.option("--truth-iid", metavar="FILE", help="The truth of iid predictions, instead of --data.")
@click.option("--truth-ood", metavar="FILE", help="The truth of ood predictions.")
@click.option(
    "--truth-train",
    metavar="FILE",
    help="The truth of the training set; without it, the report says nothing about where training moments lie.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Seeds to train each MODEL with.",
)
@click.option("--preset", metavar="NAME", help="A paper's settings. Default for simulated data: films.")
@click.option("--config", "file", metavar="FILE", help="Settings from a TOML file instead of a preset.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of all MODELs.")
@click.option("--out", "-o", "target", metavar="FOLDER", help="The folder of the report and of all models.")
@click.option(
    "--verbs", type=click.IntRange(min=0), default=0, metavar="N", help="Also report by verb, for the N most frequent."
)
@click.option(
    "--baseline-seeds",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Number of draws of the random blind baselines; 0 leaves all baselines out.",
)
@click.option("--plots/--no-plots", default=True, help="Draw the figures, as PNG and SVG.")
@options.missing
@options.videos
@options.invalid
@options.on_cluster
@options.as_json
@options.quiet
def command(
    models: tuple[str, ...],
    runs: tuple[str, ...],
    folder: str | None,
    train: str,
    iid: str,
    ood: str,
    truth_iid: str | None,
    truth_ood: str | None,
    truth_train: str | None,
    seeds: int,
    preset: str | None,
    file: str | None,
    settings: tuple[str, ...],
    target: str | None,
    verbs: int,
    baseline_seeds: int,
    plots: bool,
    missing: str,
    videos: str | None,
    invalid: str | None,
    on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare MODELs on a test split like the training set (iid) and one whose moments lie elsewhere (ood).

    \b
    A MODEL is
      mdd                        a model, trained with every seed
      'mdd[confounders=L*A]'     a model with settings of its own, written as for --set
      runs/mdd                   the folder of a training run (a path has a slash)
      NAME=IID,OOD               two files of predictions; one may be left empty
      NAME=any of these          the same under another name; several of one name are seeds of one system

    \b
    What debiasing gains, on simulated films:
      momentseek simulate --like charades --out films
      momentseek debias tan2d mdd --data films --out debias
      momentseek debias tan2d mdd --data /mnt/films --out /mnt/debias --on auto
    Which confounders matter (Table 4 of debiased grounding):
      momentseek debias tan2d 'mdd[confounders=L]' 'mdd[confounders=L*A]' mdd --data films --out table4
    Predictions made elsewhere (needs no PyTorch):
      momentseek debias --run ours=iid.jsonl,ood.jsonl --truth-iid test_iid.json --truth-ood test_ood.json \\
        --truth-train train.json

    All others are compared with the first MODEL; blind baselines are reported beside them. FOLDER gets report.md,
    report.json, tables as CSV, figures/ and runs/. The same command continues after an interruption.
    """
    import json
    from dataclasses import replace

    given = parse_entrants([*models, *runs])
    if not given:
        raise MomentseekError("there is nothing to compare: momentseek debias MODEL… --data DIR --out FOLDER")
    training = any(not isinstance(each, FilesEntrant) for found in given.values() for each in found)
    _check(training, folder, target, (truth_iid, truth_ood, truth_train))
    if on is not None and not training:
        raise MomentseekError("--on is for models to be trained; predictions are compared here, so leave it out")
    plots = plots and target is not None and _can_draw(quiet)
    if target:
        _make(Path(target))
    if training:
        for package in ("torch", "h5py", "safetensors"):
            optional_module(package, "train")
    truths: Truths
    known: Judgements | None
    if folder:
        with Data.open(folder) as data:
            truths, known, note = _of_data(data, train, iid, ood)
            systems = _systems(given, truths, videos, invalid)
            if training:
                source = (preset, file, settings, seeds)
                systems |= _train_entrants(given, data, train, (iid, ood), source, Path(cast(str, target)), on, quiet)
    else:
        truths, known, note = _of_files(cast(str, truth_iid), cast(str, truth_ood), truth_train, videos, invalid)
        systems = _systems(given, truths, videos, invalid)
    ordered = [systems[label] for label in given]
    if baseline_seeds:
        if not quiet:
            options.say("blind baselines …")
        taken = set(given)
        for blind in blind_systems(truths.iid, truths.ood, known, baseline_seeds):
            name = blind.name if blind.name not in taken else f"{blind.name} (ours)"
            ordered.append(replace(blind, name=name))
    report = debias_report(truths, ordered, known, verbs=verbs, missing=cast(Missing, missing), note=note)
    if len(report.verbs) < verbs and not quiet:
        options.say(
            f"note: by verb: {len(report.verbs)} instead of {verbs}; the others have fewer than {MIN_VERB_QUERIES} "
            "queries in train or in ood"
        )
    if target:
        _write(Path(target), report, plots, quiet)
    click.echo(json.dumps(to_json(report), indent=2, ensure_ascii=False) if as_json else as_text(report))


def _check(training: bool, folder: str | None, target: str | None, files: tuple[str | None, ...]) -> None:

    if folder and any(files):
        raise MomentseekError("--data names the truths already; leave out --truth-iid, --truth-ood and --truth-train")
    if training and not (folder and target):
        raise MomentseekError("models need data and a folder to be trained in; give both (--data DIR --out FOLDER)")
    if not folder and not all(files[:2]):
        raise MomentseekError("no truth is given; give --truth-iid FILE and --truth-ood FILE, or data (--data DIR)")


def _can_draw(quiet: bool) -> bool:
    from importlib.util import find_spec

    found = find_spec("matplotlib") is not None
    if not found and not quiet:
        options.say("note: no figures are drawn; they need matplotlib: pip install 'momentseek[plots]'")
    return found


def _make(out: Path) -> None:

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{out}: cannot be created as a folder ({e.strerror}); choose another") from None


def _of_data(data: Data, train: str, iid: str, ood: str) -> tuple[Truths, Judgements, str]:
    """The truths of a data folder, with the durations that its files or clips give."""

    found = [data.split(name).timed_truth for name in (train, iid, ood)]
    note = f"SIMULATED DATA ({data.name}): these figures do not describe real videos." if data.simulated else ""
    return Truths(found[1], found[2], (iid, ood)), found[0], note


def _of_files(
    iid: str, ood: str, train: str | None, videos: str | None, invalid: str | None
) -> tuple[Truths, Judgements | None, str]:

    corpus = read_corpus(videos) if videos else None
    policy = cast(Policy, invalid or "error")
    one, two, known = (read_truth(path, corpus=corpus, invalid=policy) if path else None for path in (iid, ood, train))
    assert one is not None
    assert two is not None
    note = next((text for path in (iid, ood, train) if path and (text := _simulation_note(Path(path)))), "")
    return Truths(one, two), known, note


def _simulation_note(truth: Path) -> str:
    """What to say about a truth in the folder of a simulation; empty for real videos."""
    try:
        about = read_toml(truth.parent / "data.toml")
    except MomentseekError:
        return ""
    if not about.get("simulated"):
        return ""
    return f"SIMULATED DATA ({about.get('name', truth.parent.name)}): these figures do not describe real videos."


def _systems(
    given: dict[str, list[Entrant]], truths: Truths, videos: str | None, invalid: str | None
) -> dict[str, System]:
    """The systems whose predictions are files; read first, so that a wrong name shows before any training."""

    found = {}
    for label, each in given.items():
        files = [one for one in each if isinstance(one, FilesEntrant)]
        if len(files) == len(each):
            pairs = tuple((_read(f.iid, videos, invalid), _read(f.ood, videos, invalid)) for f in files)
            for pair in pairs:
                for run, truth in zip(pair, (truths.iid, truths.ood), strict=True):
                    if run is not None:
                        refuse_unknown(run, truth)
            found[label] = System(label, pairs)
        elif files:
            raise MomentseekError(f"{label!r} names both files and folders; give each its own name")
    return found


def _read(path: str, videos: str | None, invalid: str | None) -> Run | None:

    if not path:
        return None
    corpus = read_corpus(videos) if videos else None
    lists = [r for r in read_runs(path, corpus=corpus, invalid=cast(Policy, invalid or "error")) if r.task != "VR"]
    if not lists:
        raise MomentseekError(f"{path}: ranks only videos; give predictions of moments")
    return next((r for r in lists if r.task == "SVMR"), lists[0])


def _train_entrants(
    given: dict[str, list[Entrant]],
    data: Data,
    train: str,
    splits: tuple[str, str],
    source: tuple[str | None, str | None, Sequence[str], int],
    out: Path,
    on: str | None,
    quiet: bool,
) -> dict[str, System]:
    """Train the models that are not trained yet, and let every model answer both splits."""
    import sys
    from dataclasses import replace

    from momentseek.benchmarks.debias.training import DEFAULT_TABLE, carry_out_task, debias_tasks
    from momentseek.models.training.presets import settings_table

    preset, file, settings, seeds = source
    sections, where = settings_table(preset, file, default="films" if data.simulated else None)
    wanted = [each for found in given.values() for each in found if not isinstance(each, FilesEntrant)]
    fixed = [f"data.train={train}", "data.test=", *settings]
    todo = debias_tasks(wanted, sections or DEFAULT_TABLE, fixed, seeds, out / "runs", where)
    todo = [
        replace(one, config=replace(one.config, data=replace(one.config.data, path=data.location)))
        if one.config is not None
        else one
        for one in todo
    ]
    if on is not None:
        from momentseek.benchmarks.debias.training import cluster_tasks

        if not run_on(on, cluster_tasks(todo, data, splits), quiet=quiet):
            options.say("stopped and saved; the same command continues")
            sys.exit(130)
    pairs: dict[str, list[tuple[Run | None, Run | None]]] = {}
    for number, one in enumerate(todo, start=1):
        if not quiet:
            options.say(f"{number} of {len(todo)}: {one.folder.name}")
        answered = carry_out_task(one, data, splits, progress=TrainingLine(quiet=quiet))
        if answered is None:
            options.say("stopped and saved; the same command continues")
            sys.exit(130)
        pairs.setdefault(one.label, []).append((answered[0], answered[1]))
    return {label: System(label, tuple(found)) for label, found in pairs.items()}


def _write(out: Path, report: DebiasReport, plots: bool, quiet: bool) -> None:
    """Figures first, so that a report never shows what is not there; then all tables together."""
    import json

    pictures: tuple[str, ...] = ()
    if plots:
        pictures = tuple(str(path.relative_to(out)) for path in draw(report, out / "figures") if path.suffix == ".png")
    text = json.dumps(as_json(report), ensure_ascii=False, indent=1) + "\n"
    files: dict[Any, bytes] = {out / name: content for name, content in csv_files(report).items()}
    write_all({**files, out / "report.json": text.encode(), out / "report.md": markdown(report, pictures).encode()})
    if not quiet:
        options.say(f"wrote {out / 'report.md'}")
