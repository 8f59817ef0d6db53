"""One library on many machines: shards, replicas, object storage and Ray; nothing else says shard."""
