"""Choose docstrings, help texts and pages at random for the reading test (CONTRIBUTING.md).

    python tools/reading_sample.py SEED [--docstrings 20] [--helps 10] [--pages 5]

Prints the docstrings (with signatures, without code), the help texts and the pages in full.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

import click

from momentseek.cli import cli

ROOT = Path(__file__).parent.parent


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield (where, docstring) of every module, class and function of the package."""
    for path in sorted((ROOT / "src/momentseek").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                signature = f"({ast.unparse(node.args)})" if isinstance(node, ast.FunctionDef) else ""
                yield f"{path.relative_to(ROOT / 'src')}: {getattr(node, 'name', 'module')}{signature}", text


def help_texts(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield (command, help text) of every command that is not hidden and not a group."""
    if not isinstance(command, click.Group):
        yield context.command_path, command.get_help(context)
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield from help_texts(below, click.Context(below, parent=context, info_name=name))


def main() -> None:
    """Print the sample of a seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("--docstrings", type=int, default=20)
    parser.add_argument("--helps", type=int, default=10)
    parser.add_argument("--pages", type=int, default=5)
    wanted = parser.parse_args()
    draw = random.Random(wanted.seed)
    helps = list(help_texts(cli, click.Context(cli, info_name="momentseek")))
    chosen = draw.sample(list(docstrings()), wanted.docstrings) + draw.sample(helps, wanted.helps)
    for number, (where, text) in enumerate(chosen, 1):
        print(f"--- {number}. {where}\n{text}\n")
    for page in draw.sample(sorted((ROOT / "docs").rglob("*.md")), wanted.pages):
        print(f"--- page: {page.relative_to(ROOT)}\n{page.read_text()}\n")


if __name__ == "__main__":
    main()
