"""Which header lines pass, towards the upstream and towards the client: lists, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from email.utils import parsedate_to_datetime

from llmgw.core.config import Account, Upstream
from llmgw.core.errors import LoopDetected
from llmgw.core.types import Dialect, Headers

HOP_BY_HOP = frozenset(  # RFC 9110, section 7.6.1, and what older software still sends
    {
        "connection",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
CREDENTIALS = frozenset(
    {
        "api-key",
        "authorization",
        "cookie",
        "cookie2",
        "ocp-apim-subscription-key",
        "x-access-token",
        "x-amz-security-token",
        "x-api-key",
        "x-auth-token",
        "x-goog-api-key",
    }
)
NOT_UPSTREAM = (
    HOP_BY_HOP
    | CREDENTIALS
    | frozenset(
        {
            "accept-encoding",  # identity is asked for
            "content-encoding",  # the body is forwarded decoded
            "content-length",
            "expect",
            "forwarded",
            "host",
            "request-id",
            "x-real-ip",
            "x-request-id",
        }
    )
)
NOT_UPSTREAM_PREFIXES = ("x-forwarded-", "x-openwebui-", "x-llmgw-", "cf-")
NOT_TO_ACCOUNTS = NOT_UPSTREAM | {"openai-organization", "openai-project", "traceparent"}

NOT_DOWNSTREAM = HOP_BY_HOP | frozenset(
    {
        "content-length",
        "date",
        "request-id",
        "server",
        "set-cookie",
        "set-cookie2",
        "www-authenticate",
        "x-request-id",
    }
)
NOT_DOWNSTREAM_PREFIX = "access-control-"  # who may read an answer is this gateway's to say
NOT_ON_STREAMS = NOT_DOWNSTREAM | {"cache-control", "content-encoding", "x-accel-buffering"}
FROM_ACCOUNTS = frozenset(
    {
        "content-encoding",
        "content-type",
        "openai-processing-ms",
        "openai-version",
        "x-should-retry",
    }
)
FROM_ACCOUNTS_PREFIXES = ("retry-after", "x-ratelimit-", "anthropic-ratelimit-", "x-codex-")

STREAM_HEADERS: Headers = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))
IDENTITY = ("accept-encoding", "identity")


def upstream_headers(
    client: Headers, *, upstream: Upstream, request_id: str, instance: str
) -> Headers:
    """The client's lines as they are, but for those that are its own affair or its secrets."""
    is_account = isinstance(upstream, Account)
    dropped = NOT_TO_ACCOUNTS if is_account else NOT_UPSTREAM
    kept: list[tuple[str, str]] = []
    via: list[str] = []
    named: frozenset[str] = frozenset()
    for line in client:
        name = line[0]
        if name == "connection":
            named |= _tokens(line[1])
        elif name == "via":
            via.append(line[1])
        elif name not in dropped and not name.startswith(NOT_UPSTREAM_PREFIXES):
            kept.append(line)
    if named:
        kept = _without(kept, named)
    if isinstance(upstream, Account) and upstream.headers:
        kept = [*_without(kept, {name for name, _ in upstream.headers}), *upstream.headers]
    via.append(f"1.1 llmgw-{instance}")
    kept += (IDENTITY, ("via", ", ".join(via)), *upstream.credential)
    if not is_account:
        kept.append(("x-request-id", request_id))
    return tuple(kept)


def downstream_headers(
    answer: Headers, *, upstream: Upstream, request_id: str, dialect: Dialect, stream: bool
) -> Headers:
    """What the upstream says and what we do."""
    kept = passed_on(answer, from_account=isinstance(upstream, Account), stream=stream)
    return (*kept, *own_headers(request_id=request_id, dialect=dialect, stream=stream))


def passed_on(answer: Headers, *, from_account: bool, stream: bool) -> list[tuple[str, str]]:
    """Without framing (`content-length`, `transfer-encoding`): that is the connection's."""
    dropped = NOT_ON_STREAMS if stream else NOT_DOWNSTREAM
    named: frozenset[str] = frozenset()
    kept: list[tuple[str, str]] = []
    for line in answer:
        name = line[0]
        if name == "connection":
            named |= _tokens(line[1])
        elif name not in dropped and (_is_known(name) if from_account else _is_nodes_own(name)):
            kept.append(line)
    return _without(kept, named) if named else kept


def own_headers(*, request_id: str, dialect: Dialect, stream: bool = False) -> Headers:
    """What every answer carries, ours too."""
    lines: Headers = (("x-request-id", request_id),)
    if dialect is Dialect.MESSAGES:
        lines += (("request-id", request_id),)
    return lines + STREAM_HEADERS if stream else lines


def refuse_loop(headers: Headers, *, instance: str) -> None:
    """Raises `LoopDetected` where the request has been through this gateway before."""
    for name, value in headers:
        if name == "via" and f"llmgw-{instance}" in _received_by(value):
            raise LoopDetected("the request has been through this gateway before")


def retry_after_of(headers: Headers, *, wall: float) -> float | None:
    """Seconds that the upstream asks for (`retry-after-ms`, `retry-after`); None: it does not."""
    named = dict(reversed(headers))
    milliseconds = _number(named.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = named.get("retry-after", "")
    seconds = _number(value)
    return seconds if seconds is not None else _seconds_until(value, wall)


def _tokens(value: str) -> frozenset[str]:
    """What a Connection line names; `content-type` is for the other end, whatever it says."""
    named = frozenset(token.strip().lower() for token in value.split(","))
    return named - {"", "close", "content-type", "keep-alive"}


def _without(lines: Iterable[tuple[str, str]], names: Iterable[str]) -> list[tuple[str, str]]:
    dropped = frozenset(names)
    return [line for line in lines if line[0] not in dropped]


def _is_known(name: str) -> bool:
    return name in FROM_ACCOUNTS or name.startswith(FROM_ACCOUNTS_PREFIXES)


def _is_nodes_own(name: str) -> bool:
    return not name.startswith(NOT_DOWNSTREAM_PREFIX)


def _received_by(via: str) -> list[str]:
    """The hosts or pseudonyms of a Via line: "1.1 a, HTTP/1.1 b (comment)" gives a and b."""
    entries = (entry.split() for entry in via.split(","))
    return [words[1] for words in entries if len(words) > 1]


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


def _seconds_until(date: str, wall: float) -> float | None:
    try:
        return max(parsedate_to_datetime(date).timestamp() - wall, 0.0)
    except (ValueError, OverflowError):
        return None
