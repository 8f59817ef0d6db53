"""One loop that trains every model, with its settings, data and checkpoints."""
