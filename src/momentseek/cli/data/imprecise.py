"""``momentseek data imprecise``: replace characters' names by general words."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options

if TYPE_CHECKING:
    from momentseek.construct.gazetteer import Gazetteer
    from momentseek.construct.imprecise import Imprecise
    from momentseek.construct.imprecise_records import Source

FRACTION = click.FloatRange(0, 1)


@click.command()
@click.argument("source", metavar="QUERIES")
@click.option("--out", "target", required=True, metavar="FILE", help="The same records with new queries.")
@click.option("--type", "kind", metavar="TYPE", help="Only TVR's descriptions of this type: v, t or vt.")
@click.option(
    "--backend", type=click.Choice(["rules", "chat"]), default="rules", show_default=True, help="Who rewrites."
)
@click.option("--base-url", metavar="URL", help="Chat: an OpenAI-compatible endpoint, e.g. https://host/v1.")
@click.option("--model", metavar="NAME", help="Chat: the model to ask.")
@click.option("--batch", type=click.IntRange(1, 200), default=20, show_default=True, help="Chat: queries per request.")
@click.option("--timeout", type=click.FloatRange(0.1), default=60, show_default=True, help="Chat: seconds to wait.")
@click.option("--names", metavar="FILE", help="Your own names: name[,female|male|neutral], or name,word for no name.")
@click.option("--learn-from", multiple=True, metavar="FILE", help="Further queries to learn names from; repeatable.")
@click.option("--save-names", metavar="FILE", help="Write the names that were found, to look at, edit and give back.")
@click.option(
    "--genders",
    type=click.Choice(["table", "names-dataset"]),
    default="table",
    show_default=True,
    help="First names' genders: ours, or the names-dataset package's (slow, 2 GB of memory).",
)
@click.option(
    "--encoder", metavar="NAME", help="What compares before and after. Default: minilm if installed, else lexical."
)
@click.option("--similar", type=FRACTION, default=0.4, show_default=True, help="Similarity a new query needs.")
@click.option("--as-written", is_flag=True, help="Compare with the names in, as the paper does; else they are masked.")
@click.option("--named", type=FRACTION, default=0.8, show_default=True, help="Name score a word may not reach.")
@click.option("--ner", is_flag=True, help="Also have spaCy look for names that are left (needs momentseek[nlp]).")
@click.option("--queue", metavar="FILE", help="Write queries that failed the checks, for a person to correct.")
@click.option("--reviewed", metavar="FILE", help="A corrected queue: its queries are taken as they are.")
@click.option("--report", metavar="FILE", help="Write what became of every query, as JSON Lines.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it is there.")
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
    genders: str,
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
    """Make QUERIES imprecise: no characters' names, only a man, a woman, two people (TVR-Ranking, section 3.1).

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

    A chat run that is stopped goes on where it was when the same command is given again.
    """
    from momentseek.construct.chat import chat_at
    from momentseek.construct.decisions import as_lines
    from momentseek.construct.imprecise import Model, Rules, make_imprecise
    from momentseek.construct.imprecise_records import read_queries
    from momentseek.construct.imprecise_work import Work
    from momentseek.construct.names_file import as_file
    from momentseek.construct.review import as_queue, read_reviewed
    from momentseek.construct.verification import Verifier, similarity_named
    from momentseek.errors import MomentseekError
    from momentseek.formats import write_bytes

    if Path(target).exists() and not force:
        raise MomentseekError(f"{target} is there already; choose another --out or add --force")
    chat = chat_at(base_url, model, timeout) if backend == "chat" else None
    corrections = read_reviewed(reviewed) if reviewed else {}
    read = read_queries(source, kind)
    cast = _gazetteer(read, learn_from, names, genders)
    if save_names:
        write_bytes(save_names, as_file(cast))
    similarity, measure, note = similarity_named(encoder, progress=chat is None)
    if note:
        options.say(f"note: {note}")
    recognise = None
    if ner:
        from momentseek.construct.names_spacy import spacy_recogniser

        recognise = spacy_recogniser()
    verifier = Verifier(cast, similarity, similar, named, recognise, as_written or measure == "lexical")
    work = Work(f"{target}.partial.jsonl", f"{model} at {base_url}") if chat else None
    if work and (kept := len(work.read())):
        options.say(f"resuming: {kept:,} queries were rewritten before ({work.path})")
    bar: Any = _bar(len(read.queries)) if chat else nullcontext()
    try:
        with bar:
            result = make_imprecise(
                read.queries,
                Model(chat, batch) if chat else Rules(cast),
                verifier,
                work=work,
                reviewed=corrections,
                progress=bar.update if chat else lambda _: None,
            )
    except KeyboardInterrupt:
        if work:
            options.say(f"\nfinished queries are kept in {work.path}; run the same command to go on")
        raise
    write_bytes(target, read.with_queries(result.texts))
    if queue:
        write_bytes(queue, as_queue(result.queue))
    if report:
        write_bytes(report, as_lines(result.decisions))
    if work and not result.queue:
        work.remove()
    _tell(result, as_json, {"out": target, "backend": backend, "similarity": measure, "names": len(cast)}, queue)


def _gazetteer(read: Source, learn_from: tuple[str, ...], names: str | None, genders: str) -> Gazetteer:
    from momentseek.construct.gazetteer import build
    from momentseek.construct.imprecise_records import read_queries
    from momentseek.construct.names import names_dataset_lookup
    from momentseek.construct.names_file import read_names
    from momentseek.construct.names_table import gender_in_table

    own = read_names(names) if names else []
    lookup = names_dataset_lookup() if genders == "names-dataset" else gender_in_table
    corpus = [*read.everything, *(pair for path in learn_from for pair in read_queries(path).everything)]
    return build(corpus, lookup).with_names(own)


def _bar(total: int) -> Any:
    import sys

    return click.progressbar(length=total, label="rewriting", file=sys.stderr)


def _tell(result: Imprecise, as_json: bool, facts: dict[str, Any], queue: str | None) -> None:
    from momentseek.construct.decisions import tally
    from momentseek.construct.imprecise_report import replacing_words
    from momentseek.tables import text_table

    pairs = [(d.evidence["original"], text) for d, text in zip(result.decisions, result.texts, strict=True)]
    words = replacing_words(pairs)
    outcomes = tally(result.decisions)
    if as_json:
        import json

        rows = [{"word": w, "count": n, "gender": g} for w, n, g in words]
        click.echo(
            json.dumps(
                {**facts, "queries": len(pairs), "decisions": outcomes, "words": rows}, indent=2, ensure_ascii=False
            )
        )
        return
    counts = ", ".join(f"{sum(reasons.values()):,} {outcome}" for outcome, reasons in outcomes.items())
    click.echo(f"{len(pairs):,} queries: {counts}; {facts['names']:,} names known")
    if words:
        click.echo("\n" + text_table(["word", "times", "gender"], [[w, f"{n:,}", g] for w, n, g in words], align="lrl"))
    if result.queue:
        where = f"see {queue}" if queue else "give --queue FILE to have them listed"
        options.say(
            f"note: {len(result.queue):,} queries failed the checks; the output has the best attempt at them; {where}"
        )
