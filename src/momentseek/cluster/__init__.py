"""The same library on many machines: Ray's tasks and actors on the shards of a library. Nothing else imports Ray."""
