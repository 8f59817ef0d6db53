"""``momentseek answers`` and ``ask``: extract moments from free-text answers, and ask vision models for moments."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from momentseek.benchmarks.asking.endpoint import EndpointSettings
from momentseek.benchmarks.asking.frames import FrameBudget
from momentseek.benchmarks.asking.grounding import GroundingOptions, ask_moments
from momentseek.cli import options
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError
from momentseek.measuring.answers.reading import report_answers
from momentseek.measuring.answers.times import UNITS
from momentseek.measuring.formats import read_corpus, read_truth, write_bytes
from momentseek.measuring.formats.files import writer_for
from momentseek.measuring.formats.prose_answers import ProseAnswers, read_prose
from momentseek.measuring.formats.registry import Reading


@click.command()
@click.argument("source", metavar="ANSWERS")
@click.option("--out", metavar="FILE", help="Write the extracted moments as predictions.")
@click.option("--to", metavar="FORMAT", help="Write FORMAT. Default: by the ending of --out, .jsonl or .parquet.")
@click.option(
    "--units",
    type=click.Choice(UNITS),
    help="Unit of bare numbers, unless the file says. Default: seconds.",
)
@click.option("--fps", type=click.FloatRange(0, min_open=True), help="Frames per second, unless the file says.")
@click.option("--table", is_flag=True, help="Print every answer with the moments extracted from it.")
@options.videos
@options.force
@options.as_json
def answers(
    source: str,
    out: str | None,
    to: str | None,
    table: bool,
    videos: str | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Extract moments from a language model's free-text answers, and count answers without a moment by reason.

    ANSWERS is JSON Lines with query_id, video, answer and, if known, duration, fps and units. `evaluate` and `compare`
    also accept such a file directly.

    \b
    Summarise the answers, and show the moments extracted from each:
      momentseek answers answers.jsonl --table
    Write the predictions of a model that answers in hundredths of the video's length:
      momentseek answers vtimellm.jsonl --units hundredths --videos durations.json --out run.jsonl
    """
    options.check_targets([source, videos], [out], force)
    read = read_prose(source, Reading(corpus=read_corpus(videos) if videos else None), **given)
    report = report_answers(read.texts, read.parsed, source)
    if out:
        write_bytes(out, writer_for(to, out, "run").to_bytes((read.to_run(),)))
    if as_json:
        options.echo_json(asdict(report) | ({"table": _rows(read)} if table else {}))
        return
    if table:
        rows = [[row["query_id"], row["means"], row["answer"]] for row in _rows(read)]
        options.echo_table(["query", "means", "answer"], rows, align="l")
        click.echo()
    click.echo(report.as_text())
    if out:
        options.say(f"wrote {out}")


def _rows(read: ProseAnswers) -> list[dict[str, str]]:
    def meaning(spans: Any, reason: str) -> str:
        return ", ".join(f"{span.start:g}–{span.end:g} s" for span in spans) or reason

    rows = zip(read.query_ids, read.parsed, read.texts, strict=True)
    return [
        {"query_id": query, "means": meaning(parsed.spans, parsed.reason), "answer": " ".join(text.split())[:100]}
        for query, parsed, text in rows
    ]


endpoint_options = (
    click.option(
        "--base-url", required=True, metavar="URL", help="An OpenAI-compatible endpoint, e.g. https://host/v1."
    ),
    click.option("--model", required=True, metavar="NAME", help="The model to ask."),
    click.option(
        "--media",
        required=True,
        metavar="DIR",
        help="Folder of the videos; names in the data may lack the file ending.",
    ),
    click.option(
        "--frames",
        type=click.IntRange(1, 256),
        default=16,
        show_default=True,
        help="Maximum number of frames per request.",
    ),
    click.option(
        "--long-side",
        type=click.IntRange(32, 4096),
        default=512,
        show_default=True,
        help="Pixels of a frame's longer side.",
    ),
    click.option(
        "--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="Number of parallel requests."
    ),
    click.option(
        "--timeout", type=click.FloatRange(0.1), default=120.0, show_default=True, help="Seconds to wait for an answer."
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(1),
        default=512,
        show_default=True,
        help="Maximum length of an answer in tokens.",
    ),
    click.option("--price", metavar="IN,OUT", help="Price of a million tokens sent and received, to report the cost."),
)


def takes_endpoint(command: Any) -> Any:
    """Give a command the options of an endpoint."""
    for option in reversed(endpoint_options):
        command = option(command)
    return command


def endpoint_settings(given: dict[str, Any]) -> tuple[EndpointSettings, FrameBudget]:
    """Remove the endpoint options from ``given`` and return them: where to ask, and which frames to send."""
    budget = FrameBudget(given.pop("frames"), long_side=given.pop("long_side"))
    price = given.pop("price")
    if price is not None:
        try:
            sent, received = map(float, price.split(","))
        except ValueError:
            raise MomentseekError(f"--price is {price!r}; give two numbers, as in 0.15,0.60") from None
        price = sent, received
    names = ("base_url", "model", "timeout", "jobs", "max_tokens")
    return EndpointSettings(**{name: given.pop(name) for name in names}, price=price), budget


@click.command()
@click.argument("truth", metavar="TRUTH")
@takes_endpoint
@click.option("--out", "-o", required=True, metavar="FILE", help="Write the answers to FILE, as JSON Lines.")
@click.option(
    "--prompt",
    default="json",
    show_default=True,
    metavar="NAME|FILE",
    help="Prompt to use: json, seconds, or a file with your own.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Ask only about the first N queries.")
@options.force
@options.as_json
def ask(truth: str, out: str, prompt: str, limit: int | None, force: bool, as_json: bool, **given: Any) -> None:
    """Ask a vision model to find the moment of each of TRUTH's queries in the query's video.

    TRUTH is any ground truth with query texts. Frames are sent as JPEG, evenly spaced over the video, each with its
    time. The API key is read from MOMENTSEEK_CHAT_KEY or OPENAI_API_KEY. `evaluate` and `compare` accept the answers as
    a run.

    \b
    A model on this machine, with 32 frames of each video:
      momentseek ask val.jsonl --media videos --base-url http://localhost:8000/v1 --model qwen2.5-vl \\
        --frames 32 --out qwen.jsonl
      momentseek compare qwen.jsonl ours.jsonl --truth val.jsonl --missing zero

    After Ctrl-C or a failure the same command continues; answers so far are in OUT.partial.jsonl.
    """
    media = given.pop("media")
    options.check_targets([truth], [out], force)
    settings, budget = endpoint_settings(given)
    judged = read_truth(truth, invalid="keep")
    with progress_bars(f"asking {settings.model}") as show:
        found = ask_moments(judged, media, out, settings, GroundingOptions(budget, prompt, limit), progress=show)
    if as_json:
        options.echo_json({"usage": asdict(found.usage), **asdict(found.report)})
        return
    click.echo(found.report.as_text())
    options.say(f"wrote {out}: {found.usage}")
    if found.usage.failed:
        options.say("note: run the same command with --force to ask again for what failed")
