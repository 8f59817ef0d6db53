"""Subtitles: files next to a video or in a folder, tracks inside it, tidied into sentences with their times."""
