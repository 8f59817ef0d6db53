"""Describing a moment in words: what a captioner reads, which words it knows, and how a caption is found word by word.

``moment_input`` makes a moment's clips and what is said in it the input of a network, ``vocabulary`` has the words,
``decoding`` the searches for a caption. Networks are trained in ``models``, and run here without torch.
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.captioning.decoding import DecodingSettings, decode_captions
    from momentseek.captioning.moment_input import CaptionPreparation, MomentInputs, SaidLine
    from momentseek.captioning.vocabulary import Vocabulary, build_vocabulary

__all__ = [
    "CaptionPreparation",
    "DecodingSettings",
    "MomentInputs",
    "SaidLine",
    "Vocabulary",
    "build_vocabulary",
    "decode_captions",
]

__getattr__ = late_names(
    __name__,
    {
        "CaptionPreparation": "moment_input",
        "DecodingSettings": "decoding",
        "MomentInputs": "moment_input",
        "SaidLine": "moment_input",
        "Vocabulary": "vocabulary",
        "build_vocabulary": "vocabulary",
        "decode_captions": "decoding",
    },
)
