"""How benchmarks are made: one file per protocol, pure functions on annotations with a record of their decisions."""
