"""Trained models as ONNX files, so that adding videos and searching need no torch."""

from momentseek.models.export.writing import EXPORTABLE, Exported, export

__all__ = ["EXPORTABLE", "Exported", "export"]
