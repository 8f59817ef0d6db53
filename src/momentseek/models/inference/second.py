"""Second stage: the best spans in each of a query's videos, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from momentseek.errors import MomentseekError
from momentseek.models.batch import Encoded
from momentseek.models.inference.encode import Progress, device_of, searching
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.videos import CELLS
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
    k = min(k, int(corpus.counts.max(initial=1)) * (config.longest - config.shortest + 1))
    shape = (*videos.shape, k)
    best = Spans(np.zeros(shape, np.int16), np.zeros(shape, np.int16), np.full(shape, -np.inf, np.float32))
    row, column = np.nonzero(videos >= 0)
    video = videos[row, column]
    order = np.lexsort((row, video, corpus.counts[video]))
    row, column, video = row[order], column[order], video[order]
    limits = corpus.counts if usable is None else usable
    with searching(model):
        for part in _blocks(corpus, video, cells):
            r, c, v = row[part], column[part], video[part]
            grid = model.spans(_rows(queries, asked[r], device), _rows(corpus, v, device)).float().cpu().numpy()
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
                progress("spans", part.stop, len(video))
    return best


def _blocks(corpus: EncodedCorpus, video: IntArray, cells: int) -> Iterator[slice]:
    """Stretches of pairs, sorted by length, whose encodings stay within ``cells`` numbers."""
    sizes = corpus.counts[video] * corpus.width + corpus.fixed
    first = 0
    while first < len(video):
        # Sizes grow, so the last pair of a block decides what padding costs; halve until it fits.
        last = min(len(video), first + max(1, cells // max(1, int(sizes[first]))))
        while last > first + 1 and (last - first) * sizes[last - 1] > cells:
            last = first + (last - first) // 2
        yield slice(first, last)
        first = last


def _rows(source: EncodedCorpus, index: IntArray, device: torch.device) -> Encoded:
    """The encodings at ``index``, each distinct one fetched once."""
    distinct, inverse = np.unique(index, return_inverse=True)
    fetched = source.take(distinct, device)
    if len(distinct) == len(index) and np.array_equal(distinct, index):
        return fetched
    at = torch.from_numpy(inverse).to(device)
    return {key: tensor.index_select(0, at) for key, tensor in fetched.items()}
