"""Trained corpus models on ONNX Runtime: clips in context and queries as vectors, without torch."""
