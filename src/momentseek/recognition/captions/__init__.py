"""Captions of moments: a captioner's input, its vocabulary, and the decoding of captions."""
