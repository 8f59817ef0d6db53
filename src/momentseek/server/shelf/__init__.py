"""What people keep for later: favourite moments and saved searches."""
