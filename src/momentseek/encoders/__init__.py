"""Text encoders behind a small protocol; where weights come from and how they are verified."""
