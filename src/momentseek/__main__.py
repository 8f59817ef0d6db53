"""``python -m momentseek``."""

from momentseek.cli import main

if __name__ == "__main__":
    main()
