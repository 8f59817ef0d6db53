"""Hearing what is said in a video: from its sound to cues with the times of their words.

``transcript`` says what comes out, ``correction`` what a person may change of it, ``transcriber`` which recognisers
there are, ``whisper`` is the one that works without a download, ``process`` runs it in a process of its own, so that
its crash or hang costs one file.
"""

from momentseek.transcription.correction import CueEdit
from momentseek.transcription.hearing import HeardPart
from momentseek.transcription.process import TranscriberProcess
from momentseek.transcription.transcriber import DEFAULT_TRANSCRIBER, default_transcriber, transcriber_print
from momentseek.transcription.transcript import SpokenCue, SpokenWord, cues_from_words

__all__ = [
    "CueEdit",
    "DEFAULT_TRANSCRIBER",
    "HeardPart",
    "SpokenCue",
    "SpokenWord",
    "TranscriberProcess",
    "cues_from_words",
    "default_transcriber",
    "transcriber_print",
]
