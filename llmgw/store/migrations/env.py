"""Run by alembic: on the connection and in the transaction of whoever asked."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transactional_ddl=True,
    version_table="llmgw_revision",
)
with context.begin_transaction():
    context.run_migrations()
