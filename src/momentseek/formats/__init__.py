"""One file per community file format, to and from Judgements and Run; files are recognised by their shape."""

from momentseek.formats import qvhighlights, tvr, tvr_ranking
from momentseek.formats.files import read_corpus, read_run, read_runs, read_truth
from momentseek.formats.registry import FORMATS, Format, Reading, recognise

__all__ = [
    "FORMATS",
    "Format",
    "Reading",
    "read_corpus",
    "read_run",
    "read_runs",
    "read_truth",
    "recognise",
]
_ = (qvhighlights, tvr, tvr_ranking)  # imported for what they register
