"""The scan: which videos hold the clip most like a query, exactly or by a plan whose recall is measured."""

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
