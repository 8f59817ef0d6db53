"""A library's answers to the queries of the demo, compared with the known truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from momentseek.benchmarks.demo.films import DemoQuery
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.core.reports import text_table
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.result import Evaluation
from momentseek.search.hit import Hit

DEMO_MEASURES = ("AxIoU@1", "R@1[IoU>=0.5]", "R@1[IoU>=0.7]")


@dataclass(frozen=True)
class DemoAnswers:
    """The hits of each query, best first."""

    hits: list[tuple[DemoQuery, list[Hit]]]

    @cached_property
    def quality(self) -> Evaluation:
        """The hits evaluated by the same measures as any other run."""
        truth = Judgements.from_rows([(query.text, query.film, *query.interval, 1) for query, _ in self.hits])
        run = Run.from_rows(
            [(query.text, hit.name, hit.start, hit.end, hit.score) for query, hits in self.hits for hit in hits]
        )
        return evaluate(run, truth, DEMO_MEASURES, missing="zero")

    def as_text(self) -> str:
        """Render a table per query, and how many scenes were found."""
        tables = [f"\n{query.text!r}\n{_table(query, hits)}" for query, hits in self.hits]
        right = sum(bool(hits) and _overlap(query, hits[0]) > 0 for query, hits in self.hits)
        shares = ", ".join(f"{name} {self.quality[name]:.2f}" for name in DEMO_MEASURES[1:])
        summary = (
            f"\nThe right scene is first for {right} of {len(self.hits)} queries; "
            f"mean IoU of the first moments {self.quality[DEMO_MEASURES[0]]:.2f} ({shares})."
        )
        return "\n".join([*tables, summary])

    def as_json(self) -> dict[str, Any]:
        """Return all hits with their overlap with the truth, and the measures."""
        rows = [
            {
                "query": query.text,
                "truth": {"video": query.film, "start": query.interval[0], "end": query.interval[1]},
                "hits": [
                    {
                        "video": hit.name,
                        "start": hit.start,
                        "end": hit.end,
                        "score": hit.score,
                        "confidence": hit.level,
                        "iou": _overlap(query, hit),
                    }
                    for hit in hits
                ],
            }
            for query, hits in self.hits
        ]
        return {"queries": rows, "measures": self.quality.means}


def _table(query: DemoQuery, hits: list[Hit]) -> str:
    rows = [
        [str(hit.rank), f"{hit.name} {_span(hit.start, hit.end)}", hit.level, f"{_overlap(query, hit):.2f}"]
        for hit in hits
    ]
    truth = f"{query.film} {_span(*query.interval)}"
    return text_table(["", "found", "confidence", f"IoU with the truth, {truth}"], rows, align="rlll")


def _span(start: float, end: float) -> str:
    return f"{start:.1f}–{end:.1f} s"


def _overlap(query: DemoQuery, hit: Hit) -> float:
    return float(iou(hit.start, hit.end, *query.interval)) if hit.name == query.film else 0.0
