"""Why a hit ranked where it did, in a few words and as a small drawing of its curve."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.search.hit import Hit

BARS = "▁▂▃▄▅▆▇█"
VERBS = {"vision": "seen", "speech": "said", "name": "named"}


def reason(hit: Hit) -> str:
    """The streams that found a hit, with its rank in each.

    >>> from momentseek.search.hit import StreamRank
    >>> from pathlib import Path
    >>> streams = {"speech": StreamRank(2, 3.1), "vision": StreamRank(1, 0.3)}
    >>> reason(Hit(1, 1, Path("a"), "a", 0, 1, 0.1, "fair", 0, 9, streams=streams))
    'seen #1, said #2'
    """
    if hit.first is not None:
        return f"re-ranked; its video was #{hit.first.rank}"
    return ", ".join(f"{verb} #{hit.streams[name].rank}" for name, verb in VERBS.items() if name in hit.streams)


def details(hit: Hit) -> str:
    """Each stream's rank and own score, and the fused score; of a re-ranked hit the model's score and its video's."""
    if hit.first is not None:
        before = f"before, its video had rank {hit.first.rank}, fused {hit.first.score:.5f}"
        return f"{hit.model} score {hit.score:.3f}; {before}"
    parts = [f"{name} rank {s.rank}, score {s.score:.3f}" for name, s in sorted(hit.streams.items())]
    return "; ".join([*parts, f"fused {hit.score:.5f}"])


def sparkline(hit: Hit, width: int = 60) -> str:
    """The curve of the hit's video, lowest to highest, and below it a line that marks the span; empty without a curve.

    >>> from pathlib import Path
    >>> hit = Hit(1, 1, Path("a"), "a", 2, 4, 0.1, "fair", 3, 8, curve=(0.1, 0.3, 0.2, 0.1))
    >>> print(sparkline(hit))
    ▁█▅▁
     ━
    """
    if not hit.curve:
        return ""
    values = _pooled(hit.curve, width)
    low, high = min(values), max(values)
    steps = (len(BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(BARS[int((v - low) * steps + 0.5)] for v in values)
    first, last = (round(t / hit.duration * len(values)) for t in (hit.start, hit.end))
    first = min(first, len(values) - 1)
    return f"{bars}\n{' ' * first}{'━' * max(1, last - first)}"


def _pooled(curve: Sequence[float], width: int) -> list[float]:
    """At most ``width`` values, each the highest of its stretch: a short moment in a long video must be seen.

    >>> _pooled([1, 5, 2, 3], 2)
    [5, 3]
    """
    count = min(width, len(curve))
    return [max(curve[i * len(curve) // count : (i + 1) * len(curve) // count]) for i in range(count)]
