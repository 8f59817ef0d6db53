"""From scores of videos and spans to ranked moments: numpy only, shared by searching and by trained models."""
