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

write_parameters(flag_parameter)  # as flags while a command runs, as in Python otherwise

SECTIONS = {
    "Search": {
        "search": ("search:search", "Find moments in the library."),
        "demo": ("demo:command", "Make a sample library and search it."),
    },
    "Library": {
        "add": ("add:add", "Add videos to the library."),
        "status": ("library:status", "Show what the library holds, and what failed."),
        "list": ("library:list_videos", "List the library's videos."),
        "remove": ("library:remove", "Remove videos from the library."),
        "retry": ("add:retry", "Try again to add the files that failed."),
        "encode": ("add:encode", "Encode videos by the second of a library's two encoders."),
        "transcribe": ("timed_text:transcribe", "Transcribe videos that have no subtitles."),
        "transcript": ("timed_text:transcript", "Show, edit or import what is said in a video."),
        "ocr": ("timed_text:ocr", "Read text in the pictures of videos (titles, slides, signs), and show it."),
        "sounds": ("timed_text:sounds", "Hear sounds other than speech in videos (applause, barking), and show them."),
        "people": ("timed_text:people", "Count faces in videos, to find close-ups, two people or a crowd."),
        "describe": ("describe:command", "Describe moments in words: of data, or of a library."),
        "verify": ("library:verify", "Check every file and row of the library."),
        "compact": ("library:compact", "Free the space of removed videos."),
        "reencode": ("add:reencode", "Encode all videos again with another encoder."),
        "shard": ("cluster:shard", "Split a library over shards, for many machines."),
    },
    "Measure": {
        "evaluate": ("measure:evaluate", "Score a run against judgements."),
        "compare": ("measure:compare", "Compare runs, with significance."),
        "leaderboard": ("measure:leaderboard", "Rank systems by their result cards, with significance."),
        "diagnose": ("measure:diagnose", "Check measures and datasets for bias, ties and label noise."),
        "answers": ("answers:answers", "Read the answers of language models in prose."),
        "convert": ("formats:convert", "Convert a file to another format."),
        "formats": ("formats:formats", "List the file formats that can be read and written."),
        "measures": ("formats:measures", "List the measures, their options and the protocols."),
    },
    "Benchmarks": {
        "data": ("data:command", "Build benchmark datasets (re-splits, candidate pools, consensus labels)."),
        "simulate": ("benchmarks:simulate", "Simulate a corpus in which the ground truth is known."),
        "baseline": ("benchmarks:baseline", "Predict moments without looking at the videos."),
        "ask": ("answers:ask", "Ask a vision model behind an HTTP endpoint for moments."),
        "debias": ("benchmarks:debias", "Compare models on test moments that lie as in training, or elsewhere."),
        "reproduce": ("benchmarks:reproduce", "Reproduce a table of a paper, next to its published figures."),
    },
    "Train": {
        "train": ("train:train", "Train a model to find or describe moments."),
        "predict": ("checkpoints:predict", "Answer queries with a trained model."),
        "sweep": ("train:sweep", "Train a model with several settings, and make one table."),
        "explain": ("checkpoints:explain", "Show why a trained model answers a query as it does."),
        "export": ("checkpoints:export", "Export a trained model for searching a library."),
        "import-checkpoint": ("checkpoints:import_weights", "Import the published weights of a model."),
    },
    "Serve": {
        "serve": ("serve:command", "Serve the library: a web page and an HTTP API."),
        "mcp": ("serve:mcp", "Let a chat assistant search the library (MCP)."),
    },
    "Setup": {
        "models": ("models:models", "List, download and verify encoders."),
        "config": ("config:config", "Choose defaults of commands once."),
        "doctor": ("models:doctor", "Check what is installed, and say what is missing."),
        "completion": ("config:completion", "Print the shell completion script."),
    },
}
"""The commands by topic, in the order of ``momentseek --help``."""
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
    """Natural-language search for moments in videos, and the measures to judge it.

    \b
    Search your own videos:
      momentseek add ~/Videos
      momentseek search 'a woman enters the room and sits on the sofa'
    Score a run (the file formats are recognised):
      momentseek evaluate predictions.json --truth test.json --protocol tvr-ranking
    Compare two systems, with significance:
      momentseek compare ours.json theirs.json --truth test.json -m 'NDCG@{10,20}[IoU>=0.5]'

    `momentseek COMMAND --help` explains a command and gives examples.
    """
    plugins.load_files()
    from momentseek.cli.config import command_defaults  # which only a command needs, not the help

    context.default_map = command_defaults(context)


def main() -> NoReturn:
    """Run the command line; bad input is one sentence on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ᵃ gets a ?, not a traceback
    if "_MOMENTSEEK_COMPLETE" not in os.environ:  # what a shell asks for to complete a word is bytes, and not shown
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
        if sys.stdout is not out:  # click puts another in its place if nobody reads it any more, and leaves with 1
            sys.exit(0)
        raise
    except BrokenPipeError:  # `momentseek … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        fail("not enough memory for this input", 1)
    except OSError as e:  # the output: inputs are checked where they are read
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output ({e.strerror or e})", 1)


def fail(sentence: str, code: int) -> NoReturn:
    """Say what is wrong, in one sentence, and leave."""
    click.echo(f"momentseek: {sentence}", err=True)
    sys.exit(code)
