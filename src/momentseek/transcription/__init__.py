"""Hearing what is said in a video: from its sound to cues with the times of their words.

``transcript`` says what comes out, ``correction`` what a person may change of it, ``transcriber`` which recognisers
there are, ``whisper`` is the one that works without a download, ``process`` runs it in a process of its own, so that
its crash or hang costs one file.
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.transcription.correction import CueEdit
    from momentseek.transcription.process import TranscriberProcess
    from momentseek.transcription.transcriber import DEFAULT_TRANSCRIBER, default_transcriber, transcriber_print
    from momentseek.transcription.transcript import HeardPart, SpokenCue, SpokenWord, cues_from_words

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

__getattr__ = late_names(
    __name__,
    {
        "CueEdit": "correction",
        "DEFAULT_TRANSCRIBER": "transcriber",
        "HeardPart": "transcript",
        "SpokenCue": "transcript",
        "SpokenWord": "transcript",
        "TranscriberProcess": "process",
        "cues_from_words": "transcript",
        "default_transcriber": "transcriber",
        "transcriber_print": "transcriber",
    },
)
