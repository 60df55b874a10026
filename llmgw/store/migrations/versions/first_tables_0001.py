"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("instance", sa.Text, nullable=False),
        sa.Column("pool", sa.Text, nullable=False),
        sa.Column("key_id", sa.Text),
        sa.Column("key_name", sa.Text),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("route_class", sa.Text, nullable=False),
        sa.Column("route", sa.Text, nullable=False),
        sa.Column("stream", sa.Boolean, nullable=False),
        sa.Column("assignment", sa.Text),
        sa.Column("outcome", sa.Text),
        sa.Column("status", sa.Integer),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Float(53), nullable=False),
        sa.Column("ended_at", sa.Float(53)),
        sa.Column("tokens_in", sa.BigInteger),
        sa.Column("tokens_out", sa.BigInteger),
        sa.Column("tokens_cached", sa.BigInteger),
        sa.Column("closed_by", sa.Text),
    )
    op.create_index("requests_by_time", "requests", ["started_at"])
    op.create_index("requests_by_pool", "requests", ["pool", "started_at"])
    still_open = sa.text("ended_at IS NULL")
    op.create_index(
        "requests_open",
        "requests",
        ["instance"],
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
    op.create_table(
        "attempts",
        sa.Column("request_id", sa.Text, primary_key=True),
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("assignment", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("status", sa.Integer),
        sa.Column("started_at", sa.Float(53), nullable=False),
        sa.Column("ended_at", sa.Float(53), nullable=False),
    )
    op.create_index("attempts_by_time", "attempts", ["started_at"])
    op.create_table(
        "circuits",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("pool", sa.Text, nullable=False),
        sa.Column("assignment", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("route_class", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("openings", sa.Integer, nullable=False),
        sa.Column("open_until", sa.Float(53), nullable=False),
        sa.Column("successes", sa.Integer, nullable=False),
        sa.Column("leases", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "demotions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("pool", sa.Text, nullable=False),
        sa.Column("key_id", sa.Text),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("assignment", sa.Text, nullable=False),
        sa.Column("until", sa.Float(53), nullable=False),
    )
    op.create_index("demotions_by_end", "demotions", ["until"])
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "pins",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("assignment", sa.Text, nullable=False),
        sa.Column("until", sa.Float(53), nullable=False),
    )
    op.create_index("pins_by_end", "pins", ["until"])
    op.create_table(
        "gateways",
        sa.Column("instance", sa.Text, primary_key=True),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("started_at", sa.Float(53), nullable=False),
        sa.Column("seen_at", sa.Float(53), nullable=False),
    )
    op.create_table(
        "drains",
        sa.Column("node", sa.Text, primary_key=True),
        sa.Column("since", sa.Float(53), nullable=False),
        sa.Column("until", sa.Float(53)),
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.execute("INSERT INTO ledger (id, version) VALUES (1, 0)")
    op.execute("INSERT INTO meta (name, value) VALUES ('oldest_program', '0.1.0')")
