"""The training loop of all models, with its settings, batches and checkpoints."""
