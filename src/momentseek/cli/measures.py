"""``momentseek measures``: what can be measured, with which options, under whose rules."""

from __future__ import annotations

import click

from momentseek.cli import options
from momentseek.measuring.measures.catalog import describe_measures, describe_protocols


@click.command()
@options.as_json
def command(as_json: bool) -> None:
    """List the measures with their options, and the protocols.

    \b
    A name is NAME@K[IoU>=m,option=value]; braces make lists:
      NDCG@{10,20,40}[IoU>={0.3,0.5,0.7}]   R@1[IoU>=0.5,task=SVMR]   AxIoU@10   mAP   dR@1[IoU>=0.7]
    """

    if as_json:
        import json

        click.echo(json.dumps({"measures": describe_measures(), "protocols": describe_protocols()}, indent=2))
        return
    click.echo("Measures (the first value of an option is its default)\n")
    for measure in describe_measures():
        click.echo(f"  {measure['usage']}\n      {measure['about']}")
        for name, values in measure["options"].items():
            click.echo(f"      {name} = {' | '.join(values)}")
    click.echo("\nProtocols\n")
    for protocol in describe_protocols():
        click.echo(f"  {protocol['name']}\n      {protocol['about']}")
        if protocol["measures"]:
            click.echo(f"      {'  '.join(protocol['measures'])}")
