"""``momentseek data related``: find videos that answer a query besides its own."""

from __future__ import annotations

import click

from momentseek.benchmarks.datasets.sentences import collect_sentences, encoder_similarity, find_related_videos
from momentseek.cli import options
from momentseek.cli.options import Number
from momentseek.cli.progress import progress_bar, progress_bars
from momentseek.measuring.formats import read_truth, write_all
from momentseek.measuring.formats.writers import dump
from momentseek.recognition.encoders.registry import text_encoder


@click.command()
@click.argument("truth", metavar="TRUTH")
@click.option("--out", required=True, metavar="FILE", help="Write {query: [videos]} here, as JSON.")
@click.option(
    "--threshold",
    type=Number(-1, 1),
    default=0.9,
    show_default=True,
    metavar="T",
    help="A video with a sentence at least this similar answers the query.",
)
@click.option("--encoder", default="minilm", show_default=True, metavar="NAME", help="Text encoder, or file:VECTORS.")
@options.force
@options.as_json
def command(
    truth: str,
    out: str,
    threshold: float,
    encoder: str,
    force: bool,
    as_json: bool,
) -> None:
    """Find, for every query of a training set, the other videos that answer it too.

    A video does if the similarity of one of its sentences to the query is at least --threshold (MVMR, eq. 1). If a data
    folder names the file (data.toml: `related = "related.json"` under the split), these videos are not used as
    negatives in training: CroCs' first stage leaves them out, and its second never draws them.

    \b
    Charades-STA's training set, before training CroCs on it:
      momentseek data related charades_sta_train.txt --out charades/related.json
    Vectors of another encoder, and a stricter threshold:
      momentseek data related train.json --encoder file:vectors.npz --threshold 0.95 --out related.json
    """
    import json
    from pathlib import Path

    vectors = encoder.removeprefix("file:") if encoder.startswith("file:") else None
    options.check_targets([truth, vectors], [out], force)
    judgements = read_truth(truth, invalid="keep")  # times play no part
    data = collect_sentences(judgements)
    model = text_encoder(encoder)
    with progress_bars(f"encoding with {model.name}") as progress:
        similarity = encoder_similarity(model, data.texts, progress=progress)
    with progress_bar(len(data.texts), "comparing sentences") as advance:
        found = find_related_videos(data, similarity, threshold, advance)
    write_all({Path(out): dump(found)})
    pairs = sum(map(len, found.values()))
    summary = {
        "out": out,
        "encoder": encoder,
        "threshold": threshold,
        "queries": len(judgements),
        "with_related": len(found),
        "pairs": pairs,
    }
    if as_json:
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        return
    mean = pairs / len(found) if found else 0.0
    click.echo(
        f"{len(found):,} of {len(judgements):,} queries have other videos that answer them ({encoder}, similarity "
        f"{threshold:g} or more), {mean:.1f} on average"
    )
    options.say(f"wrote {out}")
