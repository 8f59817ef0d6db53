"""The exact scan on its own, by numpy's kernel unless another is given: what every other search is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.exact import NONE_GONE, BestVideos, best_among, open_videos
from momentseek.library.scan.kernels import Kernel, NumpyKernel, quantise_queries
from momentseek.library.segments import Segment


def top_videos(
    segments: Sequence[Segment],
    queries: NDArray[Any],
    k: int,
    *,
    allowed: NDArray[np.bool_] | None = None,
    gone: NDArray[np.int64] = NONE_GONE,
    kernel: Kernel | None = None,
) -> BestVideos:
    """The k best videos for each query (``(q, d)``, or one vector), exactly.

    ``allowed`` has one entry per video of all segments in their order; ``gone`` are ids that no longer count.
    """
    width = np.shape(queries)[-1]
    ready = quantise_queries(queries, segments[0].dim if segments else width)
    places = open_videos(segments, allowed, gone)
    return best_among(segments, ready, k, places, kernel or NumpyKernel())
