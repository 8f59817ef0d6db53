"""Plug-ins for momentseek, one module each; ``pyproject.toml`` says which entry point imports which."""
