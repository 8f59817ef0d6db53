"""The library names parameters, the command line flags."""

from __future__ import annotations

import click
import pytest

from momentseek.cli.groups import to_flags


@click.command()
@click.option("--text-negative", type=float)
@click.option("--top", "-k", type=int)
@click.option("--measure", "-m", "measures", multiple=True)
@click.option("--from", "source")
@click.option("--force", is_flag=True)
@click.option("--recursive/--no-recursive", default=True)
@click.argument("run")
def command(**_: object) -> None:
    """A verb with every kind of option."""


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        ('choose (from="https://a")', "choose (--from https://a)"),
        ('choose source="my files"', "choose --from 'my files'"),
        ("raise text_negative=0.5, or top=10.", "raise --text-negative 0.5, or --top 10."),
        ("ask for at least one (`top`)", "ask for at least one (--top)"),
        ("name them (measures=…)", "name them (--measure)"),
        ("overwrite it (force=True)", "overwrite it (--force)"),
        ("recursive=False looks at one folder only", "--no-recursive looks at one folder only"),
        ('choose (source="a", "b" or "c d")', "choose (--from a, b or 'c d')"),
        ("runs/top=3/run.json: top=3", "runs/top=3/run.json: --top 3"),
        ("mdd[top=3]: has no name", "mdd[top=3]: has no name"),
        ("a `run` is an argument, not a flag", "a `run` is an argument, not a flag"),
        ("R@1[IoU>=0.5] and task=VR have other names", "R@1[IoU>=0.5] and task=VR have other names"),
        ("run `momentseek verify --repair`", "run `momentseek verify --repair`"),
    ],
)
def test_what_the_verb_has_a_flag_for_is_written_as_that_flag(sentence: str, typed: str) -> None:
    assert to_flags(sentence, command) == typed
