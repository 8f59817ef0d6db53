"""Edit lists: moments as clips on a timeline of an editing program, to the frame. CMX 3600 EDL and FCPXML."""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.media.edit_lists.edl import write_edl
    from momentseek.media.edit_lists.excerpt import Excerpt, ExportText
    from momentseek.media.edit_lists.fcpxml import write_fcpxml

__all__ = ["Excerpt", "ExportText", "write_edl", "write_fcpxml"]

__getattr__ = late_names(
    __name__, {"Excerpt": "excerpt", "ExportText": "excerpt", "write_edl": "edl", "write_fcpxml": "fcpxml"}
)
