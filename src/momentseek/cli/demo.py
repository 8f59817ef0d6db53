"""``momentseek demo``: make a sample library, search it with a few queries, and show how well they are answered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.api.library import Library
from momentseek.benchmarks.demo.filming import make_films
from momentseek.benchmarks.demo.films import (
    DEMO_FILMS,
    DEMO_QUERIES,
    SLIDE_FILM,
    SLIDE_QUERY,
    SPOKEN_FILM,
    SPOKEN_QUERY,
)
from momentseek.benchmarks.demo.voice import has_voice
from momentseek.cli.options import as_json, say
from momentseek.cli.progress import progress_bar
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.core.reports import text_table
from momentseek.library.location import library_folder
from momentseek.measuring.evaluate import evaluate
from momentseek.recognition.ocr.models import is_installed
from momentseek.recognition.speech.models import default_transcriber

if TYPE_CHECKING:
    from momentseek.benchmarks.demo.films import DemoQuery
    from momentseek.measuring.result import Evaluation
    from momentseek.search.hit import Hit

    Answers = list[tuple[DemoQuery, list[Hit]]]

MAX_SHOWN_HITS = 3
"""Number of moments shown for each query."""
DEMO_MEASURES = ("AxIoU@1", "R@1[IoU>=0.5]", "R@1[IoU>=0.7]")


@click.command(
    epilog="""\b
Examples:
  momentseek demo
  momentseek search --library demo 'a flower'
"""
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the films and the library. Default: beside your other libraries.",
)
@click.option("--words/--no-words", default=True, help="Also a film that speaks and one with a slide. Default: yes.")
@as_json
def command(into: Path | None, words: bool, as_json: bool) -> None:
    """Make a sample library and search it.

    Makes four short films from photographs that ship in Python packages, with a moving camera and with subtitles beside
    or inside them, one in which a synthetic voice speaks and one with a slide, both without subtitles; adds them to a
    library like any other videos, hears the one and reads the other; searches it with a few queries, and shows the
    moments found beside the true ones, which are known exactly. Later runs only search. Nothing is downloaded.
    """

    library_at, films_at = _folders(into)
    say(f"films: {films_at}\nlibrary: {library_at}")
    speaks, reads = words and _hears(), words and _reads()
    films = (*DEMO_FILMS, *((SPOKEN_FILM,) if speaks else ()), *((SLIDE_FILM,) if reads else ()))
    queries = (*DEMO_QUERIES, *((SPOKEN_QUERY,) if speaks else ()), *((SLIDE_QUERY,) if reads else ()))
    with progress_bar(len(films), "making films") as advance:
        paths = make_films(films_at, films, progress=lambda _: advance(1))
    with Library.open(library_at, create=True) as library:
        say(str(library.add(paths)))
        if reads:
            library.read([SLIDE_FILM.name])
        answers = [(query, list(library.search(query.text, k=MAX_SHOWN_HITS, all=True))) for query in queries]
    quality = _evaluate_answers(answers)
    if as_json:
        click.echo(_as_json(answers, quality))
        return
    for query, hits in answers:
        click.echo(f"\n{query.text!r}\n{_table(query, hits)}")
    click.echo(f"\n{_summary(answers, quality)}")
    where = f"--library {library_at}" if into else "--library demo"
    click.echo(f"\nTry a query of your own:  momentseek search {where} 'a flower'")


def _hears() -> bool:
    """Whether the film that speaks can be made and heard; says what is missing."""

    if has_voice() and default_transcriber() is not None:
        return True
    say("no film speaks: that needs a voice and what hears it (pip install 'momentseek[demo]')")
    return False


def _reads() -> bool:
    """Whether the film with a slide can be read; says what is missing."""

    if is_installed():
        return True
    say("no film has a slide: that needs what reads it (pip install 'momentseek[ocr]')")
    return False


def _folders(into: Path | None) -> tuple[Path, Path]:

    return (into / "library", into / "films") if into else (library_folder("demo"), library_folder("demo-films"))


def _table(query: DemoQuery, hits: list[Hit]) -> str:

    start, end = query.interval
    truth = f"{query.film} {_span(start, end)}"
    rows = [
        [str(hit.rank), f"{hit.name} {_span(hit.start, hit.end)}", hit.level, f"{_overlap(query, hit):.2f}"]
        for hit in hits
    ]
    return text_table(["", "found", "confidence", f"IoU with the truth, {truth}"], rows, align="rlll")


def _span(start: float, end: float) -> str:
    return f"{start:.1f}–{end:.1f} s"


def _overlap(query: DemoQuery, hit: Hit) -> float:

    return float(iou(hit.start, hit.end, *query.interval)) if hit.name == query.film else 0.0


def _evaluate_answers(answers: Answers) -> Evaluation:
    """Evaluate the hits by the same measures as any other run."""

    truth = Judgements.from_rows([(query.text, query.film, *query.interval, 1) for query, _ in answers])
    run = Run.from_rows(
        [(query.text, hit.name, hit.start, hit.end, hit.score) for query, hits in answers for hit in hits]
    )
    return evaluate(run, truth, DEMO_MEASURES, missing="zero")


def _first(query: DemoQuery, hits: list[Hit]) -> bool:
    return bool(hits) and _overlap(query, hits[0]) > 0


def _summary(answers: Answers, quality: Evaluation) -> str:
    right = sum(_first(query, hits) for query, hits in answers)
    shares = ", ".join(f"{name} {quality[name]:.2f}" for name in DEMO_MEASURES[1:])
    return (
        f"The right scene is first for {right} of {len(answers)} queries; "
        f"mean IoU of the first moments {quality[DEMO_MEASURES[0]]:.2f} ({shares}).\n"
        "The offline encoder knows a thousand labels of things, no actions; for better ones: momentseek models list"
    )


def _as_json(answers: Answers, quality: Evaluation) -> str:
    import orjson

    rows: list[dict[str, Any]] = [
        {
            "query": query.text,
            "truth": {"video": query.film, "start": query.interval[0], "end": query.interval[1]},
            "hits": [
                {
                    "video": hit.name,
                    "start": hit.start,
                    "end": hit.end,
                    "score": hit.score,
                    "confidence": hit.level,
                    "iou": _overlap(query, hit),
                }
                for hit in hits
            ],
        }
        for query, hits in answers
    ]
    return orjson.dumps({"queries": rows, "measures": quality.means}, option=orjson.OPT_INDENT_2).decode()
