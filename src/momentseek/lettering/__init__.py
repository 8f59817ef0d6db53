"""Reading what is written in the pictures of a video: from frames to lines with boxes and times.

``slots`` says which frames are read, ``reader`` which readers there are, ``ppocr`` is the one that works without a
download, ``merge`` joins what neighbouring frames show, ``process`` does it in a process of its own, so that a crash or
hang costs one file.
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.lettering.line import Box, ReadFrame, ReadLine, ReadPart, ScreenLine
    from momentseek.lettering.merge import merge_lines
    from momentseek.lettering.process import ReaderProcess
    from momentseek.lettering.reader import DEFAULT_READER, default_reader, reader_print
    from momentseek.lettering.slots import SLOT_SECONDS

__all__ = [
    "DEFAULT_READER",
    "SLOT_SECONDS",
    "Box",
    "ReadFrame",
    "ReadLine",
    "ReadPart",
    "ReaderProcess",
    "ScreenLine",
    "default_reader",
    "merge_lines",
    "reader_print",
]

__getattr__ = late_names(
    __name__,
    {
        "Box": "line",
        "DEFAULT_READER": "reader",
        "ReadFrame": "line",
        "ReadLine": "line",
        "ReadPart": "line",
        "ReaderProcess": "process",
        "SLOT_SECONDS": "slots",
        "ScreenLine": "line",
        "default_reader": "reader",
        "merge_lines": "merge",
        "reader_print": "reader",
    },
)
