"""`llmgw usage`: who used how much, from the database, whether a gateway runs or not."""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from llmgw.cli.table import table
from llmgw.config_file import ConfigError, Loaded, config_for_nodes, load
from llmgw.config_file.faults import FileMissing, Unfit
from llmgw.config_file.quantities import parse_duration
from llmgw.config_file.source import DEFAULT_FILE
from llmgw.core.config import ModelsConfig
from llmgw.core.prices import Price, prices_of
from llmgw.core.types import PoolName
from llmgw.store.database import connect
from llmgw.store.errors import StoreError
from llmgw.store.reader import Reader
from llmgw.store.usage import GroupBy, UsageBook, UsageLine

SQLITE: Final = "sqlite:///"
SERVICE_DATABASE: Final = Path("/var/lib/llmgw/llmgw.db")
COLUMNS: Final = (
    *("requests", "succeeded", "failed", "handoffs"),
    *("tokens_in", "tokens_out", "tokens_cached"),
)


@dataclass(frozen=True, slots=True)
class Share:
    """One group; `unpriced` of its requests are for models without a price."""

    line: UsageLine
    cost: float | None
    unpriced: int


class Unreadable(Exception):
    """There is nothing to read, or it can't be read: one line."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=[one.value for one in GroupBy],
        default="key",
        help='default: %(default)s; requests without one are the line "-"',
    )
    parser.add_argument(
        "--since", default="30d", metavar="DURATION", help="up to now; default: %(default)s"
    )
    parser.add_argument("--pool", action="append", metavar="POOL", help="only this one; repeat")
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        default=DEFAULT_FILE,
        help="names the database and the prices; default: %(default)s",
    )
    parser.add_argument("--database", metavar="URL", help="another one than the configuration's")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="with a head, for spreadsheets")
    form.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Exit status 1 if there is no database to read."""
    until = time.time()
    try:
        since = until - parse_duration(arguments.since)
        url, models = _place(arguments)
        lines = asyncio.run(_read(url, GroupBy(arguments.by), since, until, arguments.pool))
    except Unfit as unfit:
        return _fail(f"--since {unfit.message}")
    except (Unreadable, StoreError) as error:
        return _fail(str(error))
    shares = build_shares(lines, prices_of(models))
    print(_written(arguments, shares, since, until), end="")
    return 0


def build_shares(
    lines: Sequence[tuple[str, UsageLine]], prices: Mapping[str, Price]
) -> tuple[Share, ...]:
    """The models of each group together, the biggest group first."""
    found: dict[str | None, Share] = {}
    for model, line in lines:
        own = _share_of(line, prices.get(model))
        before = found.get(line.group)
        found[line.group] = own if before is None else _together(before, own)
    return tuple(
        sorted(found.values(), key=lambda one: (-one.line.requests, one.line.group or ""))
    )


def _share_of(line: UsageLine, price: Price | None) -> Share:
    if price is None:
        return Share(line, None, line.requests)
    return Share(line, price.of(line.tokens_in, line.tokens_out, line.tokens_cached), 0)


def _together(one: Share, other: Share) -> Share:
    known = [cost for cost in (one.cost, other.cost) if cost is not None]
    return Share(
        one.line + other.line, sum(known) if known else None, one.unpriced + other.unpriced
    )


def _place(arguments: argparse.Namespace) -> tuple[str, ModelsConfig]:
    """The database's URL and the models with their prices. Raises `Unreadable`."""
    try:
        loaded = _load(arguments.config)
    except ConfigError as error:
        if arguments.database is None:
            raise Unreadable("; ".join(map(str, error.faults))) from None
        return arguments.database, ModelsConfig()
    url = arguments.database or loaded.database_url
    if loaded.config.database.url is None and arguments.database is None and not _is_there(url):
        url = f"{SQLITE}{SERVICE_DATABASE}"  # a person asks for the service's
    if not _is_there(url):
        raise Unreadable(f"no database at {url}: a gateway that ran here would have left one")
    return url, loaded.config.models


def _load(path: Path) -> Loaded:
    """Where no file was ever written, a gateway of `serve --node` may have left its database."""
    try:
        return load(path, environ=os.environ)
    except FileMissing:
        if path != DEFAULT_FILE:
            raise
        return config_for_nodes((), environ=os.environ)


def _is_there(url: str) -> bool:
    """A file that is not there would be made by looking into it."""
    return not url.startswith("sqlite") or Path(url.removeprefix(SQLITE)).is_file()


async def _read(
    url: str, by: GroupBy, since: float, until: float, pools: Sequence[str] | None
) -> tuple[tuple[str, UsageLine], ...]:
    database = connect(url)
    try:
        await database.probe()
        book = UsageBook(Reader(database))
        wanted = None if pools is None else [PoolName(one) for one in pools]
        return await book.sums_of_models(by, since=since, until=until, pools=wanted)
    finally:
        await database.close()


def _written(
    arguments: argparse.Namespace, shares: Sequence[Share], since: float, until: float
) -> str:
    if arguments.json:
        return json.dumps(_as_json(arguments.by, shares, since, until), indent=2) + "\n"
    rows = [_row(one) for one in shares]
    if not any(one.cost is not None for one in shares):
        rows = [row[:-1] for row in rows]
    head = (arguments.by, *COLUMNS, "cost")[: len(rows[0]) if rows else None]
    if arguments.csv:
        return _as_csv([head, *rows])
    if not rows:
        return "no requests\n"
    total = [] if arguments.by == GroupBy.LABEL else _total(shares, len(head))
    return "\n".join(table([head, *rows, *total])) + "\n"


def _row(share: Share) -> tuple[str, ...]:
    counts = (str(getattr(share.line, name)) for name in COLUMNS)
    return (share.line.group or "-", *counts, _cost(share))


def _cost(share: Share) -> str:
    return "" if share.cost is None else f"{share.cost:.4f}"


def _total(shares: Sequence[Share], width: int) -> list[tuple[str, ...]]:
    """A request with two labels would count twice, so labels have none."""
    if len(shares) < 2:
        return []
    whole = shares[0]
    for one in shares[1:]:
        whole = _together(whole, one)
    row = _row(replace(whole, line=replace(whole.line, group="total")))
    return [row[:width]]


def _as_csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_harmless, rows))
    return out.getvalue()


def _harmless(row: Sequence[str]) -> list[str]:
    """A name that begins like a formula stays a name in a spreadsheet."""
    return [f"'{cell}" if cell[:1] in ("=", "+", "@", "\t", "\r") else cell for cell in row]


def _as_json(by: str, shares: Sequence[Share], since: float, until: float) -> dict[str, object]:
    return {
        "by": by,
        "since": since,
        "until": until,
        "usage": [
            {**asdict(one.line), "cost": one.cost, "unpriced_requests": one.unpriced}
            for one in shares
        ],
    }


def _fail(message: str) -> int:
    print(f"llmgw usage: {message}", file=sys.stderr)
    return 1
