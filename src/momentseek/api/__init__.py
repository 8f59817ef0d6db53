"""The Python API: what ``import momentseek`` offers; the command line and the server are its clients."""
