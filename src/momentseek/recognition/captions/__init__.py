"""Describe a moment in words: what a captioner reads, which words it knows, and how a caption is found."""
