"""One library on many machines: shards, replicas, object storage and Ray."""
