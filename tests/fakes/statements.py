"""Counts what reaches the database's driver."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from llmgw.store.database import Database


@contextmanager
def counted_statements(database: Database) -> Iterator[list[str]]:
    """The statements that are run inside the block, without BEGIN and COMMIT."""
    seen: list[str] = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if not statement.startswith("BEGIN"):
            seen.append(statement)

    glance = database.glance

    async def note_glance(query, **values):
        seen.append(str(query.select))
        return await glance(query, **values)

    if database._glances is not None:  # whose thread knows nothing of SQLAlchemy
        database.glance = note_glance
    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        database.__dict__.pop("glance", None)
        event.remove(database.engine.sync_engine, "before_cursor_execute", note)
