"""The scan: which videos hold the clip most like a query, exactly or by a plan whose recall is measured."""

from momentseek.library.scan.exact import Best, curve, top_videos

__all__ = ["Best", "curve", "top_videos"]
