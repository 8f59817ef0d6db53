"""The command line: each command is imported only when it runs."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

import click

from momentseek import __version__
from momentseek.cli.groups import LazyGroup, flag_parameter, plugin_option
from momentseek.cli.terminal import guard_streams
from momentseek.core import plugins
from momentseek.core.errors import MomentseekError, write_parameters

write_parameters(flag_parameter)  # messages name flags while a command runs, Python parameters otherwise

SECTIONS = {
    "Search": {
        "search": ("search:search", "Find moments in the library."),
        "demo": ("demo:command", "Make a sample library and search it."),
    },
    "Library": {
        "add": ("add:add", "Add videos to the library."),
        "status": ("library:status", "Show what the library contains and which files failed."),
        "list": ("library:list_videos", "List the library's videos."),
        "remove": ("library:remove", "Remove videos from the library."),
        "retry": ("add:retry", "Try again to add the files that failed."),
        "encode": ("add:encode", "Encode videos with the library's second encoder (CLIP)."),
        "transcribe": ("timed_text:transcribe", "Transcribe videos that have no subtitles."),
        "transcript": ("timed_text:transcript", "Show, edit or import the transcript of a video."),
        "ocr": ("timed_text:ocr", "Recognise text in video frames (titles, slides, signs) and show it."),
        "sounds": ("timed_text:sounds", "Detect sounds other than speech (applause, barking) and show them."),
        "people": ("timed_text:people", "Count faces in videos, to find close-ups, two people or a crowd."),
        "describe": ("describe:command", "Caption the moments of a dataset or the scenes of a library."),
        "verify": ("library:verify", "Check every file and row of the library."),
        "compact": ("library:compact", "Free the space of removed videos."),
        "reencode": ("add:reencode", "Encode all videos again with another encoder."),
        "shard": ("cluster:shard", "Create a sharded library, for use on several machines."),
    },
    "Measure": {
        "evaluate": ("measure:evaluate", "Score a run against judgements."),
        "compare": ("measure:compare", "Compare runs, with significance tests."),
        "leaderboard": ("measure:leaderboard", "Rank systems by their result cards, with significance tests."),
        "diagnose": ("measure:diagnose", "Check measures and datasets for bias, ties and label noise."),
        "answers": ("answers:answers", "Extract moments from the free-text answers of language models."),
        "convert": ("formats:convert", "Convert a file to another format."),
        "formats": ("formats:formats", "List the file formats that can be read and written."),
        "measures": ("formats:measures", "List the measures, their options and the protocols."),
    },
    "Benchmarks": {
        "data": ("data:command", "Build benchmark datasets (re-splits, candidate pools, consensus labels)."),
        "simulate": ("benchmarks:simulate", "Simulate a corpus in which the ground truth is known."),
        "baseline": ("benchmarks:baseline", "Predict moments without looking at the videos."),
        "ask": ("answers:ask", "Ask a vision model behind an HTTP endpoint for moments."),
        "debias": ("benchmarks:debias", "Compare models on in-distribution and out-of-distribution test moments."),
        "reproduce": ("benchmarks:reproduce", "Reproduce a table of a paper, next to its published figures."),
    },
    "Train": {
        "train": ("train:train", "Train a model to find or describe moments."),
        "predict": ("checkpoints:predict", "Answer queries with a trained model."),
        "sweep": ("train:sweep", "Train models with several settings and tabulate the results."),
        "explain": ("checkpoints:explain", "Show why a trained model answers a query as it does."),
        "export": ("checkpoints:export", "Export a trained model for use with a library."),
        "import-checkpoint": ("checkpoints:import_weights", "Import the published weights of a model."),
    },
    "Serve": {
        "serve": ("serve:command", "Serve the library: a web page and an HTTP API."),
        "mcp": ("serve:mcp", "Let a chat assistant search the library (MCP)."),
    },
    "Setup": {
        "models": ("models:models", "List, download and verify models."),
        "config": ("config:config", "Set the defaults of command options."),
        "doctor": ("models:doctor", "Check the installation and report what is missing."),
        "completion": ("config:completion", "Print the shell completion script."),
    },
}
"""Commands by topic, in the order of ``momentseek --help``."""
ALIASES = {"read": ("ocr", "run"), "text": ("ocr", "show")}
"""Former names of commands, which still work."""


@click.group(
    cls=LazyGroup,
    package=__name__,
    sections=SECTIONS,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@plugin_option
@click.version_option(__version__, prog_name="momentseek", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Search videos for moments in natural language, and measure how well systems do it.

    \b
    Search your own videos:
      momentseek add ~/Videos
      momentseek search 'a woman enters the room and sits on the sofa'
    Score a run (file formats are detected):
      momentseek evaluate predictions.json --truth test.json --protocol tvr-ranking
    Compare two systems, with significance tests:
      momentseek compare ours.json theirs.json --truth test.json -m 'NDCG@{10,20}[IoU>=0.5]'

    `momentseek COMMAND --help` explains a command and gives examples.
    """
    plugins.load_files()
    from momentseek.cli.config import command_defaults  # not needed for --help

    context.default_map = command_defaults(context)


def main() -> NoReturn:
    """Run the command line; bad input prints one sentence on stderr and exits with code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks ᵃ shows ? instead of a traceback
    if "_MOMENTSEEK_COMPLETE" not in os.environ:  # shell completion writes bytes that nobody sees
        guard_streams()
    out = sys.stdout
    try:
        cli.main(prog_name="momentseek", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(0)
    except MomentseekError as e:
        fail(str(e), e.exit_code)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted", 130)
    except SystemExit:
        if sys.stdout is not out:  # click replaces stdout and exits with 1 when the reader has closed the pipe
            sys.exit(0)
        raise
    except BrokenPipeError:  # `momentseek … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        fail("not enough memory for this input", 1)
    except OSError as e:  # an output error: input errors are handled where inputs are read
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output ({e.strerror or e})", 1)


def fail(sentence: str, code: int) -> NoReturn:
    """Print a one-sentence error and exit."""
    click.echo(f"momentseek: {sentence}", err=True)
    sys.exit(code)
