"""Open and decode media in a process of its own, so that a codec's crash, hang or lack of memory costs one file."""
