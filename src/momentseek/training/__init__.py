"""One loop that trains every model, its settings, its data, its checkpoints. Needs ``momentseek[train]``."""
