"""Captions and subtitles as a captioner knows them: lower-case words, punctuation apart."""

from __future__ import annotations

from momentseek.measures.captions.ptb import ptb_tokens


def caption_words(text: str) -> tuple[str, ...]:
    """The words and the punctuation of a text, as the measures of captions cut them.

    >>> caption_words("Nora isn't handing Victor the mug.")
    ('nora', 'is', "n't", 'handing', 'victor', 'the', 'mug', '.')
    """
    return tuple(ptb_tokens(text))
