"""``momentseek data imprecise`` and ``pseudo-train``: rewrite queries, and make training sets from captions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from momentseek.benchmarks.datasets.imprecise.rewriting import ImpreciseOptions, build_imprecise
from momentseek.benchmarks.datasets.pseudo_training import build_pseudo_training, list_file
from momentseek.cli import options
from momentseek.cli.data import finish, vector_file
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError

FRACTION = click.FloatRange(0, 1)


@click.command()
@click.argument("source", metavar="QUERIES")
@click.option("--out", required=True, metavar="FILE", help="Write the records with rewritten queries to FILE.")
@click.option("--type", metavar="TYPE", help="Use only TVR's queries of this type: v (video), t (text) or vt (both).")
@click.option(
    "--backend",
    type=click.Choice(["rules", "chat"]),
    default="rules",
    show_default=True,
    help="Rewrite by rules, or with a language model.",
)
@click.option("--base-url", metavar="URL", help="With chat: an OpenAI-compatible endpoint, e.g. https://host/v1.")
@click.option("--model", metavar="NAME", help="With chat: the model to ask.")
@click.option(
    "--batch", type=click.IntRange(1, 200), default=20, show_default=True, help="With chat: queries per request."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="With chat: wait up to SECONDS for an answer.",
)
@click.option(
    "--names",
    metavar="FILE",
    help="Names to replace, one per line: Ann, or with a gender Ann,female (or male, neutral). "
    "The line Oreo,word means that Oreo is not a name.",
)
@click.option(
    "--learn-from", multiple=True, metavar="FILE", help="Also learn names from the queries in FILE; repeatable."
)
@click.option("--save-names", metavar="FILE", help="Write the names found, to edit and pass to --names.")
@click.option(
    "--encoder",
    metavar="NAME",
    help="Text encoder that compares old and new queries. Default: minilm if installed, else lexical.",
)
@click.option(
    "--similar",
    type=FRACTION,
    default=0.4,
    show_default=True,
    help="Minimum similarity of a new query to the old one.",
)
@click.option(
    "--as-written",
    is_flag=True,
    help="Compare a new query with the original one, as TVR-Ranking does. Default: mask its names first.",
)
@click.option(
    "--named",
    type=FRACTION,
    default=0.8,
    show_default=True,
    help="Reject a new query if a word in it is a name with at least this certainty.",
)
@click.option("--ner", is_flag=True, help="Also let spaCy find remaining names (needs momentseek[nlp]).")
@click.option("--queue", metavar="FILE", help="Write queries that failed the checks, for manual correction.")
@click.option("--reviewed", metavar="FILE", help="Corrected queue, whose queries are used unchanged.")
@click.option("--report", metavar="FILE", help="Write what happened to every query, as JSON Lines.")
@options.force
@options.as_json
def imprecise(source: str, out: str, force: bool, as_json: bool, **given: Any) -> None:
    """Replace characters' names in QUERIES by 'a man', 'a woman', 'two people' (TVR-Ranking, section 3.1).

    QUERIES is a file in TVR's or Momentseek's JSON Lines format, or has one query per line. Names are learned from the
    file itself, by how its words are used. A new query must keep the old one's meaning and contain no name. If it does
    not, a second, stricter attempt is made; queries that fail again are written to --queue.

    \b
    By rules, offline, in seconds:
      momentseek data imprecise tvr_val_release.jsonl --type v --out val.jsonl --queue queue.jsonl
    With a language model (the API key is read from MOMENTSEEK_CHAT_KEY or OPENAI_API_KEY):
      momentseek data imprecise tvr_val_release.jsonl --type v --out val.jsonl \\
        --backend chat --base-url http://localhost:8000/v1 --model qwen3
    After correcting the queue:
      momentseek data imprecise … --out val.jsonl --reviewed queue.jsonl --force

    If a chat run is stopped, the same command continues it.
    """
    settings = ImpreciseOptions(**given)
    vectors = vector_file(settings.encoder)
    inputs = [source, settings.names, *settings.learn_from, settings.reviewed, vectors]
    outputs = [out, settings.queue, settings.report, settings.save_names]
    options.check_targets(inputs, outputs, force)
    partial = f"{out}.partial.jsonl" if settings.backend == "chat" else None
    missing = f"{out}.texts.txt" if vectors else None
    options.check_targets(inputs, [*outputs, partial, missing], True)  # this command may overwrite its own two files
    if settings.backend != "chat":
        _refuse_given("base_url", "model", "batch", "timeout")
    finish(build_imprecise(source, out, settings, progress=progress_bars, announce=options.say), as_json)


def _refuse_given(*names: str) -> None:
    """Refuse options of the chat backend, which the rules backend would ignore."""
    context = click.get_current_context()
    given = [n for n in names if context.get_parameter_source(n) not in (None, ParameterSource.DEFAULT)]
    if given:
        option = "--" + given[0].replace("_", "-")
        raise MomentseekError(f"{option} is for a language model; leave it out, or add --backend chat")


@click.command()
@click.argument("annotations", nargs=-1, required=True, metavar="ANNOTATIONS...")
@click.option("--out", required=True, metavar="DIR", help="Folder for train_top01.json, train_top20.json, ….")
@click.option("--n", "lengths", default="1,20,40", show_default=True, metavar="N,…", help="Moments per query.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="FILE",
    help="Leave out the queries of FILE (validation or test queries); repeatable.",
)
@click.option(
    "--queries", metavar="FILE", help="Take the query texts from FILE, by query id; for example imprecise ones."
)
@click.option(
    "--where", metavar="FIELD=VALUE", help="Use only queries with this label, such as type=v (TVR: visual queries)."
)
@click.option("--encoder", default="minilm", show_default=True, metavar="NAME", help="Text encoder, or file:VECTORS.")
@options.videos
@options.invalid
@click.option("--report", metavar="FILE", help="Write the decision on every query, as JSON Lines.")
@options.force
@options.as_json
def pseudo_train(
    annotations: tuple[str, ...], out: str, lengths: str, force: bool, as_json: bool, **given: Any
) -> None:
    """Pair every query with the N moments whose captions are most similar to it.

    The moments of all ANNOTATIONS can be chosen; a moment's caption is the sentence written for it. Queries
    whose text is also in an --exclude file (ignoring case, punctuation and spacing) are left out.

    \b
    As in TVR-Ranking, for visual descriptions:
      momentseek data pseudo-train tvr_train.jsonl --where type=v --exclude val.json --exclude test.json --out pseudo/
    """
    sizes = _sizes(lengths)
    inputs = [*annotations, *given["exclude"], given["queries"], given["videos"], vector_file(given["encoder"])]
    with options.new_folders(out):
        targets = [str(Path(out) / list_file(n)) for n in sizes]
        options.check_targets(inputs, [*targets, given["report"]], force)
        finish(build_pseudo_training(annotations, out, sizes, **given, progress=progress_bars), as_json)


def _sizes(lengths: str) -> list[int]:

    parts = [part.strip() for part in lengths.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise MomentseekError(f"--n is {lengths!r}; give numbers of moments such as 1,20,40")
    return sorted(set(map(int, parts)))
