"""Copies on this machine of the shards of a library in object storage."""
