"""``momentseek data label-studio``: write annotation tasks, and read the annotators' labels back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from momentseek.benchmarks.datasets.annotation.candidates import read_candidates
from momentseek.benchmarks.datasets.annotation.consensus import find_consensus
from momentseek.benchmarks.datasets.annotation.label_studio import (
    build_tasks,
    check_address,
    labelling_page,
    read_exports,
)
from momentseek.benchmarks.datasets.annotation.labels import read_labels, write_labels
from momentseek.benchmarks.datasets.common import Decision, as_json_lines, tally
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.measuring.formats import write_all
from momentseek.measuring.formats.document import open_document

if TYPE_CHECKING:
    from os import PathLike


@click.group()
def command() -> None:
    """Have query–moment pairs judged in Label Studio (labelstud.io), the tool TVR-Ranking used.

    \b
      momentseek data label-studio write first.jsonl --base-url https://example.org/videos --out tasks.json
      momentseek data label-studio read export.json --out labels.csv

    `write` makes the tasks to import and the labelling page to paste into the project's settings; `read` turns the
    project's JSON export into the labels that `momentseek data consensus` takes.
    """


@command.command()
@click.argument("candidates", metavar="CANDIDATES")
@click.option("--out", required=True, metavar="FILE", help="The tasks to import (JSON).")
@click.option("--config", metavar="FILE", help="The labelling page (XML). Default: beside OUT, as OUT.xml.")
@click.option(
    "--base-url", required=True, metavar="URL", help="Where the videos are; a video's address is URL/VIDEO.mp4."
)
@click.option("--suffix", default=".mp4", show_default=True, help="What follows a video's name in its address.")
@click.option(
    "--disagreed",
    metavar="LABELS",
    help="Only pairs whose two labels in this file differ by more than 1, which need two more annotators.",
)
@click.option("--report", metavar="FILE", help="Write which pairs are to be judged and why, one JSON object per line.")
@options.force
@options.as_json
def write(
    candidates: str,
    out: str,
    config: str | None,
    base_url: str,
    suffix: str,
    disagreed: str | None,
    report: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write one task per pair of CANDIDATES: the query, the video at the moment, and the guideline with five levels.

    CANDIDATES is what `momentseek data candidates` wrote, or any truth file.
    """
    import json
    from pathlib import Path

    page = config or str(Path(out.removesuffix(".gz")).with_suffix(".xml"))
    if page == out:
        raise MomentseekError(f"{out}: the tasks and the labelling page need a file each; call the tasks .json")
    options.check_targets([candidates, disagreed], [out, page, report], force)
    check_address(base_url)
    pairs = read_candidates(candidates)
    reasons = dict.fromkeys((c.pair_id for c in pairs), "every pair of the file")
    wanted = set(reasons)
    if disagreed:
        labels = read_labels(disagreed)
        found = {d.subject: d for d in find_consensus(labels, incomplete="drop").decisions()}
        reasons = {pair: found[pair].reason if pair in found else "no labels" for pair in reasons}
        wanted = {
            pair
            for pair, decision in found.items()
            if decision.outcome == "discarded" and len(decision.evidence["labels"]) == 2
        }
    decisions = [Decision(p, "asked" if p in wanted else "left out", why) for p, why in reasons.items()]
    pairs = [c for c in pairs if c.pair_id in wanted]
    files: dict[str | PathLike[str], bytes] = {
        out: json.dumps(build_tasks(pairs, base_url, suffix), ensure_ascii=False, indent=1).encode(),
        page: labelling_page().encode(),
    }
    if report:
        files[report] = as_json_lines(decisions)
    write_all(files)
    queries = len({c.query_id for c in pairs})
    if as_json:
        summary = {"tasks": len(pairs), "queries": queries, "page": page, "decisions": tally(decisions)}
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    options.say(f"wrote {out}: {count(len(pairs), 'task')} of {count(queries, 'query', 'queries')}")
    options.say(f"wrote {page}: the labelling page")
    if report:
        options.say(f"wrote {report}")


@command.command()
@click.argument("exports", metavar="EXPORT...", nargs=-1, required=True)
@click.option("--out", required=True, metavar="FILE", help="The labels: CSV with pair_id, worker, relevance.")
@click.option("--report", metavar="FILE", help="Write what became of every annotation, one JSON object per line.")
@options.force
@options.as_json
def read(exports: tuple[str, ...], out: str, report: str | None, force: bool, as_json: bool) -> None:
    """Turn Label Studio's JSON EXPORTs into labels, and say what was skipped or is still missing.

    Several exports (say, of the first two annotators and of the two asked later) are joined in the order given. An
    annotation that is in two of them counts once. If a person judged a pair again, the last judgement counts.
    """
    import json

    options.check_targets(exports, [out, report], force)
    found = read_exports((open_document(path).json, path) for path in exports)
    if not found.labels:
        raise MomentseekError(f"{', '.join(exports)}: nobody has judged anything yet; export again when they have")
    write_all({out: write_labels(found.labels), **({report: as_json_lines(found.decisions)} if report else {})})
    pairs, workers = ({label[i] for label in found.labels} for i in (0, 1))
    if as_json:
        summary = {
            "tasks": found.tasks,
            "labels": len(found.labels),
            "pairs": len(pairs),
            "workers": len(workers),
            "missing": list(found.missing),
            "cancelled": found.cancelled,
            "empty": found.empty,
            "replaced": found.replaced,
            "repeated": found.repeated,
        }
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        labels = count(len(found.labels), "label")
        click.echo(f"{labels} of {count(len(pairs), 'pair')} by {count(len(workers), 'worker')}")
        some = f"({', '.join(found.missing[:3])}{', …' if len(found.missing) > 3 else ''})"
        was, were = "annotation was", "annotations were"
        for number, one, many, rest in (
            (len(found.missing), "pair", "pairs", f"not judged yet {some}"),
            (found.cancelled, was, were, "skipped by the annotator"),
            (found.empty, "annotation has", "annotations have", "no answer"),
            (found.replaced, was, were, "replaced by a later one of the same person"),
            (found.repeated, was, were, "in an earlier export too; each counts once, in its last state"),
        ):
            if number:
                click.echo(f"{count(number, one, many)} {rest}")
    options.say(f"wrote {out}")
    if report:
        options.say(f"wrote {report}")
