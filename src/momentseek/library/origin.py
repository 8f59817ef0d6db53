"""What a library that is a copy of one elsewhere is called."""

from __future__ import annotations

ORIGIN_FILE = "origin.json"
"""In the replica of a shard: which shard it is a replica of, and a name for the replica itself."""
