"""The server's own databases: SQLite files beside a library, or one PostgreSQL database that several servers share."""

from momentseek.server.database.store import DatabasePlace, ServerDatabase

__all__ = ["DatabasePlace", "ServerDatabase"]
