"""The scan: which videos hold the clip most like a query, exactly or by a plan whose recall is measured.

Names load on first use: a small library is scanned without a plan.
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.library.scan.exact import BestVideos, top_videos
    from momentseek.library.scan.plan import Depths, Plan, build_plan, open_plan
    from momentseek.library.scan.recall import RecallReport, measure_recall, recall_report, tune
    from momentseek.library.scan.scan import Scan

__all__ = [
    "BestVideos",
    "Depths",
    "Plan",
    "RecallReport",
    "Scan",
    "build_plan",
    "measure_recall",
    "open_plan",
    "recall_report",
    "top_videos",
    "tune",
]

__getattr__ = late_names(
    __name__,
    {
        "BestVideos": "exact",
        "Depths": "plan",
        "Plan": "plan",
        "RecallReport": "recall",
        "Scan": "scan",
        "build_plan": "plan",
        "measure_recall": "recall",
        "open_plan": "plan",
        "recall_report": "recall",
        "top_videos": "exact",
        "tune": "recall",
    },
)
