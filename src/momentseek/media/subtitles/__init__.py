"""Subtitles from sidecar files and from tracks inside videos, tidied into sentences with times."""
