"""``momentseek completion``: the script that makes Tab complete verbs, options and file names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from momentseek.cli import cli


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  momentseek completion bash >> ~/.bashrc
    zsh:   momentseek completion zsh >> ~/.zshrc
    fish:  momentseek completion fish > ~/.config/fish/completions/momentseek.fish
    """

    found = get_completion_class(shell)
    assert found is not None
    # click asks bash for its version here, and warns if bash is older than 4.4; the script itself needs neither.
    script = found.source_template % found(cli, {}, "momentseek", "_MOMENTSEEK_COMPLETE").source_vars()
    click.echo(script)
