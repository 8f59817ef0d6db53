"""Answers of multimodal language models in prose, read as moments; what answers nothing is counted by reason."""
