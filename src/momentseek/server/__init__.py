"""The HTTP API and the web page; ``create_app`` makes the application, ``momentseek serve`` runs it."""
