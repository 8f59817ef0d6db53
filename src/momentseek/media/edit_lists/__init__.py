"""Edit lists: moments as clips on a timeline of an editing program, to the frame. CMX 3600 EDL and FCPXML."""
