"""One file per trainable model; a file that calls ``register`` is all it takes to add one."""
