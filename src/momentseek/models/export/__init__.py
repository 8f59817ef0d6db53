"""Trained models as ONNX files, so that adding videos and searching need no torch."""

from momentseek.models.export.writing import EXPORTABLE, ExportReport, export

__all__ = ["EXPORTABLE", "ExportReport", "export"]
