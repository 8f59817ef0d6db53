"""Trained models as ONNX files, so that adding videos and searching need no torch."""
