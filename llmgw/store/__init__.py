"""The database, and nothing but SQLAlchemy."""
