"""The settings of massive datasets, and the random numbers ("lots") by which a query's pool is drawn.

A video's lot depends only on the seed, the query (its video, sentence and times, not its id) and the video's name. So
the draw is the same on every machine and for any order of videos and sentences in the file, and stricter thresholds
remove videos without redrawing the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError

Lots = NDArray[np.uint64]


@dataclass(frozen=True)
class MassiveSettings:
    """The settings of a massive dataset (MVMR, section 5); defaults are those for Charades-STA and ActivityNet."""

    pool: int = 50
    """Number of videos in which a query is searched, including its own."""
    positives: int = 4
    """Further videos that also answer the query, at most (the paper counts the own one too: k = 5)."""
    text_positive: float = 0.9
    text_negative: float = 0.5
    candidates: int = 20
    """Number of similar videos that are considered as positives, at most."""
    seed: int = 0
    keep_undistracted: bool = False
    """Whether to keep queries whose pool holds only videos that answer them."""

    def __post_init__(self) -> None:
        if self.pool < 2:
            raise MomentseekError(f"a pool of {self.pool} leaves nothing to search; choose a `pool` of 2 or more")
        if self.positives < 0 or self.candidates < 0:
            raise MomentseekError("numbers of positives and candidates must not be negative")
        if not self.text_negative <= self.text_positive:
            raise MomentseekError(
                f"`text_negative` ({self.text_negative:g}) is above `text_positive` ({self.text_positive:g}), so a "
                "video could be both; choose it lower"
            )


def draw_lots(names: Sequence[str], seed: int) -> Lots:
    """Draw a random 64-bit number per name (of videos or queries), by the seed."""
    return np.array([_number(f"{seed}\0{name}") for name in names], dtype=np.uint64)


def query_lots(lots: Lots, query: str) -> Lots:
    """The lots for one query (or another purpose), by its name.

    >>> lots = draw_lots(["a", "b", "c"], seed=0)
    >>> bool((query_lots(lots, "q1") == query_lots(lots, "q1")).all()), bool((query_lots(lots, "q2") == lots).any())
    (True, False)
    """
    return _mix(lots ^ np.uint64(_number(query)))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mix(x: Lots) -> Lots:
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014): every bit of x affects every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
