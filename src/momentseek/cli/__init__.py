"""The command line: one file per verb, loaded only when it is used."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from typing import NoReturn

import click

from momentseek import __version__
from momentseek.cli.groups import Verbs
from momentseek.cli.terminal import guard_streams
from momentseek.core.errors import MomentseekError

VERBS = {
    "add": "Add videos to the library.",
    "search": "Find moments in the library.",
    "serve": "Serve the library: a web page and an HTTP API.",
    "status": "Show what the library holds, and what failed.",
    "list": "List the library's videos.",
    "remove": "Take videos out of the library.",
    "retry": "Try again to add the files that failed.",
    "transcribe": "Hear what is said in videos without subtitles.",
    "transcript": "Write what is said in a video, as subtitles.",
    "read": "Read what is written in videos: titles, slides, signs.",
    "text": "Write what was read in a video, as subtitles.",
    "verify": "Check every file and row of the library.",
    "compact": "Rewrite the library without what was removed.",
    "shard": "Split a library over shards, for many machines.",
    "reencode": "Encode all videos again with another encoder.",
    "explain": "Show why a trained model answers a query as it does.",
    "export": "Write a trained model for searching a library.",
    "models": "List, download and verify encoders.",
    "config": "Choose once what commands do by default.",
    "doctor": "Check what is installed, and say what is missing.",
    "demo": "Make a sample library and search it.",
    "evaluate": "Score a run against judgements.",
    "compare": "Compare runs, with significance.",
    "diagnose": "Question the measures and the data.",
    "data": "Build datasets as the papers do: re-splits, pools, ….",
    "simulate": "Make a corpus in which every truth is known.",
    "train": "Train a model to find or describe moments.",
    "import-checkpoint": "Use the public weights of a model.",
    "predict": "Answer queries with a trained model.",
    "describe": "Describe moments in words: of data, or of a library.",
    "sweep": "Train many models, and make one table.",
    "reproduce": "Make a paper's table again, beside its figures.",
    "debias": "Compare models where moments lie as in training, or not.",
    "baseline": "Predict without looking at the videos.",
    "convert": "Rewrite a file in another format.",
    "formats": "List the file formats that can be read and written.",
    "measures": "List the measures, their options and the protocols.",
    "completion": "Print the shell completion script.",
}


@click.group(
    cls=Verbs,
    package=__name__,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
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
    from momentseek.cli.config import command_defaults

    context.default_map = command_defaults(context)


def run() -> NoReturn:
    """Run the command line in a process of its own, which ends at once when all is done and written.

    Taking down what was loaded, module by module, would take as long as many a search. What other modules want done at
    the end is done: this was asked for first, so it comes last.
    """
    code: list[object] = []

    def leave() -> None:
        if code == [0]:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(0)

    if "coverage" not in sys.modules:  # which asked even before
        atexit.register(leave)
    try:
        main()
    except SystemExit as e:
        code.append(e.code)
        raise


def main() -> NoReturn:
    """Run the command line; bad input is one sentence on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ᵃ gets a ?, not a traceback
    if "_MOMENTSEEK_COMPLETE" not in os.environ:  # what a shell asks for to complete a word is bytes, and not shown
        guard_streams()
    try:
        cli.main(prog_name="momentseek", standalone_mode=False)
        sys.stdout.flush()
        gc.freeze()  # the collector's last walk over what was read would take a tenth of the whole time
        sys.exit(0)
    except MomentseekError as e:
        fail(str(e), e.exit_code)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted", 130)
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
