"""ASGI middlewares and sessions, which protect the application from the network."""
