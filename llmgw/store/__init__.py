"""The database, and nothing but SQLAlchemy.

Reads and writes of request handlers go through the tasks of `reader` and `writer`: a handler
waits on a future and never holds a connection.
"""
