"""ASGI middlewares and sessions: what stands between the network and the application."""
