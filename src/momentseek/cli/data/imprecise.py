"""``momentseek data imprecise``: replace characters' names by general words."""

from __future__ import annotations

from contextlib import nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any

import click

from momentseek.benchmarks.datasets.common import as_json_lines, tally
from momentseek.benchmarks.datasets.imprecise.names import build_gazetteer, read_names, write_names
from momentseek.benchmarks.datasets.imprecise.query_files import WorkFile, read_query_file, read_queue, write_queue
from momentseek.benchmarks.datasets.imprecise.rewriting import ChatRewriter, RuleRewriter, make_imprecise, open_endpoint
from momentseek.benchmarks.datasets.imprecise.substitution import count_replacements
from momentseek.benchmarks.datasets.imprecise.verification import (
    MissingVectors,
    RewriteVerifier,
    load_similarity,
    spacy_recogniser,
)
from momentseek.cli import options
from momentseek.cli.progress import progress_bars
from momentseek.cli.terminal import bare_stream
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count, text_table
from momentseek.measuring.formats import write_all, write_bytes

if TYPE_CHECKING:
    from momentseek.benchmarks.datasets.imprecise.names import Gazetteer
    from momentseek.benchmarks.datasets.imprecise.query_files import QueryFile
    from momentseek.benchmarks.datasets.imprecise.rewriting import ImpreciseQueries


FRACTION = click.FloatRange(0, 1)


