"""How late a gateway's event loop runs: round trips of `GET /livez` on one connection.

    python bench/lag.py --port 18000 [--pause 1]    # milliseconds between two of them

Asks until its standard input is closed, then prints one JSON object: how many round trips there
were, and their median, 99th percentile and maximum in milliseconds. A loop that is held by other
work answers late by as long as it is held.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import time

ASK = b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def round_trips(port: int, pause: float) -> list[float]:
    """In milliseconds, in order."""
    found = []
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not select.select([sys.stdin], [], [], pause)[0]:
            began = time.perf_counter()
            one.sendall(ASK)
            if b"200 OK" not in one.recv(4096):
                raise RuntimeError("the gateway is not alive")
            found.append((time.perf_counter() - began) * 1000)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=18000)
    parser.add_argument("--pause", type=float, default=1.0)
    args = parser.parse_args()
    found = sorted(round_trips(args.port, args.pause / 1000))
    told = {
        "asked": len(found),
        "p50_ms": found[len(found) // 2],
        "p99_ms": found[int(len(found) * 0.99)],
        "max_ms": found[-1],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
