"""``python -m momentseek``."""

from momentseek.cli import run

if __name__ == "__main__":
    run()
