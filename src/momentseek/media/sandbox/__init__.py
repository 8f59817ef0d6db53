"""Decode media in a separate process, so that a codec that crashes, hangs or runs out of memory costs one file."""
