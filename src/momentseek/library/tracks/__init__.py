"""Timed text of videos: transcripts, text on screen, captions, sounds."""
