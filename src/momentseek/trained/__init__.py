"""Running exported models without torch: encoders of clips or moments in their context, and re-rankers."""