@click.command()
@click.argument("source", metavar="QUERIES")
@click.option("--out", "target", required=True, metavar="FILE", help="Write the same records with new queries here.")
@click.option("--type", "kind", metavar="TYPE", help="Only TVR's descriptions of this type: v, t or vt.")
@click.option(
    "--backend",
    type=click.Choice(["rules", "chat"]),
    default="rules",
    show_default=True,
    help="Rewrite by rules, or by a language model.",
)
@click.option("--base-url", metavar="URL", help="Chat: an OpenAI-compatible endpoint, e.g. https://host/v1.")
@click.option("--model", metavar="NAME", help="Chat: the model to ask.")
@click.option("--batch", type=click.IntRange(1, 200), default=20, show_default=True, help="Chat: queries per request.")
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=60, show_default=True, help="Chat: seconds to wait for an answer."
)
@click.option(
    "--names",
    metavar="FILE",
    help="Your own names: name[,female|male|neutral], or name,word for a word that is not a name.",
)
@click.option("--learn-from", multiple=True, metavar="FILE", help="Further queries to learn names from; repeatable.")
@click.option(
    "--save-names", metavar="FILE", help="Write the names that were found; edit them and give them back with --names."
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="The text encoder that compares before and after. Default: minilm if installed, else lexical.",
)
@click.option(
    "--similar", type=FRACTION, default=0.4, show_default=True, help="Similarity to the old query that a new one needs."
)
@click.option(
    "--as-written", is_flag=True, help="Compare with the original names, as the paper does, instead of masking them."
)
@click.option(
    "--named", type=FRACTION, default=0.8, show_default=True, help="Name score that no word of a new query may reach."
)
@click.option("--ner", is_flag=True, help="Let spaCy look for names that are left too (needs momentseek[nlp]).")
@click.option("--queue", metavar="FILE", help="Write queries that failed the checks, for a person to correct.")
@click.option("--reviewed", metavar="FILE", help="A corrected queue; its queries are used as they are.")
@click.option("--report", metavar="FILE", help="Write what became of every query, as JSON Lines.")
@options.force
@options.as_json
def command(
    source: str,
    target: str,
    kind: str | None,
    backend: str,
    base_url: str | None,
    model: str | None,
    batch: int,
    timeout: float,
    names: str | None,
    learn_from: tuple[str, ...],
    save_names: str | None,
    encoder: str | None,
    similar: float,
    as_written: bool,
    named: float,
    ner: bool,
    queue: str | None,
    reviewed: str | None,
    report: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make QUERIES imprecise: a man, a woman, two people instead of characters' names (TVR-Ranking, section 3.1).

    QUERIES are TVR's JSON Lines, our own, or plain lines of text. Names are learnt from the file itself.
    Every new query must keep the old one's meaning and name nobody; what fails twice goes to --queue.

    \b
    By rule, offline, in seconds:
      momentseek data imprecise tvr_val_release.jsonl --type v --out val.jsonl --queue queue.jsonl
    By a language model (the key is read from MOMENTSEEK_CHAT_KEY or OPENAI_API_KEY):
      momentseek data imprecise tvr_val_release.jsonl --type v --out val.jsonl \\
        --backend chat --base-url http://localhost:8000/v1 --model qwen3
    After correcting the queue:
      momentseek data imprecise … --out val.jsonl --reviewed queue.jsonl --force

    A chat run that was stopped continues when the same command is given again.
    """

    vectors = encoder.removeprefix("file:") if encoder and encoder.startswith("file:") else None
    partial = f"{target}.partial.jsonl" if backend == "chat" else None
    missing = f"{target}.texts.txt" if vectors else None
    inputs, outputs = [source, names, *learn_from, reviewed, vectors], [target, queue, report, save_names]
    options.check_targets(inputs, outputs, force)
    options.check_targets(inputs, [*outputs, partial, missing], True)  # these two belong to this command
    if backend != "chat":
        _refuse_given("base_url", "model", "batch", "timeout")
    chat = open_endpoint(base_url, model, timeout) if backend == "chat" else None
    corrections = read_queue(reviewed) if reviewed else {}
    read = read_query_file(source, kind)
    cast = _gazetteer(read, learn_from, names)
    bars = progress_bars(f"encoding with {encoder or 'minilm'}")
    progress = None if chat else click.get_current_context().with_resource(bars)
    similarity, measure, note = load_similarity(encoder, progress)
    if note:
        options.say(f"note: {note}")
    recognise = None
    if ner:
        recognise = spacy_recogniser()
    verifier = RewriteVerifier(cast, similarity, similar, named, recognise, as_written or measure == "lexical")
    work = WorkFile(partial, f"{model} at {chat.base_url}") if chat and partial else None
    if work and (kept := len(work.read())):
        options.say(f"resuming: {count(kept, 'query', 'queries')} rewritten before ({work.path})")
    bar: Any = _bar(len(read.queries)) if chat else nullcontext()
    try:
        with bar:
            result = make_imprecise(
                read.queries,
                ChatRewriter(chat, batch) if chat else RuleRewriter(cast),
                verifier,
                work=work,
                reviewed=corrections,
                progress=bar.update if chat else lambda _: None,
            )
    except KeyboardInterrupt:
        if work:
            options.say(f"\nfinished queries are kept in {work.path}; run the same command to go on")
        raise
    except MissingVectors as e:
        if missing is None:
            raise
        write_bytes(missing, "".join(f"{text}\n" for text in e.texts).encode())
        raise MissingVectors(e.source, e.texts, missing) from None
    files: dict[str | PathLike[str], bytes] = {target: read.with_queries(result.texts)}
    files |= {queue: write_queue(result.queue)} if queue else {}
    files |= {report: as_json_lines(result.decisions)} if report else {}
    files |= {save_names: write_names(cast)} if save_names else {}
    write_all(files)
    if work and not result.queue:
        work.remove()
    _print_summary(
        result, as_json, {"out": target, "backend": backend, "similarity": measure, "names": len(cast)}, queue
    )


def _gazetteer(read: QueryFile, learn_from: tuple[str, ...], names: str | None) -> Gazetteer:

    own = read_names(names) if names else []
    corpus = [*read.everything, *(pair for path in learn_from for pair in read_query_file(path).everything)]
    return build_gazetteer(corpus).with_names(own)


def _refuse_given(*names: str) -> None:
    """Refuse options of the chat backend, which the rules would ignore."""
    from click.core import ParameterSource

    context = click.get_current_context()
    given = [n for n in names if context.get_parameter_source(n) not in (None, ParameterSource.DEFAULT)]
    if given:
        option = "--" + given[0].replace("_", "-")
        raise MomentseekError(f"{option} is for a language model; leave it out, or add --backend chat")


def _bar(total: int) -> Any:
    import sys

    return click.progressbar(length=total, label="rewriting", file=bare_stream(sys.stderr))


def _print_summary(result: ImpreciseQueries, as_json: bool, facts: dict[str, Any], queue: str | None) -> None:

    words = count_replacements(
        (d.evidence["original"], text)
        for d, text in zip(result.decisions, result.texts, strict=True)
        if d.outcome == "replaced"
    )
    _warn(result)
    outcomes = tally(result.decisions)
    if as_json:
        import json

        rows = [{"word": w, "count": n, "gender": g} for w, n, g in words]
        summary = {**facts, "queries": len(result.texts), "decisions": outcomes, "words": rows}
        summary |= {"asked_again": result.asked_again, "reviewed": {k: len(v) for k, v in vars(result.review).items()}}
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        return
    counts = ", ".join(f"{sum(reasons.values()):,} {outcome}" for outcome, reasons in outcomes.items())
    click.echo(f"{count(len(result.texts), 'query', 'queries')}: {counts}; {count(facts['names'], 'name')} known")
    if words:
        click.echo("\n" + text_table(["word", "times", "gender"], [[w, f"{n:,}", g] for w, n, g in words], align="lrl"))
    if result.queue:
        where = f"see {queue}" if queue else "--queue FILE lists them"
        options.say(
            f"note: {count(len(result.queue), 'query', 'queries')} failed the checks; the output has the best attempt "
            f"at each; {where}"
        )


def _warn(result: ImpreciseQueries) -> None:
    """Say what is odd about a corrected queue or an earlier run's answers."""
    review = result.review
    for ids, what in (
        (review.named, "the check still finds a name in it"),
        (review.untouched, "it is unchanged from the failed attempt"),
        (review.unmatched, "no query has this id and original, so it is not used"),
    ):
        if ids:
            some = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
            options.say(f"note: {count(len(ids), 'reviewed row')} ({some}): {what}")
    if result.asked_again:
        answers = count(result.asked_again, "earlier answer")
        options.say(f"note: {answers} failed the checks now and had to be requested again")
