"""Edit lists: moments as clips on a timeline of an editing program, to the frame. CMX 3600 EDL and FCPXML."""

from momentseek.media.edit_lists.edl import read_edl, write_edl
from momentseek.media.edit_lists.excerpt import Edit, EditList, EditListText, Excerpt
from momentseek.media.edit_lists.fcpxml import read_fcpxml, write_fcpxml

__all__ = ["Edit", "EditList", "Excerpt", "EditListText", "read_edl", "read_fcpxml", "write_edl", "write_fcpxml"]
