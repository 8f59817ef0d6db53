"""Load the weights of public implementations into our models; one module per model."""
