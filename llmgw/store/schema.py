"""The tables, as this program knows them.

Times are unix seconds. What identifies a row and may be long, or may not be kept as it came, is
hashed. No prompt, output, body, credential, file name or upstream text has a column.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

METADATA = MetaData()

REQUESTS = Table(
    "requests",
    METADATA,
    Column("id", Text, primary_key=True),  # the x-request-id of the answer
    Column("instance", Text, nullable=False),  # of the gateway that served it
    Column("pool", Text, nullable=False),
    Column("key_id", Text),
    Column("key_name", Text),
    Column("labels", Text, nullable=False),  # of the key: "env=prod,team=search"
    Column("model", Text, nullable=False),
    Column("route_class", Text, nullable=False),
    Column("route", Text, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("assignment", Text),  # of the last attempt
    Column("outcome", Text),  # null: still running
    Column("status", Integer),
    Column("retry_count", Integer, nullable=False),
    Column("started_at", Float(53), nullable=False),
    Column("ended_at", Float(53)),
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    Column("tokens_cached", BigInteger),
    Column("closed_by", Text),  # the gateway that took it for abandoned
    Index("requests_by_time", "started_at"),
    Index("requests_by_pool", "pool", "started_at"),
    Index(
        "requests_open",
        "instance",
        sqlite_where=text("ended_at IS NULL"),
        postgresql_where=text("ended_at IS NULL"),
    ),
)

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("request_id", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True),  # from 1
    Column("assignment", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("status", Integer),
    Column("started_at", Float(53), nullable=False),
    Column("ended_at", Float(53), nullable=False),
    Index("attempts_by_time", "started_at"),
)

CIRCUITS = Table(
    "circuits",
    METADATA,
    Column("id", Text, primary_key=True),  # hash of the four that follow
    Column("pool", Text, nullable=False),
    Column("assignment", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("route_class", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("openings", Integer, nullable=False),
    Column("open_until", Float(53), nullable=False),
    Column("successes", Integer, nullable=False),
    Column("leases", Text, nullable=False),  # JSON: [[owner, taken_at], ...]
    Column("reason", Text, nullable=False),
    Column("version", BigInteger, nullable=False),  # of the whole ledger: never used twice
)

DEMOTIONS = Table(
    "demotions",
    METADATA,
    Column("id", Text, primary_key=True),  # hash of the four that follow
    Column("pool", Text, nullable=False),
    Column("key_id", Text),
    Column("model", Text, nullable=False),
    Column("assignment", Text, nullable=False),
    Column("until", Float(53), nullable=False),
    Index("demotions_by_end", "until"),
)

LEDGER = Table(
    "ledger",
    METADATA,
    Column("id", Integer, primary_key=True),  # 1, the only row
    Column("version", BigInteger, nullable=False),  # grows with every change of what routes
)

PINS = Table(
    "pins",
    METADATA,
    Column("id", Text, primary_key=True),  # hash of pool, kind and the upstream's id
    Column("assignment", Text, nullable=False),
    Column("until", Float(53), nullable=False),
    Index("pins_by_end", "until"),
)

GATEWAYS = Table(
    "gateways",
    METADATA,
    Column("instance", Text, primary_key=True),
    Column("place", Text, nullable=False),  # hash of host and state folder, over restarts
    Column("version", Text, nullable=False),
    Column("started_at", Float(53), nullable=False),
    Column("seen_at", Float(53), nullable=False),
)

DRAINS = Table(
    "drains",
    METADATA,
    Column("node", Text, primary_key=True),
    Column("since", Float(53), nullable=False),
    Column("until", Float(53)),  # null: until it is ended
)

META = Table(
    "meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
