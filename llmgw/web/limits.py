"""How much a client may send, and how long it may take: what no configuration changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

KEEPALIVE_TIMEOUT: Final = 75.0  # above what reverse proxies use for idle upstream connections
LINE_BYTES: Final = 64 * 1024  # a request line or one header line
HEAD_BYTES: Final = 256 * 1024  # all of a request's head
MAX_HEADERS: Final = 128
READ_BYTES: Final = 64 * 1024
WRITE_BUFFER: Final = 256 * 1024
READ_AHEAD: Final = 2  # parsed requests that may wait before reading stops
READ_AHEAD_BYTES: Final = 1024 * 1024  # of the bodies of those
LINGER: Final = 5.0  # reads on, so that an early answer is not lost in a reset (RFC 9112, 9.6)
BRIEF_LINGER: Final = 0.5  # where the client was not asked for its body
LOOK_EVERY: Final = 0.05  # for a client that leaves while nothing is read
FLUSH_WITHIN: Final = 30.0  # a closed connection may go on sending without any progress
MEMBERS: Final = 10_000  # of gzip or frames of zstd that a body may be encoded in
BODY_SILENCE: Final = 60.0  # how long a client may send nothing inside its body

OPTIONS: Final[Mapping[str, Any]] = {
    "access_log": None,
    "auto_decompress": False,  # it has no bound; see `coding`
    "keepalive_timeout": KEEPALIVE_TIMEOUT,
    "lingering_time": LINGER,
    "max_field_size": LINE_BYTES,
    "max_headers": MAX_HEADERS,
    "max_line_size": LINE_BYTES,
    "read_bufsize": READ_BYTES,
}
"""Of aiohttp's request handler."""
