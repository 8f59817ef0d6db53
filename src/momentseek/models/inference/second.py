"""Second stage: the best spans in each of a query's videos, in blocks of bounded size."""

from __future__ import annotations

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.models.inference.encode import Progress, device_of, searching
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.videos import CELLS, alike
from momentseek.models.model import CorpusModel
from momentseek.moments.arrays import IntArray
from momentseek.ranking import Spans, best_spans


def spans_of(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    asked: IntArray,
    videos: IntArray,
    k: int,
    *,
    least: int = 1,
    usable: IntArray | None = None,
    cells: int = CELLS,
    progress: Progress | None = None,
) -> Spans:
    """The ``k`` best spans of every (query, video): arrays ``(queries, videos, k)``, minus infinity where none is left.

    ``asked`` are places of queries and ``videos`` ``(queries, n)`` places of videos, -1 for none. Pairs are scored in
    order of the videos' lengths, many queries of one video together, so that little is padded and each video is
    fetched once. ``usable`` counts the clips spans may lie in (those before the video's end), all by default; spans of
    fewer than ``least`` clips are left out.
    """
    config = model.config
    device = device_of(model)
    lengths = config.longest - config.shortest + 1
    k = min(k, int(corpus.counts.max(initial=1)) * lengths)
    shape = (*videos.shape, k)
    best = Spans(np.zeros(shape, np.int16), np.zeros(shape, np.int16), np.full(shape, -np.inf, np.float32))
    row, column = np.nonzero(videos >= 0)
    video = videos[row, column]
    order = np.lexsort((row, video))  # and then by size, in alike, which keeps this order among equals
    row, column, video = row[order], column[order], video[order]
    asking = int(queries.counts.max(initial=0)) * queries.width + queries.fixed
    sizes = corpus.counts[video] * (corpus.width + lengths) + corpus.fixed + asking
    limits = corpus.counts if usable is None else usable
    with searching(model):
        done = 0
        for part in alike(sizes, cells):
            r, c, v = row[part], column[part], video[part]
            grid = model.spans(queries.spread(asked[r], device), corpus.spread(v, device)).float().cpu().numpy()
            if np.isnan(grid).any():
                raise MomentseekError("the model's scores are no numbers; its training has diverged")
            if (limits[v] < corpus.counts[v]).any():
                last = np.add.outer(np.arange(grid.shape[1]), np.arange(grid.shape[2]) + config.shortest - 1)
                grid = np.where(last < limits[v][:, None, None], grid, -np.inf)
            if least > config.shortest:
                grid[:, :, : least - config.shortest] = -np.inf
            found = best_spans(grid, k, config.shortest)
            width = found.score.shape[1]
            for mine, theirs in zip(best, found, strict=True):
                mine[r, c, :width] = theirs
            if progress is not None:
                done += len(part)
                progress("spans", done, len(video))
    return best
