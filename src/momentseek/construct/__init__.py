"""How benchmarks are made: one file per protocol, each a pure function on annotations with a record of its decisions."""
