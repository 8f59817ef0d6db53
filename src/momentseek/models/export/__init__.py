"""Export trained models as ONNX files, so that indexing and searching need no torch."""
